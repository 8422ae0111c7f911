//go:build invariants

package invariants

import (
	"fmt"
	"runtime/debug"
	"sync/atomic"
)

// Enabled reports whether assertions are compiled in.
const Enabled = true

// Checkf panics with the formatted message if ok is false. Put it behind "if Enabled" where its
// arguments cost something.
func Checkf(ok bool, format string, args ...any) {
	if !ok {
		panic("invariant: " + fmt.Sprintf(format, args...))
	}
}

// Poison overwrites memory that its owner has given back, so that whoever still
// reads it is found out.
func Poison(b []byte) {
	for i := range b {
		b[i] = 0xdb
	}
}

// CloseChecker catches the second close, and the use after a close, of an internal object that has
// one owner. Public handles have an idempotent Close and do not use it. The zero value is open.
type CloseChecker struct {
	closedBy atomic.Pointer[string] // the stack of the close
}

// Close marks the object closed. It panics, showing where the first close was, if it is already.
func (c *CloseChecker) Close() {
	stack := string(debug.Stack())
	if !c.closedBy.CompareAndSwap(nil, &stack) {
		panic("invariant: closed twice; the first time by\n" + *c.closedBy.Load())
	}
}

// CheckOpen panics if the object is closed.
func (c *CloseChecker) CheckOpen() {
	if by := c.closedBy.Load(); by != nil {
		panic("invariant: used after it was closed by\n" + *by)
	}
}

// CheckClosed panics if the object is open.
func (c *CloseChecker) CheckClosed() {
	if c.closedBy.Load() == nil {
		panic("invariant: should have been closed")
	}
}
