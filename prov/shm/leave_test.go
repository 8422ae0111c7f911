package shm

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"

	"github.com/weft-fabric/weft/fabric/provider"
	"github.com/weft-fabric/weft/internal/provutil"
	"github.com/weft-fabric/weft/internal/testutil"
)

// Tests of what a call leaves to others. In most of them the program calls nothing after it: all that moves is moved by the sleeper,
// which sleeps without a timer.

// within has the lock while f runs.
func (s *side) within(f func()) {
	s.d.core.Lock()
	defer s.d.core.Unlock()
	f()
}

// so waits until something is so, and drives nobody.
func (s *side) so(what string, ok func() bool) {
	s.t.Helper()
	testutil.Eventually(s.t, what, func() (is bool) {
		s.within(func() { is = ok() })
		return is
	})
}

// sleeps waits until the sleeper is parked and armed.
func (s *side) sleeps() {
	s.t.Helper()
	s.so("asleep", func() bool { return s.d.epoch&1 == 1 })
}

// has waits until there are n completions to be read, none of them an error.
func (s *side) has(n int) {
	s.t.Helper()
	s.so("completions", func() bool { return s.cq.(*provutil.CQ).Unread() == n })
	for range n {
		if c := s.wait(); c.Err != nil {
			s.t.Errorf("%+v", c)
		}
	}
}

// acquainted are two sides that are connected.
func acquainted(t *testing.T, ac, bc provider.DomainConfig, ae provider.EndpointConfig) (a, b *side, ab, ba provider.Peer) {
	t.Helper()
	a, b = newSide(t, ac, ae), newSide(t, bc, provider.EndpointConfig{Depth: 4096})
	ab, ba = a.insert(b.ep.Address()), b.insert(a.ep.Address())
	a.must(a.ep.Send(mk(make([]byte, 8), ab, 900)))
	b.must(b.ep.Recv(recvOp(make([]byte, 8), 901)))
	a.good(a.wait(b), provider.SendDone, 900)
	b.good(b.wait(a), provider.RecvDone, 901)
	return a, b, ab, ba
}

// A copy between arenas that was not done in its post, since the peer was not there yet or another operation is before it, goes on to
// its end, piece by piece.
func TestCopyAfterItsPost(t *testing.T) {
	const size = 3<<20 + 1
	for _, kind := range []provider.Kind{provider.ReadDone, provider.WriteDone} {
		for _, mode := range bothModes {
			for _, behind := range []string{"connection", "fence"} {
				t.Run(kind.String()+" "+mode.String()+" behind a "+behind, func(t *testing.T) {
					a := newSide(t, provider.DomainConfig{Progress: mode}, provider.EndpointConfig{})
					b := newSide(t, provider.DomainConfig{}, provider.EndpointConfig{})
					ab, ops := a.insert(b.ep.Address()), 1
					m, mine := b.alloc(size, peerBoth), make([]byte, size)
					o := provider.Op{Local: provider.Segment{Bytes: mine}, Peer: ab, Key: m.Key(), Context: 3}
					if behind == "fence" {
						first := mk(make([]byte, 8), ab, 1)
						first.Flags = provider.DeliveryComplete
						a.must(a.ep.Send(first)) // it ends with its receive
						testutil.Eventually(t, "arrived", func() bool {
							if mode == provider.Manual {
								_ = oneRead(a)
							}
							waiting := 0
							b.within(func() { _, waiting = b.ep.(*endpoint).matcher.Len() })
							return waiting == 1
						})
						o.Flags, ops = provider.Fence, 2
					}
					from, to, post := m.Bytes(), mine, a.ep.Read
					if kind == provider.WriteDone {
						from, to, post = mine, m.Bytes(), a.ep.Write
					}
					copy(from, pattern(size, 1))
					a.must(post(o))
					if ops == 2 {
						b.must(b.ep.Recv(recvOp(make([]byte, 8), 2)))
					}
					if mode == provider.Auto {
						a.has(ops)
					} else {
						for range ops {
							a.wait()
						}
					}
					if !bytes.Equal(to, pattern(size, 1)) {
						t.Error("other bytes")
					}
				})
			}
		}
	}
}

// A receive with Multi for whose next message there was no place goes on when completions are read, without another receive.
func TestStalledMultiGoesOn(t *testing.T) {
	for _, mode := range bothModes {
		t.Run(mode.String(), func(t *testing.T) {
			a := newSide(t, provider.DomainConfig{Progress: mode}, provider.EndpointConfig{})
			other := newSide(t, provider.DomainConfig{Progress: mode}, provider.EndpointConfig{})
			cq, err := other.d.OpenCompletionQueue(provider.CQConfig{Size: 4})
			other.must(err)
			ep, err := other.d.OpenEndpoint(provider.EndpointConfig{Send: cq, Recv: cq})
			other.must(err)
			b := &side{t: t, d: other.d, cq: cq, ep: ep}
			to := a.insert(ep.Address())
			const n = 20
			for i := range uint64(n) {
				a.must(a.ep.Send(mk([]byte{byte(i)}, to, i)))
			}
			for range n {
				a.wait(b)
			}
			progress(t, "arrived", func() bool {
				waiting := 0
				b.within(func() { _, waiting = ep.(*endpoint).matcher.Len() })
				return waiting == n
			}, b)
			buf := make([]byte, 4096)
			o := recvOp(buf, 7)
			o.Flags = provider.Multi
			b.must(ep.Recv(o))
			for i := range uint64(n) {
				if c := b.good(b.wait(), provider.RecvDone, 7); c.Offset != i || buf[i] != byte(i) {
					t.Fatalf("message %d: %+v", i, c)
				}
			}
			b.within(func() {
				if n := len(b.d.restart); n > 0 {
					t.Errorf("%d endpoints are to be resumed", n)
				}
			})
		})
	}
}

// A post that polls, since a message waits for a receive, takes long messages in part and many not at all.
func TestPostLeavesMessages(t *testing.T) {
	for what, others := range map[string]int{"a copy": 0, "a copy, and polls": 3} {
		t.Run(what, func(t *testing.T) {
			a, b, _, ba := acquainted(t, provider.DomainConfig{}, provider.DomainConfig{}, provider.EndpointConfig{Unexpected: 4096})
			m := b.alloc(3<<20, 0)
			b.must(b.ep.Send(provider.Op{Local: provider.Segment{Bytes: m.Bytes(), Memory: m}, Peer: ba, Context: 2}))
			for range others {
				b.must(b.ep.Send(mk(make([]byte, 2000), ba, 3)))
			}
			a.so("arrived", func() bool {
				_, waiting := a.ep.(*endpoint).matcher.Len()
				return waiting > 0 && a.d.stuck == (others > 0)
			})
			a.sleeps()
			a.must(a.ep.Recv(recvOp(make([]byte, 3<<20), 1)))
			a.has(1)
		})
	}
	t.Run("records", func(t *testing.T) {
		a, b, _, ba := acquainted(t, provider.DomainConfig{}, provider.DomainConfig{}, provider.EndpointConfig{Unexpected: 4096 + 64})
		o := recvOp(make([]byte, 8), 100)
		o.Tag = 5
		a.must(a.ep.RecvTagged(o))
		b.must(b.ep.Send(mk(make([]byte, 4096), ba, 1)))
		for range dataRecords {
			b.must(b.ep.Send(mk(nil, ba, 2)))
		}
		o = mk(make([]byte, 8), ba, 3)
		o.Tag = 5
		b.must(b.ep.SendTagged(o))
		a.so("a message waits", func() bool { return a.d.stuck })
		a.sleeps()
		a.must(a.ep.Recv(recvOp(make([]byte, 4096), 1)))
		a.has(2)
	})
}

// behindFence is a side with a read that waits for the announcement of a segment, and what is said behind a fence. The peer calls
// nothing.
func behindFence(t *testing.T, behind func(a *side, ab provider.Peer, m provider.Memory)) *side {
	t.Helper()
	a, b, ab, _ := acquainted(t, provider.DomainConfig{}, manual(provider.DomainConfig{}), provider.EndpointConfig{})
	m := b.alloc(3<<20, peerBoth)
	seg, err := b.unannounced()
	b.must(err)
	a.must(a.ep.Read(provider.Op{Local: provider.Segment{Bytes: make([]byte, 8)}, Peer: ab, Key: seg.key, Context: 1}))
	behind(a, ab, m)
	a.sleeps()
	a.within(func() {
		if n := a.ep.(*endpoint).posted; n < 2 {
			t.Errorf("%d operations wait", n)
		}
	})
	return a
}

// unannounced is memory in a segment that peers do not know yet, as long as Alloc has not got so far.
func (s *side) unannounced() (m *memory, err error) {
	s.within(func() {
		for grown := false; !grown && err == nil; {
			m, grown, err = s.d.arena.alloc(s.d, 1<<20, peerBoth)
		}
	})
	return m, err
}

// What stood behind a cancelled operation starts, and goes on.
func TestCancelLeaves(t *testing.T) {
	for what, behind := range map[string]func(a *side, ab provider.Peer, m provider.Memory){
		"a long copy": func(a *side, ab provider.Peer, m provider.Memory) {
			a.must(a.ep.Read(provider.Op{Local: provider.Segment{Bytes: make([]byte, 3<<20)}, Peer: ab, Key: m.Key(), Context: 2}))
			a.must(a.ep.Read(provider.Op{Local: provider.Segment{Bytes: make([]byte, 8)}, Peer: ab, Key: m.Key(), Context: 3}))
		},
		"a fence behind a message": func(a *side, ab provider.Peer, m provider.Memory) {
			o := mk(make([]byte, 8), ab, 2)
			o.Flags = provider.Fence
			a.must(a.ep.Send(o))
			a.must(a.ep.Read(provider.Op{
				Local: provider.Segment{Bytes: make([]byte, 8)}, Peer: ab, Key: m.Key(), Context: 3, Flags: provider.Fence,
			}))
		},
	} {
		t.Run(what, func(t *testing.T) {
			a := behindFence(t, behind)
			if !a.ep.Cancel(1) {
				t.Fatal("nothing to cancel")
			}
			a.so("all have ended", func() bool { return a.cq.(*provutil.CQ).Unread() == 3 })
		})
	}
}

// A call reads the socket, and so takes what was to wake the sleeper: a ring, or a segment that somebody waits for.
func TestCallTakesTheWord(t *testing.T) {
	calls := map[string]func(a *side, ab provider.Peer){
		"a view": func(a *side, ab provider.Peer) {
			if v, err := a.d.View(a.t.Context(), ab, 99<<20, 0, 8); err == nil {
				v.Release()
				a.t.Error("a view of nothing")
			}
		},
		"a read": func(a *side, ab provider.Peer) {
			o := provider.Op{Local: provider.Segment{Bytes: make([]byte, 8)}, Peer: ab, Key: 99 << 20, Flags: provider.Quiet}
			a.must(a.ep.Read(o))
		},
	}
	for name, call := range calls {
		errors := map[string]int{"a view": 0, "a read": 1}[name]
		// deaf has the socket not wake the sleeper, as if the call came first.
		deaf := func(a *side, ab provider.Peer) {
			a.sleeps()
			a.within(func() { a.must(a.d.poller.Remove(a.pairWithPeer(ab).sock.FD)) })
		}
		t.Run(name+" takes the ring", func(t *testing.T) {
			c := provider.DomainConfig{Options: map[string]string{"disable": "eventfd"}}
			a, b, ab, ba := acquainted(t, c, c, provider.EndpointConfig{})
			a.must(a.ep.Recv(recvOp(make([]byte, 8), 1)))
			deaf(a, ab)
			b.must(b.ep.Send(mk(make([]byte, 8), ba, 2)))
			call(a, ab)
			a.so("received", func() bool { return a.cq.(*provutil.CQ).Unread() == 1+errors })
		})
		t.Run(name+" takes the announcement", func(t *testing.T) {
			a, b, ab, _ := acquainted(t, provider.DomainConfig{}, manual(provider.DomainConfig{}), provider.EndpointConfig{})
			m, err := b.unannounced()
			a.must(err)
			a.must(a.ep.Read(provider.Op{Local: provider.Segment{Bytes: make([]byte, 8)}, Peer: ab, Key: m.key, Context: 1}))
			deaf(a, ab)
			b.within(b.d.announce)
			call(a, ab)
			a.so("read", func() bool { return a.cq.(*provutil.CQ).Unread() == 1+errors })
		})
	}
}

// Acknowledgements for which a post finds no room follow when the peer has made room: it is told that we wait.
func TestAcksOfAPost(t *testing.T) {
	const n = 3000
	a, b, _, ba := acquainted(t, provider.DomainConfig{}, manual(provider.DomainConfig{}), provider.EndpointConfig{Depth: n})
	for i := range uint64(n) {
		o := mk(nil, ba, i)
		o.Flags = provider.DeliveryComplete
		b.must(b.ep.Send(o))
	}
	progress(t, "arrived", func() bool {
		waiting := 0
		a.within(func() { _, waiting = a.ep.(*endpoint).matcher.Len() })
		return waiting == n
	}, b)
	a.sleeps()
	for i := range uint64(n) {
		a.must(a.ep.Recv(recvOp(nil, i)))
	}
	a.within(func() {
		if a.d.pairs[0].replies.len() == 0 {
			t.Error("there was room for all")
		}
	})
	for range n {
		if c := b.wait(); c.Err != nil {
			t.Fatal(c.Err)
		}
	}
}

// What was posted with More is published by the next operation without it, whatever that is and to whomever.
func TestMoreAndAnother(t *testing.T) {
	for what, c := range map[string]struct {
		publishes bool
		post      func(a *side, other provider.Peer, key provider.Key) error
	}{
		"a message to another": {true, func(a *side, other provider.Peer, _ provider.Key) error {
			return a.ep.Send(mk(make([]byte, 8), other, 2))
		}},
		"a large message to another": {true, func(a *side, other provider.Peer, _ provider.Key) error {
			return a.ep.Send(mk(make([]byte, 8000), other, 2))
		}},
		"a read of another": {true, func(a *side, other provider.Peer, key provider.Key) error {
			return a.ep.Read(provider.Op{Local: provider.Segment{Bytes: make([]byte, 8)}, Peer: other, Key: key})
		}},
		"a receive": {true, func(a *side, _ provider.Peer, _ provider.Key) error { return a.ep.Recv(recvOp(make([]byte, 8), 2)) }},
		"a receive with more": {false, func(a *side, _ provider.Peer, _ provider.Key) error {
			o := recvOp(make([]byte, 8), 2)
			o.Flags = provider.More
			return a.ep.Recv(o)
		}},
	} {
		for _, mode := range bothModes {
			t.Run(what+", "+mode.String(), func(t *testing.T) {
				a, _, ab, _ := acquainted(t, provider.DomainConfig{Progress: mode}, provider.DomainConfig{}, provider.EndpointConfig{})
				third := newSide(t, provider.DomainConfig{}, provider.EndpointConfig{})
				exchange(t, a, third)
				at := a.insert(third.ep.Address())
				m := third.alloc(8, peerBoth)
				if mode == provider.Auto {
					a.sleeps()
				}
				o := mk(make([]byte, 8), ab, 1)
				o.Flags = provider.More
				pending := func() (is bool) {
					a.within(func() { is = a.pairWithPeer(ab).data.Pending() })
					return is
				}
				a.must(a.ep.Send(o))
				kept := mode == provider.Manual // else news may have published it
				if kept && !pending() {
					t.Error("nothing was kept back")
				}
				a.must(c.post(a, at, m.Key()))
				if is := pending(); c.publishes && is || kept && !c.publishes && !is {
					t.Errorf("pending: %v", is)
				}
			})
		}
	}
}

// asking is a logger that asks the domain something before it goes on.
type asking struct {
	slog.Handler
	d     **domain
	heard chan string
}

func (h asking) Enabled(context.Context, slog.Level) bool { return true }

func (h asking) Handle(ctx context.Context, r slog.Record) error {
	answered := make(chan bool)
	go func() {
		(*h.d).Stats()
		close(answered)
	}()
	select {
	case <-answered:
		h.heard <- r.Message
	case <-ctx.Done():
	}
	return nil
}

// The logger may be slow, and may ask the domain: it is called without the lock.
func TestLoggerMayAsk(t *testing.T) {
	for _, mode := range bothModes {
		t.Run(mode.String(), func(t *testing.T) {
			ctx, cancel := withPatience(t)
			defer cancel()
			var d *domain
			h := asking{nil, &d, make(chan string, 1)}
			a, b, ab, _ := acquainted(t, provider.DomainConfig{Progress: mode, Logger: slog.New(h)}, provider.DomainConfig{}, provider.EndpointConfig{})
			d = a.d
			a.within(func() { a.d.background = ctx })
			b.within(func() {
				p := b.d.pairs[0]
				p.say(&record{op: opAck, context: 12345}) // of nothing
				p.publish()
			})
			if mode == provider.Manual {
				testutil.Eventually(t, "gone", func() bool {
					_ = oneRead(a)
					return a.peerState(ab) == "gone"
				})
			}
			select {
			case m := <-h.heard:
				if !strings.Contains(m, "broke the protocol") {
					t.Errorf("heard %q", m)
				}
			case <-ctx.Done():
				t.Error("the logger does not get an answer")
			}
		})
	}
}
