package shm

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"

	"github.com/weft-fabric/weft/fabric/provider"
	"github.com/weft-fabric/weft/internal/sys"
	"github.com/weft-fabric/weft/internal/testutil"
)

// numbered is a message of n bytes that says which it is.
func numbered(i, n int) []byte {
	b := pattern(n, byte(i))
	binary.NativeEndian.PutUint64(b, uint64(i))
	return b
}

// burst sends count messages of n bytes from a to b, as fast as goes, and checks order and bytes. Both are driven.
func burst(t *testing.T, a, b *side, to provider.Peer, from, count, n int) {
	t.Helper()
	const window = 128
	in := make([][]byte, window)
	recv := func(i int) {
		in[i%window] = make([]byte, n)
		b.must(b.ep.Recv(recvOp(in[i%window], uint64(i))))
	}
	for i := range window {
		recv(i)
	}
	var c [64]provider.Completion
	sent, got := 0, 0
	testutil.Eventually(t, "all is received", func() bool {
		for ; sent < count; sent++ {
			err := a.ep.Send(provider.Op{Local: provider.Segment{Bytes: numbered(from+sent, n)}, Peer: to, Flags: provider.Quiet})
			if errors.Is(err, provider.ErrAgain) {
				break
			}
			a.must(err)
		}
		if a != b {
			if k, err := a.cq.Read(c[:]); k > 0 || err != nil {
				t.Fatalf("%+v, %v", c[:k], err)
			}
		}
		k, err := b.cq.Read(c[:])
		b.must(err)
		for _, c := range c[:k] {
			if c.Err != nil || c.Context != uint64(got) || !bytes.Equal(in[got%window], numbered(from+got, n)) {
				t.Fatalf("message %d: %+v, or other bytes", got, c)
			}
			got++
			recv(got - 1 + window)
		}
		return got == count
	})
	for i := got; i < got+window; i++ {
		if c := cancelled(b, i); !errors.Is(c.Err, provider.ErrCancelled) {
			t.Fatalf("%+v", c)
		}
	}
}

// cancelled takes a receive back.
func cancelled(b *side, i int) provider.Completion {
	b.t.Helper()
	if !b.ep.Cancel(uint64(i)) {
		b.t.Fatalf("receive %d cannot be cancelled", i)
	}
	return b.wait()
}

// steps is how often the lanes of a's pair were replaced, in both directions.
func (s *side) steps() (out, in int) {
	s.d.core.Lock()
	defer s.d.core.Unlock()
	return s.d.pairs[0].growth.step, s.d.pairs[0].growth.stepIn
}

// grow has bursts until a's lane is as large as it gets: a peer that polls looks at its socket now and then only.
func grow(t *testing.T, a, b *side, to provider.Peer, count int) {
	t.Helper()
	for range 20 {
		burst(t, a, b, to, 0, count, 4000)
		if out, _ := a.steps(); out == laneSteps {
			return
		}
	}
}

// Who sends more than its lane holds, to who takes it, gets a larger one, and then a larger one again; nothing is lost,
// doubled or overtaken on the way.
func TestLaneGrows(t *testing.T) {
	for _, c := range []provider.DomainConfig{
		{Progress: provider.Manual}, {}, {Options: map[string]string{"disable": "future_write,eventfd,populate,noexec_seal"}},
	} {
		a, b, ab, ba := twoSides(t, c)
		count := testutil.Count(t, 3000, 50000)
		grow(t, a, b, ab, count)
		if out, in := a.steps(); out != laneSteps || in != 0 {
			t.Errorf("%+v: replaced %d times, the other %d", c, out, in)
		}
		if out, in := b.steps(); out != 0 || in != laneSteps {
			t.Errorf("%+v: the peer's was replaced %d times, its own %d", c, in, out)
		}
		if m := a.d.Peers()[0].Memory; m < laneSize(laneSteps) {
			t.Errorf("%d bytes are told of", m)
		}
		burst(t, b, a, ba, 7, count, 100)
		grow(t, b, a, ba, count)
		burst(t, a, b, ab, 9, count, 8)
		if out, in := a.steps(); out != laneSteps || in != laneSteps {
			t.Errorf("%+v: replaced %d times, the other %d", c, out, in)
		}
	}
}

// An endpoint that sends to itself, too.
func TestLaneGrowsOfOneself(t *testing.T) {
	a := newSide(t, provider.DomainConfig{Progress: provider.Manual}, provider.EndpointConfig{})
	grow(t, a, a, a.insert(a.ep.Address()), 3000)
	if out, in := a.steps(); out != laneSteps || in != laneSteps {
		t.Errorf("replaced %d and %d times", out, in)
	}
}

// A lane that is not full, or is full because the peer takes nothing, stays as it is.
func TestLaneStays(t *testing.T) {
	a, b, ab, _ := twoSides(t, provider.DomainConfig{Progress: provider.Manual})
	in, out := make([]byte, 4000), make([]byte, 4000)
	for i := range 500 { // one at a time
		b.must(b.ep.Recv(recvOp(in, uint64(i))))
		a.must(a.ep.Send(provider.Op{Local: provider.Segment{Bytes: out}, Peer: ab, Flags: provider.Quiet}))
		b.good(b.wait(a), provider.RecvDone, uint64(i))
	}
	if out, _ := a.steps(); out != 0 {
		t.Errorf("replaced %d times while it was never full", out)
	}
	for a.ep.Send(provider.Op{Local: provider.Segment{Bytes: out}, Peer: ab, Flags: provider.Quiet}) == nil {
	}
	for range 1000 {
		a.drainSome()
	}
	if g := a.d.pairs[0].growth; g.step != 0 || g.next != nil || g.fulls > 1 {
		t.Errorf("%+v while nobody takes anything", g)
	}
}

// Where there is no memory or descriptor for a larger lane, on one side or the other, the old one does.
func TestLaneNoRoom(t *testing.T) {
	a, b, ab, _ := twoSides(t, provider.DomainConfig{Progress: provider.Manual})
	burst(t, a, b, ab, 0, 10, 100)
	p := a.d.pairs[0]
	var was syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &was); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: 3, Max: was.Max}); err != nil {
		t.Fatal(err)
	}
	burst(t, a, b, ab, 0, 3000, 4000)
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &was); err != nil {
		t.Fatal(err)
	}
	if p.growth.next != nil || p.growth.step != 0 {
		t.Fatal("made without descriptors")
	}
	// Made, and the peer never answers.
	f, err := newFile("lane", int(laneSize(1)), false, sys.Features{})
	if err != nil {
		t.Fatal(err)
	}
	p.growth.next = f
	burst(t, a, b, ab, 0, 3000, 4000)
	if p.growth.step != 0 {
		t.Error("replaced without the peer")
	}
	f.close()
	p.growth.next = nil // tried again
	grow(t, a, b, ab, 3000)
	if p.growth.step != laneSteps {
		t.Errorf("replaced %d times", p.growth.step)
	}
}

// The sender's death, at any moment of the change: what was completed is received.
func TestLaneDeath(t *testing.T) {
	for stop := 0; stop < 400; stop += testutil.Count(t, 7, 1) {
		a, b, ab, _ := twoSides(t, provider.DomainConfig{Progress: provider.Manual})
		in := make([]byte, 4000)
		var c [1]provider.Completion
		sent, got := 0, 0
		take := func() {
			t.Helper()
			k, e := b.cq.Read(c[:])
			b.must(e)
			if k == 0 {
				return
			}
			if c[0].Err != nil || !bytes.Equal(in, numbered(got, 4000)) {
				t.Fatalf("message %d of %d: %+v", got, sent, c[0])
			}
			got++
			b.must(b.ep.Recv(recvOp(in, 1)))
		}
		b.must(b.ep.Recv(recvOp(in, 1)))
		done := 0
		for i := 0; i < 300+stop; i++ {
			if err := a.ep.Send(provider.Op{Local: provider.Segment{Bytes: numbered(sent, 4000)}, Peer: ab, Context: 5}); err == nil {
				sent++
			}
			if k, _ := a.cq.Read(c[:]); k == 1 && c[0].Err == nil {
				done++
			}
			take()
		}
		for k, _ := a.cq.Read(c[:]); k == 1 && c[0].Err == nil; k, _ = a.cq.Read(c[:]) {
			done++
		}
		if err := a.d.Close(); err != nil {
			t.Fatal(err)
		}
		testutil.Eventually(t, fmt.Sprintf("all %d that were completed", done), func() bool {
			take()
			return got >= done
		})
	}
}

// A peer that lies about its lanes is dropped.
func TestHostileLane(t *testing.T) {
	file := func(t *testing.T, n uint64) *sys.FD {
		t.Helper()
		f, err := newFile("lane", int(n), false, sys.Features{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(f.close)
		return f.fd
	}
	unsealed, err := sys.Memfd(sys.MemfdConfig{Name: "lane", Size: int64(laneSize(1))})
	if err != nil {
		t.Fatal(err)
	}
	defer unsealed.Close()
	offer := func(p *pair, n uint64, fds ...*sys.FD) {
		_, _ = p.sock.Send(laneOffer(n).Append(nil), fds...)
	}
	record := func(p *pair, op uint8) {
		lane := p.data
		if forms[op].control {
			lane = p.control
		}
		b, err := lane.Reserve(recordLen(op, 0))
		if err != nil {
			t.Fatal(err)
		}
		(&record{op: op}).put(b)
		lane.Commit()
		p.publish()
	}
	for name, lie := range map[string]func(t *testing.T, p *pair){
		"size":          func(t *testing.T, p *pair) { offer(p, laneSize(2), file(t, laneSize(2))) },
		"length":        func(t *testing.T, p *pair) { offer(p, laneSize(1), file(t, laneSize(2))) },
		"no seals":      func(_ *testing.T, p *pair) { offer(p, laneSize(1), unsealed) },
		"no descriptor": func(_ *testing.T, p *pair) { offer(p, laneSize(1)) },
		"two descriptors": func(t *testing.T, p *pair) {
			offer(p, laneSize(1), file(t, laneSize(1)), file(t, laneSize(1)))
		},
		"twice": func(t *testing.T, p *pair) {
			offer(p, laneSize(1), file(t, laneSize(1)))
			offer(p, laneSize(1), file(t, laneSize(1)))
		},
		"short":     func(_ *testing.T, p *pair) { _, _ = p.sock.Send(seal(append(appendHead(nil, kindLane), 1), 0)) },
		"move":      func(_ *testing.T, p *pair) { record(p, opMove) },
		"agreement": func(_ *testing.T, p *pair) { record(p, opLane) },
		"too far":   func(t *testing.T, p *pair) { offer(p, laneSize(laneSteps+1), file(t, laneSize(laneSteps+1))) },
	} {
		t.Run(name, func(t *testing.T) {
			gone := make(chan error, 1)
			victim := newSide(t, provider.DomainConfig{Tracer: &provider.Tracer{
				PeerGone: func(_ provider.Peer, _ provider.Address, why error) { gone <- why },
			}}, provider.EndpointConfig{})
			h := newSide(t, provider.DomainConfig{Progress: provider.Manual}, provider.EndpointConfig{})
			to := h.insert(victim.ep.Address())
			h.must(h.ep.Send(mk(make([]byte, 8), to, 1)))
			progress(t, "connected", func() bool { return h.peerState(to) == "connected" }, h)
			if name == "too far" { // as if it had been replaced as often as may be
				victim.d.core.Lock()
				victim.d.pairs[0].growth.stepIn = laneSteps
				victim.d.core.Unlock()
			}
			h.d.core.Lock()
			lie(t, h.d.pairs[0])
			h.d.core.Unlock()
			var why error
			testutil.Eventually(t, "dropped", func() bool {
				victim.drainSome()
				select {
				case why = <-gone:
				default:
				}
				return why != nil
			})
			if !errors.Is(why, provider.ErrProtocol) {
				t.Error(why)
			}
		})
	}
}

func TestLaneOffer(t *testing.T) {
	b := laneOffer(1 << 20).Append(nil)
	kind, body, err := parseHead(b)
	if err != nil || kind != kindLane {
		t.Fatal(kind, err)
	}
	if l, err := parseLaneOffer(body); l != 1<<20 || err != nil {
		t.Error(l, err)
	}
	for n := range body {
		if _, err := parseLaneOffer(body[:n]); err == nil || !strings.Contains(err.Error(), "lane") {
			t.Errorf("%d bytes: %v", n, err)
		}
	}
	if _, err := parseLaneOffer(append(body, 0)); err == nil {
		t.Error("a byte too many")
	}
}
