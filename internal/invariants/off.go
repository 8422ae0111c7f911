//go:build !invariants

package invariants

// Enabled reports whether assertions are compiled in.
const Enabled = false

// Checkf panics with the formatted message if ok is false. Put it behind "if Enabled" where its
// arguments cost something.
func Checkf(ok bool, format string, args ...any) {}

// Poison overwrites memory that its owner has given back, so that whoever still
// reads it is found out.
func Poison(b []byte) {}

// CloseChecker catches the second close, and the use after a close, of an internal object that has
// one owner. Public handles have an idempotent Close and do not use it. The zero value is open.
// Without the build tag it has no size: do not make it the last field of a struct, which would be
// padded.
type CloseChecker struct{}

// Close marks the object closed. It panics, showing where the first close was, if it is already.
func (c *CloseChecker) Close() {}

// CheckOpen panics if the object is closed.
func (c *CloseChecker) CheckOpen() {}

// CheckClosed panics if the object is open.
func (c *CloseChecker) CheckClosed() {}
