package mrcache

import (
	"errors"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weft-fabric/weft/internal/sys"
	"github.com/weft-fabric/weft/internal/testutil"
	"github.com/weft-fabric/weft/memmon"
)

const (
	stormWorkers = 8
	stormThreads = 4                // that tell of memory all the time
	nearby       = 64               // one event in so many is of memory that is cached
	standing     = 10 * time.Second // how long a worker may stand still
	maxStall     = time.Second      // how long an operation may take, when soaking
)

// storm is a device whose driver allocates, and an allocator that tells of everything it does.
type storm struct {
	*bench
	t      *testing.T
	sites  []*site
	events atomic.Uint64
	stop   atomic.Bool
	untold atomic.Int64 // changes of memory in use that nobody could tell of, because too much happened
	steps  [stormWorkers]atomic.Int64
	worst  [stormWorkers]time.Duration
}

// TestSoakStorm has the monitor fire from inside of whatever the driver allocates, maps and unmaps, and from threads of their own, while goroutines
// register, look up, evict and change memory. Nobody stalls, and no handle is stale.
func TestSoakStorm(t *testing.T) {
	const kept = 4
	// Threads that tell of memory are mostly of C, and take no processor from Go's goroutines.
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(runtime.GOMAXPROCS(0) + stormThreads))
	d := newDevice()
	s := &storm{t: t}
	d.tell = func(b []byte) any { return siteOf(s.sites, b).stamp() }
	d.before, d.after = func([]byte) { s.allocate() }, func([]byte) { s.allocate() }
	d.leaving = func(*region) { s.allocate() }
	s.bench = newBench(t, d, Config{MaxCount: kept})
	for i := range 6 {
		s.sites = append(s.sites, newSite(t, s.bench, sort(i%3)))
	}
	var posters, workers sync.WaitGroup
	for range stormThreads {
		posters.Go(s.post)
	}
	stop := testutil.Watch(t, standing, s.steps[:])
	operations := int64(testutil.Count(t, 4000, 100_000))
	base := testutil.Rand(t).Uint64()
	var begun, remapped atomic.Int64
	for g := range stormWorkers {
		workers.Go(func() {
			defer s.steps[g].Store(-1)
			rnd := rand.New(rand.NewPCG(base, uint64(g)))
			for begun.Add(1) <= operations {
				began := time.Now()
				err := s.operate(rnd)
				s.worst[g] = max(s.worst[g], time.Since(began))
				s.steps[g].Add(1)
				switch {
				case errors.Is(err, ErrRemapped) && !errors.Is(err, errStale):
					remapped.Add(1)
				case err != nil:
					t.Error(err)
					return
				}
			}
		})
	}
	workers.Wait()
	stop()
	s.stop.Store(true)
	posters.Wait()
	s.judge(operations, remapped.Load())
}

func siteOf(sites []*site, b []byte) *site {
	for _, m := range sites {
		if memmon.RangeOf(m.bytes).Contains(memmon.RangeOf(b)) {
			return m
		}
	}
	return nil
}

func (s *storm) operate(rnd *rand.Rand) error {
	m := s.sites[rnd.IntN(len(s.sites))]
	if rnd.IntN(16) == 0 {
		return m.change(s.bench)
	}
	err := m.use(s.bench, rnd)
	if m.sort == watched && errors.Is(err, errUntold) {
		s.untold.Add(1)
		err = nil
	}
	return err
}

// allocate maps a page and unmaps it, and the monitor fires for both.
func (s *storm) allocate() {
	m, err := sys.MapAnonymous(int(pageSize))
	if err != nil {
		s.t.Error(err)
		return
	}
	m.Bytes()[0] = 1
	at := memmon.RangeOf(m.Bytes())
	s.fire(at)
	s.fire(at)
	if err := m.Close(); err != nil {
		s.t.Error(err)
	}
}

// fire tells of memory: by the monitor or by the mailbox, and now and then of some that is cached, although nothing happens to it.
func (s *storm) fire(at memmon.Range) {
	n := s.events.Add(1)
	if n%nearby == 0 {
		at = memmon.RangeOf(s.sites[n/nearby%uint64(len(s.sites))].bytes)
	}
	if n%2 == 0 || n%(3*nearby) == 0 {
		s.monitor.goes(at)
		return
	}
	s.arbiter.Notify(at)
}

// post fires all the time, from a thread of its own.
func (s *storm) post() {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for !s.stop.Load() {
		s.fire(memmon.Range{Addr: pageSize, Len: pageSize})
	}
}

func (s *storm) judge(operations, remapped int64) {
	var worst time.Duration
	for _, d := range s.worst {
		worst = max(worst, d)
	}
	is := s.Stats()
	s.t.Logf("registration: %d operations among %d events, the longest %v; %d changes in use told, %d not; %+v", operations, s.events.Load(), worst,
		remapped, s.untold.Load(), is)
	if worst > testutil.Pick(s.t, time.Hour, maxStall) {
		s.t.Errorf("an operation took %v", worst)
	}
	if is.Hits == 0 || is.Evicted == 0 || is.DeadOwner+is.DeadMonitor == 0 || remapped == 0 {
		s.t.Errorf("it shows little: %+v", is)
	}
}
