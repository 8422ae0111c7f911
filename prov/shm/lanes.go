package shm

import (
	"sync/atomic"

	"github.com/weft-fabric/weft/fabric/provider"
	"github.com/weft-fabric/weft/internal/shmem"
	"github.com/weft-fabric/weft/internal/sys"
)

// The lanes are what one side of a pair writes and the other reads:
//
//	     0 u64 data credit: how far this side has read the other's data lane
//	    64 u64 control credit: the same of the control lane
//	   128 u64 control records that this side has read and is done with
//	   192 u64 1 while this side waits for a credit or a count of the other: ring when one changes
//	   256 u64 hazard slots in use, from the first
//	   320 what lane.go needs
//	   448 u64 how often this side has let go of a block that the other had closed
//	   512 u64 1 once this side has ended the pair: what it had sent in its memory may be something else now
//	  4096 the hazard slots, 4096 of u64: keys of the other's blocks that this side uses
//	 36864 the control lane, 64 KiB
//	102400 the data lane, 64 KiB
const (
	laneDataCredit    = 0
	laneControlCredit = 64
	laneControlDone   = 128
	laneWants         = 192
	laneHazardsInUse  = 256
	laneLet           = 448
	laneEnded         = 512
	laneHazards       = pageSize
	hazardSlots       = 4096
	laneControl       = laneHazards + hazardSlots*8
	controlSize       = 64 << 10
	laneData          = laneControl + controlSize
	dataSize          = 64 << 10
	lanesSize         = laneData + dataSize
	recordAlign       = 64 // bytes that a record takes at least
)

// ringConfig is that of both lanes.
var ringConfig = shmem.RingConfig{MinBody: wordLen, MaxBody: recordHead + maxInline}

// lanes are ours of one pair.
type lanes struct {
	*file
	dataCredit, controlCredit *atomic.Uint64
	controlDone, wants, inUse *atomic.Uint64
	let, ended                *atomic.Uint64
}

func newLanes(f sys.Features) (*lanes, error) {
	file, err := newFile("lanes", lanesSize, false, f)
	if err != nil {
		return nil, err
	}
	b := file.m.Bytes()
	return &lanes{
		file: file, dataCredit: word(b, laneDataCredit), controlCredit: word(b, laneControlCredit),
		controlDone: word(b, laneControlDone), wants: word(b, laneWants), inUse: word(b, laneHazardsInUse),
		let: word(b, laneLet), ended: word(b, laneEnded),
	}, nil
}

// hazard is the slot i.
func (l *lanes) hazard(i int) *atomic.Uint64 { return word(l.m.Bytes(), laneHazards+8*i) }

// foreignLanes are the other side's.
type foreignLanes struct {
	m                         *sys.Mapping
	dataCredit, controlCredit *atomic.Uint64
	controlDone, wants, inUse *atomic.Uint64
	let, ended                *atomic.Uint64
}

func newForeignLanes(m *sys.Mapping) foreignLanes {
	b := m.Bytes()
	return foreignLanes{
		m: m, dataCredit: word(b, laneDataCredit), controlCredit: word(b, laneControlCredit),
		controlDone: word(b, laneControlDone), wants: word(b, laneWants), inUse: word(b, laneHazardsInUse),
		let: word(b, laneLet), ended: word(b, laneEnded),
	}
}

// uses says whether the peer has a hazard for the key.
func (l *foreignLanes) uses(key provider.Key) bool {
	n := min(l.inUse.Load(), hazardSlots)
	b := l.m.Bytes()
	for i := range int(n) {
		if word(b, laneHazards+8*i).Load() == uint64(key) {
			return true
		}
	}
	return false
}

// rings are the four ends of a pair's lanes.
type rings struct {
	data, control     *shmem.Producer
	dataIn, controlIn *shmem.Consumer
}

func newRings(mine *lanes, theirs *foreignLanes) (r rings, err error) {
	part := func(m *sys.Mapping, off, n uint64) shmem.Region {
		s, e := shmem.RegionOf(m).Sub(off, n)
		if err == nil {
			err = e
		}
		return s
	}
	must := func(e error) {
		if err == nil {
			err = e
		}
	}
	var e error
	r.data, e = shmem.NewProducer(part(mine.m, laneData, dataSize), theirs.dataCredit, ringConfig)
	must(e)
	r.control, e = shmem.NewProducer(part(mine.m, laneControl, controlSize), theirs.controlCredit, ringConfig)
	must(e)
	r.dataIn, e = shmem.NewConsumer(part(theirs.m, laneData, dataSize), mine.dataCredit, ringConfig)
	must(e)
	r.controlIn, e = shmem.NewConsumer(part(theirs.m, laneControl, controlSize), mine.controlCredit, ringConfig)
	must(e)
	return r, err
}
