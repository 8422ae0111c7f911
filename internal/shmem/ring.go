package shmem

import (
	"errors"
	"fmt"
	"math/bits"
	"sync/atomic"
)

// # The ring
//
// One process writes the ring's memory, another reads it; each maps the other's memory read-only. The
// memory is a power of two of bytes, zero at the start. Positions count bytes since the start and never
// wrap; a position's place is position modulo size. All of it is in the byte order of the machine.
//
//	place (multiple of 64)
//	+0  word   low 32 bits: bytes of the body + 1, or skip (1<<31) alone
//	           high 32 bits: position / 64, modulo 2^32
//	           0: nothing is there yet
//	+8  body   the record; then up to 63 bytes that mean nothing, up to the next multiple of 64
//
// A record does not wrap: one that does not fit before the end follows a skip, which takes all that is
// left there. The producer makes the word after the last record 0 before it publishes, so old payload is
// never taken for a word; so 64 bytes of the ring always stay free. Records of a batch are published by
// one atomic store of the first one's word, after all other stores.
//
// The consumer's position, the credit, is a word in the consumer's own memory. It may lag behind.

const (
	slot    = 64      // what records are aligned to: a cache line
	skip    = 1 << 31 // the low half of a skip's word
	minRing = 16 * slot
	maxRing = 1 << 30
	// aheadSlots is how far ahead the producer makes words 0.
	aheadSlots = 9
)

var (
	// ErrFull says that the consumer must take something first.
	ErrFull = errors.New("shmem: ring is full")
	// ErrTooLong refuses a record above RingConfig.MaxBody.
	ErrTooLong = errors.New("shmem: record is too long")
	// ErrProtocol is memory of the peer that no peer who keeps the rules writes. The ring is of no use any
	// more: each later call fails with the same error.
	ErrProtocol = errors.New("shmem: peer broke the rules of the ring")
)

// RingConfig is what both sides of a ring agree on.
type RingConfig struct {
	MinBody int // bytes; the consumer takes no shorter records. 0 is fine
	MaxBody int // bytes; a ring holds four records of this length at least
}

// RecordSize is how many bytes of a ring a record with a body of n bytes takes.
func RecordSize(n int) int { return (8 + n + slot - 1) &^ (slot - 1) }

// RingSize is the smallest size of a ring for the configuration, and at least atLeast.
func (c RingConfig) RingSize(atLeast int) int {
	n := max(atLeast, minRing, 4*RecordSize(c.MaxBody))
	return 1 << bits.Len(uint(n-1))
}

// check refuses what cannot be.
func (c RingConfig) check(ring Region, credit *atomic.Uint64) error {
	size := ring.Len()
	switch {
	case credit == nil:
		return errors.New("shmem: ring without a credit word")
	case c.MinBody < 0 || c.MaxBody < c.MinBody || c.MaxBody > maxRing:
		return fmt.Errorf("shmem: ring of records of %d to %d bytes", c.MinBody, c.MaxBody)
	case size > maxRing || size != c.RingSize(size):
		return fmt.Errorf("shmem: ring of %d bytes for records of up to %d: it is a power of two, at least %d, at most %d",
			size, c.MaxBody, c.RingSize(0), maxRing)
	}
	return nil
}
