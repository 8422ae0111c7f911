package sys

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/weft-fabric/weft/internal/testutil"
)

func newEventfd(t *testing.T) Eventfd {
	t.Helper()
	e, err := NewEventfd(Features{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	return e
}

func newPoller(t *testing.T) *Poller {
	t.Helper()
	p, err := NewPoller()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	return p
}

func TestEventfd(t *testing.T) {
	nothingOpen(t)
	e := newEventfd(t)
	if rung, err := e.Drain(); rung || err != nil {
		t.Error(rung, err)
	}
	for range 3 {
		if err := e.Ring(); err != nil {
			t.Error(err)
		}
	}
	if rung, err := e.Drain(); !rung || err != nil {
		t.Error(rung, err)
	}
	if rung, err := e.Drain(); rung || err != nil {
		t.Error(rung, err)
	}
	if n := testing.AllocsPerRun(100, func() { _ = e.Ring(); _, _ = e.Drain() }); n != 0 && !raced {
		t.Errorf("%v allocations", n)
	}
	e.Close()
	if e.Ring() == nil {
		t.Error("rang a closed one")
	}
	if _, err := e.Drain(); err == nil {
		t.Error("drained a closed one")
	}
	if _, err := NewEventfd(Features{}.Without(EventFD)); !errors.Is(err, ErrNotSupported) {
		t.Error(err)
	}
}

func TestReceivedEventfd(t *testing.T) {
	nothingOpen(t)
	a, b := pair(t, SeqPacket)
	e := newEventfd(t)
	if _, err := a.Send([]byte("x"), e.FD, memory(t, 1), a.FD); err != nil {
		t.Fatal(err)
	}
	_, fds, err := b.Recv(make([]byte, 1), 3)
	if err != nil {
		t.Fatal(err)
	}
	defer CloseAll(fds)
	for i, fd := range fds {
		got, err := ReceivedEventfd(fd)
		if i > 0 {
			if !errors.Is(err, ErrMessage) {
				t.Error(err)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if err := got.Ring(); err != nil {
			t.Error(err)
		}
		if rung, err := e.Drain(); !rung || err != nil {
			t.Error(rung, err)
		}
	}
	CloseAll(fds)
	if _, err := ReceivedEventfd(fds[0]); err == nil {
		t.Error("a closed one")
	}
}

func TestPoll(t *testing.T) {
	nothingOpen(t)
	p, a, b := newPoller(t), newEventfd(t), newEventfd(t)
	const tokenA, tokenB = 1<<63 | 5, 1<<32 - 1
	if err := p.Add(a.FD, Readable, tokenA); err != nil {
		t.Fatal(err)
	}
	if err := p.Add(b.FD, Readable, tokenB); err != nil {
		t.Fatal(err)
	}
	if p.Add(b.FD, Readable, 0) == nil {
		t.Error("watches one twice")
	}
	var events [8]Event
	if n, err := p.Poll(events[:]); n != 0 || err != nil {
		t.Error(n, err)
	}
	a.Ring()
	for range 2 { // it stays ready
		if n, err := p.Poll(events[:]); n != 1 || err != nil || events[0] != (Event{Readable, tokenA}) {
			t.Error(n, err, events[0])
		}
	}
	b.Ring()
	if n, err := p.Poll(events[:]); n != 2 || err != nil {
		t.Error(n, err)
	}
	if n, err := p.Poll(events[:1]); n != 1 || err != nil {
		t.Error(n, err)
	}
	if n, err := p.Poll(nil); n != 0 || err != nil {
		t.Error(n, err)
	}
	if err := p.Modify(b.FD, WriteReady, 9); err != nil {
		t.Error(err)
	}
	a.Drain()
	if n, err := p.Poll(events[:]); n != 1 || err != nil || events[0] != (Event{WriteReady, 9}) || !events[0].Events.Has(WriteReady) {
		t.Error(n, err, events[0])
	}
	if n := testing.AllocsPerRun(100, func() { _, _ = p.Poll(events[:]) }); n != 0 && !raced {
		t.Errorf("%v allocations", n)
	}
	if err := p.Remove(b.FD); err != nil {
		t.Error(err)
	}
	if n, err := p.Poll(events[:]); n != 0 || err != nil {
		t.Error(n, err)
	}
	p.Close()
	if _, err := p.Poll(events[:]); !errors.Is(err, ErrClosed) {
		t.Error(err)
	}
	if err := p.Remove(a.FD); !errors.Is(err, ErrClosed) {
		t.Error(err)
	}
}

// TestPark ends a sleep in each way, with the event before and after the sleep has begun.
func TestPark(t *testing.T) {
	nothingOpen(t)
	p, e := newPoller(t), newEventfd(t)
	if err := p.Add(e.FD, Readable, 0); err != nil {
		t.Fatal(err)
	}
	wake := make(chan struct{})
	for _, c := range []struct {
		name string
		wake <-chan struct{}
		do   func(cancel func())
		err  error
	}{
		{"event", nil, func(func()) { e.Ring() }, nil},
		{"event beside wake", wake, func(func()) { e.Ring() }, nil},
		{"kick", nil, func(func()) { p.Kick() }, nil},
		{"kicks", wake, func(func()) { p.Kick(); p.Kick() }, nil},
		{"wake", wake, func(func()) { wake <- struct{}{} }, nil},
		{"context", nil, func(cancel func()) { cancel() }, context.Canceled},
		{"context beside wake", wake, func(cancel func()) { cancel() }, context.Canceled},
	} {
		for round := range 50 {
			ctx, cancel := context.WithCancel(t.Context())
			var wg sync.WaitGroup
			if round%2 == 0 && c.name != "wake" {
				c.do(cancel)
			} else {
				wg.Go(func() { c.do(cancel) })
			}
			if err := p.Park(ctx, c.wake); !errors.Is(err, c.err) {
				t.Fatalf("%s, round %d: %v", c.name, round, err)
			}
			wg.Wait()
			cancel()
			e.Drain()
			// A kick may have come twice or late: it counts once.
			p.kicked.Store(false)
		}
	}
	wake2 := make(chan struct{})
	close(wake2)
	if err := p.Park(t.Context(), wake2); err != nil {
		t.Error(err)
	}
}

// TestParkSleeps sees to it that an old kick and an old event end no sleep.
func TestParkSleeps(t *testing.T) {
	nothingOpen(t)
	p, e := newPoller(t), newEventfd(t)
	if err := p.Add(e.FD, Readable, 0); err != nil {
		t.Fatal(err)
	}
	p.Kick()
	e.Ring()
	if err := p.Park(context.Background(), nil); err != nil {
		t.Error(err)
	}
	if rung, err := e.Drain(); !rung || err != nil {
		t.Error(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if err := p.Park(ctx, nil); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	if err := p.Park(ctx, nil); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() { p.Close() })
	if err := p.Park(context.Background(), nil); !errors.Is(err, ErrClosed) {
		t.Error(err)
	}
	wg.Wait()
	p.Kick()
}

// TestParkNoLostWake hands a token to and fro between two goroutines that sleep: a wake that is lost is
// a test that hangs.
func TestParkNoLostWake(t *testing.T) {
	nothingOpen(t)
	var p [2]*Poller
	var e [2]Eventfd
	for i := range p {
		p[i], e[i] = newPoller(t), newEventfd(t)
		if err := p[i].Add(e[i].FD, Readable, 0); err != nil {
			t.Fatal(err)
		}
	}
	rounds := testutil.Count(t, 2000, 200000)
	var wg sync.WaitGroup
	for i := range p {
		wg.Go(func() {
			for range rounds {
				for {
					if rung, err := e[i].Drain(); rung {
						break
					} else if err != nil {
						t.Error(err)
						return
					}
					if err := p[i].Park(context.Background(), nil); err != nil {
						t.Error(err)
						return
					}
				}
				e[1-i].Ring()
			}
		})
	}
	e[0].Ring()
	wg.Wait()
}

func TestParkAllocatesNothing(t *testing.T) {
	p := newPoller(t)
	if n := testing.AllocsPerRun(100, func() { p.Kick(); _ = p.Park(context.Background(), nil) }); n != 0 && !raced {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkPark(b *testing.B) {
	p, err := NewPoller()
	if err != nil {
		b.Fatal(err)
	}
	defer p.Close()
	for b.Loop() {
		p.Kick()
		_ = p.Park(context.Background(), nil)
	}
}
