package provutil

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weft-fabric/weft/fabric/provider"
	"github.com/weft-fabric/weft/internal/sys"
)

// belled is a manual rig whose queue has a descriptor, and an event loop on that.
func belled(t *testing.T, how sys.Events) (e *fake, loop *sys.Poller) {
	t.Helper()
	e = rig(t, CoreConfig{Progress: provider.Manual, Spin: -1, NewBell: SystemBell}, 8)
	n, err := e.q.Descriptor()
	if err != nil {
		t.Fatal(err)
	}
	if loop, err = sys.NewPoller(); err != nil {
		t.Fatal(err)
	}
	fd := sys.NewFD(n, "of the queue")
	defer fd.Disown()
	if err := loop.Add(fd, sys.Readable|how, 1); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.q.Close(); err != nil {
			t.Error(err)
		}
		e.core.Stop()
		_ = e.fd.Close()
		_ = loop.Close()
	})
	return e, loop
}

// told waits until the event loop is told of the queue.
func told(t *testing.T, loop *sys.Poller) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if err := loop.Park(ctx, nil); err != nil {
		t.Fatalf("the event loop hears nothing: %v", err)
	}
	var seen [4]sys.Event
	if n, err := loop.Poll(seen[:]); n != 1 || err != nil {
		t.Fatal(n, err)
	}
}

func (e *fake) armedNow(t *testing.T) {
	t.Helper()
	for range 3 {
		if e.q.TryWait() {
			return
		}
	}
	t.Fatal("not armed")
}

// A loop that hears of edges only is told of each arrival after a TryWait, also when an arrival before was of no
// concern to the queue.
func TestDescriptorEdges(t *testing.T) {
	e, loop := belled(t, sys.EdgeOnly)
	var c [4]provider.Completion
	for i := range uint64(10) {
		e.armedNow(t)
		e.arrive() // rings, and completes nothing
		told(t, loop)
		e.armedNow(t)
		if !e.isArmed() {
			t.Fatal("TryWait says wait, and nobody would ring")
		}
		e.arrive(i)
		told(t, loop)
		if i%2 == 0 && e.q.TryWait() {
			t.Fatal("TryWait says wait, and there is a completion")
		}
		if n, err := e.q.Read(c[:]); n != 1 || err != nil || c[0].Context != i {
			t.Fatal(n, err, c)
		}
	}
}

// A level-triggered loop is not told again and again of what was polled.
func TestDescriptorLevel(t *testing.T) {
	e, loop := belled(t, 0)
	e.armedNow(t)
	e.arrive()
	told(t, loop)
	e.armedNow(t)
	var seen [4]sys.Event
	if n, err := loop.Poll(seen[:]); n != 0 || err != nil {
		t.Fatalf("%d, %v: an old ring is told of again", n, err)
	}
}

// In manual mode nobody but programs arms. One that polls another queue while an event loop sleeps leaves the engine
// armed for it.
func TestDescriptorBesideOthers(t *testing.T) {
	e, loop := belled(t, 0)
	other, err := NewCQ(e.core, provider.CQConfig{})
	if err != nil {
		t.Fatal(err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	var c [1]provider.Completion
	n := NewCounter(e.core)
	for i, poll := range []func(){
		func() { _, _ = other.Read(c[:]) },
		func() { _, _ = other.Wait(ended, c[:]) },
		func() { n.Value() },
		func() { _ = n.Wait(ended, 1) },
		func() { // a wait that was parked in the engine
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan struct{})
			go func() {
				defer close(done)
				_, _ = other.Wait(ctx, c[:])
			}()
			for {
				e.core.Lock()
				parked := e.core.parker != nil
				e.core.Unlock()
				if parked {
					break
				}
			}
			cancel()
			<-done
		},
	} {
		e.armedNow(t)
		poll()
		e.arrive(uint64(i))
		told(t, loop)
		if n, err := e.q.Read(c[:]); n != 1 || err != nil || c[0].Context != uint64(i) {
			t.Fatalf("%d: %d, %v", i, n, err)
		}
	}
	// Something comes while it arms again: the loop looks itself.
	e.armedNow(t)
	once := true
	e.arming = func() {
		if once {
			once = false
			e.arrive(99)
		}
	}
	_, _ = other.Read(c[:])
	told(t, loop)
	if n, err := e.q.Read(c[:]); n != 1 || err != nil || c[0].Context != 99 {
		t.Fatal(n, err)
	}
	if len(e.core.ringers) > 1 {
		t.Errorf("%d queues are listed", len(e.core.ringers))
	}
}

// A TryWait that finds that something has come leaves a wait of another queue, or the sleeper, able to hear of it.
func TestTryWaitBesideWait(t *testing.T) {
	bothModes(t, func(t *testing.T, cfg CoreConfig) {
		synctest.Test(t, func(t *testing.T) {
			cfg.NewBell = func(int) (Bell, error) { return quietBell{}, nil }
			e := rig(t, cfg, 8)
			defer e.core.Stop()
			e.fd = quietBell{}
			other, err := NewCQ(e.core, provider.CQConfig{})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := other.Descriptor(); err != nil {
				t.Fatal(err)
			}
			got := make(chan int)
			go func() {
				var c [1]provider.Completion
				n, _ := e.q.Wait(t.Context(), c[:])
				got <- n
			}()
			synctest.Wait()
			e.core.Lock()
			once := true
			e.arming = func() {
				if once {
					once = false
					e.mu.Lock()
					e.pending, e.noise = append(e.pending, 1), true // before it rings: the engine is not armed yet
					e.mu.Unlock()
				}
			}
			e.core.Unlock()
			other.TryWait()
			synctest.Wait()
			if once { // auto: it was armed, and stays so
				e.arrive(1)
			}
			if n := <-got; n != 1 {
				t.Error(n)
			}
		})
	})
}

// quietBell is a Bell that nobody listens to.
type quietBell struct{}

func (quietBell) Ring()        {}
func (quietBell) Clear()       {}
func (quietBell) Fd() int      { return -1 }
func (quietBell) Close() error { return nil }

// A bell without eventfd rings as well, and uses none.
func TestBellWithoutEventfd(t *testing.T) {
	for _, inner := range []bool{false, true} {
		engine := -1
		if inner {
			other, err := SystemBell(-1)
			if err != nil {
				t.Fatal(err)
			}
			defer other.Close()
			engine = other.Fd()
		}
		made, err := SystemBells(sys.Features{}.Without(sys.EventFD))(engine)
		if err != nil {
			t.Fatal(err)
		}
		defer made.Close()
		if b := made.(*systemBell); b.event.FD != nil {
			t.Error("an eventfd")
		}
		for range 3 {
			for range 1000 { // more than a socket holds
				made.Ring()
			}
			if !readable(t, made.Fd()) {
				t.Error("it has rung, and is not readable")
			}
			made.Clear()
			if readable(t, made.Fd()) {
				t.Error("it was cleared, and is readable")
			}
		}
	}
}

// readable says whether a descriptor is readable now.
func readable(t *testing.T, fd int) bool {
	t.Helper()
	p, err := sys.NewPoller()
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	borrowed := sys.NewFD(fd, "looked at")
	defer borrowed.Disown()
	if err := p.Add(borrowed, sys.Readable, 0); err != nil {
		t.Fatal(err)
	}
	n, err := p.Poll(make([]sys.Event, 1))
	if err != nil {
		t.Fatal(err)
	}
	return n == 1
}
