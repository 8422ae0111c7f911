package sst

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/weft-fabric/weft/internal/wire/sstmsg"
	"github.com/weft-fabric/weft/step"
)

func testSession(t *testing.T) *Session {
	t.Helper()
	s, err := NewSession(t.Context(), SessionConfig{NetworkInterface: "lo"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// TestPendingWhileClosing: a reader may begin to leave with care while Close is
// waiting for another that is done in this moment.
func TestPendingWhileClosing(t *testing.T) {
	s := testSession(t)
	var leaving sync.WaitGroup
	s.pend()
	for range 8 {
		leaving.Go(func() {
			for range 200 {
				s.pend()
				s.unpend()
			}
		})
	}
	waited := make(chan bool, 1)
	go func() { waited <- s.waitPending(nil) }()
	leaving.Wait()
	select {
	case <-waited:
		t.Fatal("nothing was waited for")
	default:
	}
	s.unpend()
	if !<-waited {
		t.Error("the wait was given up")
	}
}

// TestPendingIsGivenUp: nobody waits longer than it is worth.
func TestPendingIsGivenUp(t *testing.T) {
	s := testSession(t)
	s.pend()
	enough := make(chan time.Time)
	close(enough)
	if s.waitPending(enough) {
		t.Error("what is pending is not waited for")
	}
	s.unpend()
	if !s.waitPending(enough) && !s.waitPending(nil) {
		t.Error("nothing is pending, and is waited for")
	}
}

// TestBackgroundWhileClosing: what happens to peers while a session closes is
// still said; what cannot run any more is refused, not forgotten.
func TestBackgroundWhileClosing(t *testing.T) {
	s := testSession(t)
	s.mu.Lock()
	s.closed = true // Close ends the streams now
	s.mu.Unlock()
	ran := make(chan error, 1)
	if !s.background(func(ctx context.Context) { ran <- ctx.Err() }) {
		t.Fatal("refused while streams are being ended")
	}
	if err := <-ran; err != nil {
		t.Errorf("its context has ended: %v", err)
	}
	s.Close()
	if s.background(func(context.Context) { t.Error("ran in a closed session") }) {
		t.Error("accepted by a closed session")
	}
}

// TestPushAfterCloseReleases: blocks that nobody sends any more give their memory
// back.
func TestPushAfterCloseReleases(t *testing.T) {
	s := testSession(t)
	s.Close()
	w := &Writer{session: s, memory: stepMemory{heap: step.NewHeapPool(0), ranks: 1}}
	d := w.memory.get(false)
	r := &attached{ranks: []sstmsg.EvpathReader{{}, {}}}
	for range 2 {
		w.pushFar(1, r, 1, farPush{&sstmsg.Preload{}, d.useFor(1).done})
	}
	if n := d.uses.Load(); n != 1 || len(r.far) != 0 {
		t.Errorf("%d uses of the step, want its own; %d ranks have blocks queued", n, len(r.far))
	}
	d.release()
}
