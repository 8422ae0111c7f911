package main

import (
	"context"
	"errors"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weft-fabric/weft/internal/mrcache"
	"github.com/weft-fabric/weft/internal/sys"
	"github.com/weft-fabric/weft/memmon"
)

// mrWork is an operation that is done over and over, of one of n buffers each time.
type mrWork struct {
	n    int
	turn *atomic.Uint64 // whose it is next, if they come one after the other; nil: at random
	own  int            // so many of them, if there are enough, are each goroutine's own; 0: all are everybody's
	do   func(i int) error
}

// mrTally is what it took.
type mrTally struct {
	ops    int64
	cpu    time.Duration // of the process
	wall   time.Duration
	allocs uint64
}

// run does it in some goroutines for some time. An operation that has begun is finished.
func (w mrWork) run(ctx context.Context, goroutines int, d time.Duration) (t mrTally, err error) {
	timed, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	var stop atomic.Bool
	defer context.AfterFunc(timed, func() { stop.Store(true) })()
	var ops atomic.Int64
	errs := make([]error, goroutines)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	began, cpu := time.Now(), sys.ProcessorTime()
	var all sync.WaitGroup
	for g := range goroutines {
		all.Go(func() {
			var n int64
			n, errs[g] = w.part(g, goroutines).until(&stop, uint64(g))
			ops.Add(n)
		})
	}
	all.Wait()
	t = mrTally{ops: ops.Load(), cpu: sys.ProcessorTime() - cpu, wall: time.Since(began)}
	runtime.ReadMemStats(&after)
	t.allocs = after.Mallocs - before.Mallocs
	for _, e := range errs {
		if e != nil {
			return t, e
		}
	}
	if ctx.Err() != nil {
		return t, context.Cause(ctx)
	}
	return t, nil
}

// part is the work of goroutine g.
func (w mrWork) part(g, goroutines int) mrWork {
	if w.own == 0 {
		return w
	}
	all := w.do
	n := max(1, min(w.own, w.n/goroutines))
	first := g * n
	total := w.n
	w.n, w.do = n, func(i int) error { return all((first + i) % total) }
	return w
}

// until is the work of one goroutine. At least one operation is done.
func (w mrWork) until(stop *atomic.Bool, seed uint64) (ops int64, err error) {
	var rnd rand.PCG // on the stack: beside another goroutine's it would share its cache line
	rnd.Seed(seed, 1)
	for {
		i := rnd.Uint64()
		if w.turn != nil {
			i = w.turn.Add(1) - 1
		}
		if err := w.do(int(i % uint64(w.n))); err != nil {
			return ops, err
		}
		if ops++; stop.Load() {
			return ops, nil
		}
	}
}

// pass is what is done with a buffer in the end.
type mrPass func(memmon.Kind) error

// alone looks at the buffer and leaves the cache alone: that is what the driver itself costs.
func alone(k memmon.Kind) error {
	if memmon.RangeOf(k.Bytes()).Len == 0 {
		return errNothing
	}
	return nil
}

// through has the cache do it.
func (t *mrSet) through(k memmon.Kind) error {
	_, err := t.cache.pass(k)
	return err
}

// work is an operation with a cache that is filled, or alone.
func (t *mrSet) work(op mrOp, pass mrPass) mrWork {
	m := t.memory
	of := func(list []memmon.Kind) mrWork {
		return mrWork{n: len(list), do: func(i int) error { return pass(list[i]) }}
	}
	switch op {
	case mrOwn:
		w := of(m.kept)
		w.own = tenKept
		return w
	case mrTen:
		return of(m.kept[:min(tenKept, len(m.kept))])
	case mrMiss:
		return of(m.alien)
	case mrInsert:
		w := of(m.spare)
		w.turn = &t.inserted
		return w
	case mrInvalidate:
		return mrWork{n: len(m.kept), turn: &t.renewed, do: func(i int) error {
			k, err := m.renew(i)
			if err != nil {
				return err
			}
			return notRemapped(pass(k))
		}}
	case mrAny:
	}
	return of(m.kept)
}

// notRemapped lets pass that memory became other memory while another goroutine registered it.
func notRemapped(err error) error {
	if errors.Is(err, mrcache.ErrRemapped) {
		return nil
	}
	return err
}
