package sys

import (
	"fmt"
	"sync/atomic"

	"github.com/weft-fabric/weft/internal/invariants"
)

// FD is a file descriptor that this process owns. All of them close on exec.
//
// Int must not be used beside Close or Disown of the same FD: the number may be another file's at once.
type FD struct {
	n      atomic.Int64 // the number + 1; 0 is closed
	ticket uint64
}

// NewFD makes an FD of a descriptor that nobody else closes. what says what it is, for those who look
// for leaks.
func NewFD(fd int, what string) *FD {
	f := new(FD)
	f.n.Store(int64(fd) + 1)
	if invariants.Enabled { // else nobody reads the text
		f.ticket = track(fmt.Sprintf("descriptor %d (%s)", fd, what))
	}
	return f
}

// Int is the descriptor's number, -1 when it is closed. It stays with the FD.
func (f *FD) Int() int { return int(f.n.Load()) - 1 }

// Close closes the descriptor; again, it does nothing. It is safe for concurrent use with itself.
func (f *FD) Close() error {
	fd := f.Disown()
	if fd < 0 {
		return nil
	}
	return closeFD(fd)
}

// Disown gives the descriptor to the caller, who closes it, and leaves the FD closed. It is -1 if it
// was closed before.
func (f *FD) Disown() int {
	n := f.n.Swap(0)
	if n != 0 {
		untrack(f.ticket)
	}
	return int(n) - 1
}

// CloseAll closes descriptors; nil ones do not matter.
func CloseAll(fds []*FD) {
	for _, f := range fds {
		if f != nil {
			_ = f.Close()
		}
	}
}
