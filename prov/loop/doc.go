// Package loop is the in-process provider, the reference for what a provider does: endpoints of one process reach each
// other by name, through memory alone. Import it for its effect, and it is there as "loop".
//
// It uses channels, mutexes and memory, and waits on nothing of the kernel, so that programs over it run
// inside a testing/synctest bubble. It shows what a real provider shows: peers that are not there, that
// die, that do not read, queues that are full, messages too long to be copied at once, and both progress modes.
// It is not fast.
//
// Concurrency: everything is safe for concurrent use. Each domain has one lock (docs/lock-order.md);
// a goroutine holds the lock of one domain only, and below it those of a pair of endpoints.
package loop
