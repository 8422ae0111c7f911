// Package sys is where Weft calls the kernel beyond what the standard library
// does: one of the two packages that may use unsafe, and the only one that
// imports golang.org/x/sys/unix. It is no policy: which call to use, and what to
// do without it, is for the caller.
//
// What the oldest kernel that is supported (4.18) has is simply called. What came
// later is a [Feature]: it is probed once in a process, its absence is an
// [UnsupportedError], and a caller can do without it by a [Features] value, so
// that tests reach each fallback on a new kernel.
//
// Handles ([FD], [Mapping], [Poller], [Socket]) have one owner and an idempotent
// Close. In builds with the tag invariants [Open] lists what is open and where it
// was made.
//
// Functions keep no state and are safe for concurrent use unless they say
// otherwise. A method of a handle may run beside others of the same handle, but
// not beside its Close, unless it says so.
package sys
