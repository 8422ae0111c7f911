package sst_test

import (
	"testing"

	"github.com/weft-fabric/weft/internal/wire/sstmsg"
	"github.com/weft-fabric/weft/sst"
)

// TestPushedAndNeverAnnounced: a writer pushes blocks for steps that do not come,
// until the reader has had enough; it ends with an error, and keeps nothing.
func TestPushedAndNeverAnnounced(t *testing.T) {
	for name, number := range map[string]func(n int64) int64{
		"the steps to come": func(n int64) int64 { return n + 1 },
		"any steps":         func(n int64) int64 { return (n * 1_000_003) << 20 },
	} {
		t.Run(name, func(t *testing.T) {
			p := newWriter(t, true)
			s := quickSession(t)
			sst.LimitEarly(s, 1<<20)
			open := p.opens(t, sst.ReaderConfig{Session: s, Params: sst.Params{SpeculativePreloadMode: "On"}})
			reply, _ := p.accept()
			r := next(t, "Open", open).reader(t)
			m := p.aStep(t)
			reply(m)
			st, err := r.BeginStep(bounded(t))
			if err != nil {
				t.Fatal(err)
			}
			block := sstmsg.ByteBlob(make([]byte, 1<<18))
			for n := range int64(4) {
				reply(&sstmsg.Preload{Step: number(n + 1), ReaderID: p.data(), Data: block})
			}
			p.dropped()
			st.End()
			_, err = r.BeginStep(bounded(t))
			wants(t, "BeginStep", err, sst.ErrProtocol)
		})
	}
}

// TestPushedAhead: what an honest writer pushes for steps that wait in the queue of
// the reader has no bound but that of the writer.
func TestPushedAhead(t *testing.T) {
	const steps = 20
	name := streamName(t)
	x := define(t, create(t, name, sst.WriterConfig{}), 1<<13)
	s := quickSession(t)
	sst.LimitEarly(s, 1<<17) // two steps
	r := attach(t, name, sst.ReaderConfig{Session: s, Params: sst.Params{SpeculativePreloadMode: "On"}})
	for range steps {
		x.must(t)
	}
	done := async(x.w.Close)
	for range steps {
		st, err := r.BeginStep(bounded(t))
		if err != nil {
			t.Fatal(err)
		}
		if err := verify(bounded(t), st); err != nil {
			t.Error(err)
		}
		st.End()
	}
	beginEOF(t, r)
	if err := next(t, "Close", done); err != nil {
		t.Error(err)
	}
}
