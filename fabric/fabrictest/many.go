package fabrictest

import (
	"errors"
	"fmt"
	"time"

	"github.com/weft-fabric/weft/fabric/provider"
	"github.com/weft-fabric/weft/internal/testutil"
)

// testPeers: one endpoint talks with 300 others, which answer.
func testPeers(e *env) {
	const peers = 300
	a, b := e.side(0), e.side(1)
	a.open(e.spec())
	spec := e.spec()
	spec.Endpoints = peers
	b.open(spec)
	from := b.knows(a)
	var to []provider.Peer
	seen := map[provider.Peer]bool{}
	for _, addr := range b.addrs {
		p := a.insert(addr)
		if p == 0 || seen[p] || p != a.insert(addr) {
			e.Fatalf("%s is inserted as %d: twice the same, or not the same again", addr, p)
		}
		seen[p] = true
		to = append(to, p)
	}
	in, out, back := b.heap(peers*64, 0), a.heap(peers*64, 1), a.heap(peers*64, 0)
	for i := range peers {
		b.do(request{Verb: "post", EP: i, Op: ptr(recvOp(uint64(i), in.part(64*i, 64)))})
		a.post(recvOp(uint64(1000+i), back.part(64*i, 64)))
	}
	for _, i := range e.shuffled(peers) {
		a.post(sendOp(to[i], 5000, out.part(64*i, 64)))
	}
	for context, c := range b.each(peers) {
		if c.Source != from {
			e.Fatalf("endpoint %d got %s", context, show(c))
		}
		b.do(request{Verb: "post", EP: int(context), Op: ptr(sendOp(from, 6000, in.part(64*int(context), 64)))})
	}
	answered := map[provider.Peer]int{}
	for _, c := range a.take(2 * peers) {
		if c.Err != nil {
			e.Fatal(c.Err)
		}
		if c.Kind == provider.RecvDone {
			answered[c.Source]++
		}
	}
	for i, p := range to {
		if answered[p] != 1 {
			e.Fatalf("endpoint %d, peer %v, has answered %d times", i, p, answered[p])
		}
	}
	b.take(peers)
	b.holds("what 300 peers got", in.all(), 1)
	if got := a.stats().Peers; got < peers {
		e.Errorf("%d peers are connected, Stats.Peers is %d", peers, got)
	}
}

// testAllToAll (F27): 16 programs start together, and everyone sends to everyone and hears from everyone, while
// connections cross. No round takes longer than 10 s.
func testAllToAll(e *env) {
	const n = 16
	var sides []*side
	for i := range n {
		sides = append(sides, e.side(i))
	}
	for round := range testutil.Count(e, 2, 200) {
		began, late := time.Now(), e.lateness()
		for _, s := range sides {
			s.start(request{Verb: "open", Open: ptr(e.spec())})
		}
		for i, s := range sides {
			r, err := s.join()
			if err != nil {
				e.Fatalf("program %d: %v", i, err)
			}
			s.addrs = r.Addresses
		}
		flows := make([]flow, n)
		for i, s := range sides {
			flows[i] = flow{Kind: "all", Count: 1, Sizes: []int{200 + 100*round}, Seed: uint64(i+1) << 32}
			for _, j := range e.shuffled(n) {
				flows[i].Peers = append(flows[i].Peers, s.knows(sides[j]))
				flows[i].Seeds = append(flows[i].Seeds, uint64(j+1)<<32)
			}
		}
		for i, s := range sides {
			s.start(request{Verb: "flow", Flow: &flows[i]})
		}
		var errs []error
		for i, s := range sides {
			if _, err := s.join(); err != nil {
				errs = append(errs, fmt.Errorf("program %d of round %d: %w", i, round, err))
			}
		}
		if err := errors.Join(errs...); err != nil {
			e.Fatal(err)
		}
		for _, s := range sides {
			s.close()
		}
		late.stop()
		if took := time.Since(began); took > 10*time.Second+late.worst() {
			e.Fatalf("round %d took %v, on a machine that is late by %v", round, took, late.worst())
		}
	}
}

// testFour: more than two processes, each talks with each, with messages of all sizes.
func testFour(e *env) {
	n := max(e.c.Procs, 4)
	var sides []*side
	for i := range n {
		s := e.side(i)
		s.open(e.spec())
		sides = append(sides, s)
	}
	for _, tagged := range []bool{false, true} {
		if tagged && !e.has(provider.Tagged) {
			continue
		}
		for i, s := range sides {
			f := flow{Kind: "all", Count: 40, Sizes: []int{100, 0, 5000, 70000, 8}, Seed: uint64(i+1) << 32, Tagged: tagged}
			for j, o := range sides {
				if o != s {
					f.Peers, f.Seeds = append(f.Peers, s.knows(o)), append(f.Seeds, uint64(j+1)<<32)
				}
			}
			s.start(request{Verb: "flow", Flow: &f})
		}
		for i, s := range sides {
			if _, err := s.join(); err != nil {
				e.Fatalf("program %d: %v", i, err)
			}
		}
	}
}

// testCycles (F42): open, use, close, in both orders, again and again in one process; nothing goes over to the next.
func testCycles(e *env) {
	rounds := testutil.Count(e, 50, 5000)
	name := e.name("cycle")
	var before usage
	for round := range rounds {
		if round == min(20, rounds/2) {
			before = e.self()
		}
		a := e.open(provider.DomainConfig{}, endpointConfig{Name: name + "-a"}, provider.CQConfig{Size: 16})
		b := e.open(provider.DomainConfig{}, endpointConfig{Name: name + "-b"}, provider.CQConfig{Size: 16})
		a.to, b.to = e.meet(a, b), e.meet(b, a)
		e.cycleWrites(a, b, uint64(round))
		first, second := a, b
		if round%2 == 1 {
			first, second = b, a
		}
		for _, d := range []*direct{first, second} {
			if err := errors.Join(d.ep.Close(), d.q.Close(), d.d.Close()); err != nil {
				e.Fatalf("round %d: %v", round, err)
			}
		}
	}
	e.eventually("nothing has grown", func() bool {
		u := e.self()
		return u.Goroutines <= before.Goroutines && u.Files <= before.Files && u.Shared <= before.Shared
	})
}

func (e *env) self() usage {
	e.Helper()
	u, err := measure()
	if err != nil {
		e.Fatal(err)
	}
	return u
}

// cycleWrites writes with data in both directions, or sends where there is no RMA.
func (e *env) cycleWrites(a, b *direct, round uint64) {
	e.Helper()
	if !e.has(provider.RMA | provider.RemoteCQData) {
		return
	}
	e.dataWrite(a, b, round)
	e.dataWrite(b, a, round)
}
