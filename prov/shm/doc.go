// Package shm is the provider for processes of one node: messages and remote
// memory access through shared memory, with nothing on disk, nothing that a
// killed process could leave locked, and no CPU while there is nothing to do.
//
// Every byte of shared memory is written by one process and mapped read-only by
// the others (but for arenas that their owner opened with PeerWrite). What is
// read from a peer's memory is read once, checked, and then used; a peer that
// breaks the protocol is dropped and can harm nobody else. docs/prov/shm.md
// describes the protocol, word by word.
//
// Arena memory that is given back is used anew first. Segments in which no block
// is left are kept up to as many bytes as are in use, and at least 128 MiB; the
// others go back to the system at once.
//
// It is not libfabric's shm provider and does not speak to it.
//
// # Concurrency
//
// Every exported method is safe for concurrent use. One mutex guards a domain;
// copies between arenas run outside of it. docs/lock-order.md says what may be
// taken inside of what.
package shm
