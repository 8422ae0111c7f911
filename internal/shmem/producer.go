package shmem

import (
	"encoding/binary"
	"fmt"
	"sync/atomic"
)

// Producer is the side of a ring that writes records. It belongs to one goroutine at a time.
//
//	r, err := p.Reserve(n)  // ErrFull: publish, and wait until the peer has taken something
//	r.Store(0, tag)
//	copy(r.Payload(1), data)
//	p.Commit()
//	p.Publish()             // after one or many
type Producer struct {
	mem    []byte
	size   uint64
	credit *atomic.Uint64 // in memory that the consumer writes
	max    int

	head      uint64 // where the next record begins
	published uint64 // what the consumer may know of
	tail      uint64 // the consumer's position, as known here

	first    uint64 // the word of the first record that is not published; 0 if there is none
	reserved int    // bytes of the ring that Reserve gave out; 0 if it did not
	body     int
	given    uint64 // the end of the most that was reserved since the last Commit
	cleared  uint64 // the words at the multiples of slot from head to here are 0
	err      error
}

// NewProducer starts a ring in memory that this process writes and nobody has used before, all zero. credit is a word
// that the consumer writes, at 0.
func NewProducer(ring Region, credit *atomic.Uint64, c RingConfig) (*Producer, error) {
	if !ring.Writable() {
		return nil, ErrReadOnly
	}
	if err := c.check(ring, credit); err != nil {
		return nil, err
	}
	return &Producer{mem: ring.bytes, size: uint64(ring.Len()), credit: credit, max: c.MaxBody}, nil
}

// Reserve returns the next record, with n bytes of body, to be filled and committed. Its content is
// what happens to be there. Another Reserve before Commit gives the same place anew. It fails with ErrFull, where
// the caller publishes before it waits; ErrTooLong; or ErrProtocol. It allocates nothing.
func (p *Producer) Reserve(n int) (Record, error) {
	if n < 0 || n > p.max {
		return nil, ErrTooLong
	}
	p.reserved = 0
	need := uint64(RecordSize(n))
	at := p.head & (p.size - 1)
	rest := p.size - at
	take := need
	if need > rest {
		take += rest
	}
	// One slot more, for the 0 behind the record.
	if p.head+take+slot-p.tail > p.size {
		if err := p.refresh(); err != nil {
			return nil, err
		}
		if p.head+take+slot-p.tail > p.size {
			return nil, ErrFull
		}
	}
	if need > rest {
		p.put(at, skip)
		p.head += rest
		at = 0
	}
	p.reserved, p.body = int(need), n
	p.given = max(p.given, p.head+need)
	return Record(p.mem[at+8 : at+8+uint64(n) : at+8+uint64(n)]), nil
}

// Commit ends the record that was reserved last. The consumer does not see it before Publish. Without a reserved
// record it does nothing.
func (p *Producer) Commit() {
	if p.reserved == 0 {
		return
	}
	p.put(p.head&(p.size-1), uint64(p.body)+1)
	p.head += uint64(p.reserved)
	p.reserved = 0
	if p.given > p.head { // what was reserved at first was longer, and may have been filled
		p.cleared = min(p.cleared, p.head)
	}
	p.given = 0
}

// put writes the word of the record, or skip, at the head. The first one of a batch is kept back.
func (p *Producer) put(at, low uint64) {
	w := (p.head/slot)<<32 | low
	if p.first == 0 {
		p.first = w
		return
	}
	binary.NativeEndian.PutUint64(p.mem[at:], w)
}

// Publish shows the consumer all that was committed, by one atomic store, which is a full fence: a load after it, of a word
// that says whether the consumer sleeps, is not done before it. It returns whether there was anything.
func (p *Producer) Publish() bool {
	if p.first == 0 {
		return false
	}
	p.clear(p.head + slot)
	raceRelease()
	word64(p.mem, p.published&(p.size-1)).Store(p.first)
	p.first = 0
	p.published = p.head
	// The 0 behind the next records, if these take one slot each, are made now, when nobody waits for them, and many at once:
	// their cache lines have to be fetched from the consumer, who has read them a lap ago, which takes as long for all as for one.
	if p.cleared < p.head+2*slot && p.reserved == 0 {
		p.clear(min(p.head+aheadSlots*slot, p.tail+p.size))
	}
	return true
}

// clear makes the words of the slots from the head to a position 0, which are all free. Many are already, and reading costs
// less than writing.
func (p *Producer) clear(to uint64) {
	for pos := max(p.cleared, p.head); pos < to; pos += slot {
		b := p.mem[pos&(p.size-1):]
		if binary.NativeEndian.Uint64(b) != 0 {
			binary.NativeEndian.PutUint64(b, 0)
		}
	}
	p.cleared = max(p.cleared, to)
}

// Pending says whether Publish has something to do.
func (p *Producer) Pending() bool { return p.first != 0 }

// Outstanding is how many bytes of the ring the consumer has, for all that is known, not taken yet. It looks anew.
func (p *Producer) Outstanding() (uint64, error) {
	err := p.refresh()
	return p.head - p.tail, err
}

// refresh loads the consumer's position. A consumer can only be ahead of where it was and behind what was
// published; who says otherwise would have us overwrite what is unread, to his own loss, so this finds bugs.
func (p *Producer) refresh() error {
	if p.err != nil {
		return p.err
	}
	c := p.credit.Load()
	if c == p.tail {
		return nil
	}
	if c-p.tail > p.published-p.tail || c%slot != 0 {
		p.err = fmt.Errorf("%w: it is at %d, between %d and %d", ErrProtocol, c, p.tail, p.published)
		return p.err
	}
	raceAcquire()
	p.tail = c
	return nil
}
