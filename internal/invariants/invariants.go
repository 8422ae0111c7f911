// Package invariants holds assertions on what must be true inside this module whatever users,
// peers and networks do. They are compiled in with the build tag invariants and cost nothing
// without it: Enabled is a constant, so the compiler drops what stands behind it.
//
//	if invariants.Enabled {
//		invariants.Checkf(q.head <= q.tail, "queue: head %d is past tail %d", q.head, q.tail)
//	}
//
// It is not for input: bytes from a peer and arguments from a user that are wrong are errors, in
// every build. A failed invariant is a bug of this module, and it panics.
//
// Concurrency: everything here is safe for concurrent use.
package invariants
