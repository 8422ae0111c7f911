package mrcache

import (
	"sync/atomic"

	"github.com/weft-fabric/weft/internal/invariants"
	"github.com/weft-fabric/weft/memmon"
)

// The state of an entry is one word, so that a hit writes one: how many use it, whether it is dead (nobody may begin to use it), whether
// somebody has since the clock's hand last passed, and the hits there have been.
const (
	users  uint64 = 1<<24 - 1
	dead   uint64 = 1 << 24
	recent uint64 = 1 << 25
	oneHit uint64 = 1 << 26

	allHits = ^uint64(0) / oneHit // the number of hits begins anew after as many
)

// entry is a registration. What a hit reads comes first.
type entry[H any] struct {
	span   memmon.Range // what is registered
	state  atomic.Uint64
	source any          // who answers for the memory
	proof  memmon.Proof // made before it was registered; nil: nobody answers, and it is not kept
	epoch  uint64       // of the arbiter, before it was registered
	handle H

	why   Reason
	class class
	bytes uint64 // of pages

	place   int       // in the ring; guarded by the cache's mu, as is counted
	counted uint64    // hits that are in the statistics
	next    *entry[H] // in the graveyard

	_ uint64 // with handles of 8 and 16 bytes it has two cache lines of its own: no hit writes to a line that another one reads
}

// use begins a use, unless the entry is dead.
func (e *entry[H]) use() bool { return e.begin(0) }

// hit is use by who wants the registration. It is counted when it ends, since it may turn out to be none.
func (e *entry[H]) hit() bool { return e.begin(recent) }

func (e *entry[H]) begin(mark uint64) bool {
	for {
		s := e.state.Load()
		if s&dead != 0 {
			return false
		}
		if e.state.CompareAndSwap(s, (s+1)|mark) {
			return true
		}
	}
}

// newHits is how many there have been since it was asked last. The cache's mu guards it.
func (e *entry[H]) newHits() uint64 {
	n := (e.state.Load()/oneHit - e.counted) & allHits
	e.counted += n
	return n
}

// unuse ends a use. True: it was the last one of a dead entry, which is the caller's to bury.
func (e *entry[H]) unuse() bool { return e.end(0)&(dead|users) == dead }

// unhit is unuse of a hit; died says that the entry is dead.
func (e *entry[H]) unhit() (died, last bool) {
	s := e.end(oneHit)
	return s&dead != 0, s&(dead|users) == dead
}

func (e *entry[H]) end(more uint64) uint64 {
	s := e.state.Add(more - 1)
	if invariants.Enabled {
		invariants.Checkf(s&users != users, "mrcache: a registration was released twice")
	}
	return s
}

// die makes the entry dead. idle: nobody uses it, so that it is the caller's to bury.
func (e *entry[H]) die() (first, idle bool) {
	s := e.state.Or(dead)
	return s&dead == 0, s&users == 0
}

// dieIdle makes the entry dead if nobody uses it, and if it was not used since it was last asked, or always is true.
func (e *entry[H]) dieIdle(always bool) bool {
	s := e.state.Load()
	switch {
	case s&(dead|users) != 0:
		return false
	case s&recent != 0 && !always:
		e.state.CompareAndSwap(s, s&^recent)
		return false
	}
	return e.state.CompareAndSwap(s, s|dead)
}

// isIdle says whether nobody uses it at the moment.
func (e *entry[H]) isIdle() bool { return e.state.Load()&(dead|users) == 0 }

// missed is what a miss is that has found the entry and cannot have it.
func (e *entry[H]) missed(epoch uint64) miss {
	if e.epoch != epoch {
		return missFlushed
	}
	return missDead + miss(e.class)
}
