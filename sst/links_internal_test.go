package sst

import (
	"errors"
	"io"
	"testing"

	"github.com/weft-fabric/weft/sst/internal/carrier"
)

// idleLink is a link that we have dialled to a Weft peer, and that says nothing.
type idleLink struct {
	carrier.Link
	done   chan struct{}
	closed int
}

func newIdleLink() *idleLink { return &idleLink{done: make(chan struct{})} }

func (l *idleLink) Done() <-chan struct{} { return l.done }
func (l *idleLink) Close() error          { l.closed++; return nil }
func (l *idleLink) Info() carrier.LinkInfo {
	return carrier.LinkInfo{Release: carrier.ReleaseWeft}
}

// bereft notes the links whose loss it is told of.
type bereft struct{ lost []carrier.Link }

func (b *bereft) linkLost(l carrier.Link, _ error) { b.lost = append(b.lost, l) }

func linksOnly() *Session {
	return &Session{links: map[carrier.Link]*linkUse{}}
}

// TestLostTellsUsersOnly: streams that do not need a link are not asked about it,
// so that a loss costs what its link carried, not what the session has.
func TestLostTellsUsersOnly(t *testing.T) {
	s, gone, other := linksOnly(), newIdleLink(), newIdleLink()
	var twice, once, left, elsewhere bereft
	for _, use := range []struct {
		by *bereft
		l  *idleLink
	}{{&twice, gone}, {&twice, gone}, {&once, gone}, {&left, gone}, {&elsewhere, other}} {
		if !s.take(use.l, use.by) {
			t.Fatal("a link that is up cannot be used")
		}
	}
	s.use(gone, nil) // a question: it watches the link itself
	s.unuse(gone, &left)
	s.unuse(gone, &twice)
	if n := s.streamsOn(gone); n != 3 {
		t.Errorf("%d uses, want 3", n)
	}
	(*sessionHandler)(s).Lost(gone, io.ErrUnexpectedEOF)
	for name, c := range map[string]struct {
		by   *bereft
		want int
	}{"twice": {&twice, 1}, "once": {&once, 1}, "left": {&left, 0}, "elsewhere": {&elsewhere, 0}} {
		if len(c.by.lost) != c.want {
			t.Errorf("%s was told %d times, want %d", name, len(c.by.lost), c.want)
		}
	}
	if len(s.links) != 1 || s.streamsOn(gone) != 0 {
		t.Errorf("%d links are known, want the other one; %d uses of the lost one", len(s.links), s.streamsOn(gone))
	}
}

// latecomer takes a link up in the moment in which it is lost.
type latecomer struct {
	s    *Session
	took bool
}

func (u *latecomer) linkLost(l carrier.Link, _ error) {
	u.took = u.s.take(l, u)
	u.s.unuse(l, u)
}

// TestLostLinkIsNotTaken: whoever comes too late to be told of a loss has to
// dial again.
func TestLostLinkIsNotTaken(t *testing.T) {
	s, l := linksOnly(), newIdleLink()
	u := &latecomer{s: s}
	s.use(l, u)
	(*sessionHandler)(s).Lost(l, errors.New("gone"))
	close(l.done)
	if u.took || s.take(l, u) {
		t.Errorf("taken while it is lost: %v, or afterwards", u.took)
	}
	if len(s.links) != 0 || l.closed != 0 {
		t.Errorf("%d links known, closed %d times; want none, and no close of what is gone", len(s.links), l.closed)
	}
}

// TestLastUseClosesLink: once, and it is nobody's from then on, although a peer
// that has not seen the end may still use it.
func TestLastUseClosesLink(t *testing.T) {
	s, l := linksOnly(), newIdleLink()
	var a, b, late bereft
	s.take(l, &a)
	s.take(l, &b)
	s.unuse(l, &a)
	if l.closed != 0 {
		t.Fatal("closed under its second user")
	}
	s.unuse(l, &b)
	if l.closed != 1 || s.take(l, &a) {
		t.Fatalf("closed %d times, want once and for good", l.closed)
	}
	s.use(l, &late) // the peer has crossed our close
	(*sessionHandler)(s).Lost(l, nil)
	if len(late.lost) != 1 {
		t.Errorf("who came late was told %d times, want once", len(late.lost))
	}
	s.unuse(l, &late)
	if l.closed != 1 {
		t.Errorf("closed %d times", l.closed)
	}
}
