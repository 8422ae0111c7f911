package sst

import (
	"context"
	"runtime"
	"testing"
	"time"

	"github.com/weft-fabric/weft/internal/wire/sstmsg"
)

// pollLink is a poller that brings something at a certain poll.
type pollLink struct {
	polls, at int
	changed   chan struct{}
}

func (l *pollLink) Poll() bool {
	l.polls++
	if l.polls == l.at {
		close(l.changed)
	}
	return l.polls == l.at
}

// TestEager: who waits reads its link only if the wait before was short, and not for
// long.
func TestEager(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(2))
	if !roomFor(1) {
		t.Skip("this machine has one processor only: nobody waits eagerly")
	}
	ctx := t.Context()
	over, cancel := context.WithCancel(ctx)
	cancel()
	for name, c := range map[string]struct {
		ctx         context.Context
		fast        bool
		at          int
		want        bool
		least, most int
	}{
		"after a long wait":   {ctx, false, 1, false, 0, 0},
		"at once":             {ctx, true, 1, true, 1, 1},
		"soon":                {ctx, true, 3, true, 3, 3},
		"never":               {ctx, true, 0, false, 1, 1 << 30},
		"the caller gives up": {over, true, 1, false, 0, 0},
	} {
		e := eager{most: defaultSpin}
		e.fast.Store(c.fast)
		l := &pollLink{at: c.at, changed: make(chan struct{})}
		began := time.Now()
		got := e.wait(c.ctx, l, l.changed, began)
		if got != c.want || l.polls < c.least || l.polls > c.most {
			t.Errorf("%s: %v after %d polls, %v", name, got, l.polls, time.Since(began))
		}
	}
	e := eager{most: defaultSpin}
	e.fast.Store(true)
	if e.wait(ctx, nil, nil, time.Now()) {
		t.Error("without a link")
	}
	e.peers = runtime.NumCPU()
	l := &pollLink{at: 1, changed: make(chan struct{})}
	if e.wait(ctx, l, l.changed, time.Now()) || l.polls > 0 {
		t.Error("it takes a processor that one of its peers needs")
	}
	e.peers = 0
	runtime.GOMAXPROCS(1)
	if e.wait(ctx, l, l.changed, time.Now()) || l.polls > 0 {
		t.Error("it takes the only processor from the peer")
	}
}

// TestProcesses: ranks that have one contact are one process.
func TestProcesses(t *testing.T) {
	list := []sstmsg.CPWriter{{Contact: "a", WriterID: 1}, {Contact: "b", WriterID: 2}, {Contact: "a", WriterID: 3}}
	for n, want := range []int{0, 1, 2, 2} {
		if got := processes(list[:n]); got != want {
			t.Errorf("%d processes of %d ranks, want %d", got, n, want)
		}
	}
}

// TestEagerLearns: a short wait makes the next one eager, a long one does not.
func TestEagerLearns(t *testing.T) {
	e := eager{most: defaultSpin}
	if e.end(time.Hour); e.fast.Load() {
		t.Error("an hour is short")
	}
	if e.end(0); !e.fast.Load() {
		t.Error("no time is long")
	}
}

// TestSpin: the session says for how long waits are eager. A long one polls until the
// message is there; without any, a wait sleeps at once, and is never taken for short.
func TestSpin(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(2))
	if !roomFor(1) {
		t.Skip("this machine has one processor only: nobody waits eagerly")
	}
	for spin, want := range map[time.Duration]time.Duration{0: defaultSpin, time.Hour: time.Hour, -1: 0} {
		s := &Session{cfg: SessionConfig{Spin: spin}}
		if got := s.spin(); got != want {
			t.Errorf("Spin %v: %v, want %v", spin, got, want)
		}
	}
	long := eager{most: time.Hour}
	long.end(time.Minute) // that is short then
	l := &pollLink{at: 100_000, changed: make(chan struct{})}
	if !long.wait(t.Context(), l, l.changed, time.Now()) {
		t.Errorf("it gave up after %d polls", l.polls)
	}
	none := eager{}
	none.end(0)
	l = &pollLink{at: 1, changed: make(chan struct{})}
	if none.wait(t.Context(), l, l.changed, time.Now()) || l.polls > 0 {
		t.Errorf("%d polls without any time to spin", l.polls)
	}
}
