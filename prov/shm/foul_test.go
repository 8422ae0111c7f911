package shm

import (
	"bytes"
	"errors"
	"testing"

	"github.com/weft-fabric/weft/fabric/provider"
)

// meets has the pair of two sides in manual mode up, at both ends, with nothing under way.
func meets(t *testing.T, a, b *side, ab, ba provider.Peer) {
	t.Helper()
	a.must(a.ep.Send(mk(make([]byte, 8), ab, 900)))
	b.must(b.ep.Recv(recvOp(make([]byte, 8), 901)))
	a.good(a.wait(b), provider.SendDone, 900)
	b.good(b.wait(a), provider.RecvDone, 901)
	progress(t, "up", func() bool { return a.peerState(ab) == "connected" && b.peerState(ba) == "connected" }, a, b)
}

// once polls once, descriptors included.
func (s *side) once() {
	s.d.core.Lock()
	defer s.d.core.Unlock()
	s.d.ticks = socketPolls - 1
	s.d.Poll()
}

// locked gives the side's pair with the peer to f.
func (s *side) locked(to provider.Peer, f func(p *pair)) {
	s.d.core.Lock()
	defer s.d.core.Unlock()
	f(s.pairWithPeer(to))
}

// inArena is a message that is all of the memory.
func inArena(m provider.Memory, to provider.Peer, context uint64) provider.Op {
	return provider.Op{Local: provider.Segment{Bytes: m.Bytes(), Memory: m}, Peer: to, Context: context}
}

// copiesFrom has a in the middle of copying a long message out of an arena of b's, in manual mode.
func copiesFrom(t *testing.T, a, b *side, ab, ba provider.Peer, in []byte) provider.Memory {
	t.Helper()
	meets(t, a, b, ab, ba)
	m := b.alloc(len(in), provider.PeerRead)
	copy(m.Bytes(), pattern(len(in), 1))
	a.must(a.ep.Recv(recvOp(in, 1)))
	b.must(b.ep.Send(inArena(m, ba, 2)))
	a.once()
	a.locked(ab, func(p *pair) {
		if p.copies.len() != 1 || (*p.copies.front()).within == 0 {
			t.Fatalf("%d copies under way", p.copies.len())
		}
	})
	return m
}

// A sender drops the segment out of which a long message is copied: it stays mapped until that has ended.
func TestHostileDropUnderCopy(t *testing.T) {
	a, b, ab, ba := twoSides(t, provider.DomainConfig{Progress: provider.Manual})
	in := make([]byte, 4<<20)
	m := copiesFrom(t, a, b, ab, ba, in)
	b.locked(ba, func(p *pair) {
		if _, err := p.sock.Send(drop{m.(*memory).extent.seg}.Append(nil)); err != nil {
			t.Fatal(err)
		}
	})
	var s *foreignSegment
	a.locked(ab, func(p *pair) { s = (*p.copies.front()).seg })
	a.once()
	if !s.dropped || s.users != 1 {
		t.Errorf("dropped %v, with %d users", s.dropped, s.users)
	}
	a.good(a.wait(), provider.RecvDone, 1)
	if !bytes.Equal(in, pattern(len(in), 1)) {
		t.Error("other bytes")
	}
	if s.users != 0 || s.maps != 0 {
		t.Errorf("%d users, %d mappings are left", s.users, s.maps)
	}
}

// A sender says that the bytes come that we copy ourselves: it is dropped, and the copy ends.
func TestHostileChunkForCopy(t *testing.T) {
	a, b, ab, ba := twoSides(t, provider.DomainConfig{Progress: provider.Manual})
	in := make([]byte, 4<<20)
	copiesFrom(t, a, b, ab, ba, in)
	var id uint64
	a.locked(ab, func(p *pair) { id = (*p.copies.front()).id })
	b.locked(ba, func(p *pair) {
		p.say(&record{op: opChunk, flags: recLast, context: id, words: [3]uint64{0, place(noSegment, 0)}, payload: make([]byte, 8)})
		p.publish()
	})
	if c := a.wait(); c.Context != 1 || !errors.Is(c.Err, provider.ErrProtocol) {
		t.Errorf("%+v", c)
	}
}

// A stranger who says that it is the endpoint itself, by incarnation or by name, is refused: what the endpoint sends to itself
// stays with it.
func TestHostileSelf(t *testing.T) {
	for _, c := range []struct {
		what  string
		claim func(me, victim *endpoint)
		peer  func(victim *side) provider.Peer // who the victim is to itself
	}{
		{"name and incarnation", func(me, v *endpoint) { me.inc, me.addr.name = v.inc, v.addr.name }, func(v *side) provider.Peer { return v.insert(v.ep.Address()) }},
		{"incarnation", func(me, v *endpoint) { me.inc = v.inc }, func(v *side) provider.Peer { return v.insert(v.ep.Address()) }},
		{"name", func(me, v *endpoint) { me.addr.name = v.addr.name }, func(v *side) provider.Peer {
			return v.insert(provider.Address("shm://" + v.ep.(*endpoint).addr.name))
		}},
	} {
		for _, off := range []string{"", "eventfd"} {
			t.Run(c.what+"/"+off, func(t *testing.T) {
				m := provider.DomainConfig{Progress: provider.Manual, Options: map[string]string{"disable": off}}
				a, b := newSide(t, m, provider.EndpointConfig{}), newSide(t, m, provider.EndpointConfig{})
				self, to := c.peer(a), b.insert(a.ep.Address())
				ep := b.ep.(*endpoint)
				b.d.core.Lock()
				p := ep.newPair(*b.d.av.Lookup(to)) // before it knows that this would be itself
				was, name := ep.inc, ep.addr.name
				if err := p.dialAs(func() { c.claim(ep, a.ep.(*endpoint)) }); err != nil {
					t.Fatal(err)
				}
				ep.inc, ep.addr.name = was, name
				b.d.core.Unlock()
				progress(t, "refused", func() bool { return p.state == pairEnded || p.state == pairUp }, a, b)
				if p.state == pairUp {
					t.Error("the stranger is connected")
				}
				a.must(a.ep.Recv(recvOp(make([]byte, 8), 2)))
				a.must(a.ep.Send(mk([]byte("to self."), self, 1)))
				for range 2 {
					if d := a.wait(b); d.Err != nil {
						t.Errorf("%+v", d)
					}
				}
			})
		}
	}
}

// dialAs calls the peer with another name.
func (p *pair) dialAs(claim func()) error {
	claim()
	return p.dial()
}
