package sst

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"

	"github.com/weft-fabric/weft/internal/wire/ffs"
	"github.com/weft-fabric/weft/internal/wire/sstmsg"
	"github.com/weft-fabric/weft/sst/internal/carrier"
	"github.com/weft-fabric/weft/sst/internal/cp"
)

// route says who an identity belongs to. A retired one has nobody: messages to
// it crossed a close and are dropped without a word.
type route struct {
	writer *Writer
	reader *Reader
	key    readerKey // of writer's reader
	rank   int
	data   bool // a data-plane identity
	weft   bool // writer's reader is Weft; known of a retired one, too
}

func (r route) retired() bool { return r.writer == nil && r.reader == nil }

func (r route) owner() Side {
	if r.writer != nil {
		return WriterSide
	}
	return ReaderSide
}

// newID returns a random identity, never zero and never negative.
func newID() int64 { return rand.Int64N(1<<63-1) + 1 }

// issue makes n fresh identities with the given route; rank counts from 0.
func (s *Session) issue(n int, r route) []int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	ids := make([]int64, n)
	for i := range ids {
		id := newID()
		for s.routes[id] != (route{}) {
			id = newID()
		}
		r.rank = i
		s.routes[id] = r
		ids[i] = id
	}
	return ids
}

// keepRetired is how many retired identities stay known.
const keepRetired = 1 << 16

// retire takes identities out of use. They stay known for long, so that a late
// message is not mistaken for an attack.
func (s *Session) retire(ids ...int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.retireLocked(ids...)
}

// retireLocked is retire for who holds mu.
func (s *Session) retireLocked(ids ...int64) {
	for _, id := range ids {
		s.routes[id] = route{weft: s.routes[id].weft}
	}
	s.old = append(s.old, ids...)
	for len(s.old) > keepRetired {
		delete(s.routes, s.old[0])
		s.old = s.old[1:]
	}
}

// issueCondition makes a number for a request whose answer has nothing else to
// find its reader by. It is random, as identities are: whoever can connect to us
// must not be able to answer for the writer.
func (s *Session) issueCondition(r *Reader) int32 {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		c := rand.Int32N(1<<31-1) + 1
		if s.conditions[c] == nil {
			s.conditions[c] = r
			return c
		}
	}
}

// sessionHandler is the Session as its carrier sees it.
type sessionHandler Session

// errIdentity drops the connection of a peer that names what it cannot know.
var errIdentity = errors.New("unknown stream identity")

// Message routes one message to its stream. It runs on the link's goroutine, or on
// that of a program which waits for a step.
func (h *sessionHandler) Message(l carrier.Link, in carrier.Inbound) {
	s := (*Session)(h)
	var m sstmsg.Message
	var err error
	if in.Placed == nil {
		m, err = sstmsg.Decode(in.Format, in.Data)
	} else {
		data, _ := in.Placed.Bytes()
		m, err = sstmsg.DecodeSplit(in.Format, in.Data, data)
	}
	if err == nil {
		err = s.route(l, m, in.Placed, in.Free)
	} else {
		in.Free()
	}
	if err != nil {
		err = fmt.Errorf("%s: %w: %w", in.Format.Name(), ErrProtocol, err)
		args := []any{"peer", l.Info().Peer, "error", err}
		s.background(func(ctx context.Context) { s.log.WarnContext(ctx, "dropping a connection", args...) })
		l.Abort(err)
	}
}

// place finds where the data of a read reply belong, before they have arrived.
func (s *Session) place(_ carrier.Link, f *ffs.Format, head []byte, total int) *carrier.Placement {
	m, offset, ok := sstmsg.Head(f, head, total)
	reply, isReply := m.(*sstmsg.ReadReply)
	if !ok || !isReply {
		return nil
	}
	var p *carrier.Placement
	_ = s.toPeer(reply.ReaderID, ReaderSide, true, func(r route) { p = r.reader.plane.Place(reply, offset, total) })
	return p
}

// route hands m to whom its identity belongs. Free is called exactly once: by the
// stream, if it keeps what m points into, else by route.
func (s *Session) route(l carrier.Link, m sstmsg.Message, placed *carrier.Placement, free func()) error {
	switch m := m.(type) {
	case *sstmsg.DPQueryResponse:
		return s.toOpening(m.Condition, m, free)
	case *sstmsg.WriterResponse:
		return s.toOpening(m.Condition, m, free)
	case *sstmsg.TimestepMetadata:
		return s.toReader(m.ReaderID, false, free, func(r *Reader) { r.receive(m, free) })
	case *sstmsg.WriterClose:
		return s.toReader(m.ReaderID, false, free, func(r *Reader) { r.receive(m, free) })
	case *sstmsg.CommPatternLocked:
		return s.toReader(m.ReaderID, false, free, func(r *Reader) { r.receive(m, free) })
	case *sstmsg.PeerSetup:
		return s.toReader(m.ReaderID, false, free, func(r *Reader) { r.peerSetup(l, m, free) })
	case *sstmsg.Preload:
		var refused error
		err := s.toReader(m.ReaderID, true, free, func(r *Reader) { refused = r.pushed(l, m, free) })
		return cmp.Or(err, refused)
	}
	defer free()
	if reply, ok := m.(*sstmsg.ReadReply); ok {
		return s.toPeer(reply.ReaderID, ReaderSide, true, func(r route) { r.reader.plane.Reply(reply, placed) })
	}
	return s.routeBrief(l, m)
}

// routeBrief is route for messages of which nothing is kept.
func (s *Session) routeBrief(l carrier.Link, m sstmsg.Message) error {
	switch m := m.(type) {
	case *sstmsg.DPQuery:
		return s.toWriter(m.WriterID, func(w *Writer) { w.query(l, m) }, func() { s.sayEnded(l, m.Condition) })
	case *sstmsg.ReaderRegister:
		return s.toWriter(m.WriterID, func(w *Writer) { w.register(l, m) }, func() { s.turnAway(l, m) })
	case *sstmsg.StatQuery:
		return s.toWriter(m.WriterID, func(w *Writer) { w.stat(l, m) }, func() { s.statEnded(l, m.Condition) })
	case *sstmsg.StatReply:
		return s.answered(l, m)
	case *sstmsg.ReadRequest:
		return s.toServer(l, m)
	case *sstmsg.ReaderPlane:
		return s.planeOf(l, m)
	case *sstmsg.ReaderActivate:
		return s.fromReader(m.WriterID, m)
	case *sstmsg.ReaderRequestStep:
		return s.fromReader(m.WriterID, m)
	case *sstmsg.ReleaseTimestep:
		return s.fromReader(m.WriterID, m)
	case *sstmsg.LockReaderDefinitions:
		return s.fromReader(m.WriterID, m)
	case *sstmsg.ReaderClose:
		return s.toPeer(m.WriterID, WriterSide, false, func(r route) { r.writer.leaves(l, r.key, m) })
	}
	return sstmsg.ErrUnknown
}

// toServer has the writer answer a read request, or answers that there is none any
// more.
func (s *Session) toServer(l carrier.Link, m *sstmsg.ReadRequest) error {
	served := false
	err := s.toPeer(m.WriterID, WriterSide, true, func(r route) {
		served = true
		r.writer.serve(l, r, m)
	})
	if err == nil && !served {
		err = s.refuse(l, m, s.formerly(m.WriterID))
	}
	return err
}

func (s *Session) toWriter(id int64, do func(*Writer), ended func()) error {
	s.mu.Lock()
	w := s.writers[id]
	r, known := s.routes[id]
	s.mu.Unlock()
	switch {
	case w != nil:
		do(w)
	case known && r.retired():
		ended()
	default:
		return fmt.Errorf("%w %#x", errIdentity, uint64(id))
	}
	return nil
}

// sayEnded answers who asks for a stream that has ended: it found the contact
// file just before that went. Other streams of its may use the link, so that
// stays. An ADIOS2 reader takes the answer for a plane that it lacks, and leaves.
func (s *Session) sayEnded(l carrier.Link, condition int32) {
	s.post(l, &sstmsg.DPQueryResponse{Condition: condition, DataPlane: cp.PlaneEnded}, sstmsg.Options{}, nil)
}

// turnAway does the same for who has asked before, and registers now. ADIOS2
// readers expect nothing but the writer's response then.
func (s *Session) turnAway(l carrier.Link, m *sstmsg.ReaderRegister) {
	s.mu.Lock()
	weft := s.linkUse(l).weft
	s.mu.Unlock()
	if weft {
		s.sayEnded(l, m.Condition)
		return
	}
	l.Abort(fmt.Errorf("stream has ended: %w", ErrClosed))
}

func (s *Session) toOpening(condition int32, m sstmsg.Message, free func()) error {
	s.mu.Lock()
	r := s.conditions[condition]
	s.mu.Unlock()
	if r == nil {
		free()
		return nil // the opening was given up before it began
	}
	r.receive(m, free)
	return nil
}

// refuse answers a read request to a stream that has ended, or that has given
// the reader up. There is no error reply in the protocol: Weft takes an empty one
// for it, for others the connection is dropped. Which of them a reader is its
// registration tells: the link of a rank other than its first has not.
func (s *Session) refuse(l carrier.Link, m *sstmsg.ReadRequest, r route) error {
	s.mu.Lock()
	weft := r.weft || s.linkUse(l).weft
	s.mu.Unlock()
	if !weft {
		return fmt.Errorf("read of step %d of a stream that has ended: %w", m.Step, ErrClosed)
	}
	return s.send(l, &sstmsg.ReadReply{Step: m.Step, ReaderID: m.ReaderID, Condition: m.Condition}, sstmsg.Options{}, nil)
}

// formerly tells what is known of an identity that is retired.
func (s *Session) formerly(id int64) route {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.routes[id]
}

// toPeer finds the route of an identity; those of writers and readers, of
// control and data, are not mixed.
func (s *Session) toPeer(id int64, owner Side, data bool, do func(route)) error {
	s.mu.Lock()
	r, ok := s.routes[id]
	s.mu.Unlock()
	if !ok || !r.retired() && (r.data != data || r.owner() != owner) {
		return fmt.Errorf("%w %#x", errIdentity, uint64(id))
	}
	if !r.retired() {
		do(r)
	}
	return nil
}

func (s *Session) toReader(id int64, data bool, free func(), do func(*Reader)) error {
	called := false
	err := s.toPeer(id, ReaderSide, data, func(r route) {
		called = true
		do(r.reader)
	})
	if !called {
		free()
	}
	return err
}

func (s *Session) fromReader(id int64, m sstmsg.Message) error {
	return s.toPeer(id, WriterSide, false, func(r route) { r.writer.fromReader(r.key, m) })
}
