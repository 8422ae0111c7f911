package shmem

import (
	"fmt"
	"sync/atomic"
)

// Consumer is the side of a ring that reads records. It belongs to one goroutine at a time.
//
//	for {
//		r, err := c.Peek()   // nil: nothing is there
//		...                  // read r in place
//		if c.Advance() { ... } // the producer may wait for room: look whether to wake it
//	}
//	c.Flush()                // before it sleeps
type Consumer struct {
	mem      []byte
	size     uint64
	credit   *atomic.Uint64 // in memory that the producer reads
	min, max uint64

	tail   uint64
	stored uint64 // what credit holds
	peeked uint64 // bytes that the record of the last Peek takes; 0 if there is none
	err    error
}

// NewConsumer reads a ring in memory that the producer writes. credit is a word of this process's memory that
// the producer can read, 0 at the start.
func NewConsumer(ring Region, credit *atomic.Uint64, c RingConfig) (*Consumer, error) {
	if err := c.check(ring, credit); err != nil {
		return nil, err
	}
	return &Consumer{mem: ring.bytes, size: uint64(ring.Len()), credit: credit, min: uint64(c.MinBody), max: uint64(c.MaxBody)}, nil
}

// Peek returns the oldest record, or nil if there is none. It stays there until Advance. ErrProtocol says
// that what is there is no record. A record with a body of 0 bytes is empty, not nil. It allocates nothing.
func (c *Consumer) Peek() (Record, error) {
	c.peeked = 0
	if c.err != nil {
		return nil, c.err
	}
	for {
		at := c.tail & (c.size - 1)
		w := word64(c.mem, at).Load() // the only load of it
		if w == 0 {
			return nil, nil
		}
		low := w & (1<<32 - 1)
		n := low - 1
		end := at + 8 + n
		switch {
		case w>>32 != c.tail/slot&(1<<32-1):
			return nil, c.broken(w, "of another place")
		case low == skip && at != 0: // at 0 it would have no reason, and could go on for ever
			c.tail += c.size - at
			continue
		case n < c.min || n > c.max || end > c.size: // n of low 0 is too large
			return nil, c.broken(w, "of a length that cannot be")
		}
		raceAcquire()
		c.peeked = uint64(RecordSize(int(n)))
		return Record(c.mem[at+8 : end : end]), nil
	}
}

// Empty says whether Peek would return nothing; it looks at one word only.
func (c *Consumer) Empty() bool { return word64(c.mem, c.tail&(c.size-1)).Load() == 0 }

func (c *Consumer) broken(w uint64, how string) error {
	c.err = fmt.Errorf("%w: at %d there is %#x, %s", ErrProtocol, c.tail, w, how)
	return c.err
}

// Advance gives the record of the last Peek back to the producer; without one it does nothing. The producer learns of it a quarter
// of the ring later, or by Flush. It returns whether it has just learnt: if it waits for room it must be woken.
func (c *Consumer) Advance() bool {
	c.tail += c.peeked
	c.peeked = 0
	if c.tail-c.stored < c.size/4 {
		return false
	}
	return c.Flush()
}

// Flush tells the producer of all that was given back, by an atomic store, which is a full fence. It returns
// whether there was anything to tell.
func (c *Consumer) Flush() bool {
	if c.tail == c.stored {
		return false
	}
	raceRelease()
	c.credit.Store(c.tail)
	c.stored = c.tail
	return true
}
