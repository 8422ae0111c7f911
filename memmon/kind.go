package memmon

import (
	"fmt"
	"reflect"

	"github.com/weft-fabric/weft/internal/sys"
)

// Kind is memory of which it is known who keeps it alive. The types of this package are the only
// ones.
type Kind interface {
	// Bytes is the memory.
	Bytes() []byte
	// Generation changes when the memory no longer is what it was: unmapped, mapped anew, given back. What
	// was registered under another number is dead.
	Generation() uint64
	// source is who answers for the memory: two kinds with the same one are the same memory where they overlap. It can be compared. It is what
	// decides, not the type: programs can have types of their own in which one of these is embedded.
	source() any
}

// HeapBytes is memory that the Go runtime allocated. It lives as long as somebody holds it, and a
// registration holds it. Global variables and memory of other origin are not of the heap: a cache refuses them with [ErrNotHeap].
func HeapBytes(b []byte) Kind { return heap(b) }

type heap []byte

func (h heap) Bytes() []byte      { return h }
func (h heap) Generation() uint64 { return 0 }
func (h heap) source() any        { return ofHeap{} }

// Who answers where nobody is named: the Go runtime, the monitor of the process.
type (
	ofHeap    struct{}
	ofMonitor struct{}
)

// Owner tells of memory that Go did not allocate. It is of a type that can be compared, a pointer say.
type Owner interface {
	// Generation is a number that the owner changes before the memory goes away or becomes other memory, and once more
	// after that if it may be registered meanwhile. It is asked before each use, from any goroutine, also of Weft's own, and must not block, panic, nor call
	// a domain, whose lock may be held. An owner that then calls [Arbiter.Notify] has dead registrations cleaned up at once.
	Generation() uint64
}

// Mapped is memory that owner mapped or got from C. Without an owner (or with a nil pointer, or one that cannot be compared) the monitor of the process has
// to see it go: a cache keeps a registration if that can see all that may happen to it, else it is for one operation. A domain's Register,
// which asks for as long as the registration lives, refuses memory without an owner.
func Mapped(b []byte, owner Owner) Kind {
	if v := reflect.ValueOf(owner); owner == nil || !v.Comparable() || v.Kind() == reflect.Pointer && v.IsNil() {
		return watched(b)
	}
	return mapped{b, owner}
}

type mapped struct {
	bytes []byte
	owner Owner
}

func (m mapped) Bytes() []byte      { return m.bytes }
func (m mapped) Generation() uint64 { return m.owner.Generation() }
func (m mapped) source() any        { return m.owner }

type watched []byte

func (w watched) Bytes() []byte      { return w }
func (w watched) Generation() uint64 { return 0 }
func (w watched) source() any        { return ofMonitor{} }

// Lasting says whether memory stays what it is as long as it is held: its generation never changes, so that who has
// looked once need not look again.
func Lasting(k Kind) bool {
	return k != nil && k.source() == ofHeap{}
}

// Answered says whether the kind itself can be asked for as long as the memory is used: all but memory without an owner.
func Answered(k Kind) bool {
	return k != nil && k.source() != ofMonitor{}
}

// Check refuses memory that is not what it is said to be: HeapBytes that are not of the Go heap, with [ErrNotHeap]. Where Go cannot be asked,
// the program is believed. Who only touches the memory while it is held needs no more.
func Check(k Kind) error {
	if !Lasting(k) {
		return nil
	}
	b := k.Bytes()
	if is, err := sys.OfGoHeap(b); err != nil || is || len(b) == 0 {
		return nil
	}
	return notHeap(b)
}

func notHeap(b []byte) error { return fmt.Errorf("%d bytes at %v: %w", len(b), RangeOf(b), ErrNotHeap) }

// Source is who answers for the memory (not nil), to be compared: kinds of the same source are the same memory where they overlap. It holds no memory.
func Source(k Kind) any { return k.source() }
