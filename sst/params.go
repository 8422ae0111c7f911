package sst

import (
	"fmt"
	"strings"
	"time"

	"github.com/weft-fabric/weft/sst/internal/cp"
)

// Params are the engine parameters of a stream, with ADIOS2's names, meanings
// and defaults. The zero value of a field means its default; where zero is a
// meaningful value of its own the field is a pointer.
//
// From text (a command line, an ADIOS2 configuration) they come through
// [ParseParams], which refuses unknown names. All ranks of a cohort must have
// the same, apart from the interfaces.
type Params struct {
	// RendezvousReaderCount is the number of readers that Create waits for;
	// nil means 1. Writer only.
	RendezvousReaderCount *int
	// RegistrationMethod says how readers find the writer: "File" (default) by a
	// contact file, "Screen" by a line that somebody copies from the writer's
	// output to the reader's input.
	RegistrationMethod string
	// QueueLimit is the number of steps that may wait for readers; 0 means no
	// limit. While it is reached, End waits (or drops, see QueueFullPolicy). The
	// step being filled comes on top: at most QueueLimit+1 exist, or QueueLimit
	// with BlockAt "BeginStep". Writer only.
	QueueLimit int
	// QueueLimitBytes limits the data of the steps that wait, of all writer ranks
	// together, in bytes; 0 means no limit. A step that is larger by itself is let
	// through when none waits. Weft's own. Writer only.
	QueueLimitBytes uint64
	// QueueFullPolicy says what happens to a new step when the queue is full:
	// "Block" (default) or "Discard". Writer only.
	QueueFullPolicy string
	// BlockAt says where a full queue stops the writer: "EndStep" (default, as
	// ADIOS2), or "BeginStep", so that at most QueueLimit steps exist. Weft's own.
	// Writer only.
	BlockAt string
	// ReserveQueueLimit is the number of newest steps that are kept for readers
	// that come later, also if nobody holds them. They count for QueueLimit, but
	// give way to new steps. Writer only.
	ReserveQueueLimit int
	// FirstTimestepPrecious keeps step 0 to the end of the stream: each reader
	// that comes later gets it first. It does not count for QueueLimit. Writer
	// only.
	FirstTimestepPrecious bool
	// StepDistributionMode says which reader cohort gets a step: "AllToAll"
	// (default), "RoundRobin": one after the other, "OnDemand": the one that asked
	// first. Writer only.
	StepDistributionMode string
	// LagNotice is the number of steps that a reader may be behind before
	// WriterConfig.OnLag is called; 0 means never. Weft's own. Writer only.
	LagNotice int
	// LagLimit is the number of steps that a reader may be behind before it is
	// detached; 0 means never. Weft's own. Writer only.
	LagLimit int
	// QueueWarnBytes is the amount of waiting data at which the log warns, in
	// bytes: nil means a quarter of the memory that the process may use, 0 never.
	// Weft's own. Writer only.
	QueueWarnBytes *uint64
	// OpenTimeoutSecs bounds Open, from the search for the contact file to the
	// first answer of the writer's application; 0 means 60. Reader only.
	OpenTimeoutSecs int
	// SpeculativePreloadMode says whether whole steps are pushed to readers
	// without being asked for: "Auto" (default: to readers of one rank), "On",
	// "Off". A writer honours what the reader asks for unless it says "Off". With
	// "Auto" on both sides a Weft reader that waits for a step asks for blocks of 1 MiB
	// and more: they come straight to where they belong.
	SpeculativePreloadMode string
	// SpecAutoNodeThreshold is the largest reader cohort that "Auto" means; 0
	// means 1. Reader only.
	SpecAutoNodeThreshold int
	// AlwaysProvideLatestTimestep makes a reader skip to the newest step. Reader
	// only.
	AlwaysProvideLatestTimestep bool
	// DataTransport forces a data plane: "native" or "shm" mean memory that both sides
	// share, on one node and between Weft programs; "WAN" or "evpath" mean sockets.
	// "Auto" (default) chooses for each reader: native where it can be, else sockets. What
	// was forced is used or is an error; but a reader that comes late asks through sockets
	// for steps that were written while only readers of sockets were there, or none.
	DataTransport string
	// NetworkInterface names the interface whose address is published;
	// ControlInterface goes before it. Empty chooses.
	NetworkInterface string
	ControlInterface string
	// DataInterface names the interface whose address peers are told for data, if
	// it is another one.
	DataInterface string
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

// Words of parameters that code asks for.
const (
	policyDiscard  = "Discard"
	atBeginStep    = "BeginStep"
	byScreen       = "Screen"
	modeRoundRobin = "RoundRobin"
	modeOnDemand   = "OnDemand"
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

// defaultAskFrom is measured: below 1 MiB the way there and back costs what the copy
// would, and a view, which needs none, gains nothing.
const defaultAskFrom = 1 << 20

// askFrom is the size of blocks, in bytes, from which on a Weft reader that waits
// for a step asks for them; 0 means that all are pushed.
func (p *Params) askFrom() uint64 {
	if p.SpeculativePreloadMode != "Auto" && p.SpeculativePreloadMode != "" {
		return 0
	}
	return defaultAskFrom
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

// planes are the data planes that may be used, best first.
func (p *Params) planes() []string {
	switch p.DataTransport {
	case "native", "shm":
		return []string{cp.PlaneNative}
	case "WAN", "evpath":
		return []string{cp.PlaneEvpath}
	}
	return []string{cp.PlaneNative, cp.PlaneEvpath}
}

// resolve returns a checked copy with canonical spelling.
func (p Params) resolve(side Side) (Params, error) {
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

// EffectiveParam is a parameter as it works in a stream.
type EffectiveParam struct {
	Name  string `json:"name"`
	Value string `json:"value"` // the default, if none was set
	Set   bool   `json:"set"`   // the value was set, and is not the default
}

// Effective lists every parameter of a side with the value that is in effect,
// in the order of [ParamList]. It is an error if p has one that is out of range,
// or of the other side.
func (p Params) Effective(s Side) ([]EffectiveParam, error) {
	p, err := p.resolve(s)
	if err != nil {
		return nil, err
	}
	var list []EffectiveParam
	for i := range paramTable {
		if d := &paramTable[i]; d.sides&s != 0 {
			e := EffectiveParam{Name: d.name, Value: d.def}
			if v := d.value(&p); v != "" && v != d.def {
				e.Value, e.Set = v, true
			}
			list = append(list, e)
		}
	}
	return list, nil
}

// String lists what is set and is not the default, as "Name=Value Name=Value".
func (p Params) String() string { return p.text(func(*paramDef) bool { return true }) }

// common is what must be the same on every rank of a cohort, as text. Interfaces
// are named after the host's own hardware.
func (p *Params) common() string {
	return p.text(func(d *paramDef) bool { return !strings.HasSuffix(d.name, "Interface") })
}

func (p *Params) text(want func(*paramDef) bool) string {
	var b strings.Builder
	for i := range paramTable {
		d := &paramTable[i]
		v := d.value(p)
		if v == "" || v == d.def || !want(d) {
			continue
		}
		if b.Len() > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(d.name + "=" + v)
	}
	return b.String()
}
