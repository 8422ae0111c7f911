package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weft-fabric/weft/internal/mrcache"
	"github.com/weft-fabric/weft/internal/pinnic"
	"github.com/weft-fabric/weft/internal/sys"
	"github.com/weft-fabric/weft/memmon"
)

// regReport is all that a run found out.
type regReport struct {
	Machine machine             `json:"machine"`
	Loads   []float64           `json:"loads"`
	Lines   []*regLine[regRow]  `json:"lines"`
	Sizes   []*regLine[sizeRow] `json:"sizes"`
	LeftOut []string            `json:"left_out,omitempty"`
}

// regShare is the part of -seconds that each cell is measured for: there are many.
const regShare = 0.1

// regJob is one set, or one cell of the second table.
type regJob struct {
	fmt.Stringer

	do func(round int) error
}

// runRegistrations measures the tables of the registration cache. It is one process: nothing is sent.
func runRegistrations(ctx context.Context, c config) (*regReport, error) {
	rep := &regReport{Machine: describeMachine(), Sizes: sizePlan(c.only)}
	span := time.Duration(c.seconds * regShare * float64(time.Second))
	var jobs []regJob
	for _, s := range regPlan(c.only) {
		rep.Lines = append(rep.Lines, s.lines...)
		jobs = append(jobs, regJob{s, func(round int) error { return s.measure(round, span) }})
	}
	for _, l := range rep.Sizes {
		jobs = append(jobs, regJob{l.Row, func(round int) error { return measureSize(l, round, span) }})
	}
	if len(jobs) == 0 {
		return nil, errNothing
	}
	forgive := func(i int, err error) bool {
		if missing := new(sys.UnsupportedError); errors.As(err, &missing) || errors.Is(err, memmon.ErrMonitor) || errors.Is(err, errKept) {
			rep.leave(fmt.Sprintf("%v: %v", jobs[i], err))
			return true
		}
		return false
	}
	do := func(_ context.Context, round, i int) (string, error) { return "", jobs[i].do(round) }
	var err error
	rep.Loads, err = rounds[regJob]{jobs, do, forgive}.run(ctx, c)
	return rep, err
}

// leave notes what cannot be measured here, once.
func (r *regReport) leave(why string) {
	for _, l := range r.LeftOut {
		if l == why {
			return
		}
	}
	r.LeftOut = append(r.LeftOut, why)
}

// idleRegistrar registers nothing, so that what is measured is the cache.
type idleRegistrar struct{ n atomic.Uint64 }

func (r *idleRegistrar) Register([]byte) (uint64, error) { return r.n.Add(1), nil }
func (*idleRegistrar) Deregister(uint64) error           { return nil }

// regBench is a cache with its arbiter.
type regBench[H any] struct {
	arbiter *memmon.Arbiter
	cache   *mrcache.Cache[H]
}

func newRegBench[H any](kind regKind, entries int, r mrcache.Registrar[H]) (b *regBench[H], err error) {
	b = new(regBench[H])
	if b.arbiter, err = memmon.NewArbiter(); err != nil {
		return nil, err
	}
	if kind == regUserfault {
		err = b.arbiter.Choose("userfaultfd")
	}
	if err == nil {
		b.cache, err = mrcache.New(r, mrcache.Config{Arbiter: b.arbiter, MaxCount: entries, MaxBytes: ^uint64(0)})
	}
	if err != nil {
		return nil, errors.Join(err, b.arbiter.Close())
	}
	return b, nil
}

func (b *regBench[H]) close() error { return errors.Join(b.cache.Close(), b.arbiter.Close()) }

// pass is an operation.
func (b *regBench[H]) pass(k memmon.Kind) error {
	r, err := b.cache.Acquire(k)
	if err != nil {
		return err
	}
	if err = r.Release(); errors.Is(err, mrcache.ErrRemapped) { // where others do that to the same memory
		err = nil
	}
	return err
}

var errKept = errors.New("not all entries are kept: what may be locked is too little (ulimit -l)")

// measure does all operations of the set.
func (s regSet) measure(round int, span time.Duration) (err error) {
	b, err := newRegBench(s.kind, s.entries, &idleRegistrar{})
	if err != nil {
		return err
	}
	most := regGoroutines[len(regGoroutines)-1]
	memory, err := newRegMemory(b.arbiter, s.kind, s.entries, os.Getpagesize())
	if err != nil {
		return errors.Join(err, b.close())
	}
	others, err := newRegMemory(b.arbiter, s.kind, s.entries+2*most, os.Getpagesize())
	if err != nil {
		return errors.Join(err, memory.close(), b.close())
	}
	defer func() { err = errors.Join(err, b.close(), others.close(), memory.close()) }()
	for _, k := range memory.kinds {
		if err := b.pass(k); err != nil {
			return err
		}
	}
	if n := b.cache.Stats().Entries; n != s.entries {
		return fmt.Errorf("%d: %w", n, errKept)
	}
	for _, l := range s.lines {
		sample, err := b.operation(l.Row, memory, others, span)
		if err != nil {
			return fmt.Errorf("%v: %w", l.Row, err)
		}
		sample.Round = round
		l.Samples = append(l.Samples, sample)
	}
	return nil
}

// warmBuffers are used over and over.
const warmBuffers = 10

func (b *regBench[H]) operation(r regRow, memory, others *regMemory, span time.Duration) (regSample, error) {
	switch r.Op {
	case regHit:
		return spread(r.Goroutines, warmBuffers, span, func(_, i int) error { return b.pass(memory.kinds[i]) })
	case regRandom:
		return spread(r.Goroutines, r.Entries, span, func(_, i int) error { return b.pass(memory.kinds[i]) })
	case regInvalidate:
		return spread(r.Goroutines, r.Entries, span, func(g, i int) error {
			i = own(i, g, r.Goroutines, r.Entries)
			return errors.Join(memory.goes(i), b.pass(memory.kinds[i]))
		})
	case regMiss:
		return b.misses(r, memory, others, span)
	}
	var next atomic.Uint64
	return spread(r.Goroutines, r.Entries, span, func(int, int) error {
		return b.pass(others.kinds[next.Add(1)%uint64(len(others.kinds))])
	})
}

// own is a number near i that no other of the goroutines has, below n.
func own(i, g, goroutines, n int) int {
	if i = i/goroutines*goroutines + g; i >= n {
		i -= goroutines
	}
	return i
}

// misses holds all that is kept, so that nothing else can be.
func (b *regBench[H]) misses(r regRow, memory, others *regMemory, span time.Duration) (s regSample, err error) {
	held := make([]mrcache.Registration[H], len(memory.kinds))
	for i, k := range memory.kinds {
		if held[i], err = b.cache.Acquire(k); err != nil {
			return s, err
		}
	}
	s, err = spread(r.Goroutines, min(r.Entries, len(others.kinds)), span, func(_, i int) error { return b.pass(others.kinds[i]) })
	for i := range held {
		if e := held[i].Release(); err == nil && !errors.Is(e, mrcache.ErrRemapped) {
			err = e
		}
	}
	return s, err
}

// spread runs operations in some goroutines until the time is over, each with random numbers of its own below n.
func spread(goroutines, n int, span time.Duration, do func(g, i int) error) (s regSample, err error) {
	var all sync.WaitGroup
	var over atomic.Bool
	var ops atomic.Int64
	errs := make(chan error, goroutines)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	timer := time.AfterFunc(span, func() { over.Store(true) })
	defer timer.Stop()
	began, cpu := time.Now(), sys.ProcessorTime()
	for g := range goroutines {
		all.Go(func() {
			rnd := rand.New(rand.NewPCG(uint64(g), 1))
			const batch = 32
			for !over.Load() {
				for range batch {
					if err := do(g, int(rnd.Uint64()%uint64(n))); err != nil {
						errs <- err
						return
					}
				}
				ops.Add(batch)
			}
		})
	}
	all.Wait()
	took, used := time.Since(began), sys.ProcessorTime()-cpu
	runtime.ReadMemStats(&after)
	select {
	case err := <-errs:
		return s, err
	default:
	}
	k := float64(ops.Load())
	return regSample{
		Ops: ops.Load(), CPU: float64(used) / k, Wall: float64(took) * float64(goroutines) / k,
		Allocs: float64(after.Mallocs-before.Mallocs) / k,
	}, nil
}

// measureSize measures one way with a card that pins what is registered.
func measureSize(l *regLine[sizeRow], round int, span time.Duration) (err error) {
	card, far, err := pinnic.New(pinnic.Config{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, far.Close(), card.Close()) }()
	kind := regOwner
	for _, k := range regKinds {
		if l.Row.Way == "hit, "+string(k) {
			kind = k
		}
	}
	b, err := newRegBench(kind, 1, card)
	if err != nil {
		return err
	}
	memory, err := newRegMemory(b.arbiter, kind, 1, l.Row.Size)
	if err != nil {
		return errors.Join(err, b.close())
	}
	defer func() { err = errors.Join(err, b.close(), memory.close()) }()
	k := memory.kinds[0]
	do := func(int, int) error { return b.pass(k) }
	switch l.Row.Way {
	case wayOnce:
		do = func(int, int) error {
			h, err := card.Register(k.Bytes())
			if err != nil {
				return err
			}
			return card.Deregister(h)
		}
	case wayCopy:
		to := make([]byte, l.Row.Size)
		do = func(int, int) error { copy(to, k.Bytes()); return nil }
	}
	s, err := spread(1, 1, span, do)
	s.Round = round
	l.Samples = append(l.Samples, s)
	return err
}
