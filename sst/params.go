package sst

import (
	"fmt"
	"time"
)

// Params are the engine parameters of a stream, with ADIOS2's names, meanings
// and defaults. The zero value of a field means its default; where zero is a
// meaningful value of its own the field is a pointer.
//
// From text (a command line, an ADIOS2 configuration) they come through
// [ParseParams], which refuses unknown names.
type Params struct {
	// RendezvousReaderCount is the number of readers that Create waits for;
	// nil means 1. Writer only.
	RendezvousReaderCount *int
	// QueueLimit is the number of steps that may wait for readers; 0 means no
	// limit. While it is reached, End waits (or drops, see QueueFullPolicy). The
	// step being filled comes on top: at most QueueLimit+1 exist. Writer only.
	QueueLimit int
	// QueueFullPolicy says what happens to a new step when the queue is full:
	// "Block" (default) or "Discard". Writer only.
	QueueFullPolicy string
	// OpenTimeoutSecs bounds Open, from the search for the contact file to the
	// first answer of the writer's application; 0 means 60. Reader only.
	OpenTimeoutSecs int
	// SpeculativePreloadMode says whether whole steps are pushed to readers
	// without being asked for: "Auto" (default: to readers of one rank), "On",
	// "Off". A writer honours what the reader asks for unless it says "Off".
	SpeculativePreloadMode string
	// SpecAutoNodeThreshold is the largest reader cohort that "Auto" means; 0
	// means 1. Reader only.
	SpecAutoNodeThreshold int
	// AlwaysProvideLatestTimestep makes a reader skip to the newest step. Reader
	// only.
	AlwaysProvideLatestTimestep bool
	// DataTransport forces a data plane: "WAN" or "evpath" mean sockets, the only
	// one so far. Empty chooses.
	DataTransport string
	// NetworkInterface names the interface whose address is published;
	// ControlInterface goes before it. Empty chooses.
	NetworkInterface string
	ControlInterface string
	// StatsLevel 1 records minimum and maximum of each block. Writer only.
	StatsLevel int
	// ADIOS2Release says which field set readers get whose release the protocol
	// does not show: "Auto" (default; 2.12 unless the reader is older), "2.10",
	// "2.12" or "main". Weft's own. Writer only.
	ADIOS2Release string
}

// Defaults of ADIOS2.
const (
	defaultRendezvous  = 1
	defaultOpenTimeout = 60 * time.Second
	defaultThreshold   = 1
)

func (p *Params) rendezvous() int {
	if p.RendezvousReaderCount == nil {
		return defaultRendezvous
	}
	return *p.RendezvousReaderCount
}

func (p *Params) openTimeout() time.Duration {
	if p.OpenTimeoutSecs == 0 {
		return defaultOpenTimeout
	}
	return time.Duration(p.OpenTimeoutSecs) * time.Second
}

// preloads reports whether a reader cohort of the given size asks for preload.
func (p *Params) preloads(cohort int) bool {
	switch p.SpeculativePreloadMode {
	case "On":
		return true
	case "Off":
		return false
	}
	threshold := p.SpecAutoNodeThreshold
	if threshold == 0 {
		threshold = defaultThreshold
	}
	return cohort <= threshold
}

// resolve returns a checked copy with canonical spelling.
func (p Params) resolve(side side) (Params, error) {
	for _, d := range paramTable {
		if !d.isSet(&p) {
			continue
		}
		if d.sides&side == 0 {
			return p, fmt.Errorf("%w: %s is a parameter of the %v", ErrParam, d.name, d.sides)
		}
		if err := d.set(&p, d.get(&p)); err != nil {
			return p, err
		}
	}
	return p, nil
}
