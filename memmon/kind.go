package memmon

// Kind is memory of which it is known who keeps it alive. The types of this package are the only
// ones.
type Kind interface {
	// Bytes is the memory.
	Bytes() []byte
	// Generation changes when the memory no longer is what it was: unmapped, mapped anew, given back. What
	// was registered under another number is dead.
	Generation() uint64
	kind()
}

// HeapBytes is memory that the Go runtime allocated. It lives as long as somebody holds it, and a
// registration holds it.
func HeapBytes(b []byte) Kind { return heap(b) }

type heap []byte

func (h heap) Bytes() []byte      { return h }
func (h heap) Generation() uint64 { return 0 }
func (h heap) kind()              {}

// Owner tells of memory that Go did not allocate.
type Owner interface {
	// Generation is a number that the owner changes before the memory goes away or becomes other memory. It is
	// asked before each use, from any goroutine, and must not block nor call a domain, whose lock may be held.
	Generation() uint64
}

// Mapped is memory that owner mapped or got from C. Without an owner nobody can answer for it: then the Kind is of no
// memory, which a domain's Register refuses.
func Mapped(b []byte, owner Owner) Kind {
	if owner == nil {
		return heap(nil)
	}
	return mapped{b, owner}
}

type mapped struct {
	bytes []byte
	owner Owner
}

func (m mapped) Bytes() []byte      { return m.bytes }
func (m mapped) Generation() uint64 { return m.owner.Generation() }
func (m mapped) kind()              {}

// Lasting says whether memory stays what it is as long as it is held: its generation never changes, so that who has
// looked once need not look again.
func Lasting(k Kind) bool {
	_, ok := k.(heap)
	return ok
}
