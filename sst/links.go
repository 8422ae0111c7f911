package sst

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/weft-fabric/weft/internal/wire/cm"
	"github.com/weft-fabric/weft/internal/wire/sstmsg"
	"github.com/weft-fabric/weft/sst/internal/carrier"
)

// linkUser is who is told that a link is gone.
type linkUser interface {
	linkLost(l carrier.Link, err error)
}

// linkUse says who needs a link.
type linkUse struct {
	users   map[linkUser]int // and how often; nil is who need not be told
	closing bool             // it is being closed: nobody may take it up again
	linger  *time.Timer      // closes it after a while without streams, nil while none is needed
	peer    bool             // the peer reads streams of ours over it: closing it is up to the peer
	weft    bool             // the peer said that it is Weft
	answers int              // to StatQuery, that are queued
	written uint64           // records, when its progress was looked at
	unread  int              // steps given back since, whose answers may be on the way
}

// lingerTime is how long a link to an ADIOS2 writer stays open after our last
// stream on it has said goodbye. ADIOS2's own readers wait 100 ms (docs/wire/sst.md
// §9.2): a writer that is just sending us a step when the connection ends can
// hang.
const lingerTime = 200 * time.Millisecond

// use adds a user to a link; unuse takes it away, and closes the link with its
// last one. A link that the peer made, or reads over, is left to the peer: another
// of its streams may be opening on it.
func (s *Session) use(l carrier.Link, by linkUser) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.linkUse(l).add(by)
}

// take is use, unless the link is being closed, or is gone.
func (s *Session) take(l carrier.Link, by linkUser) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if u := s.links[l]; u != nil && u.closing || isDone(l.Done()) {
		return false
	}
	s.linkUse(l).add(by)
	return true
}

func isDone(done <-chan struct{}) bool {
	select {
	case <-done:
		return true
	default:
		return false
	}
}

// waitDone waits until done is closed; the error is the context's.
func waitDone(ctx context.Context, done <-chan struct{}) error {
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (u *linkUse) add(by linkUser) {
	if u.users == nil {
		u.users = map[linkUser]int{}
	}
	u.users[by]++
	u.stopLinger()
}

func (u *linkUse) remove(by linkUser) {
	if u.users[by]--; u.users[by] <= 0 {
		delete(u.users, by)
	}
}

func (u *linkUse) stopLinger() {
	if u.linger != nil {
		u.linger.Stop()
		u.linger = nil
	}
}

func (s *Session) unuse(l carrier.Link, by linkUser) {
	s.mu.Lock()
	u := s.links[l]
	if u != nil {
		u.remove(by)
	}
	idle := u.idle(l)
	switch {
	case !idle || u.closing:
		idle = false
	case u.weft || l.Info().Release == carrier.ReleaseWeft:
		u.closing = true
	default:
		idle = false
		u.linger = time.AfterFunc(lingerTime, func() { s.closeIdle(l) })
	}
	s.mu.Unlock()
	if idle {
		l.Close()
	}
}

// idle reports whether nobody needs the link any more, and closing it is up to us.
func (u *linkUse) idle(l carrier.Link) bool {
	return u != nil && len(u.users) == 0 && !u.peer && !l.Info().Inbound
}

// closeIdle closes a link that has lingered, unless it has found a use.
func (s *Session) closeIdle(l carrier.Link) {
	s.mu.Lock()
	u := s.links[l]
	idle := u.idle(l)
	if idle {
		u.closing = true
		u.linger = nil
	}
	s.mu.Unlock()
	if idle {
		l.Close()
	}
}

// finishLingering lets links linger that still do, before all are closed.
func (s *Session) finishLingering() {
	s.mu.Lock()
	lingering := false
	for _, u := range s.links {
		lingering = lingering || u.linger != nil
	}
	s.mu.Unlock()
	if lingering {
		<-time.After(lingerTime)
	}
}

// peerReads notes that the peer of a link asked for a stream of ours.
func (s *Session) peerReads(l carrier.Link, weft bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	u := s.linkUse(l)
	u.peer = true
	u.weft = u.weft || weft
	if weft {
		l.PeerIsWeft()
	}
}

// streamsOn returns how many streams need a link.
func (s *Session) streamsOn(l carrier.Link) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	if u := s.links[l]; u != nil {
		for _, uses := range u.users {
			n += uses
		}
	}
	return n
}

// linkUse returns the entry of a link. The caller holds mu.
func (s *Session) linkUse(l carrier.Link) *linkUse {
	u := s.links[l]
	if u == nil {
		u = &linkUse{}
		s.links[l] = u
	}
	return u
}

// dial connects to a contact, or finds the connection that exists, for a user of
// it, until unuse.
func (s *Session) dial(ctx context.Context, c cm.Contact, by linkUser) (carrier.Link, error) {
	for {
		l, err := s.cm.Dial(ctx, c)
		if err != nil || s.take(l, by) {
			return l, err
		}
		if err := waitDone(ctx, l.Done()); err != nil { // another stream was closing it, or it has just gone
			return nil, err
		}
	}
}

// send encodes m and queues it on the link. Done is called when its memory is
// no longer needed; it may be nil.
func (s *Session) send(l carrier.Link, m sstmsg.Message, o sstmsg.Options, done func(error)) error {
	r, err := record(m, o, done)
	if err != nil {
		return err
	}
	return l.Send(r)
}

// record encodes m. On an error done was called.
func record(m sstmsg.Message, o sstmsg.Options, done func(error)) (carrier.Record, error) {
	f, parts, err := sstmsg.Encode(m, o)
	if err != nil {
		if done != nil {
			done(err)
		}
		return carrier.Record{}, err
	}
	return carrier.Record{Format: f, Parts: parts, Done: done}, nil
}

// post is send for messages whose loss nobody waits for: if m cannot be queued
// the link is of no use any more, and is dropped if it is not down already.
func (s *Session) post(l carrier.Link, m sstmsg.Message, o sstmsg.Options, done func(error)) {
	give(l, s.send(l, m, o, done))
}

// give is the end of a send whose loss nobody waits for.
func give(l carrier.Link, err error) {
	if err != nil && !errors.Is(err, carrier.ErrClosed) {
		l.Abort(err) // one that is closing writes out what it has first
	}
}

// Lost tells every user of the link. From then on nobody takes it up again.
func (h *sessionHandler) Lost(l carrier.Link, err error) {
	s := (*Session)(h)
	s.mu.Lock()
	u := s.linkUse(l)
	u.closing = true
	u.stopLinger()
	users := slices.Collect(maps.Keys(u.users))
	s.mu.Unlock()
	for _, by := range users {
		if by != nil {
			by.linkLost(l, err)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.links, l)
}
