package shm

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/weft-fabric/weft/fabric/provider"
	"github.com/weft-fabric/weft/internal/shmem"
	"github.com/weft-fabric/weft/internal/sys"
)

// A data lane is small at first, as most pairs never have more on their way than that holds. Who finds its own full again and
// again, while the peer takes what is in it, replaces it by one of four times the size, twice at most:
//
//   - it sends the new lane's descriptor on the socket;
//   - the peer maps it, and says so by opLane;
//   - opMove is the last record of the old lane: what follows is in the new one.
//
// So no message ever lies in memory that the peer has not mapped. Each lane has a word of its own for the credit.
const (
	laneSteps    = 2
	laneCredits  = 320 // of the replaced lanes, 64 bytes apart
	laneFullMany = 4   // times full, each with half a lane taken in between
)

// laneSize is the size of a data lane that was replaced so often, in bytes.
func laneSize(step int) uint64 { return dataSize << (2 * step) }

// laneCredit is where in the lanes its reader's position is.
func laneCredit(step int) int {
	if step == 0 {
		return laneDataCredit
	}
	return laneCredits + 64*(step-1)
}

// growth is how far a pair's data lanes have been replaced.
type growth struct {
	step   int    // of ours
	fulls  int    // how often it was full
	fullAt uint64 // where the peer was then
	file   *file  // it; nil while it is the first one
	next   *file  // what the peer was told of
	agreed bool   // and has mapped

	stepIn         int // of the peer's
	laneIn, nextIn *sys.Mapping
}

// dataFull is noRoom of the data lane.
func (p *pair) dataFull(err error) bool {
	if g := &p.growth; p.state == pairUp && g.next == nil && g.step < laneSteps && errors.Is(err, shmem.ErrFull) {
		// One that stays full has a peer that takes nothing, and would be as full if it were larger. And who has read
		// from this lane has no offer of ours open.
		if at := word(p.theirs.m.Bytes(), laneCredit(g.step)).Load(); at-g.fullAt >= laneSize(g.step)/2 {
			g.fullAt = at
			if g.fulls++; g.fulls >= laneFullMany {
				g.fulls = 0
				p.offerLane()
			}
		}
	}
	return p.noRoom(err)
}

// offerLane makes the next lane and tells the peer. If that fails all goes on as it was, and is tried again later.
func (p *pair) offerLane() {
	g := &p.growth
	f, err := newFile("lane", int(laneSize(g.step+1)), false, p.d.features)
	if err != nil {
		return
	}
	if p.self {
		g.nextIn, err = again(f)
		g.agreed = err == nil
	} else {
		_, err = p.sock.Send(laneOffer(laneSize(g.step+1)).Append(nil), f.fd)
	}
	if err != nil {
		f.close()
		return
	}
	g.next = f
}

// laneOffer is a larger data lane of the sender. Descriptor: the lane.
//
//	16 u64 bytes
type laneOffer uint64

// Append adds the message to b.
func (l laneOffer) Append(b []byte) []byte {
	start := len(b)
	return seal(binary.LittleEndian.AppendUint64(appendHead(b, kindLane), uint64(l)), start)
}

func parseLaneOffer(body []byte) (laneOffer, error) {
	r := reader{b: body}
	l := laneOffer(r.u64())
	if err := r.end(); err != nil {
		return 0, fmt.Errorf("lane: %w", err)
	}
	return l, nil
}

// laneOffered maps the peer's next lane. The descriptors are used up.
func (p *pair) laneOffered(body []byte, fds []*sys.FD) error {
	l, err := parseLaneOffer(body)
	if err != nil {
		return err
	}
	if p.state != pairUp {
		return nil // it is gone, and has not been told that the lane is mapped, so nothing is in it
	}
	g := &p.growth
	if len(fds) != 1 || g.nextIn != nil || g.stepIn == laneSteps || uint64(l) != laneSize(g.stepIn+1) {
		return fmt.Errorf("%w: a lane of %d bytes with %d descriptors after %d", errMessage, l, len(fds), g.stepIn)
	}
	m, err := mapForeign(fds[0], uint64(l), false)
	if errors.Is(systemError(err), provider.ErrNoMemory) {
		return nil // without an answer the peer goes on as it was
	}
	if err != nil {
		return fmt.Errorf("lane: %w", err)
	}
	g.nextIn = m
	p.say(&record{op: opLane})
	p.publish()
	return nil
}

// laneAgreed: the peer has mapped our next lane.
func (p *pair) laneAgreed() error {
	if p.growth.next == nil || p.growth.agreed {
		return fmt.Errorf("%w: of a lane that it was not told of", errRecord)
	}
	p.growth.agreed = true
	return nil
}

// moveLane goes over to the next lane, if the peer has mapped it and there is room to say so.
func (p *pair) moveLane() bool {
	g := &p.growth
	if !g.agreed || p.state != pairUp {
		return false
	}
	b, err := p.data.Reserve(recordLen(opMove, 0))
	if err != nil {
		return p.noRoom(err)
	}
	credit := word(p.theirs.m.Bytes(), laneCredit(g.step+1))
	lane, err := shmem.NewProducer(shmem.RegionOf(g.next.m), credit, ringConfig)
	if err != nil {
		return p.noRoom(err)
	}
	(&record{op: opMove}).put(b)
	p.data.Commit()
	p.publish()
	g.file.close()
	*g = growth{step: g.step + 1, file: g.next, stepIn: g.stepIn, laneIn: g.laneIn, nextIn: g.nextIn}
	p.data = lane
	return true
}

// laneMoved: the peer's next record is in its next lane.
func (p *pair) laneMoved() error {
	g := &p.growth
	if g.nextIn == nil {
		return fmt.Errorf("%w: it goes to a lane that is not there", errRecord)
	}
	credit := word(p.mine.m.Bytes(), laneCredit(g.stepIn+1))
	lane, err := shmem.NewConsumer(shmem.RegionOf(g.nextIn), credit, ringConfig)
	if err != nil {
		return err
	}
	if g.laneIn != nil {
		_ = g.laneIn.Close()
	}
	g.stepIn, g.laneIn, g.nextIn = g.stepIn+1, g.nextIn, nil
	p.dataIn = lane
	return nil
}

// bytes is what the replaced lanes take.
func (g *growth) bytes() (n uint64) {
	for _, f := range []*file{g.file, g.next} {
		if f != nil {
			n += uint64(len(f.m.Bytes()))
		}
	}
	for _, m := range []*sys.Mapping{g.laneIn, g.nextIn} {
		if m != nil {
			n += uint64(len(m.Bytes()))
		}
	}
	return n
}

// release unmaps all. Nobody reads or writes the lanes any more.
func (g *growth) release() {
	g.file.close()
	g.next.close()
	for _, m := range []*sys.Mapping{g.laneIn, g.nextIn} {
		if m != nil {
			_ = m.Close()
		}
	}
	*g = growth{}
}
