package provutil

import (
	"encoding/binary"
	"sync"

	"github.com/weft-fabric/weft/fabric/provider"
	"github.com/weft-fabric/weft/internal/shmem"
)

// Atomics runs atomic operations on bytes. Elements of four and eight bytes that are aligned are changed
// by the CPU's compare-and-swap, so that processes that map the same memory agree. The others are changed
// under a lock, so all operations on them go through the Atomics of the domain that owns the memory.
type Atomics struct{ mu sync.Mutex }

// Apply runs one operation on each element of target. operand, compare and result have its length, as far as the
// operation uses them; result may be nil. The caller has checked all this (CheckAtomic), also if it comes from a
// peer: lengths that do not fit are cut to the shortest.
func (a *Atomics) Apply(code provider.AtomicCode, t provider.DataType, target, operand, compare, result []byte) {
	size := t.Size()
	if size == 0 {
		return
	}
	n := len(target)
	if code != provider.AtomicRead {
		n = min(n, len(operand))
	}
	if code.Compares() {
		n = min(n, len(compare))
	}
	if result != nil {
		n = min(n, len(result))
	}
	for i := 0; i+size <= n; i += size {
		e := element{code: code, t: t}
		if code != provider.AtomicRead {
			e.x = load(operand[i : i+size])
		}
		if code.Compares() {
			e.c = load(compare[i : i+size])
		}
		old := a.change(&e, target[i:i+size])
		if result != nil {
			store(result[i:i+size], old)
		}
	}
}

// ApplyPart is Apply for the elements from a byte on, where an operation has several targets: operand, compare and result are
// those of the whole operation.
func (a *Atomics) ApplyPart(code provider.AtomicCode, t provider.DataType, target, operand, compare, result []byte, from uint64) {
	a.Apply(code, t, target, behind(operand, from), behind(compare, from), behind(result, from))
}

// behind is what follows the first bytes. Nil stays nil: it stands for no buffer.
func behind(b []byte, n uint64) []byte {
	if b == nil {
		return nil
	}
	return b[min(n, uint64(len(b))):]
}

// change runs the operation on one element and returns what it was.
func (a *Atomics) change(e *element, b []byte) bits128 {
	switch len(b) {
	case 4:
		if p, ok := shmem.AtomicUint32(b); ok {
			for {
				old := p.Load()
				v, changes := e.next(bits128{lo: uint64(old)})
				if !changes || p.CompareAndSwap(old, uint32(v.lo)) {
					return bits128{lo: uint64(old)}
				}
			}
		}
	case 8:
		if p, ok := shmem.AtomicUint64(b); ok {
			for {
				old := p.Load()
				v, changes := e.next(bits128{lo: old})
				if !changes || p.CompareAndSwap(old, v.lo) {
					return bits128{lo: old}
				}
			}
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	old := load(b)
	if v, changes := e.next(old); changes {
		store(b, v)
	}
	return old
}

// Direct says whether an operation on memory at b needs no lock, so that every process that maps it may run it.
func Direct(t provider.DataType, b []byte) bool {
	switch t.Size() {
	case 4:
		_, ok := shmem.AtomicUint32(b)
		return ok
	case 8:
		_, ok := shmem.AtomicUint64(b)
		return ok
	}
	return false
}

// bits128 is an element as bits; lo is all of it but for complex128, whose imaginary part is hi.
type bits128 struct{ lo, hi uint64 }

func load(b []byte) bits128 {
	ne := binary.NativeEndian
	switch len(b) {
	case 1:
		return bits128{lo: uint64(b[0])}
	case 2:
		return bits128{lo: uint64(ne.Uint16(b))}
	case 4:
		return bits128{lo: uint64(ne.Uint32(b))}
	case 8:
		return bits128{lo: ne.Uint64(b)}
	}
	return bits128{ne.Uint64(b), ne.Uint64(b[8:])}
}

func store(b []byte, v bits128) {
	ne := binary.NativeEndian
	switch len(b) {
	case 1:
		b[0] = byte(v.lo)
	case 2:
		ne.PutUint16(b, uint16(v.lo))
	case 4:
		ne.PutUint32(b, uint32(v.lo))
	case 8:
		ne.PutUint64(b, v.lo)
	case 16:
		ne.PutUint64(b, v.lo)
		ne.PutUint64(b[8:], v.hi)
	}
}
