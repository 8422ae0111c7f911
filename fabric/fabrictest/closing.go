package fabrictest

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weft-fabric/weft/fabric"
	"github.com/weft-fabric/weft/fabric/provider"
	"github.com/weft-fabric/weft/internal/testutil"
	"github.com/weft-fabric/weft/memmon"
)

// closeBound is how long any call may take while domains close.
const closeBound = time.Second

// testCloseRaces closes one of two domains while both wait, read, post, connect, register and view. Every call returns in time, and
// afterwards says that the object is closed.
func testCloseRaces(e *env) {
	for round := range testutil.Count(e, 16, 1000) {
		e.closeRound(round)
		if e.Failed() {
			e.Fatalf("round %d", round)
		}
	}
}

func (e *env) closeRound(round int) {
	e.Helper()
	a, b := e.directsOf(endpointConfig{Depth: 64}, provider.CQConfig{Size: 256})
	late := e.lateness()
	defer late.stop()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var all sync.WaitGroup
	for _, d := range []*direct{a, b} {
		for _, act := range e.acts(d) {
			all.Go(func() {
				for ctx.Err() == nil {
					began := time.Now()
					err := act(ctx)
					if took := time.Since(began); took > closeBound+late.worst() {
						e.Errorf("a call took %v while domains close, on a machine that is late by %v", took, late.worst())
					}
					if errors.Is(err, provider.ErrClosed) {
						return
					}
				}
			})
		}
	}
	pause(time.Duration(e.rnd.IntN(1500)) * time.Microsecond)
	victim := []*direct{a, b}[round%2]
	within(e, closeBound, "Close of a busy domain", func() {
		var err error
		switch round % 4 {
		case 0, 1:
			err = victim.d.Close()
		case 2:
			err = victim.ep.Close() // others use the queue
		case 3:
			var twice sync.WaitGroup
			for range 2 {
				twice.Go(func() { _ = victim.d.Close() })
			}
			twice.Wait()
		}
		if err != nil {
			e.Errorf("close: %v", err)
		}
	})
	pause(time.Duration(e.rnd.IntN(500)) * time.Microsecond)
	cancel()
	// A Wait on the domain that stays open ends by the context; all others by what they find closed.
	gone := make(chan struct{})
	go func() { all.Wait(); close(gone) }()
	end := time.NewTimer(e.o.patience)
	defer end.Stop()
	select {
	case <-gone:
	case <-end.C:
		e.Fatalf("round %d: calls have not returned %v after Close", round, e.o.patience)
	}
	e.closedFor(victim, round%4 == 2)
	if err := errors.Join(a.d.Close(), b.d.Close()); err != nil {
		e.Errorf("close: %v", err)
	}
}

// acts are what programs do all the time.
func (e *env) acts(d *direct) []func(context.Context) error {
	buf, in := make([]byte, 6000), make([]byte, 6000)
	var shared atomic.Pointer[fabric.Memory]
	return []func(context.Context) error{
		func(ctx context.Context) error {
			var c [8]provider.Completion
			_, err := d.q.Wait(ctx, c[:])
			return err
		},
		func(context.Context) error {
			var c [8]provider.Completion
			_, err := d.q.Read(c[:])
			pause(20 * time.Microsecond)
			return err
		},
		func(context.Context) error {
			err := d.ep.Send(provider.Op{Local: provider.Segment{Bytes: buf}, Peer: d.to, Context: 1})
			if errors.Is(err, provider.ErrPeerGone) || errors.Is(err, provider.ErrUnreachable) {
				pause(50 * time.Microsecond)
			}
			return err
		},
		func(context.Context) error {
			return d.ep.Recv(provider.Op{Local: provider.Segment{Bytes: in}, Context: 2})
		},
		func(ctx context.Context) error { return e.registers(ctx, d) },
		func(context.Context) error { return e.replaces(d, &shared) },
		func(context.Context) error { return e.uses(d, &shared) },
		func(context.Context) error { return e.connects(d) },
	}
}

// registers makes memory and takes it back.
func (e *env) registers(ctx context.Context, d *direct) error {
	m, err := d.d.Register(memmon.HeapBytes(make([]byte, 100)), provider.PeerRead)
	if err != nil {
		return err
	}
	if e.has(provider.Views) {
		short, cancel := context.WithTimeout(ctx, 20*time.Millisecond)
		defer cancel()
		if v, err := d.d.View(short, d.to, m.Key(), 0, 8); err == nil {
			v.Release()
		}
	}
	return m.Close()
}

// replaces makes arena memory and takes back what was there, whoever uses it.
func (e *env) replaces(d *direct, shared *atomic.Pointer[fabric.Memory]) error {
	pause(50 * time.Microsecond)
	if !e.has(provider.Arena) {
		return provider.ErrClosed
	}
	m, err := d.d.Alloc(70000, 0)
	if err != nil {
		return err
	}
	if old := shared.Swap(m); old != nil {
		return old.Close()
	}
	return nil
}

// uses posts operations on memory that is taken back meanwhile. Posts on open memory only are taken.
func (e *env) uses(d *direct, shared *atomic.Pointer[fabric.Memory]) error {
	m := shared.Load()
	if m == nil {
		pause(50 * time.Microsecond)
		return d.ep.Recv(provider.Op{Local: provider.Segment{Bytes: make([]byte, 8)}, Context: 2})
	}
	err := d.ep.Send(provider.Op{Local: m.Slice(100, 60000), Peer: d.to, Context: 4})
	if err == nil {
		err = d.ep.Recv(provider.Op{Local: m.Slice(0, 70000), Context: 2})
	}
	return err
}

// connects makes an endpoint that sends to the other side, and closes it.
func (e *env) connects(d *direct) error {
	ep, err := d.d.OpenEndpoint(endpointConfig{Send: d.q, Recv: d.q, Depth: 4})
	if err != nil {
		return err
	}
	_ = ep.Send(provider.Op{Local: provider.Segment{Bytes: make([]byte, 8)}, Peer: d.to, Context: 3})
	d.ep.Cancel(2)
	return ep.Close()
}

// closedFor: what was closed says so.
func (e *env) closedFor(d *direct, endpointOnly bool) {
	e.Helper()
	calls := map[string]error{
		"Send": d.ep.Send(provider.Op{Peer: d.to}),
		"Recv": d.ep.Recv(provider.Op{}),
	}
	if !endpointOnly {
		var c [1]provider.Completion
		for n := 1; n > 0; {
			n, calls["Read"] = d.q.Read(c[:])
		}
		_, calls["Insert"] = d.d.Insert(d.ep.Address())
		_, calls["Alloc"] = d.d.Alloc(64, 0)
		_, calls["OpenCompletionQueue"] = d.d.OpenCompletionQueue(provider.CQConfig{})
		_, calls["OpenEndpoint"] = d.d.OpenEndpoint(endpointConfig{Send: d.q, Recv: d.q})
		_, calls["OpenCounter"] = d.d.OpenCounter()
		_, calls["Register"] = d.d.Register(memmon.HeapBytes(make([]byte, 8)), 0)
	}
	for name, err := range calls {
		if !errors.Is(err, provider.ErrClosed) {
			e.Errorf("%s after Close: %v", name, err)
		}
	}
}

// testCloseEnds: Close of an endpoint ends each of its operations once, and their completions can be read; Close of the domain
// ends everything else.
func testCloseEnds(e *env) {
	spec := e.spec()
	spec.Way = byHand
	b := e.side(1)
	b.open(spec)
	a := e.side(0)
	a.open(e.spec())
	to := a.knows(b)
	out := a.heap(300000, 1)
	ops := e.doomed(a, b, to, out)
	ops = append(ops, recvOp(7, a.heap(8, 0).all()))
	for _, op := range ops {
		a.post(op)
	}
	within(e, closeBound, "Close of an endpoint whose peer does nothing", func() { a.do(request{Verb: "close-endpoint"}) })
	seen := map[uint64]bool{}
	for _, c := range a.take(len(ops)) {
		if seen[c.Context] || c.Err != nil && !errors.Is(c.Err, provider.ErrClosed) {
			e.Fatalf("at Close an operation ended as %s", show(c))
		}
		seen[c.Context] = true
	}
	a.none("all has ended")
	a.do(request{Verb: "close-endpoint"})
	within(e, closeBound, "Close of a domain whose peer does nothing", func() { a.do(request{Verb: "close-domain"}) })
	a.do(request{Verb: "close-domain"})
}
