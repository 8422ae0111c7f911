package shm

import (
	"math/rand/v2"
	"testing"

	"github.com/weft-fabric/weft/fabric/provider"
	"github.com/weft-fabric/weft/internal/testutil"
)

// A peer writes garbage into every word that it can reach: it is dropped, or not, but nothing of ours breaks, nobody else
// suffers, and nobody hangs.
func TestHostileScribbler(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 1))
	victim := newSide(t, provider.DomainConfig{}, provider.EndpointConfig{})
	friend := newSide(t, provider.DomainConfig{}, provider.EndpointConfig{})
	toVictim, toFriend := friend.insert(victim.ep.Address()), victim.insert(friend.ep.Address())
	key := victim.alloc(1<<20, peerBoth).Key()
	for range testutil.Count(t, 40, 2000) {
		h := newSide(t, provider.DomainConfig{Progress: provider.Manual}, provider.EndpointConfig{})
		to := h.insert(victim.ep.Address())
		_ = h.ep.Send(mk(make([]byte, 8), to, 1))
		for range 20 {
			_ = h.ep.Recv(recvOp(make([]byte, 100), 1))
		}
		progress(t, "connected", func() bool { return h.peerState(to) == "connected" }, h)
		back := victim.insert(h.ep.Address())
		m := h.alloc(4096, peerBoth)
		_ = victim.ep.Read(provider.Op{Local: provider.Segment{Bytes: make([]byte, 64)}, Peer: back, Key: m.Key()})
		_ = victim.ep.Send(mk(make([]byte, 100000), back, 2))
		h.d.core.Lock()
		p := h.d.pairs[0]
		lanes, home := p.mine.m.Bytes(), h.d.home.m.Bytes()[:homeTable+64*entryLen]
		for i := range 30 {
			scribble(rnd, p, lanes, home, uint64(key), i)
		}
		p.ring()
		_ = p.peerBell.Ring()
		h.d.core.Unlock()
		victim.drainSome()
		victim.answers(friend, toVictim, toFriend) // garbage may be a message too
		// Whatever is still open ends with the peer.
		if err := h.d.Close(); err != nil {
			t.Fatal(err)
		}
		testutil.Eventually(t, "all has ended", func() bool {
			victim.drainSome()
			victim.d.core.Lock()
			defer victim.d.core.Unlock()
			return len(victim.d.pairs) == 1
		})
	}
	if n := victim.d.ops.Len(); n != 0 {
		t.Errorf("%d operations are left", n)
	}
}

// drainSome reads what completions there are.
func (s *side) drainSome() {
	var c [64]provider.Completion
	for {
		if n, _ := s.cq.Read(c[:]); n == 0 {
			return
		}
	}
}

// scribble does one bad thing.
func scribble(rnd *rand.Rand, p *pair, lanes, home []byte, key uint64, i int) {
	random := func() uint64 {
		switch rnd.IntN(4) {
		case 0:
			return rnd.Uint64N(100)
		case 1:
			return key
		case 2:
			return rnd.Uint64N(1<<20) * 64
		}
		return rnd.Uint64()
	}
	switch rnd.IntN(6) {
	case 0:
		if i > 20 { // else all ends too soon
			word(lanes, rnd.IntN(len(lanes)/8)*8).Store(random())
		}
	case 1:
		word(home, homeTable+rnd.IntN(64*4)*8).Store(random())
	case 2:
		word(lanes, []int{laneDataCredit, laneControlCredit, laneControlDone, laneWants, laneHazardsInUse, laneLet}[rnd.IntN(6)]).Store(random())
	default:
		op := uint8(rnd.IntN(opCount-1) + 1)
		r := record{op: op, flags: uint8(rnd.IntN(recFlags + 1)), status: uint16(rnd.IntN(statusCount)), context: random(), data: random(), after: random()}
		if rnd.IntN(3) > 0 {
			r.flags &^= recAfter
		}
		for j := range r.words {
			r.words[j] = random()
		}
		r.payload = make([]byte, rnd.IntN(200))
		lane := p.data
		if forms[op].control {
			lane = p.control
		}
		b, err := lane.Reserve(recordLen(r.op, r.flags) + len(r.payload))
		if err != nil {
			return
		}
		r.put(b)
		lane.Commit()
		lane.Publish()
	}
}

// FuzzLanes reads a peer's records, whatever they are.
func FuzzLanes(f *testing.F) {
	for _, r := range someRecords() {
		b := make([]byte, recordHead+len(r.payload))
		f.Add(b[:r.put(b)], forms[r.op].control)
	}
	f.Fuzz(func(t *testing.T, body []byte, control bool) {
		if len(body) > ringConfig.MaxBody || len(body) < ringConfig.MinBody {
			return
		}
		a, b, ab, _ := twoSides(t, provider.DomainConfig{Progress: provider.Manual})
		_ = a.ep.Send(mk(make([]byte, 8), ab, 1))
		_ = a.ep.Send(mk(make([]byte, 100000), ab, 1))
		_ = b.ep.Recv(recvOp(make([]byte, 8), 1))
		_ = b.ep.Recv(recvOp(make([]byte, 1000), 1))
		progress(t, "connected", func() bool { return a.peerState(ab) == "connected" }, b, a)
		p := b.d.pairs[0]
		lane := p.data
		if control {
			lane = p.control
		}
		r, err := lane.Reserve(len(body))
		if err != nil {
			t.Fatal(err)
		}
		copy(r, body)
		lane.Commit()
		lane.Publish()
		a.drainSome()
		b.drainSome()
		a.drainSome()
	})
}
