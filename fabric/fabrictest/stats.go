package fabrictest

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/weft-fabric/weft/fabric/provider"
	"github.com/weft-fabric/weft/memmon"
)

// testStats: the numbers of a domain and of its peers add up with what was done.
func testStats(e *env) {
	a, b := e.pair()
	to, from := a.knows(b), b.knows(a)
	const n = 10
	bytes := 0
	for i := range n {
		e.message(a, b, to, from, 1000*i, i%2 == 0)
		bytes += 1000 * i
	}
	want := provider.Stats{Sent: n, BytesSent: uint64(bytes)}
	if e.has(provider.RMA) {
		m, l := b.mem("register", 5000, readWrite), a.heap(5000, 0)
		for range n {
			a.post(rmaOp(provider.ReadDone, to, m, 0, 1, l.part(0, 500)))
			a.post(rmaOp(provider.WriteDone, to, m, 0, 1, l.part(0, 400)))
		}
		a.take(2 * n)
		e.refused(a, "a read past the end", rmaOp(provider.ReadDone, to, m, 4999, 1, l.all()), provider.ErrKey)
		want.Reads, want.Writes, want.BytesRead, want.BytesWritten, want.Errors = n, n, 500*n, 400*n, 1
	}
	if e.has(provider.Atomics) {
		m, x := b.mem("register", 8, readWrite), a.heap(8, 0)
		for range n {
			a.post(opSpec{Kind: provider.AtomicDone, Peer: to, Key: m.key, Offset: m.at(0), Code: provider.AtomicSum, Type: provider.Uint64, Segs: []seg{x.all()}})
		}
		a.take(n)
		want.Atomics = n
	}
	got := a.stats()
	if got.Peers < 1 {
		e.Errorf("a domain that has talked with a peer is connected with %d", got.Peers)
	}
	// A read that failed may count as one.
	got.Reads = min(got.Reads, want.Reads)
	got = provider.Stats{
		Sent: got.Sent, BytesSent: got.BytesSent, Reads: got.Reads, Writes: got.Writes, BytesRead: got.BytesRead, BytesWritten: got.BytesWritten,
		Atomics: got.Atomics, Errors: got.Errors,
	}
	if got != want {
		e.Errorf("the initiator counts %+v, want %+v", got, want)
	}
	if there := b.stats(); there.Received != n || there.BytesRecv != uint64(bytes) {
		e.Errorf("%d messages of %d bytes are counted as %d of %d", n, bytes, there.Received, there.BytesRecv)
	}
	e.peerStats(a, to, b.addr(), func(p provider.PeerStats) bool { return p.Sent == n && p.BytesSent == uint64(bytes) })
	e.peerStats(b, from, a.addr(), func(p provider.PeerStats) bool { return p.Received == n && p.BytesRecv == uint64(bytes) })
	e.waitingStats(a, b, to, from)
	if e.has(provider.Arena) {
		before := b.stats().Arena
		b.arena(1<<20, 1, provider.PeerRead)
		if grown := b.stats().Arena - before; grown < 1<<20 {
			e.Errorf("1 MiB of arena counts as %d", grown)
		}
	}
}

// waitingStats sends what nobody receives at first: until somebody does, it counts.
func (e *env) waitingStats(a, b *side, to, from provider.Peer) {
	e.Helper()
	const n, each = 5, 1000
	waiting := func() uint64 {
		for _, p := range b.do(request{Verb: "peers"}).Peers {
			if p.Peer == from {
				return p.Unexpected
			}
		}
		return 0
	}
	out, in := a.heap(each, 1), b.heap(each, 0)
	for range n {
		a.post(sendOp(to, 1, out.all()))
	}
	e.eventually("messages that wait for a receive count as such", func() bool { return waiting() >= n*each })
	for range n {
		b.post(recvOp(2, in.all()))
	}
	a.take(n)
	b.take(n)
	if got := waiting(); got != 0 {
		e.Errorf("all messages were received, %d bytes wait", got)
	}
}

func (e *env) peerStats(s *side, p provider.Peer, addr provider.Address, ok func(provider.PeerStats) bool) {
	e.Helper()
	for _, got := range s.do(request{Verb: "peers"}).Peers {
		if got.Peer == p {
			if got.Address != addr || got.State != "connected" || !ok(got.PeerStats) {
				e.Errorf("the numbers of %s: %+v", addr, got.PeerStats)
			}
			return
		}
	}
	e.Errorf("%s is not listed", addr)
}

// testTracer: the tracer hears of each event once.
func testTracer(e *env) {
	a, b := e.pair()
	to, from := a.knows(b), b.knows(a)
	const n = 7
	for i := range n {
		e.message(a, b, to, from, 700*i, i%2 == 0)
	}
	_ = a.tryPost(sendOp(to+1000, 1, a.heap(8, 0).all()))
	for what, text := range map[string]string{
		"post send": a.do(request{Verb: "events"}).Text, "complete send": a.do(request{Verb: "events"}).Text,
		"post receive": b.do(request{Verb: "events"}).Text, "complete receive": b.do(request{Verb: "events"}).Text,
	} {
		if !strings.Contains(text, fmt.Sprintf("%s=%d", what, n)) {
			e.Errorf("%d messages: the tracer heard %s, which is not %s=%d", n, text, what, n)
		}
	}
	text := a.do(request{Verb: "events"}).Text
	if !strings.Contains(text, "up=1") {
		e.Errorf("one peer is connected, the tracer heard %s", text)
	}
	if strings.Contains(text, "without operation") {
		e.Errorf("the tracer heard of a post without its operation: %s", text)
	}
	heard := func(what string) func() bool {
		return func() bool { return strings.Contains(a.do(request{Verb: "events"}).Text, what) }
	}
	e.eventually("the tracer hears that who waits sleeps", heard("sleep="))
	e.message(b, a, from, to, 100, true)
	e.eventually("the tracer hears that it was woken", heard("wake="))
	if got := a.stats().Wakes; got == 0 {
		e.Errorf("the tracer heard of a wake, Stats.Wakes is %d", got)
	}
	b.kill()
	e.refusedGone(a, b, sendOp(to, 1, a.heap(8, 0).all()))
	if text := a.do(request{Verb: "events"}).Text; !strings.Contains(text, "gone=1") {
		e.Errorf("one peer is gone, the tracer heard %s", text)
	}
}

// testInfo: what the provider says of itself makes sense.
func testInfo(e *env) {
	i := e.info
	if i.Provider != e.c.Provider || i.Version == "" || i.Domain == "" || i.Address == "" {
		e.Errorf("the description has holes: %+v", i)
	}
	if !i.Caps.Has(provider.Msg) {
		e.Errorf("the provider has no messages: %v", i.Caps)
	}
	if i.Caps.Has(provider.Views) && !i.Caps.Has(provider.Arena) {
		e.Errorf("views without arenas: %v", i.Caps)
	}
	if e.c.Procs > 1 && i.Caps&(provider.LocalComm|provider.RemoteComm) == 0 {
		e.Errorf("it reaches no other process: %v", i.Caps)
	}
	d := e.open(provider.DomainConfig{}, endpointConfig{}, provider.CQConfig{})
	if got := d.d.Info(); got.Provider != i.Provider || got.Caps != i.Caps || got.Limits != i.Limits {
		e.Errorf("the open domain says %+v, Discover said %+v", got, i)
	}
	odd, err := e.o.open(provider.DomainConfig{Progress: e.mode, Options: map[string]string{"no-such-option": "1"}})
	if err == nil {
		_ = odd.Close()
	}
	if err == nil || !strings.Contains(err.Error(), "no-such-option") {
		e.Errorf("an option that does not exist: %v", err)
	}
}

// testAllocs: posts and completions allocate nothing.
func testAllocs(e *env) {
	a, b := e.directs()
	var out, in [256]byte
	var tag uint64
	m, err := b.d.Register(memmon.HeapBytes(make([]byte, 4096)), readWrite)
	if err != nil {
		e.Fatal(err)
	}
	off := e.base(m)
	seg := func(b []byte) provider.Segment { return provider.Segment{Bytes: b} }
	some := make([]provider.Completion, 4)
	var result [8]byte
	long := [2][]byte{make([]byte, 100_000), make([]byte, 100_000)}
	pieces := [2][2]provider.Segment{{seg(out[:100]), seg(out[100:])}, {seg(in[:100]), seg(in[100:])}}
	remotes := [2]provider.RemoteSegment{{Key: m.Key(), Offset: off, Len: 56}, {Key: m.Key(), Offset: off + 100, Len: 200}}
	for name, round := range map[string]func() (int, int, error){
		"send": func() (int, int, error) {
			if err := b.ep.Recv(provider.Op{Local: seg(in[:])}); err != nil {
				return 0, 0, err
			}
			return 1, 1, a.ep.Send(provider.Op{Local: seg(out[:]), Peer: a.to})
		},
		"late receive": func() (int, int, error) {
			if err := a.ep.Send(provider.Op{Local: seg(out[:]), Peer: a.to}); err != nil {
				return 0, 0, err
			}
			return 1, 1, b.ep.Recv(provider.Op{Local: seg(in[:])})
		},
		"send-tagged": func() (int, int, error) {
			if !e.has(provider.Tagged) {
				return 0, 0, nil
			}
			tag++
			if err := b.ep.RecvTagged(provider.Op{Local: seg(in[:]), Tag: tag & e.tagMask()}); err != nil {
				return 0, 0, err
			}
			return 1, 1, a.ep.SendTagged(provider.Op{Local: seg(out[:]), Peer: a.to, Tag: tag & e.tagMask(), Flags: provider.Inject})
		},
		"read": func() (int, int, error) {
			if !e.has(provider.RMA) {
				return 0, 0, nil
			}
			return 1, 0, a.ep.Read(provider.Op{Local: seg(out[:]), Peer: a.to, Key: m.Key(), Offset: off})
		},
		"write": func() (int, int, error) {
			if !e.has(provider.RMA) {
				return 0, 0, nil
			}
			return 1, 0, a.ep.Write(provider.Op{Local: seg(out[:]), Peer: a.to, Key: m.Key(), Offset: off})
		},
		"write with data": func() (int, int, error) {
			if !e.has(provider.RMA | provider.RemoteCQData) {
				return 0, 0, nil
			}
			o := provider.Op{Local: seg(out[:]), Peer: a.to, Key: m.Key(), Offset: off, Flags: provider.RemoteData, Data: 5}
			return 1, 1, a.ep.Write(o)
		},
		"atomic": func() (int, int, error) {
			if !e.has(provider.Atomics) {
				return 0, 0, nil
			}
			x := provider.Atomic{Code: provider.AtomicSum, Type: provider.Uint64, Result: result[:]}
			x.Op = provider.Op{Local: seg(out[:8]), Peer: a.to, Key: m.Key(), Offset: off}
			return 1, 0, a.ep.Atomic(x)
		},
		"delivery-complete": func() (int, int, error) {
			if err := b.ep.Recv(provider.Op{Local: seg(in[:])}); err != nil {
				return 0, 0, err
			}
			return 1, 1, a.ep.Send(provider.Op{Local: seg(out[:]), Peer: a.to, Flags: provider.DeliveryComplete})
		},
		"long": func() (int, int, error) {
			if err := b.ep.Recv(provider.Op{Local: seg(long[1])}); err != nil {
				return 0, 0, err
			}
			return 1, 1, a.ep.Send(provider.Op{Local: seg(long[0]), Peer: a.to})
		},
		"multi-receive": func() (int, int, error) {
			if !e.has(provider.MultiRecv) {
				return 0, 0, nil
			}
			if err := b.ep.Recv(provider.Op{Local: seg(in[:]), Flags: provider.Multi}); err != nil {
				return 0, 0, err
			}
			return 1, 1, a.ep.Send(provider.Op{Local: seg(out[:]), Peer: a.to})
		},
		"vectored": func() (int, int, error) {
			if e.info.Limits.Segments < 2 {
				return 0, 0, nil
			}
			if err := b.ep.Recv(provider.Op{Locals: pieces[1][:]}); err != nil {
				return 0, 0, err
			}
			return 1, 1, a.ep.Send(provider.Op{Locals: pieces[0][:], Peer: a.to})
		},
		"vectored read": func() (int, int, error) {
			if !e.has(provider.RMA) || e.info.Limits.Segments < 2 || e.info.Limits.Remotes < 2 {
				return 0, 0, nil
			}
			return 1, 0, a.ep.Read(provider.Op{Locals: pieces[0][:], Peer: a.to, Remotes: remotes[:]})
		},
	} {
		for range 50 { // pools fill
			e.round(a, b, some, round)
		}
		if n := testing.AllocsPerRun(500, func() { e.round(a, b, some, round) }); n >= 1 {
			e.Errorf("%s: %v allocations for each post and its completions", name, n)
		}
	}
	if err := m.Close(); err != nil {
		e.Error(err)
	}
}

// round does one round and reads its completions, without allocating.
func (e *env) round(a, b *direct, some []provider.Completion, round func() (int, int, error)) {
	na, nb, err := round()
	if err != nil {
		e.Fatal(err)
	}
	for spins := 0; na > 0 || nb > 0; spins++ {
		n, err := a.q.Read(some)
		if err != nil || n > 0 && some[0].Err != nil {
			e.Fatalf("%v, %s", err, show(some[0]))
		}
		na -= n
		if n, err = b.q.Read(some); err != nil || n > 0 && some[0].Err != nil {
			e.Fatalf("%v, %s", err, show(some[0]))
		}
		nb -= n
		if n == 0 {
			runtime.Gosched()
		}
		if spins > 1e8 {
			e.Fatalf("%d and %d completions never come", na, nb)
		}
	}
}
