// Package shmem holds every pointer cast into raw memory: typed slices over
// bytes, and memory on huge pages, now; mapped regions and rings with the
// shared-memory provider.
//
// It is one of the two packages that may use unsafe (docs/decisions/0002). It
// keeps no state; its functions are safe for concurrent use.
package shmem
