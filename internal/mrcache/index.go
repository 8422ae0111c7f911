package mrcache

import (
	"math/bits"
	"sync/atomic"

	"github.com/weft-fabric/weft/memmon"
)

// index finds entries by address. Those of up to 2^k bytes lie in table k, under the number of each piece of 2^k bytes that they touch:
// one or two. What contains a range therefore lies under the piece of the range's first byte, in the table of the range's size or
// a larger one: a look-up looks at one place in each table that is in use.
//
// Looking up takes no lock and may miss what is being added, or meet what was just removed, which is dead. Adding and removing is under
// the cache's lock.
type index[H any] struct {
	used   atomic.Uint64 // the tables that hold something, a bit each
	tables [64]atomic.Pointer[table[H]]
}

// table is a hash table with open addressing, at most half full, so that there is an end to every look-up.
type table[H any] struct {
	shift  int // of the hash
	slots  []slot[H]
	filled int // slots that were ever used
	live   int // slots that hold an entry
}

// slot says which entry lies under a number. It is two words that are read one after the other: the number only says whether it is worth
// while to look at the entry, which itself says what it is of.
type slot[H any] struct {
	number atomic.Uint64 // 1 + that of the piece; 0: never used, and the end of a look-up
	entry  atomic.Pointer[entry[H]]
}

const (
	minClass = 8 // smaller entries are in the table of 256 bytes
	minSlots = 16
)

// sizeClass is the table for entries of n bytes.
func sizeClass(n uint64) int { return max(minClass, bits.Len64(n-1)) }

// pieces are the numbers, plus one, of the first and the last piece of a range.
func pieces(r memmon.Range, class int) (first, last uint64) {
	return r.Addr>>class + 1, (r.End()-1)>>class + 1
}

func newTable[H any](slots int) *table[H] {
	return &table[H]{shift: 64 - bits.Len(uint(slots-1)), slots: make([]slot[H], slots)}
}

// home is where a look-up begins.
func (t *table[H]) home(number uint64) int { return int(number * 0x9e37_79b9_7f4a_7c15 >> t.shift) }

func (t *table[H]) after(i int) int { return (i + 1) & (len(t.slots) - 1) }

// add puts an entry under a number. The caller has seen to it that there is room.
func (t *table[H]) add(number uint64, e *entry[H]) {
	i := t.home(number)
	for t.slots[i].entry.Load() != nil {
		i = t.after(i)
	}
	s := &t.slots[i]
	if s.number.Load() == 0 {
		t.filled++
	}
	s.number.Store(number)
	s.entry.Store(e)
	t.live++
}

// remove takes it out again. The slot stays in use, so that look-ups go on behind it.
func (t *table[H]) remove(number uint64, e *entry[H]) {
	for i := t.home(number); t.slots[i].number.Load() != 0; i = t.after(i) {
		if s := &t.slots[i]; s.entry.Load() == e {
			s.entry.Store(nil)
			t.live--
			return
		}
	}
}

// add makes an entry known.
func (x *index[H]) add(e *entry[H]) {
	class := sizeClass(e.span.Len)
	t := x.tables[class].Load()
	if t == nil || 2*(t.filled+2) > len(t.slots) {
		t = t.rebuilt()
		x.tables[class].Store(t)
	}
	first, last := pieces(e.span, class)
	t.add(first, e)
	if last != first {
		t.add(last, e)
	}
	x.used.Or(1 << class)
}

// rebuilt is a table with the same entries, at most a third full.
func (t *table[H]) rebuilt() *table[H] {
	if t == nil {
		return newTable[H](minSlots)
	}
	n := newTable[H](max(minSlots, 1<<bits.Len(uint(3*t.live))))
	for i := range t.slots {
		if e := t.slots[i].entry.Load(); e != nil {
			n.add(t.slots[i].number.Load(), e)
		}
	}
	return n
}

// remove makes it unknown.
func (x *index[H]) remove(e *entry[H]) {
	class := sizeClass(e.span.Len)
	t := x.tables[class].Load()
	first, last := pieces(e.span, class)
	t.remove(first, e)
	if last != first {
		t.remove(last, e)
	}
	if t.live == 0 {
		x.used.And(^(uint64(1) << class))
		x.tables[class].Store(nil)
	}
}

// overlapping calls f for each entry that has a byte in common with r, for some of them twice.
func (x *index[H]) overlapping(r memmon.Range, f func(*entry[H])) {
	for used := x.used.Load(); used != 0; used &= used - 1 {
		class := bits.TrailingZeros64(used)
		t := x.tables[class].Load()
		if t == nil {
			continue
		}
		first, last := pieces(r, class)
		if last-first >= uint64(len(t.slots)) {
			t.all(r, f)
			continue
		}
		for n := first; n <= last; n++ {
			t.under(n, r, f)
		}
	}
}

func (t *table[H]) all(r memmon.Range, f func(*entry[H])) {
	for i := range t.slots {
		if e := t.slots[i].entry.Load(); e != nil && e.span.Overlaps(r) {
			f(e)
		}
	}
}

func (t *table[H]) under(number uint64, r memmon.Range, f func(*entry[H])) {
	for i := t.home(number); ; i = t.after(i) {
		s := &t.slots[i]
		switch s.number.Load() {
		case 0:
			return
		case number:
			if e := s.entry.Load(); e != nil && e.span.Overlaps(r) {
				f(e)
			}
		}
	}
}
