package mrcache

import (
	"errors"
	"runtime"
	"slices"
	"testing"

	"github.com/weft-fabric/weft/internal/sys"
	"github.com/weft-fabric/weft/memmon"
	"pgregory.net/rapid"
)

// The cache against a model that knows of each page, and of each object, which one it is: histories of memory that comes, goes and changes, in use and
// not, with limits and switches. The memory is real, so that addresses come again.
func TestHistories(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := newHistory(t)
		t.Repeat(map[string]func(*rapid.T){
			"":          h.check,
			"map":       h.mapOne,
			"object":    h.object,
			"acquire":   h.acquire,
			"again":     h.again,
			"release":   h.release,
			"unmap":     h.unmap,
			"map over":  h.mapOver,
			"forget":    h.forget,
			"collect":   func(*rapid.T) { runtime.GC() },
			"notify":    h.notify,
			"flush":     func(*rapid.T) { h.b.Flush() },
			"flush all": func(*rapid.T) { h.b.arbiter.Flush() },
			"switch":    h.turn,
			"refuse":    func(*rapid.T) { h.b.monitor.refuse.Store(!h.b.monitor.refuse.Load()) },
			"look":      func(*rapid.T) { h.b.look(memmon.Everything) },
		})
		for len(h.held) > 0 {
			h.release(t)
		}
	})
}

type sort int

const (
	owned sort = iota
	watched
	ofArena
	object
)

// block is memory that the program has.
type block struct {
	sort  sort
	own   *owner
	anon  *sys.Anonymous
	arena *memmon.Arena
	heap  []byte
	id    uint64 // of the object
}

func (m *block) bytes() []byte {
	switch m.sort {
	case object:
		return m.heap
	case ofArena:
		return m.arena.Bytes()
	}
	return m.anon.Bytes()
}

// kind is a part of it as a program says what it is.
func (m *block) kind(b []byte) memmon.Kind {
	switch m.sort {
	case owned:
		return memmon.Mapped(b, m.own)
	case ofArena:
		return memmon.Mapped(b, m.arena)
	case object:
		return memmon.HeapBytes(b)
	}
	return memmon.Mapped(b, nil)
}

// use is a registration that is held.
type use struct {
	Registration[*region]
	of   *block
	dead bool // by the model
}

// history is a cache and what the model knows.
type history struct {
	b       *bench
	cfg     Config
	next    uint64
	pages   map[uint64]uint64 // by number, which one lies there
	objects map[uint64]*block // by address of the first byte
	blocks  []*block
	held    []*use
	off     bool
}

func newHistory(t *rapid.T) *history {
	h := &history{pages: map[uint64]uint64{}, objects: map[uint64]*block{}}
	h.cfg = Config{
		MaxCount: rapid.SampledFrom([]int{-1, 1, 3, 1000}).Draw(t, "count"),
		MaxBytes: rapid.SampledFrom([]uint64{2, 6, 1000}).Draw(t, "pages") * pageSize,
	}
	d := newDevice()
	d.tell = h.identify
	h.b = newBench(t, d, h.cfg)
	t.Cleanup(func() {
		for _, m := range h.blocks {
			if m.anon != nil {
				_ = m.anon.Close()
			}
			if m.arena != nil {
				_ = m.arena.Close()
			}
		}
	})
	return h
}

// identity is what lies in a range: pages, or an object.
type identity map[uint64]uint64

func (h *history) identify(b []byte) any {
	at := memmon.RangeOf(b)
	for _, m := range h.blocks {
		if m.sort == object && memmon.RangeOf(m.heap).Contains(at) {
			return identity{0: m.id}
		}
	}
	return h.identity(at)
}

func (h *history) identity(at memmon.Range) identity {
	at = at.Rounded(pageSize)
	id := identity{}
	for p := at.Addr / pageSize; p < at.End()/pageSize; p++ {
		id[p] = h.pages[p]
	}
	return id
}

// fresh says that new pages lie in a range.
func (h *history) fresh(at memmon.Range) {
	for p := range h.identity(at) {
		h.next++
		h.pages[p] = h.next
	}
}

func (h *history) mapOne(t *rapid.T) {
	m := &block{sort: sort(rapid.IntRange(int(owned), int(ofArena)).Draw(t, "sort")), own: new(owner)}
	n := rapid.IntRange(1, 4).Draw(t, "pages") * int(pageSize)
	var err error
	if m.sort == ofArena {
		m.arena, err = h.b.arbiter.NewArena(n)
	} else {
		m.anon, err = sys.MapAnonymous(n)
	}
	if err != nil {
		t.Fatal(err)
	}
	clear(m.bytes()) // so that the pages are there
	h.fresh(memmon.RangeOf(m.bytes()))
	h.blocks = append(h.blocks, m)
}

func (h *history) object(t *rapid.T) {
	h.next++
	n := rapid.SampledFrom([]int{16, 100, 3000, 40000}).Draw(t, "bytes")
	h.blocks = append(h.blocks, &block{sort: object, heap: make([]byte, n), id: h.next})
}

// one is a block of the sorts, or nil.
func (h *history) one(t *rapid.T, sorts ...sort) *block {
	var list []*block
	for _, m := range h.blocks {
		if slices.Contains(sorts, m.sort) {
			list = append(list, m)
		}
	}
	if len(list) == 0 {
		return nil
	}
	return list[rapid.IntRange(0, len(list)-1).Draw(t, "block")]
}

func part(t *rapid.T, b []byte) []byte {
	from := rapid.IntRange(0, len(b)-1).Draw(t, "from")
	return b[from:rapid.IntRange(from+1, len(b)).Draw(t, "to")]
}

func (h *history) acquire(t *rapid.T) {
	if m := h.one(t, owned, watched, ofArena, object); m != nil {
		h.held = append(h.held, h.take(t, m, part(t, m.bytes())))
	}
}

// take acquires, and checks that what the device has is what lies there now.
func (h *history) take(t *rapid.T, m *block, b []byte) *use {
	u := &use{of: m, Registration: h.b.acquire(t, m.kind(b))}
	has := u.Handle().page.(identity)
	if m.sort == object {
		if has[0] != m.id {
			t.Errorf("object %d: the device has %d", m.id, has[0])
		}
		return u
	}
	for p, id := range h.identity(memmon.RangeOf(b)) {
		if has[p] != id {
			t.Errorf("page %x is %d: the device has %d", p, id, has[p])
		}
	}
	return u
}

// again is what a cache is for.
func (h *history) again(t *rapid.T) {
	m := h.one(t, owned, watched, ofArena, object)
	if m == nil {
		return
	}
	b := part(t, m.bytes())
	one := h.take(t, m, b)
	first, why := one.Handle(), one.Why()
	h.end(t, one)
	two := h.take(t, m, b)
	if why == Kept && two.Handle() != first || h.off && two.Why() != Disabled && two.Why() != NoMonitor {
		t.Errorf("off: %v; %v, then %v", h.off, why, two.Why())
	}
	h.end(t, two)
}

func (h *history) release(t *rapid.T) {
	if len(h.held) > 0 {
		i := rapid.IntRange(0, len(h.held)-1).Draw(t, "use")
		u := h.held[i]
		h.held = slices.Delete(h.held, i, i+1)
		h.end(t, u)
	}
}

func (h *history) end(t *rapid.T, u *use) {
	why := u.Why()
	err := u.Release()
	if want := u.dead && why != NoMonitor; want != errors.Is(err, ErrRemapped) || err != nil && !want {
		t.Errorf("released memory of sort %d, dead %v, %v: %v", u.of.sort, u.dead, why, err)
	}
}

// dies marks what is in use of memory that changes: all of an owner, and pages that the monitor sees.
func (h *history) dies(m *block, at memmon.Range) {
	for _, u := range h.held {
		if u.of == m && (m.sort != watched || u.Range().Rounded(pageSize).Overlaps(at)) {
			u.dead = true
		}
	}
}

// before has whoever is to be told know that memory changes.
func (h *history) before(t *rapid.T, m *block) {
	at := memmon.RangeOf(m.bytes())
	h.dies(m, at)
	switch m.sort {
	case owned:
		m.own.n.Add(1)
		if rapid.Bool().Draw(t, "tells") {
			h.b.arbiter.Notify(at)
		}
	case watched:
		if rapid.Bool().Draw(t, "by the monitor") {
			h.b.monitor.goes(at)
		} else {
			h.b.arbiter.Notify(at)
		}
	}
}

func (h *history) unmap(t *rapid.T) {
	m := h.one(t, owned, watched, ofArena)
	if m == nil {
		return
	}
	h.before(t, m)
	for p := range h.identity(memmon.RangeOf(m.bytes())) {
		delete(h.pages, p)
	}
	h.remove(m)
	var err error
	if m.arena != nil {
		err = m.arena.Close()
	} else {
		err = m.anon.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
}

func (h *history) remove(m *block) {
	h.blocks = slices.DeleteFunc(h.blocks, func(o *block) bool { return o == m })
}

func (h *history) mapOver(t *rapid.T) {
	m := h.one(t, owned, watched, ofArena)
	if m == nil {
		return
	}
	h.before(t, m)
	at := m.bytes()
	var err error
	if m.arena != nil {
		at = at[rapid.IntRange(0, len(at)/int(pageSize)-1).Draw(t, "page")*int(pageSize):]
		err = m.arena.Discard(len(m.bytes())-len(at), len(at))
	} else {
		err = m.anon.MapOver()
	}
	if err != nil {
		t.Fatal(err)
	}
	h.fresh(memmon.RangeOf(at))
}

// forget is an object that the program does not hold any more.
func (h *history) forget(t *rapid.T) {
	if m := h.one(t, object); m != nil {
		h.remove(m)
		m.heap = nil
	}
}

// notify tells of memory to which nothing happens: only who is told by others believes it.
func (h *history) notify(t *rapid.T) {
	if m := h.one(t, owned, watched, ofArena); m != nil {
		at := memmon.RangeOf(part(t, m.bytes()))
		h.b.arbiter.Notify(at)
		if m.sort == watched {
			h.dies(m, at)
		}
	}
}

func (h *history) turn(*rapid.T) {
	if h.off = !h.off; h.off {
		h.b.arbiter.Disable()
	} else {
		h.b.arbiter.Enable()
	}
}

// check is that of the limits.
func (h *history) check(t *rapid.T) {
	var using uint64
	regions := map[*region]bool{}
	for _, u := range h.held {
		if r := u.Handle(); !regions[r] {
			regions[r] = true
			using += r.at.Rounded(pageSize).Len
		}
		if !h.b.device.has(u.Handle()) {
			t.Error("in use and not registered")
		}
	}
	s := h.b.Stats()
	d := h.b.device
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.pinned > s.Pinned || d.pinned > h.cfg.MaxBytes+using || len(d.live) > max(0, h.cfg.MaxCount)+len(regions) {
		t.Errorf("%d bytes pinned in %d, %d in use in %d; %+v", d.pinned, len(d.live), using, len(regions), s)
	}
}
