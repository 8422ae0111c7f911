package sst_test

import (
	"context"
	"runtime"
	"testing"
	"time"

	"github.com/weft-fabric/weft/internal/testutil"
	"github.com/weft-fabric/weft/sst"
)

// TestReviewManualCancelled: an Open that is given up at any moment leaves no reader at the writer, and the session works on.
func TestReviewManualCancelled(t *testing.T) {
	ws, s := quickSession(t), manualSession(t)
	name := streamName(t)
	x := define(t, create(t, name, sst.WriterConfig{Session: ws}), 8)
	opened := 0
	for i := range 120 {
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i)*15*time.Microsecond)
		r, err := sst.Open(ctx, name, sst.ReaderConfig{Session: s})
		cancel()
		if err == nil {
			opened++
			r.Close()
		}
	}
	t.Log("opened", opened)
	testutil.Eventually(t, "no reader is left", func() bool { return len(x.w.Info().Readers) == 0 })
	r := attach(t, name, sst.ReaderConfig{Session: s})
	x.must(t)
	takeStep(t, r)
	r.Close()
	within(t, 2*time.Second, "Close", func() { s.Close() })
}

// TestReviewManualClosedAsleep: Close wakes a BeginStep that sleeps, also if the link stays for another reader.
func TestReviewManualClosedAsleep(t *testing.T) {
	ws, s := quickSession(t), manualSession(t)
	name := streamName(t)
	x := define(t, create(t, name, sst.WriterConfig{Session: ws}), 8)
	r, other := attach(t, name, sst.ReaderConfig{Session: s}), attach(t, name, sst.ReaderConfig{Session: s})
	attachedBy(t, x.w, "native", "native")
	_ = other
	waited := async(func() error {
		_, err := r.BeginStep(context.Background())
		return err
	})
	testutil.Eventually(t, "BeginStep waits", func() bool { return sst.WaitsForStep(r) })
	for range 1000 { // it has only to lie down
		runtime.Gosched()
	}
	t.Log("the writer's Info:", x.w.Info().Readers[0].Addr)
	r.Close()
	select {
	case err := <-waited:
		t.Log(err)
	case <-time.After(5 * time.Second):
		t.Error("BeginStep sleeps on")
		s.Close()
	}
	// the other, too, while both share the link: its steps come
	x.must(t)
	takeStep(t, other)
}
