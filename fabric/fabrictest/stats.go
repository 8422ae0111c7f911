package fabrictest

import (
	"fmt"
	"strings"

	"github.com/weft-fabric/weft/fabric/provider"
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
	if got := d.d.Info(); !keeps(got, i, e.c.Options) {
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

// keeps says whether an open domain is what Discover has said. One that is denied features may have room for more peers, each of
// which takes less.
func keeps(open, said provider.Info, options map[string]string) bool {
	if options["disable"] != "" {
		open.Limits.Peers = min(open.Limits.Peers, said.Limits.Peers)
	}
	return open.Provider == said.Provider && open.Caps == said.Caps && open.Limits == said.Limits
}
