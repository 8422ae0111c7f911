package mrcache

import (
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/weft-fabric/weft/internal/sys"
	"github.com/weft-fabric/weft/internal/testutil"
	"github.com/weft-fabric/weft/memmon"
)

// site is memory that several goroutines use and others change. Its number is odd while it is being changed.
type site struct {
	sort  sort
	mu    sync.Mutex // of who changes it
	n     atomic.Uint64
	own   *owner
	anon  *sys.Anonymous
	arena *memmon.Arena
	bytes []byte
}

const sitePages = 4

func newSite(t *testing.T, b *bench, s sort) *site {
	m := &site{sort: s, own: new(owner)}
	if s == ofArena {
		m.arena = arena(t, b.arbiter, sitePages)
		m.bytes = m.arena.Bytes()
		return m
	}
	m.anon = pages(t, sitePages)
	m.bytes = m.anon.Bytes()
	return m
}

func (m *site) kind(b []byte) memmon.Kind {
	switch m.sort {
	case owned:
		return memmon.Mapped(b, m.own)
	case ofArena:
		return memmon.Mapped(b, m.arena)
	}
	return memmon.Mapped(b, nil)
}

// stamp says which pages a device has: those that lay there after n had become of, and what n was when they were registered.
type stamp struct{ of, n uint64 }

// stamp is of what lies there now. What n says alone is not enough: while the memory is changed they may be the old ones, or already the new ones. So
// pages have it written on them; only those of an arena are given the benefit of the doubt.
func (m *site) stamp() stamp {
	written := uint64(0)
	if m.sort != ofArena {
		written = binary.NativeEndian.Uint64(m.bytes)
	}
	n := m.n.Load()
	if written == 0 { // nobody has come to write on them
		written = (n + 1) &^ 1
	}
	return stamp{written, n}
}

// change has other pages lie there.
func (m *site) change(b *bench) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	at := memmon.RangeOf(m.bytes)
	m.n.Add(1)
	defer m.n.Add(1)
	switch m.sort {
	case ofArena:
		return m.arena.Discard(0, len(m.bytes))
	case owned:
		m.own.n.Add(1)
		defer m.own.n.Add(1)
		b.arbiter.Notify(at)
	default:
		b.monitor.goes(at)
		defer b.monitor.goes(at)
	}
	if err := m.anon.MapOver(); err != nil {
		return err
	}
	binary.NativeEndian.PutUint64(m.bytes, m.n.Load()+1)
	return nil
}

// TestBeside has goroutines acquire and release, change the memory, flush, switch and look at the statistics at the same time. A
// handle is never of pages that had gone when it was asked for, and who used pages that went is told.
func TestBeside(t *testing.T) {
	const goroutines, kept = 8, 6
	var sites []*site
	d := newDevice()
	d.tell = func(b []byte) any {
		for _, m := range sites {
			if memmon.RangeOf(m.bytes).Contains(memmon.RangeOf(b)) {
				return m.stamp()
			}
		}
		return binary.NativeEndian.Uint64(b) // an object of the goroutine that is here
	}
	b := newBench(t, d, Config{MaxCount: kept, MaxBytes: kept * sitePages * pageSize})
	for i := range 6 {
		sites = append(sites, newSite(t, b, sort(i%3)))
	}
	var objects, remapped atomic.Uint64
	rounds := testutil.Count(t, 4000, 200_000)
	base := testutil.Rand(t).Uint64()
	var all sync.WaitGroup
	for g := range goroutines {
		all.Go(func() {
			rnd := rand.New(rand.NewPCG(base, uint64(g)))
			for range rounds {
				m := sites[rnd.IntN(len(sites))]
				var err error
				switch rnd.IntN(100) {
				case 0, 1, 2, 3, 4, 5, 6, 7, 8:
					err = m.change(b)
				case 9:
					b.Flush()
				case 10:
					b.arbiter.Flush()
				case 11:
					b.Stats()
				case 12, 13, 14, 15, 16, 17, 18, 19:
					err = useObject(b, rnd, objects.Add(1))
				default:
					err = m.use(b, rnd)
				}
				if errors.Is(err, ErrRemapped) && !errors.Is(err, errStale) {
					remapped.Add(1)
				} else if err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
	s := b.Stats()
	t.Logf("%d times it was remapped; most pinned: %d pages; %+v", remapped.Load(), d.most/pageSize, s)
	if s.Hits == 0 || remapped.Load() == 0 || s.Full == 0 || s.Evicted == 0 {
		t.Errorf("it shows little: %+v", s)
	}
	// In use is at most one registration of each goroutine, and one that it makes.
	if limit := uint64(kept+2*goroutines) * sitePages * pageSize; d.most > limit {
		t.Errorf("%d bytes were pinned, %d may", d.most, limit)
	}
}

var (
	errStale  = errors.New("a handle of pages that had gone")
	errUntold = errors.New("pages went while they were in use, and nobody was told")
)

// use acquires a part. The error is ErrRemapped if the memory changed, and something else if the cache was wrong: errUntold may come of memory
// whose monitor cannot tell, because too much happens.
func (m *site) use(b *bench, rnd *rand.Rand) error {
	from := rnd.IntN(len(m.bytes) - 1)
	part := m.bytes[from : from+1+rnd.IntN(len(m.bytes)-from-1)]
	before := m.n.Load()
	r, err := b.Acquire(m.kind(part))
	if err != nil {
		return err
	}
	has := r.Handle().page.(stamp)
	if has.of < before&^1 { // while it is being changed, it may be what it was
		return errors.Join(errStale, r.Release())
	}
	for range rnd.IntN(4) {
		runtime.Gosched() // in use while others go on
	}
	changed := m.n.Load() >= has.of+2 // from beginning to end
	err = r.Release()
	switch told := errors.Is(err, ErrRemapped); {
	case changed && !told:
		return errUntold
	case told && m.sort != watched && m.n.Load() == has.n && has.n%2 == 0: // the monitor may have been too busy to tell
		return errors.New("it was told of a change that was none")
	}
	return err
}

// useObject acquires an object of its own, twice, and forgets it.
func useObject(b *bench, rnd *rand.Rand, id uint64) error {
	m := make([]byte, 16<<rnd.IntN(10))
	binary.NativeEndian.PutUint64(m, id)
	for range 2 {
		r, err := b.Acquire(memmon.HeapBytes(m))
		if err != nil {
			return err
		}
		if of := r.Handle().page.(uint64); of != id {
			return errStale
		}
		if err := r.Release(); err != nil {
			return err
		}
	}
	return nil
}
