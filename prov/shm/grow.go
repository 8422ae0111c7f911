package shm

import (
	"math"
	"sync/atomic"

	"github.com/weft-fabric/weft/internal/shmem"
)

// A message of private memory that goes through a bounce block is copied twice, by both sides. A longer one is shown to the receiver
// before it is copied, and grows there: the receiver copies the first part while the sender copies the second one. How many bytes are
// there says a word of the block, which the sender writes.
const (
	growPiece = 16 << 10 // bytes that are shown at a time
	grownOff  = eagerMax // of the word in the block: no message there is longer
)

// grows says whether a message is long enough for that. To oneself, one goroutine does both copies.
func (p *pair) grows(o *op) bool { return o.length > growPiece && !p.self }

// grow publishes a message, and then copies it into its block. The receiver may be asleep again before it is there in full, so it
// is told of the end.
func (p *pair) grow(o *op) {
	p.publish()
	for at := uint64(0); at < o.length; {
		n := min(growPiece, o.length-at)
		o.local.Gather(at, o.block.bytes[at:at+n])
		at += n
		o.block.grown.Store(at)
	}
	p.ring()
}

// growing is the word of a message that grows, nil of one that does not. False if there can be none.
func (k *kept) growing(s *foreignSegment) (*atomic.Uint64, bool) {
	if !k.grows {
		return nil, true
	}
	return shmem.AtomicUint64(s.bytes(k.off+grownOff, 8))
}

// grownUp says whether all of a message is there that nobody waits for yet. Until then it stays in the lane, lest a later one overtakes it.
func (p *pair) grownUp(k *kept, n uint64) bool {
	s := p.segment(k.seg)
	if s == nil {
		return true // fetch says what is wrong
	}
	w, ok := k.growing(s)
	return !ok || w.Load() >= n
}

// there is how many bytes of the message the sender has copied.
func (o *op) there() uint64 {
	if o.grown == nil {
		return math.MaxUint64
	}
	return o.grown.Load()
}
