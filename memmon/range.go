package memmon

import (
	"fmt"

	"github.com/weft-fabric/weft/internal/sys"
)

// Range is a piece of the address space of this process, in bytes.
type Range struct{ Addr, Len uint64 }

// Everything is the whole address space.
var Everything = Range{0, ^uint64(0)}

// RangeOf is where b lies. It says nothing to the garbage collector.
func RangeOf(b []byte) Range {
	if len(b) == 0 {
		return Range{}
	}
	return Range{sys.Address(b), uint64(len(b))}
}

// End is the first address behind it, and at most the last one that there is: posters may say more.
func (r Range) End() uint64 { return r.Addr + min(r.Len, ^r.Addr) }

// Overlaps says whether a byte is in both.
func (r Range) Overlaps(o Range) bool {
	return r.Addr < o.End() && o.Addr < r.End() && r.Len > 0 && o.Len > 0
}

// Contains says whether all bytes of o are in r.
func (r Range) Contains(o Range) bool { return o.Addr >= r.Addr && o.End() <= r.End() }

// Rounded is r rounded out to pages of that size, a power of two.
func (r Range) Rounded(page uint64) Range {
	if r.Len == 0 {
		return r
	}
	from := r.Addr &^ (page - 1)
	return Range{from, (r.End()+page-1)&^(page-1) - from}
}

// String is as the kernel lists mappings: 7f0000-7f1000.
func (r Range) String() string { return fmt.Sprintf("%x-%x", r.Addr, r.End()) }
