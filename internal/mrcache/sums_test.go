package mrcache

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/weft-fabric/weft/internal/testutil"
	"github.com/weft-fabric/weft/memmon"
)

// handedOut is how many registrations the reasons explain.
func (s Stats) handedOut() uint64 {
	return s.Hits + s.New + s.Grown + s.Flushed + s.DeadHeap + s.DeadOwner + s.DeadMonitor +
		s.NoMonitor + s.NoAnswer + s.Disabled + s.Full + s.Unsure
}

// moody is a device that sometimes refuses, sometimes is full, and sometimes takes its time.
type moody struct {
	*device
	mood atomic.Uint64
}

func (m *moody) Register(b []byte) (*region, error) {
	switch m.mood.Add(0x9e37_79b9_7f4a_7c15) >> 60 {
	case 0:
		return nil, errDevice
	case 1:
		return nil, syscall.ENOMEM
	case 2, 3:
		for range 10 {
			runtime.Gosched()
		}
	}
	return m.device.Register(b)
}

// TestReasonsAddUp has goroutines use memory of all kinds that changes, with a moody device, and switches that are turned: there is one reason for
// each registration that was handed out, at each moment at which none is in use.
func TestReasonsAddUp(t *testing.T) {
	for _, cfg := range []Config{{}, {MaxCount: -1}, {MaxCount: 1}, {MaxBytes: 1}, {MaxCount: 5, MaxBytes: 6 * pageSize}} {
		m := &moody{device: newDevice()}
		b := newBenchOf(t, m.device, m, cfg)
		sites := make([]*site, 6)
		for i := range sites {
			sites[i] = newSite(t, b, sort(i%3))
		}
		object := make([]byte, 3*pageSize)
		base := testutil.Rand(t).Uint64()
		var all sync.WaitGroup
		var out atomic.Uint64
		for g := range 20 {
			all.Go(func() {
				rnd := rand.New(rand.NewPCG(base, uint64(g)))
				for range testutil.Count(t, 100, 10_000) {
					turn(b, rnd, sites)
					n := rnd.IntN(len(object))
					k := memmon.HeapBytes(object[n : n+1+rnd.IntN(len(object)-n)])
					if i := rnd.IntN(2 * len(sites)); i < len(sites) {
						k = sites[i].kind(sites[i].bytes[:1+rnd.IntN(len(sites[i].bytes))])
					}
					r, err := b.Acquire(k)
					if err != nil {
						continue
					}
					out.Add(1)
					if err := r.Release(); err != nil && !errors.Is(err, ErrRemapped) {
						t.Error(err)
					}
				}
			})
		}
		all.Wait()
		if s := b.Stats(); s.handedOut() != out.Load() {
			t.Errorf("%+v: %d registrations, and reasons for %d: %+v", cfg, out.Load(), s.handedOut(), s)
		}
	}
}

// turn turns a switch, or has memory change.
func turn(b *bench, rnd *rand.Rand, sites []*site) {
	switch rnd.IntN(20) {
	case 0:
		b.arbiter.Flush()
	case 1:
		b.Flush()
	case 2:
		b.arbiter.Disable()
		b.arbiter.Enable()
	case 3, 4, 5:
		s := sites[rnd.IntN(len(sites))]
		if s.sort == owned {
			s.own.n.Add(1)
		}
		b.arbiter.Notify(memmon.RangeOf(s.bytes))
	}
}

// acting is a log handler that does something.
type acting struct {
	slog.Handler
	act func()
}

func (acting) Enabled(context.Context, slog.Level) bool { return true }

func (h acting) Handle(context.Context, slog.Record) error {
	h.act()
	return nil
}

// TestLogHandlerUsesTheCache has who is told that a registration stays use the cache, flush and switch it, from inside of the cache's goroutine.
func TestLogHandlerUsesTheCache(t *testing.T) {
	var b *bench
	acted := make(chan error, 1)
	d := newDevice()
	b = newBench(t, d, Config{Logger: slog.New(acting{slog.DiscardHandler, func() {
		if !d.keep.Swap(false) {
			return
		}
		b.Flush()
		b.arbiter.Disable()
		b.arbiter.Enable()
		b.arbiter.Attach(func(memmon.Range) {}, nil)()
		r, err := b.Acquire(memmon.HeapBytes(make([]byte, 10)))
		acted <- errors.Join(err, r.Release())
	}})})
	m := arena(t, b.arbiter, 1)
	b.pass(t, m)
	d.keep.Store(true)
	if err := m.Close(); err != nil {
		t.Error(err)
	}
	if err := <-acted; err != nil {
		t.Error(err)
	}
}

// restless is an owner whose memory changes all the time.
type restless struct{ n atomic.Uint64 }

func (r *restless) Generation() uint64 { return r.n.Add(1) }

// TestRestlessOwner is refused, in whatever way it would be registered, and leaves nothing.
func TestRestlessOwner(t *testing.T) {
	for _, count := range []int{0, -1} {
		b := newBench(t, newDevice(), Config{MaxCount: count})
		for range 2 {
			if _, err := b.Acquire(memmon.Mapped(pages(t, 1).Bytes(), new(restless))); !errors.Is(err, ErrRemapped) {
				t.Error(err)
			}
			if n := b.device.count(); n != 0 {
				t.Errorf("%d registrations are left", n)
			}
			b.arbiter.Disable()
		}
	}
}

// TestNothingMayBePinned is a process whose RLIMIT_MEMLOCK is zero, and a device that does not mind.
func TestNothingMayBePinned(t *testing.T) {
	b := newBench(t, newDevice(), Config{})
	c, err := newCache[*region](b.device, Config{Arbiter: b.arbiter, MaxBytes: math.MaxUint64}, func() (uint64, error) { return 0, nil })
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		r, err := c.Acquire(memmon.HeapBytes(make([]byte, 10)))
		if err != nil || r.Why() != Full {
			t.Fatal(err, r.Why())
		}
		release(t, &r, nil)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
}
