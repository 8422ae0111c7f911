package sst_test

import (
	"testing"

	"github.com/weft-fabric/weft/internal/testutil"
	"github.com/weft-fabric/weft/sst"
)

// TestNativeReopens: a program that closes its reader and opens another one at once is not
// given a step anew that it has had, although the writer hears of the first one's end
// over another link than of the second one's beginning. The link between the two sessions
// is held up by a writer that does not take in what came for it.
func TestNativeReopens(t *testing.T) {
	ws, rs := quickSession(t), quickSession(t)
	name, other := streamName(t), streamName(t)
	x := define(t, create(t, name, sst.WriterConfig{Session: ws}), viewValues)
	y := define(t, create(t, other, sst.WriterConfig{Session: ws}), viewValues)
	r := attach(t, name, sst.ReaderConfig{Session: rs})
	busy := attach(t, other, sst.ReaderConfig{Session: rs})
	x.must(t)
	y.must(t)
	st, h := viewNext(t, r)
	h.view.Release()
	stuck, g := viewNext(t, busy)
	g.view.Release()

	goOn := sst.HoldUp(y.w)
	stuck.End()
	st.End()
	r.Close()
	again := make(chan *sst.Reader, 1)
	go func() {
		r, err := sst.Open(t.Context(), name, sst.ReaderConfig{Session: rs})
		if err != nil {
			t.Error(err)
		}
		again <- r
	}()
	testutil.Eventually(t, "a registration is held up", func() bool { return sst.Held(x.w) > 0 })
	goOn()
	second := <-again
	if second == nil {
		return
	}
	defer second.Close()
	x.must(t)
	if next, h := viewNext(t, second); next.Number() != 1 {
		t.Errorf("step %d, want 1", next.Number())
	} else {
		h.view.Release()
		next.End()
	}
}
