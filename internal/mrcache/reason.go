package mrcache

import (
	"fmt"

	"github.com/weft-fabric/weft/memmon"
)

// Reason is why a registration is not kept: it is for one operation.
type Reason uint8

// The reasons.
const (
	Kept      Reason = iota // it is kept
	NoMonitor               // memory without an owner, of which no monitor sees all that can happen to it
	NoAnswer                // nobody can be asked about this kind of memory here
	Disabled                // the arbiter has turned the caches off
	Full                    // the limits leave no room, all that is kept being in use
	Unsure                  // the monitor could not tell for a while whether it changed
	numReasons
)

var reasonNames = [numReasons]string{"kept", "no monitor sees this memory", "nobody answers for this memory", "caches are disabled", "the cache is full", "nobody could tell for a while"}

// String is for people.
func (r Reason) String() string {
	if r < numReasons {
		return reasonNames[r]
	}
	return fmt.Sprintf("reason %d", uint8(r))
}

// class is who answers for memory, for the statistics.
type class uint8

const (
	ofHeap class = iota
	ofOwner
	ofMonitor
)

func classOf(k memmon.Kind) class {
	switch {
	case memmon.Lasting(k):
		return ofHeap
	case memmon.Answered(k):
		return ofOwner
	}
	return ofMonitor
}

// miss is why the cache did not have it.
type miss uint8

const (
	missNew     miss = iota // nothing was known of this memory
	missGrown               // less of it was
	missFlushed             // it was forgotten
	missDead                // it had died; the class is added
	numMisses   = missDead + miss(ofMonitor) + 1
)
