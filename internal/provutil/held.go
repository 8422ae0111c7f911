package provutil

import (
	"fmt"

	"github.com/weft-fabric/weft/fabric/provider"
	"github.com/weft-fabric/weft/internal/shmem"
)

// Held keeps arena memory that was closed until the operations have ended that are posted on it. Whether there are any is
// looked for at the close, so that posts and completions of open memory cost nothing. The lock of the domain guards it; the zero
// value holds nothing.
type Held struct{ list []held }

type held struct {
	memory  []byte
	users   int
	release func()
}

// Close releases memory when so many operations have ended: at once if there are none. Each of them is marked by the
// provider, and at its end given to Ended. release is called with the lock held.
func (h *Held) Close(memory []byte, users int, release func()) {
	if users == 0 {
		release()
		return
	}
	h.list = append(h.list, held{memory, users, release})
}

// Ended says that a marked operation with these buffers touches them no more.
func (h *Held) Ended(v Vector, more ...[]byte) {
	kept := h.list[:0]
	for _, m := range h.list {
		if v.Uses(m.memory, more...) {
			if m.users--; m.users == 0 {
				m.release()
				continue
			}
		}
		kept = append(kept, m)
	}
	clear(h.list[len(kept):])
	h.list = kept
}

// Len is how much memory is held.
func (h *Held) Len() int { return len(h.list) }

// Uses says whether a piece of the buffers lies in memory.
func (v Vector) Uses(memory []byte, more ...[]byte) bool {
	if _, inside := shmem.Offset(memory, v.First); inside {
		return true
	}
	for i := range v.More {
		if _, inside := shmem.Offset(memory, v.More[i].Bytes); inside {
			return true
		}
	}
	for _, b := range more {
		if _, inside := shmem.Offset(memory, b); inside {
			return true
		}
	}
	return false
}

// MemoryOwner knows the memory of a domain.
type MemoryOwner interface {
	// Owns says whether m is the domain's and open. Locked.
	Owns(m provider.Memory) bool
}

// CheckOpen refuses an operation on memory that was closed after its arguments had been checked, or is of another domain.
// Locked.
func CheckOpen(d MemoryOwner, op *provider.Op) error {
	if m := op.Local.Memory; m != nil && !d.Owns(m) {
		return errNotOpen
	}
	for i := range op.Locals {
		if m := op.Locals[i].Memory; m != nil && !d.Owns(m) {
			return errNotOpen
		}
	}
	return nil
}

var errNotOpen = fmt.Errorf("the memory of a segment was closed, or is of another domain: %w", provider.ErrInvalid)
