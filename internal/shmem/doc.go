// Package shmem holds every pointer cast into raw memory: typed slices over
// bytes, memory on huge pages, mapped regions with their shared words, and the
// ring of records between two processes.
//
// It is one of the two packages that may use unsafe (docs/decisions/0002). It is
// no allocator and makes no call of the kernel but through internal/sys: who maps
// what, who may write it and how peers wake each other is for the provider.
//
// Memory that a peer writes is hostile: a word of it is loaded once, checked, and
// used. Nothing here panics, or reads outside of the memory it was given, whatever
// is in there.
//
// It keeps no state. Functions and the methods of [Region] are safe for concurrent
// use; a [Producer] and a [Consumer] belong to one goroutine at a time each.
package shmem
