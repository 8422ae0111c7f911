package shm

import (
	"bytes"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/weft-fabric/weft/fabric/provider"
	"github.com/weft-fabric/weft/internal/testutil"
)

var byHand = provider.DomainConfig{Progress: provider.Manual}

// ends are the ways in which a side of a manual domain ends the pair with a peer, and lives on.
var ends = map[string]func(s *side, to provider.Peer){
	"remove": func(s *side, to provider.Peer) { s.must(s.d.Remove(to)) },
	"close":  func(s *side, _ provider.Peer) { s.must(s.ep.Close()) },
}

// another is a second endpoint of the side's domain, and a third side that it is connected to.
func (s *side) another(t *testing.T) (_, third *side, to provider.Peer) {
	t.Helper()
	third = newSide(t, byHand, provider.EndpointConfig{})
	cq, err := s.d.OpenCompletionQueue(provider.CQConfig{})
	s.must(err)
	ep, err := s.d.OpenEndpoint(provider.EndpointConfig{Send: cq, Recv: cq})
	s.must(err)
	s2 := &side{t: t, d: s.d, cq: cq, ep: ep}
	to = s.insert(third.ep.Address())
	third.must(third.ep.Recv(recvOp(make([]byte, 8), 900)))
	s2.must(s2.ep.Send(mk(make([]byte, 8), to, 901)))
	s2.good(s2.wait(third), provider.SendDone, 901)
	third.good(third.wait(s2), provider.RecvDone, 900)
	return s2, third, to
}

// Who ends a pair uses its memory anew at once. What a peer then copies of a message, or of an answer, that was on its way is not
// taken for what was sent: neither a block that goes to somebody else, nor the program's own memory.
func TestEndedPairSendsNothing(t *testing.T) {
	const n = 32 << 10
	secret := bytes.Repeat([]byte{'S'}, n)
	for how, end := range ends {
		for what, start := range map[string]func(a, b *side, ab, ba provider.Peer, in []byte) (spoil func()){
			"in a block": func(a, b *side, _, ba provider.Peer, in []byte) func() {
				a.must(a.ep.Recv(recvOp(in, 1)))
				b.must(b.ep.Send(mk(pattern(n, 1), ba, 2)))
				return nil
			},
			"in a block, found waiting": func(a, b *side, ab, ba provider.Peer, in []byte) func() {
				b.must(b.ep.Send(mk(pattern(n, 1), ba, 2)))
				a.once()
				if a.unexpected(ab) == 0 {
					t.Fatal("it has not arrived")
				}
				return func() { a.must(a.ep.Recv(recvOp(in, 1))) }
			},
			"in parts": func(a, b *side, ab, ba provider.Peer, in []byte) func() {
				a.must(a.ep.Recv(recvOp(in, 1)))
				b.locked(ba, func(p *pair) { p.eager = pairEager }) // there is no block for it at first
				b.must(b.ep.Send(mk(pattern(n, 1), ba, 2)))
				a.once()
				b.once()
				b.locked(ba, func(p *pair) {
					if p.eager = 0; p.flying.len() != 1 {
						t.Fatalf("%d parts are on their way", p.flying.len())
					}
				})
				return nil
			},
			"an answer": func(a, b *side, ab, ba provider.Peer, in []byte) func() {
				m, err := b.d.Register(heapBytes(n), peerBoth)
				b.must(err)
				copy(m.Bytes(), pattern(n, 1))
				a.locked(ab, func(p *pair) { p.cross.why = errCrossOff })
				a.must(a.ep.Read(provider.Op{Local: provider.Segment{Bytes: in}, Peer: ab, Key: m.Key(), Context: 1}))
				b.once()
				b.locked(ba, func(p *pair) {
					if p.flying.len() != 1 {
						t.Fatalf("%d parts are on their way", p.flying.len())
					}
				})
				return nil
			},
			"in an arena": func(a, b *side, ab, ba provider.Peer, in []byte) func() {
				m := b.alloc(n, provider.PeerRead)
				copy(m.Bytes(), pattern(n, 1))
				a.must(a.ep.Recv(recvOp(in, 1)))
				b.must(b.ep.Send(inArena(m, ba, 2)))
				return func() { copy(m.Bytes(), secret) }
			},
		} {
			t.Run(how+"/"+what, func(t *testing.T) {
				a, b, ab, ba := twoSides(t, byHand)
				b2, _, bc := b.another(t)
				meets(t, a, b, ab, ba)
				in := make([]byte, n)
				spoil := start(a, b, ab, ba, in)
				end(b, ba)
				b2.must(b2.ep.Send(mk(secret, bc, 3))) // in the same block
				if spoil != nil {
					spoil()
				}
				if c := a.wait(b); c.Context != 1 || !errors.Is(c.Err, provider.ErrPeerGone) {
					t.Errorf("%+v, with %q", c, in[:8])
				}
			})
		}
	}
}

// A long message is copied in pieces: the sender may end the pair in between.
func TestEndedPairUnderCopy(t *testing.T) {
	for how, end := range ends {
		t.Run(how, func(t *testing.T) {
			a, b, ab, ba := twoSides(t, byHand)
			in := make([]byte, 4<<20)
			m := copiesFrom(t, a, b, ab, ba, in)
			end(b, ba)
			if c := b.wait(); c.Context != 2 || c.Err == nil {
				t.Fatalf("%+v", c)
			}
			clear(m.Bytes()) // it is the program's again
			if c := a.wait(); c.Context != 1 || !errors.Is(c.Err, provider.ErrPeerGone) {
				t.Errorf("%+v", c)
			}
		})
	}
}

// using are the ways in which a pair ends while one side, b, uses a block of the other's, a's.
var using = map[string]func(a, b *side, ab, ba provider.Peer){
	"owner removes":  func(a, _ *side, ab, _ provider.Peer) { a.must(a.d.Remove(ab)) },
	"owner closes":   func(a, _ *side, _, _ provider.Peer) { a.must(a.ep.Close()) },
	"user removes":   func(_, b *side, _, ba provider.Peer) { b.must(b.d.Remove(ba)) },
	"user closes":    func(_, b *side, _, _ provider.Peer) { b.must(b.ep.Close()) },
	"user closes it": func(_, b *side, _, _ provider.Peer) { b.must(b.d.Close()) },
	"both remove": func(a, b *side, ab, ba provider.Peer) {
		a.must(a.d.Remove(ab))
		b.must(b.d.Remove(ba))
	},
}

// ended polls both until no pair is left.
func ended(t *testing.T, a, b *side) {
	t.Helper()
	progress(t, "the pairs have ended", func() bool { return a.d.Stats().Peers == 0 && b.d.Stats().Peers == 0 }, a, b)
	for range 100 {
		a.once()
		if !b.d.closed {
			b.once()
		}
	}
}

// partingPairs is how many pairs of the side have ended and not parted.
func (s *side) partingPairs() int {
	s.d.core.Lock()
	defer s.d.core.Unlock()
	return len(s.d.parting)
}

// A view stays what it is when the pair ends, whoever ends it. When it is released the block is used anew, and nothing of the pair
// is left.
func TestViewKeepsItsBlock(t *testing.T) {
	for how, end := range using {
		t.Run(how, func(t *testing.T) {
			a, b, ab, ba := twoSides(t, byHand)
			meets(t, a, b, ab, ba)
			before := takeStock(t)
			m := a.alloc(64<<10, peerBoth)
			copy(m.Bytes(), "as it was")
			v := b.view(ba, m, 0, 64<<10)
			end(a, b, ab, ba)
			ended(t, a, b)
			e := m.(*memory).extent
			a.must(m.Close())
			for range 3 {
				if n := a.alloc(64<<10, peerBoth); n.(*memory).extent == e {
					t.Error("the block is used anew")
				}
			}
			if string(v.Bytes()[:9]) != "as it was" {
				t.Errorf("the view reads %q", v.Bytes()[:9])
			}
			if a.partingPairs() != 1 {
				t.Errorf("%d pairs of the owner's part", a.partingPairs())
			}
			v.Release()
			progress(t, "parted", func() bool { return a.partingPairs()+len(b.d.parting) == 0 }, a)
			if n := a.alloc(64<<10, peerBoth); n.(*memory).extent != e {
				t.Error("the block is not used anew")
			}
			if after := takeStock(t); after.files > before.files+3 || after.maps > before.maps { // segments: one in a, with its two mappings in b gone
				t.Errorf("before: %+v, after: %+v", before, after)
			}
		})
	}
}

// A copy outside of the lock goes on when the pair ends, and the owner of the block waits for it.
func TestCopyKeepsItsBlock(t *testing.T) {
	for how, end := range using {
		if how == "user closes" || how == "user closes it" { // these wait for the copy: below
			continue
		}
		t.Run(how, func(t *testing.T) {
			a, b, ab, ba := twoSides(t, byHand)
			meets(t, a, b, ab, ba)
			m := a.alloc(64<<10, peerBoth)
			e := m.(*memory).extent
			p, s := b.holds(t, ba, m)
			end(a, b, ab, ba)
			ended(t, a, b)
			a.must(m.Close())
			if n := a.alloc(64<<10, peerBoth); n.(*memory).extent == e {
				t.Error("the block is used anew under a write")
			}
			b.d.core.Lock()
			p.drop(s)
			b.d.core.Unlock()
			progress(t, "parted", func() bool { return a.partingPairs()+b.partingPairs() == 0 }, a, b)
			if n := a.alloc(64<<10, peerBoth); n.(*memory).extent != e {
				t.Error("the block is not used anew")
			}
		})
	}
}

// holds is a write to the memory, as rma.go does it, in its middle.
func (s *side) holds(t *testing.T, to provider.Peer, m provider.Memory) (*pair, spot) {
	t.Helper()
	s.d.core.Lock()
	defer s.d.core.Unlock()
	p := s.pairWithPeer(to)
	sp, found, err := p.hold(provider.RemoteSegment{Key: m.Key(), Len: uint64(len(m.Bytes()))}, provider.WriteDone)
	if found != foundSpot {
		t.Fatal(found, err)
	}
	return p, sp
}

// Closing an endpoint waits for its copies outside of the lock, and until then the peer's block is left alone. Closes of the
// domain, and of the endpoint, beside it wait as well, and need nothing of it.
func TestCloseBesideClose(t *testing.T) {
	for range testutil.Count(t, 10, 300) {
		a, b, ab, ba := twoSides(t, byHand)
		meets(t, a, b, ab, ba)
		m := a.alloc(64<<10, peerBoth)
		e := m.(*memory).extent
		p, s := b.holds(t, ba, m)
		b.d.core.Lock()
		p.ep.copying++
		b.d.core.Unlock()
		done := make(chan struct{}, 4)
		for i := range 4 {
			go func() {
				if i%2 == 0 {
					_ = b.ep.Close()
				} else {
					_ = b.d.Close()
				}
				done <- struct{}{}
			}()
		}
		progress(t, "the pair has ended", func() bool { return a.d.Stats().Peers == 0 }, a)
		a.must(m.Close())
		if n := a.alloc(64<<10, peerBoth); n.(*memory).extent == e {
			t.Error("the block is used anew under a write")
		}
		select {
		case <-done:
			t.Error("a close has not waited")
		default:
		}
		b.d.core.Lock()
		clear(s.bytes)
		p.drop(s)
		p.ep.copyDone()
		b.d.core.Unlock()
		for range 4 {
			<-done
		}
		if len(b.d.parting) != 0 || !b.d.down {
			t.Errorf("%d pairs part, down %v", len(b.d.parting), b.d.down)
		}
	}
}

// An endpoint that sees its own memory.
func TestViewOfSelf(t *testing.T) {
	for _, off := range []string{"", "eventfd"} {
		a := newSide(t, provider.DomainConfig{Progress: provider.Manual, Options: map[string]string{"disable": off}}, provider.EndpointConfig{})
		self := a.insert(a.ep.Address())
		before := takeStock(t)
		m := a.alloc(64<<10, peerBoth)
		e := m.(*memory).extent
		v := a.view(self, m, 0, 64<<10)
		a.must(a.d.Remove(self))
		a.must(m.Close())
		if n := a.alloc(64<<10, peerBoth); n.(*memory).extent == e {
			t.Error("the block is used anew")
		}
		v.Release()
		if n := a.alloc(64<<10, peerBoth); n.(*memory).extent != e {
			t.Error("the block is not used anew")
		}
		if after := takeStock(t); after.files > before.files+1 || after.maps > before.maps+1 {
			t.Errorf("before: %+v, after: %+v", before, after)
		}
	}
}

// A peer whose socket is full hears of the end when it has read what was there.
func TestPartingWithAFullSocket(t *testing.T) {
	a, b, ab, ba := twoSides(t, byHand)
	meets(t, a, b, ab, ba)
	m := a.alloc(64<<10, peerBoth)
	v := b.view(ba, m, 0, 64<<10)
	bell := seal(appendHead(nil, kindBell), 0)
	a.locked(ab, func(p *pair) {
		for err := error(nil); err == nil; {
			_, err = p.sock.Send(bell)
		}
	})
	a.must(a.d.Remove(ab))
	a.once()
	a.d.core.Lock()
	p := a.d.parting[0]
	if p.word == nil || p.shut {
		t.Errorf("%d bytes are to be said, shut %v", len(p.word), p.shut)
	}
	a.d.core.Unlock()
	b.postFrom(ba, 9)
	progress(t, "ended", func() bool { return b.d.Stats().Peers == 0 }, a, b)
	if c := b.wait(); c.Context != 9 || !strings.Contains(c.Err.Error(), "was removed") {
		t.Errorf("%+v", c)
	}
	if p.word != nil || !p.shut || p.jammed {
		t.Errorf("%d bytes are to be said, shut %v, jammed %v", len(p.word), p.shut, p.jammed)
	}
	v.Release()
	progress(t, "parted", func() bool { return a.partingPairs()+b.partingPairs() == 0 }, a, b)
}

// A peer that never reads its end costs a descriptor; not too many of them are waited for, and those that use something last.
func TestPartingHasABound(t *testing.T) {
	a, b, ab, ba := twoSides(t, byHand)
	meets(t, a, b, ab, ba)
	m := a.alloc(64<<10, peerBoth)
	v := b.view(ba, m, 0, 64<<10)
	defer v.Release()
	part := func() {
		a.d.core.Lock()
		first := a.d.pairs[0].peer.id
		a.d.core.Unlock()
		a.must(a.d.Remove(first))
	}
	part()
	for range maxParting + 5 {
		ep, err := b.d.OpenEndpoint(provider.EndpointConfig{})
		b.must(err)
		b.must(ep.Send(provider.Op{Local: provider.Segment{Bytes: make([]byte, 8)}, Peer: b.insert(a.ep.Address())}))
		progress(t, "connected", func() bool { return a.d.Stats().Peers == 1 }, a)
		part()
		if n := a.partingPairs(); n > maxParting {
			t.Fatalf("%d pairs part", n)
		}
	}
	a.d.core.Lock()
	defer a.d.core.Unlock()
	if n := len(a.d.parting); n != maxParting || !a.d.parting[0].theirs.usesAny() {
		t.Errorf("%d pairs part; the one that uses something is not waited for", n)
	}
}

// A peer that broke the protocol is not waited for.
func TestHostilePartsAtOnce(t *testing.T) {
	a, b, ab, ba := twoSides(t, byHand)
	meets(t, a, b, ab, ba)
	m := a.alloc(64<<10, peerBoth)
	v := b.view(ba, m, 0, 64<<10)
	defer v.Release()
	a.d.core.Lock()
	a.pairWithPeer(ab).breach(errRecord)
	a.d.reap()
	if n := len(a.d.parting) + len(a.d.arena.watched); n != 0 {
		t.Errorf("%d pairs are waited for", n)
	}
	a.d.core.Unlock()
}

// What is posted to a peer that has ended, of which messages are still here, fails at once.
func TestPostToOneWhoHasEnded(t *testing.T) {
	for name, post := range map[string]func(a *side, o provider.Op) error{
		"send":  func(a *side, o provider.Op) error { return a.ep.Send(o) },
		"read":  func(a *side, o provider.Op) error { o.Key = 1 << 20; return a.ep.Read(o) },
		"write": func(a *side, o provider.Op) error { o.Key = 1 << 20; return a.ep.Write(o) },
		"atomic": func(a *side, o provider.Op) error {
			o.Key = 1 << 20
			return a.ep.Atomic(provider.Atomic{Op: o, Code: provider.AtomicSum, Type: provider.Uint64})
		},
	} {
		for _, mode := range bothModes {
			t.Run(name+"/"+mode.String(), func(t *testing.T) {
				a := newSide(t, provider.DomainConfig{Progress: mode}, provider.EndpointConfig{Unexpected: 4096})
				b := newSide(t, provider.DomainConfig{}, provider.EndpointConfig{})
				ab, ba := a.insert(b.ep.Address()), b.insert(a.ep.Address())
				for i := range uint64(5) {
					b.must(b.ep.Send(mk(make([]byte, 2000), ba, i)))
				}
				progress(t, "some wait here", func() bool { return a.unexpected(ab) > 2000 }, a)
				b.must(b.d.Close())
				progress(t, "gone", func() bool { return a.peerState(ab) == "gone" }, a)
				a.d.core.Lock()
				if p := a.pairWithPeer(ab); p == nil || p.state != pairDraining {
					t.Error("nothing of it is left")
				}
				a.d.core.Unlock()
				a.must(post(a, mk(make([]byte, 8), ab, 77)))
				if c := a.wait(); c.Context != 77 || !errors.Is(c.Err, provider.ErrPeerGone) {
					t.Errorf("%+v", c)
				}
				for range 5 {
					a.must(a.ep.Recv(recvOp(make([]byte, 2000), 78)))
					a.good(a.wait(), provider.RecvDone, 78)
				}
			})
		}
	}
}

// asleep waits until a domain in auto mode sleeps, and nothing but an event can move it.
func (s *side) asleep(t *testing.T) {
	t.Helper()
	testutil.Eventually(t, "it sleeps", func() bool {
		s.d.core.Lock()
		defer s.d.core.Unlock()
		return s.d.epoch&1 == 1
	})
}

// Remove ends what waits for the peer alone, also in a domain that sleeps, connected or not.
func TestRemoveEndsDirected(t *testing.T) {
	for _, connected := range []bool{true, false} {
		a, b, ab, _ := twoSides(t, provider.DomainConfig{})
		if connected {
			exchange(t, a, b)
		}
		a.postFrom(ab, 5)
		a.asleep(t)
		a.must(a.d.Remove(ab))
		if c := a.wait(); c.Context != 5 || !errors.Is(c.Err, provider.ErrCancelled) {
			t.Errorf("connected %v: %+v", connected, c)
		}
	}
}

// Closing an endpoint, or removing a peer, gives back what the pairs had, also in a domain that sleeps.
func TestEndsGiveBack(t *testing.T) {
	a, keep := newSide(t, provider.DomainConfig{}, provider.EndpointConfig{}), newSide(t, provider.DomainConfig{}, provider.EndpointConfig{})
	exchange(t, keep, a)
	before := takeStock(t)
	for range 10 {
		b := newSide(t, provider.DomainConfig{}, provider.EndpointConfig{})
		exchange(t, a, b)
		a.asleep(t)
		a.must(a.d.Remove(a.insert(b.ep.Address())))
		testutil.Eventually(t, "it has parted", func() bool {
			a.d.core.Lock()
			defer a.d.core.Unlock()
			return len(a.d.parting)+len(a.d.dead) == 0
		})
		b.must(b.d.Close())
	}
	if after := takeStock(t); after.files > before.files || after.maps > before.maps {
		t.Errorf("before: %+v, after: %+v", before, after)
	}
	a.must(a.ep.Close())
	testutil.Eventually(t, "it has parted", func() bool {
		a.d.core.Lock()
		defer a.d.core.Unlock()
		return len(a.d.parting)+len(a.d.dead) == 0
	})
}

// Allocations beside the close of the domain fail, or have succeeded before.
func TestAllocBesideClose(t *testing.T) {
	for range testutil.Count(t, 30, 1000) {
		a := newSide(t, provider.DomainConfig{}, provider.EndpointConfig{})
		running, done := make(chan struct{}), make(chan error, 2)
		for range 2 {
			go func() {
				for i := 0; ; i++ {
					_, err := a.d.Alloc(4<<20, provider.PeerRead)
					if i == 2 {
						running <- struct{}{}
					}
					if err != nil {
						done <- err
						return
					}
				}
			}()
		}
		<-running
		<-running
		a.must(a.d.Close())
		for range 2 {
			if err := <-done; !errors.Is(err, provider.ErrClosed) {
				t.Error(err)
			}
		}
	}
}

// A copy outside of the lock stops soon when the pair ends: closing does not wait for gigabytes.
func TestEndCutsCopies(t *testing.T) {
	for how, end := range using {
		if how == "user closes" || how == "user closes it" {
			continue
		}
		a, b, ab, ba := twoSides(t, byHand)
		meets(t, a, b, ab, ba)
		m := a.alloc(4<<10, peerBoth)
		p, s := b.holds(t, ba, m)
		end(a, b, ab, ba)
		ended(t, a, b)
		to := make([]byte, 2*cutEvery)
		b.d.core.Lock()
		o := p.bareOp(provider.ReadDone, roleMoving)
		o.local.First, o.length = to, uint64(len(to))
		from := bytes.Repeat([]byte{1}, len(to))
		p.copyUnlocked(o, from)
		b.d.free(o)
		p.drop(s)
		b.d.core.Unlock()
		if to[0] != 0 {
			t.Errorf("%s: it was copied", how)
		}
	}
}

// The socket in the folder of a peer that has died is removed, also when the peer was noticed before the kernel has closed it,
// and by a close that follows at once. One that lives keeps it.
func TestFolderAfterADeath(t *testing.T) {
	for _, how := range []string{"polls", "closes", "lives", "other"} {
		t.Run(how, func(t *testing.T) {
			dir := t.TempDir()
			c := provider.DomainConfig{Progress: provider.Manual, Options: map[string]string{"folder": dir}}
			a, b, ab, ba := twoSides(t, c)
			meets(t, a, b, ab, ba)
			file := folderName(dir, b.ep.(*endpoint).addr.name).Name
			is := func() bool { _, err := os.Lstat(file); return err == nil }
			a.locked(ab, func(p *pair) {
				if how == "other" {
					p.pid++
				}
				p.noticed()
				if n := len(a.d.wakes); n != map[bool]int{true: 0, false: 1}[how == "other"] {
					t.Errorf("%d are waited for", n)
				}
			})
			a.once()
			if !is() {
				t.Fatal("it was removed before it was closed")
			}
			die := func() { // as the kernel does
				b.d.core.Lock()
				for _, l := range b.ep.(*endpoint).listeners {
					_ = l.sock.Close()
				}
				b.d.core.Unlock()
			}
			switch how {
			case "polls":
				die()
				progress(t, "removed", func() bool { return !is() }, a)
			case "closes":
				closed := make(chan struct{})
				go func() {
					a.must(a.d.Close())
					close(closed)
				}()
				testutil.Eventually(t, "it closes", func() bool {
					a.d.arena.mu.Lock()
					defer a.d.arena.mu.Unlock()
					return a.d.arena.closed
				})
				die()
				<-closed
				if is() {
					t.Error("it is left behind")
				}
			case "lives":
				a.must(a.d.Close())
				if !is() {
					t.Error("it was taken from one who lives")
				}
			}
			if n := len(a.d.wakes); n != 0 {
				t.Errorf("%d are waited for", n)
			}
		})
	}
}

// A copy from a peer's own memory outside of the lock leaves nothing behind in the count of who uses its blocks.
func TestCrossUsesNoBlock(t *testing.T) {
	a, b, ab, ba := twoSides(t, byHand)
	meets(t, a, b, ab, ba)
	m, err := b.d.Register(heapBytes(8*lockedCopy), peerBoth)
	b.must(err)
	a.must(a.ep.Read(provider.Op{Local: provider.Segment{Bytes: make([]byte, 8*lockedCopy)}, Peer: ab, Key: m.Key(), Context: 1}))
	a.good(a.wait(b), provider.ReadDone, 1)
	a.locked(ab, func(p *pair) {
		if p.users != 0 {
			t.Errorf("%d users", p.users)
		}
	})
}
