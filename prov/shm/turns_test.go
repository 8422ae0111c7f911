package shm

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/weft-fabric/weft/fabric/provider"
)

// joined makes two sides in manual mode whose pair is up.
func joined(t testing.TB, e provider.EndpointConfig) (a, b *side, ab, ba provider.Peer) {
	t.Helper()
	c := provider.DomainConfig{Progress: provider.Manual, Options: map[string]string{"cma": "off"}} // what is asked for, the peer serves
	a, b = newSide(t, c, e), newSide(t, c, e)
	ab, ba = a.insert(b.ep.Address()), b.insert(a.ep.Address())
	a.must(a.ep.Send(mk(make([]byte, 8), ab, 900)))
	b.must(b.ep.Recv(recvOp(make([]byte, 8), 901)))
	a.good(a.wait(b), provider.SendDone, 900)
	b.good(b.wait(a), provider.RecvDone, 901)
	return a, b, ab, ba
}

// poll is one poll, with its lock held for as long as it takes. What it finds is what the socket has, too.
func (s *side) poll() bool {
	s.d.core.Lock()
	defer s.d.core.Unlock()
	s.d.ticks = socketPolls - 1
	return s.d.Poll()
}

// says puts records into the control lane, while there is room, and publishes them; it returns how many.
func (s *side) says(p *pair, n int, r record) int {
	s.d.core.Lock()
	defer s.d.core.Unlock()
	for i := range n {
		b, err := p.control.Reserve(recordLen(r.op, r.flags) + len(r.payload))
		if err != nil {
			p.control.Publish()
			return i
		}
		copy(b[r.put(b):], r.payload)
		p.control.Commit()
		p.controlSent++
	}
	p.control.Publish()
	return n
}

// A poll copies some hundred KiB for a pair, whatever waits there, and all of it comes in the end.
func TestPollCopiesInTurns(t *testing.T) {
	a, b, _, ba := joined(t, provider.EndpointConfig{})
	const n = 32
	m := b.alloc(copyBytes, peerBoth)
	copy(m.Bytes(), pattern(copyBytes, 1))
	bufs := make([][]byte, n)
	for i := range bufs {
		bufs[i] = make([]byte, copyBytes)
		a.must(a.ep.Recv(recvOp(bufs[i], uint64(i))))
		b.must(b.ep.Send(provider.Op{Local: provider.Segment{Bytes: m.Bytes(), Memory: m}, Peer: ba, Context: 2}))
	}
	before := a.d.Stats().BytesRecv
	if !a.poll() {
		t.Fatal("nothing has moved")
	}
	if got := a.d.Stats().BytesRecv - before; got > 2*copyBytes {
		t.Errorf("one poll has copied %d KiB", got>>10)
	}
	for i := range bufs {
		a.good(a.wait(b), provider.RecvDone, uint64(i))
		if !bytes.Equal(bufs[i], m.Bytes()) {
			t.Errorf("message %d is another", i)
		}
	}
}

// A chunk is no longer than a bounce block: copying it must not take long.
func TestHostileLongChunk(t *testing.T) {
	a, b, ab, _ := joined(t, provider.EndpointConfig{})
	const n = 4 * blockLen
	k := heapBytes(n)
	key, err := b.d.Register(k, peerBoth)
	a.must(err)
	m := b.alloc(n, peerBoth)
	a.must(a.ep.Read(provider.Op{Local: provider.Segment{Bytes: make([]byte, n)}, Peer: ab, Key: key.Key(), Context: 1}))
	id := a.d.pairs[0].live.head.id
	own := m.(*memory).extent
	b.says(b.d.pairs[0], 1, record{op: opChunk, context: id, words: [3]uint64{0, place(own.seg, blockLen+1), own.off}})
	if c := a.wait(); c.Context != 1 || c.Err == nil || a.peerState(ab) != "gone" {
		t.Errorf("%+v, the peer is %s", c, a.peerState(ab))
	}
}

// What a message has to wait for in the control lane is read in turns as well, and no more than there can be is believed in.
func TestMessageAfterManyRecords(t *testing.T) {
	a, b, _, ba := joined(t, provider.EndpointConfig{})
	q := a.d.pairs[0]
	after := func(n int) uint64 {
		p := b.d.pairs[0]
		if got := b.says(p, n, record{op: opRead, context: 1, words: [3]uint64{1, 0, 8}}); got != n {
			t.Fatalf("room for %d records", got)
		}
		p.wroteAt = p.controlSent
		return p.controlSent
	}
	want := after(500)
	a.must(a.ep.Recv(recvOp(make([]byte, 8), 1)))
	b.d.pairs[0].controlIn.Flush()
	b.must(b.ep.Send(mk(make([]byte, 8), ba, 2)))
	a.poll()
	if got := want - q.controlRead; got < 300 {
		t.Errorf("one poll has read all but %d of 500 records", got)
	}
	for q.controlRead < want {
		if !a.poll() {
			t.Fatalf("nothing moves, and %d records are left", want-q.controlRead)
		}
	}
	a.good(a.wait(), provider.RecvDone, 1)
}

// A peer that says that it has closed, and goes on, is not listened to for ever.
func TestHostileEndless(t *testing.T) {
	a, b, ab, ba := joined(t, provider.EndpointConfig{Unexpected: 100})
	for range 10 { // the data lane is stuck
		b.must(b.ep.Send(mk(make([]byte, 80), ba, 1)))
	}
	p := b.d.pairs[0]
	b.must(p.sock.Shutdown())
	for n := 0; len(a.d.pairs) > 0; n++ {
		b.says(p, 1, record{op: opRead, context: 1, words: [3]uint64{1, 0, 8}})
		if a.poll(); n > 1<<16 {
			t.Fatalf("the pair with a peer that is %s goes on", a.peerState(ab))
		}
	}
}

// Who asks without taking the answers is dropped when a thousand requests have none, or a megabyte waits.
func TestHostileAsker(t *testing.T) {
	for name, r := range map[string]record{
		"long":  {op: opAtomic, flags: recResult, context: 1, payload: make([]byte, maxAtomic)},
		"short": {op: opRead, context: 1, words: [3]uint64{1, 0, 8}},
	} {
		t.Run(name, func(t *testing.T) {
			a, b, ab, _ := joined(t, provider.EndpointConfig{Unexpected: 64 << 10})
			if name == "long" {
				key, err := a.d.Register(heapBytes(maxAtomic), peerBoth)
				a.must(err)
				r.words = [3]uint64{uint64(key.Key()), 0, uint64(provider.AtomicSum) | uint64(provider.Uint64)<<8 | maxAtomic<<16}
			}
			p, q, asked := b.d.pairs[0], a.d.pairs[0], 0
			for a.peerState(ab) != "gone" {
				asked += b.says(p, 64, r)
				a.poll()
				if held := q.saying + q.replies.len()*200; held > 4<<20 || asked > 20000 {
					t.Fatalf("%d requests, %d answers of %d bytes wait", asked, q.replies.len(), q.saying)
				}
			}
		})
	}
}

// Reads, writes and atomics that are served have a bound on those without an answer, and all end.
func TestAskedHasABound(t *testing.T) {
	a, b, ab, _ := joined(t, provider.EndpointConfig{Depth: 8192})
	key, err := b.d.Register(heapBytes(64), peerBoth)
	a.must(err)
	cq, err := a.d.OpenCompletionQueue(provider.CQConfig{Size: 1 << 13})
	a.must(err)
	ep, err := a.d.OpenEndpoint(provider.EndpointConfig{Send: cq, Depth: 8192})
	a.must(err)
	const n = 5000
	posted, most := 0, 0
	for posted < n {
		o := provider.Op{Local: provider.Segment{Bytes: make([]byte, 8)}, Peer: ab, Key: key.Key()}
		switch posted % 3 {
		case 0:
			err = ep.Read(o)
		case 1:
			err = ep.Write(o)
		case 2:
			err = ep.Atomic(provider.Atomic{Op: o, Code: provider.AtomicSum, Type: provider.Uint64})
		}
		a.must(err)
		posted++
		if len(a.d.pairs) < 2 { // not connected yet
			b.poll()
			a.poll()
			continue
		}
		b.poll() // takes requests; nobody takes its answers
		p := ep.(*endpoint).pairs[0]
		if most = max(most, p.asked); p.asked > maxAsked {
			t.Fatalf("%d requests have no answer", p.asked)
		}
	}
	if most < maxAsked {
		t.Errorf("the bound of %d was not reached: %d", maxAsked, most)
	}
	s := &side{t: t, d: a.d, cq: cq}
	for range n {
		if c := s.wait(b); c.Err != nil {
			t.Fatal(c.Err)
		}
	}
	if p := ep.(*endpoint).pairs[0]; p.asked != 0 {
		t.Errorf("%d requests are counted after the last answer", p.asked)
	}
}

// A peer that never stops talking gets its turn, and no more; what it has said is heard in the end.
func TestSocketIsReadInTurns(t *testing.T) {
	a, b, _, _ := joined(t, provider.EndpointConfig{})
	const n = 100
	q := a.d.pairs[0]
	p := b.d.pairs[0]
	known := len(q.segments)
	for i := range uint32(n) {
		f, err := newFile("some", pageSize, false, b.d.features)
		b.must(err)
		if _, err = p.sock.Send(announcement{{index: 1000 + i, size: pageSize}}.Append(nil), f.fd); err != nil {
			t.Fatal(fmt.Errorf("announcement %d: %w", i, err))
		}
		f.close()
	}
	a.poll()
	if got := len(q.segments) - known; got == 0 || got > n/2 {
		t.Errorf("one poll reads %d of %d messages", got, n)
	}
	for len(q.segments) < known+n {
		if !a.d.Poll() {
			t.Fatalf("nothing moves, and %d of %d messages are read", len(q.segments)-known, n)
		}
	}
}

// Who handles message after message is told of a death before long, although each poll finds something.
func TestDeathAmongMessages(t *testing.T) {
	s := newSide(t, provider.DomainConfig{Progress: provider.Manual}, provider.EndpointConfig{})
	talks := newSide(t, provider.DomainConfig{Progress: provider.Manual}, provider.EndpointConfig{})
	goes := newSide(t, provider.DomainConfig{Progress: provider.Manual}, provider.EndpointConfig{})
	toTalks, toGoes, back := s.insert(talks.ep.Address()), s.insert(goes.ep.Address()), talks.insert(s.ep.Address())
	s.must(s.ep.Send(mk(make([]byte, 8), toTalks, 1)))
	s.must(s.ep.Send(mk(make([]byte, 8), toGoes, 1)))
	progress(t, "connected", func() bool { return s.peerState(toTalks) == "connected" && s.peerState(toGoes) == "connected" }, s, talks, goes)
	s.drainSome()
	s.must(s.ep.Recv(provider.Op{Local: provider.Segment{Bytes: make([]byte, 8)}, Peer: toGoes, Flags: provider.Directed, Context: 9}))
	s.must(goes.d.Close())
	for range 4 { // what a Wait of a program finds is one message or more
		talks.must(talks.ep.Send(mk(make([]byte, 8), back, 2)))
	}
	for polls := 0; s.peerState(toGoes) == "connected"; polls++ {
		if polls > socketPolls/recordPolls {
			t.Fatalf("not seen after %d polls, each with a message", polls)
		}
		talks.must(talks.ep.Send(mk(make([]byte, 8), back, 2)))
		talks.drainSome()
		s.d.core.Lock()
		s.d.Poll()
		s.d.core.Unlock()
	}
}
