package sst

import (
	"context"
	"errors"
	"time"

	"github.com/weft-fabric/weft/internal/wire/cm"
	"github.com/weft-fabric/weft/internal/wire/sstmsg"
	"github.com/weft-fabric/weft/sst/internal/carrier"
)

// linkUse counts the streams that need a link.
type linkUse struct {
	streams int
	closing bool        // it is being closed: nobody may take it up again
	linger  *time.Timer // closes it after a while without streams, nil while none is needed
	peer    bool        // the peer reads streams of ours over it: closing it is up to the peer
	weft    bool        // the peer said that it is Weft
	answers int         // to StatQuery, that are queued
}

// lingerTime is how long a link to an ADIOS2 writer stays open after our last
// stream on it has said goodbye. ADIOS2's own readers wait 100 ms (docs/wire/sst.md
// §9.2): a writer that is just sending us a step when the connection ends can
// hang.
const lingerTime = 200 * time.Millisecond

// use adds a stream to a link, unless that is being closed; unuse closes the
// link with its last one. A link that the peer made, or reads over, is left to
// the peer: another of its streams may be opening on it.
func (s *Session) use(l carrier.Link) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	u := s.linkUse(l)
	if u.closing {
		return false
	}
	u.streams++
	u.stopLinger()
	return true
}

func (u *linkUse) stopLinger() {
	if u.linger != nil {
		u.linger.Stop()
		u.linger = nil
	}
}

func (s *Session) unuse(l carrier.Link) {
	s.mu.Lock()
	u := s.links[l]
	if u != nil {
		u.streams--
	}
	idle := u.idle(l)
	switch {
	case !idle:
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
	return u != nil && u.streams == 0 && !u.peer && !l.Info().Inbound
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
}

// streamsOn returns how many streams need a link.
func (s *Session) streamsOn(l carrier.Link) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.linkUse(l).streams
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

// dial connects to a contact, or finds the connection that exists. The caller is
// one of its users, until unuse.
func (s *Session) dial(ctx context.Context, c cm.Contact) (carrier.Link, error) {
	for {
		l, err := s.cm.Dial(ctx, c)
		if err != nil || s.use(l) {
			return l, err
		}
		select {
		case <-l.Done(): // another stream was closing it
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// send encodes m and queues it on the link. Done is called when its memory is
// no longer needed; it may be nil.
func (s *Session) send(l carrier.Link, m sstmsg.Message, o sstmsg.Options, done func()) error {
	f, parts, err := sstmsg.Encode(m, o)
	if err != nil {
		if done != nil {
			done()
		}
		return err
	}
	r := carrier.Record{Format: f, Parts: parts}
	if done != nil {
		r.Done = func(error) { done() }
	}
	return l.Send(r)
}

// post is send for messages whose loss nobody waits for: if m cannot be queued
// the link is of no use any more, and is dropped if it is not down already.
func (s *Session) post(l carrier.Link, m sstmsg.Message, o sstmsg.Options, done func()) {
	if err := s.send(l, m, o, done); err != nil && !errors.Is(err, carrier.ErrClosed) {
		l.Abort(err) // one that is closing writes out what it has first
	}
}

// Lost tells every stream that used the link.
func (h *sessionHandler) Lost(l carrier.Link, err error) {
	s := (*Session)(h)
	s.mu.Lock()
	streams := make([]stream, 0, len(s.streams))
	for st := range s.streams {
		streams = append(streams, st)
	}
	s.mu.Unlock()
	for _, st := range streams {
		st.linkLost(l, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if u := s.links[l]; u != nil {
		u.stopLinger()
	}
	delete(s.links, l)
}
