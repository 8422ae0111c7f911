package fabrictest

import (
	"errors"
	"fmt"
	"time"

	"github.com/weft-fabric/weft/fabric/provider"
)

// storm is traffic of all kinds with one peer, until it is told to stop or the peer is gone. Then
// each operation that was accepted must have ended once.
type storm struct {
	a      *agent
	f      flow
	s      *slots
	end    *stormEnd
	open   map[uint64]opSpec // by context
	next   uint64
	posted int
	gone   error
	said   string
	ending bool // by our own will: operations may be cancelled or end by Close
}

const (
	stormWindow = 24
	stormLong   = 40 << 10
	// deathBound is how long after the kernel's report of a death the last operation may end.
	deathBound = time.Second
	// noticeBound is that and the time the kernel takes to tear a killed process down, on a busy machine.
	noticeBound = 5 * time.Second
)

func (a *agent) storm(f flow, end *stormEnd) (*storm, error) {
	s := a.stormed
	if s == nil || len(s.free) < stormWindow { // not all that the last one used has come back
		var err error
		if s, err = a.slots(stormWindow, stormLong); err != nil {
			return nil, err
		}
		a.stormed = s
	}
	return &storm{a: a, f: f, s: s, end: end, open: make(map[uint64]opSpec)}, nil
}

func (s *storm) run() error {
	for s.gone == nil && !s.told() {
		if err := s.step(); err != nil {
			return err
		}
	}
	return s.finish()
}

func (s *storm) told() bool {
	select {
	case <-s.end.told:
		return true
	default:
		return false
	}
}

// step posts what there is room for and takes what has ended.
func (s *storm) step() error {
	for len(s.s.free) > 0 {
		op := s.make()
		err := s.a.post(0, op)
		if err == nil {
			s.open[op.Context] = op
			s.posted++
			continue
		}
		s.s.free = append(s.s.free, int(op.Context%stormWindow))
		if isGone(err) {
			s.gone = err
			return nil
		}
		if !errors.Is(err, provider.ErrAgain) {
			return fmt.Errorf("%v was refused: %w", op.Kind, err)
		}
		break
	}
	return s.take()
}

// make is the next operation. Its context is unique and names its slot.
func (s *storm) make() opSpec {
	slot := s.s.take()
	s.next++
	op := opSpec{Peer: s.f.Peers[0], Context: s.next*stormWindow + uint64(slot)}
	n := 64
	switch s.next % 8 {
	case 0, 3:
		op.Kind, op.Peer, n = provider.RecvDone, 0, stormLong
	case 1:
		op.Kind = provider.SendDone
	case 2:
		op.Kind, n = provider.SendDone, stormLong
	case 4:
		op.Kind, op.Tag = provider.TSendDone, s.next
	case 5:
		op.Kind, op.Peer, op.Ignore, n = provider.TRecvDone, 0, ^uint64(0), stormLong
	case 6:
		op.Kind, op.Key, n = provider.ReadDone, s.f.Key, min(s.f.Bytes, stormLong)
	case 7:
		op.Kind, op.Key, n = provider.WriteDone, s.f.Key, min(s.f.Bytes, stormLong)
	}
	if s.next%16 >= 8 && op.Key != 0 && s.f.Arena != 0 {
		op.Key = s.f.Arena
	}
	if (op.Kind == provider.ReadDone || op.Kind == provider.WriteDone) && op.Key == 0 {
		op.Kind = provider.SendDone
	}
	op.Segs = []seg{s.s.seg(slot, n)}
	return op
}

func isGone(err error) bool {
	return errors.Is(err, provider.ErrPeerGone) || errors.Is(err, provider.ErrUnreachable)
}

// take strikes off what has ended, or waits a moment.
func (s *storm) take() error {
	for _, c := range s.a.col.all(time.Millisecond) {
		if err := s.ended(c); err != nil {
			return err
		}
	}
	return nil
}

func (s *storm) ended(c provider.Completion) error {
	op, open := s.open[c.Context]
	if !open {
		return fmt.Errorf("ended twice, or was never posted: %s", show(c))
	}
	delete(s.open, c.Context)
	s.s.free = append(s.s.free, int(c.Context%stormWindow))
	if c.Kind != op.Kind {
		return fmt.Errorf("a %v ended as %s", op.Kind, show(c))
	}
	switch {
	case c.Err == nil:
	case s.ending && (errors.Is(c.Err, provider.ErrCancelled) || errors.Is(c.Err, provider.ErrClosed)):
	case isGone(c.Err):
		s.gone = c.Err
		if oe, ok := errors.AsType[*provider.OpError](c.Err); !ok || oe.Addr == "" {
			return fmt.Errorf("the error of a dead peer does not name it: %w", c.Err)
		}
	default:
		return fmt.Errorf("%v ended with: %w", c.Kind, c.Err)
	}
	return nil
}

// finish sees to the end of what is open. If the peer is gone, all that waits for it ends within the
// bound; receives that name no peer are not ended by its death, and are cancelled. If the storm was told to
// stop, its endpoint closes, which ends everything.
func (s *storm) finish() error {
	began, late := time.Now(), watchLateness()
	defer late.stop()
	if s.gone != nil {
		s.said = s.gone.Error()
	} else {
		s.ending = true
		if err := s.a.eps[0].Close(); err != nil {
			return err
		}
	}
	for len(s.open) > 0 {
		if s.gone != nil && s.waiting() == 0 && !s.ending {
			s.ending = true
			for context := range s.open {
				s.a.eps[0].Cancel(context)
			}
		}
		if err := s.take(); err != nil {
			return err
		}
		if took := time.Since(began); took > deathBound+late.worst() {
			return fmt.Errorf("%d operations have not ended after %v; the storm ended by %q", len(s.open), took, s.said)
		}
	}
	return nil
}

// waiting counts what is open and waits for the peer.
func (s *storm) waiting() int {
	n := 0
	for _, op := range s.open {
		if op.Kind != provider.RecvDone && op.Kind != provider.TRecvDone {
			n++
		}
	}
	return n
}
