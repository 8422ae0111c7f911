package cp

import (
	"fmt"
	"slices"

	"github.com/weft-fabric/weft/internal/wire/sstmsg"
)

// This file is about the native plane: between the writer's response and
// ReaderActivate the members find out which of its processes they reach
// (docs/native.md). How long that may take is for their shells to bound.

// tryRoutes sends the members out.
func (l *ReaderLeader) tryRoutes(m *sstmsg.WriterResponse) {
	l.turn(Routing)
	l.tries++
	for i := range l.seats {
		l.seats[i].routed = nil
	}
	contacts := make([]string, len(m.Native))
	for rank, w := range m.Native {
		contacts[rank] = w.Contact
	}
	l.emit(ToAll{&TryRoutes{Try: l.tries, Contacts: contacts}})
}

// routed takes a member's answer. One to an earlier attempt comes too late.
func (l *ReaderLeader) routed(member int, m *Routed) {
	s := &l.seats[member]
	if l.phase != Routing || m.Try != l.tries || s.routed != nil || s.away {
		return
	}
	if n := len(l.response.CP); m.Total != n || m.Native < 0 || m.Native > n {
		l.memberFailed(member, NewFault(fmt.Errorf("it reaches %d of %d writer ranks, there are %d: %w: %w", m.Native, m.Total, n, ErrProtocol, errUnexpected)))
		return
	}
	s.routed = m
	l.agree()
}

// agree ends the trying once every member that is there has answered, and says
// which plane it is.
func (l *ReaderLeader) agree() {
	if l.phase != Routing {
		return
	}
	reached, total := 0, 0
	for i := range l.seats {
		s := &l.seats[i]
		switch {
		case s.away:
			continue
		case s.routed == nil:
			return
		}
		reached += s.routed.Native
		total += s.routed.Total
	}
	l.plane = planeOf(reached, total)
	if l.plane != PlaneNative && !slices.Contains(l.cfg.Planes, PlaneEvpath) {
		l.enter(l.unreached())
		return
	}
	l.tell(func(id int64) sstmsg.Message {
		return &sstmsg.ReaderPlane{WriterID: id, Plane: l.plane, Alone: l.cfg.Alone}
	})
	l.enter(nil)
}

// planeOf names the plane of a reader with so many of its routes.
func planeOf(reached, total int) string {
	switch reached {
	case total:
		return PlaneNative
	case 0:
		return PlaneEvpath
	}
	return PlaneMixed
}

// maxCauses is how many ranks an error speaks of one by one.
const maxCauses = 8

// unreached says why the native plane, which is wanted and no other, cannot be had.
func (l *ReaderLeader) unreached() error {
	err := fmt.Errorf("%w: it must be %s", ErrPlane, PlaneNative)
	short := 0
	for rank := range l.seats {
		s := &l.seats[rank]
		if s.away || s.routed.Native == s.routed.Total {
			continue
		}
		if short++; short <= maxCauses {
			err = fmt.Errorf("%w; %w", err, l.shortfall(rank, s.routed))
		}
	}
	if short > maxCauses {
		err = fmt.Errorf("%w; and %d reader ranks more", err, short-maxCauses)
	}
	return err
}

// shortfall is what one member lacks.
func (l *ReaderLeader) shortfall(rank int, r *Routed) error {
	cause := r.Cause
	if cause.None() {
		cause.Text = "it does not say why"
	}
	return At(rank, fmt.Errorf("reader rank %d reaches %d of %d writer ranks: %w", rank, r.Native, r.Total, cause))
}
