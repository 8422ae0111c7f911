package shm

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"

	"github.com/weft-fabric/weft/fabric/provider"
	"github.com/weft-fabric/weft/internal/sys"
)

// segment is a file that blocks are cut from.
type segment struct {
	index  uint32
	access provider.Access // PeerWrite: peers may map it writable
	file   *file
	fresh  uint64 // from here on no byte was ever used, so all are zero
}

func (s *segment) size() uint64 { return uint64(len(s.file.m.Bytes())) }

func (s *segment) info() segmentInfo {
	return segmentInfo{index: s.index, access: uint32(s.access), size: s.size()}
}

// arena is the memory that a domain allocates, and the table of all that it has registered. It has its own
// lock, which may be taken with the domain's held and is never held while the kernel makes or fills memory.
type arena struct {
	features sys.Features
	home     *home
	max      uint64 // bytes of segments; 0 means no bound
	prefault uint64
	huge     string                // the option hugetlb
	pools    func() []sys.HugePool // sys.HugePools

	mu       sync.Mutex
	spaces   [2]*allocator // 1: of blocks that peers may write
	segments []*segment    // by rising index
	made     uint32        // segments, and so the index of the next one
	dropped  []uint32      // the last drops; peers were told of those before
	told     int           // how many those are
	memories []*memory     // by place
	free     []uint32      // places
	gen      uint64
	limbo    []*memory // closed, and maybe still used by a peer
	watched  []*foreignLanes
	closed   bool
	allocs   sync.WaitGroup // that run
	most     uint64         // bytes of segments
}

func newArena(h *home, max, prefault uint64, f sys.Features) *arena {
	return &arena{
		features: f, home: h, max: max, prefault: prefault, pools: sys.HugePools,
		spaces: [2]*allocator{newAllocator(), newAllocator()},
		gen:    rand.Uint64N(1 << 32), // so that no key of a program that was restarted means anything
	}
}

func writable(a provider.Access) int {
	if a.Has(provider.PeerWrite) {
		return 1
	}
	return 0
}

// alloc gets a block, zeroed, and publishes it. grown says that it lies in a new segment, which peers must be
// told of.
func (a *arena) alloc(d *domain, n uint64, access provider.Access) (m *memory, grown bool, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed {
		return nil, false, provider.ErrClosed
	}
	a.allocs.Add(1)
	defer a.allocs.Done()
	a.sweep()
	space := a.spaces[writable(access)]
	e, ok := space.take(n)
	for !ok {
		if a.closed {
			return nil, false, provider.ErrClosed
		}
		grown = true
		if err := a.grow(space, n, access); err != nil {
			return nil, false, err
		}
		e, ok = space.take(n)
	}
	s := a.segment(e.seg)
	m = &memory{domain: d, access: access, extent: e, bytes: s.file.m.Bytes()[e.off : e.off+n : e.off+n]}
	used := e.off < s.fresh
	s.fresh = max(s.fresh, e.off+e.len)
	if err := a.register(m); err != nil {
		space.put(e)
		return nil, grown, err
	}
	// Nobody has the key yet: the rest needs no lock, and may take long.
	a.mu.Unlock()
	err = a.prepare(m.bytes, used)
	a.mu.Lock()
	if err != nil || a.closed {
		a.unregister(m)
		space.put(e)
		if err == nil {
			err = provider.ErrClosed
		}
		return nil, grown, err
	}
	a.home.publish(m.key, e, n, access)
	return m, grown, nil
}

// prepare makes the bytes zero and brings them in.
func (a *arena) prepare(b []byte, used bool) error {
	if uint64(len(b)) <= a.prefault {
		if err := sys.Populate(b, true, a.features); err != nil {
			return fmt.Errorf("memory of %d bytes: %w", len(b), systemError(err))
		}
	}
	if used {
		clear(b)
	}
	return nil
}

// grow adds a segment in which n bytes find room. The lock is let go meanwhile.
func (a *arena) grow(space *allocator, n uint64, access provider.Access) error {
	size := space.segmentSize(max(n, spanSize))
	if n <= smallMax {
		size = max(size, minSegment)
	}
	if a.max > 0 && a.total()+size > a.max {
		files := a.trim(0)
		a.mu.Unlock()
		closeAll(files)
		a.mu.Lock()
		if least := max(roundUp(n, pageSize), spanSize); a.total()+size > a.max {
			size = least
		}
		if t := a.total(); t+size > a.max {
			return fmt.Errorf("%d bytes: arenas have %d of at most %d: %w", n, t, a.max, provider.ErrNoMemory)
		}
	}
	room := uint64(0)
	if a.max > 0 {
		room = a.max - a.total()
	}
	a.mu.Unlock()
	file, err := a.segmentFile(size, room, access)
	a.mu.Lock()
	if err != nil {
		return fmt.Errorf("memory of %d bytes: %w", size, systemError(err))
	}
	if a.closed {
		file.close()
		return provider.ErrClosed
	}
	s := a.addSegment(file, access)
	space.add(s.index, s.size())
	a.most = max(a.most, a.total())
	return nil
}

func (a *arena) addSegment(f *file, access provider.Access) *segment {
	s := &segment{index: a.made, access: access & provider.PeerWrite, file: f}
	a.made++
	a.segments = append(a.segments, s)
	return s
}

// at is where a segment is in the table, or would be.
func (a *arena) at(index uint32) (int, bool) {
	return slices.BinarySearchFunc(a.segments, index, func(s *segment, i uint32) int { return cmp.Compare(s.index, i) })
}

// segment gives the one with this index, or nil.
func (a *arena) segment(index uint32) *segment {
	if i, ok := a.at(index); ok {
		return a.segments[i]
	}
	return nil
}

// drop takes a segment out of the table, of which nothing is used any more, and gives its file, which the caller closes.
func (a *arena) drop(index uint32) *file {
	i, _ := a.at(index)
	f := a.segments[i].file
	a.segments = slices.Delete(a.segments, i, i+1)
	a.dropped = append(a.dropped, index)
	return f
}

// total is the bytes of all segments for blocks.
func (a *arena) total() uint64 { return a.spaces[0].total + a.spaces[1].total }

// register gives the memory its place and key. Only places that the home's table has are given out, so that peers need
// not ask whether a key means anything.
func (a *arena) register(m *memory) error {
	if a.closed {
		return provider.ErrClosed
	}
	place := uint32(len(a.memories))
	if n := len(a.free); n > 0 {
		place = a.free[n-1]
		a.free = a.free[:n-1]
	} else {
		if place >= tableEntries {
			return fmt.Errorf("there are %d registrations, the limit: %w", place, provider.ErrNoMemory)
		}
		a.memories = append(a.memories, nil)
	}
	a.memories[place] = m
	a.gen++
	a.gen = max(a.gen&(1<<(64-keyPlaceBits)-1), 1) // no key is 0
	m.key = makeKey(place, a.gen)
	return nil
}

func (a *arena) unregister(m *memory) {
	place := keyPlace(m.key)
	a.memories[place] = nil
	a.free = append(a.free, place)
}

// find gives the memory of a key, which may come from a peer.
func (a *arena) find(key provider.Key) *memory {
	a.mu.Lock()
	defer a.mu.Unlock()
	place := keyPlace(key)
	if uint64(place) >= uint64(len(a.memories)) {
		return nil
	}
	if m := a.memories[place]; m != nil && m.key == key {
		return m
	}
	return nil
}

// retire has a block, whose key was retracted, come back with the first sweep that finds no peer using it.
func (a *arena) retire(m *memory) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.limbo = append(a.limbo, m)
}

// sweep gives blocks in limbo back that no peer uses any more.
func (a *arena) sweep() {
	a.limbo = slices.DeleteFunc(a.limbo, func(m *memory) bool {
		if m.pins.Load() > 0 || slices.ContainsFunc(a.watched, func(l *foreignLanes) bool { return l.uses(m.key) }) {
			return false
		}
		a.unregister(m) // only now: the place must not get another key while a hazard names this one
		a.spaces[writable(m.access)].put(m.extent)
		return true
	})
}

// watch has blocks wait for the hazards of a peer, from before it can have any.
func (a *arena) watch(l *foreignLanes) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.watched = append(a.watched, l)
}

// unwatch ends watch: the peer is gone, and so are its hazards.
func (a *arena) unwatch(l *foreignLanes) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if i := slices.Index(a.watched, l); i >= 0 {
		a.watched = slices.Delete(a.watched, i, i+1)
	}
}

// tell fills in the statistics.
func (a *arena) tell(s *provider.Stats) {
	a.mu.Lock()
	defer a.mu.Unlock()
	s.Arena, s.ArenaMost, s.ArenaUsed = a.total(), a.most, a.spaces[0].used+a.spaces[1].used
}

// stop ends allocations: those that run are waited for, later ones fail.
func (a *arena) stop() {
	a.mu.Lock()
	a.closed = true
	a.mu.Unlock()
	a.allocs.Wait()
}

// close unmaps everything, after stop. Nobody uses it any more.
func (a *arena) close() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, s := range a.segments {
		s.file.close()
	}
	a.segments, a.memories, a.limbo = nil, nil, nil
}
