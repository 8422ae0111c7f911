package shm

import (
	"context"
	"math/rand/v2"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weft-fabric/weft/fabric/provider"
	"github.com/weft-fabric/weft/internal/testutil"
)

// TestSoakHostile has a process shake hands as it should and then do one kind of harm after another, again and again. Meanwhile
// a friend's messages are answered: no wake-up is lost and nobody is held up. Nothing of ours breaks, memory has a bound, and
// when the attacker has been killed, all that it had is back.
func TestSoakHostile(t *testing.T) {
	for _, mode := range bothModes {
		for _, name := range attackNames() {
			t.Run(mode.String()+"/"+name, func(t *testing.T) { withstand(t, mode, name) })
		}
	}
}

// stock is what a process has.
type stock struct {
	files, maps int
	heap        uint64
}

func takeStock(t *testing.T) stock {
	t.Helper()
	runtime.GC()
	files, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		t.Fatal(err)
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return stock{files: len(files), maps: strings.Count(string(text), "memfd:"), heap: m.HeapAlloc}
}

// keeps is what sides have of segments: their own, which stay for later, and those of each other that they map.
func keeps(sides ...*side) (s stock) {
	for _, side := range sides {
		side.d.core.Lock()
		defer side.d.core.Unlock()
		side.d.arena.mu.Lock()
		s.files += len(side.d.arena.segments)
		s.maps += len(side.d.arena.segments)
		side.d.arena.mu.Unlock()
		for _, p := range side.d.pairs {
			for _, f := range p.segments {
				s.maps++
				if f.w != nil {
					s.maps++
				}
			}
		}
	}
	return s
}

// withstand is one attack.
func withstand(t *testing.T, mode provider.Progress, name string) {
	c := provider.DomainConfig{Progress: mode}
	victim := newSide(t, c, provider.EndpointConfig{})
	friend := newSide(t, c, provider.EndpointConfig{})
	open := victim.alloc(1<<20, peerBoth)
	to, from := friend.insert(victim.ep.Address()), victim.insert(friend.ep.Address())
	victim.warms(friend, from)
	victim.answers(friend, to, from)
	before, kept := takeStock(t), keeps(victim, friend)
	peak := watchHeap(t)

	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	child := testutil.Child(t, "attacker", name, string(victim.ep.Address()), strconv.FormatUint(seed, 10), strconv.FormatUint(uint64(open.Key()), 10))
	attacked := make(chan struct{})
	go func() {
		defer close(attacked)
		for {
			if line, ok := child.Line(); !ok || line == "attacked" {
				return
			}
		}
	}()
	for round, more := 0, true; more || round < testutil.Count(t, 30, 3000); round++ {
		select {
		case <-attacked:
			more = false
		default:
		}
		victim.answers(friend, to, from)
		victim.provokes(from)
	}
	child.Kill()
	<-child.Done()
	<-attacked
	if got := peak(); got > before.heap+heapBound {
		t.Errorf("the heap grew by %d MiB", (got-before.heap)>>20)
	}
	victim.mode(friend, func() {
		testutil.Eventually(t, "all of the attacker's has ended", func() bool {
			victim.eats()
			victim.d.core.Lock()
			defer victim.d.core.Unlock()
			return len(victim.d.pairs) == 1 && len(victim.d.eps[0].pairs) == 1 && len(victim.d.eps[0].strangers) == 0 && victim.d.ops.Len() == 0
		})
	})
	victim.answers(friend, to, from)
	_ = open.Close()
	after, keeping := takeStock(t), keeps(victim, friend)
	if after.files-keeping.files > before.files-kept.files || after.maps-keeping.maps > before.maps-kept.maps {
		t.Errorf("before: %+v, of which segments %+v; after: %+v and %+v", before, kept, after, keeping)
	}
	// Who came and went without a word is forgotten.
	for _, p := range victim.d.Peers() {
		if p.Peer != from && p.Received == 0 && (name == "hellos" || name == "strangers" || name == "descriptors") {
			t.Errorf("still known: %+v", p)
		}
	}
}

// warms has the side make all segments that it will have, and the friend map them.
func (s *side) warms(friend *side, from provider.Peer) {
	s.t.Helper()
	for range 2 {
		m, err := s.d.Alloc(100<<10, provider.PeerRead)
		s.must(err)
		_ = m.Close()
		friend.must(friend.ep.Recv(recvOp(make([]byte, 70000), 1<<41)))
		s.must(s.ep.Send(provider.Op{Local: provider.Segment{Bytes: make([]byte, 70000)}, Peer: from, Flags: provider.Quiet}))
		if !friend.gets(1<<41, s) {
			s.t.Fatal("a long message does not come")
		}
	}
}

// heapBound is what an attacker may cost, of the heap.
const heapBound = 256 << 20

// watchHeap looks at the heap until the result is called, which gives the most that it had.
func watchHeap(t *testing.T) (most func() uint64) {
	var peak atomic.Uint64
	quit, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(50 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-quit:
				return
			case <-tick.C:
				var m runtime.MemStats
				runtime.ReadMemStats(&m)
				peak.Store(max(peak.Load(), m.HeapAlloc))
			}
		}
	}()
	stop := func() uint64 {
		select {
		case <-quit:
		default:
			close(quit)
		}
		<-done
		return peak.Load()
	}
	t.Cleanup(func() { stop() })
	return stop
}

// answers exchanges a message with a friend, in both directions, of whom others' messages are told apart.
func (s *side) answers(friend *side, to, from provider.Peer) {
	s.t.Helper()
	s.directed(friend, from, to)
	friend.directed(s, to, from)
}

// directed receives one message of a friend, who knows this side as to. Others' completions do not matter.
func (s *side) directed(friend *side, from, to provider.Peer) {
	s.t.Helper()
	const context = 1 << 40
	o := provider.Op{Local: provider.Segment{Bytes: make([]byte, 8)}, Tag: 7, Context: context, Peer: from, Flags: provider.Directed}
	s.must(s.ep.RecvTagged(o))
	send := provider.Op{Local: provider.Segment{Bytes: []byte("friendly")}, Tag: 7, Peer: to, Flags: provider.Quiet}
	friend.must(friend.ep.SendTagged(send))
	if !s.gets(context, friend) {
		s.t.Fatal("a friend's message does not come")
	}
	if string(o.Local.Bytes) != "friendly" {
		s.t.Fatalf("a friend's message is %q", o.Local.Bytes)
	}
}

// gets waits for a completion, asleep where the mode has somebody who moves things.
func (s *side) gets(context uint64, friend *side) bool {
	s.t.Helper()
	ctx, cancel := withPatience(s.t)
	defer cancel()
	var c [16]provider.Completion
	for ctx.Err() == nil {
		var n int
		var err error
		if !s.d.core.Manual() {
			n, err = s.cq.Wait(ctx, c[:])
		} else {
			n, err = s.cq.Read(c[:])
			friend.d.core.Lock()
			friend.d.core.Progress()
			friend.d.core.Unlock()
		}
		if err != nil {
			return false
		}
		for i := range n {
			if c[i].Context == context {
				return c[i].Err == nil
			}
		}
	}
	return false
}

// mode has manual domains move while f waits.
func (s *side) mode(friend *side, f func()) {
	if !s.d.core.Manual() {
		f()
		return
	}
	quit, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-quit:
				return
			default:
				for _, d := range []*domain{s.d, friend.d} {
					d.core.Lock()
					d.core.Progress()
					d.core.Unlock()
				}
				runtime.Gosched()
			}
		}
	}()
	f()
	close(quit)
	<-done
}

// provokes starts operations of all kinds towards whoever is connected and no friend, and uses memory.
func (s *side) provokes(friend provider.Peer) {
	s.t.Helper()
	m, err := s.d.Alloc(100<<10, provider.PeerRead)
	s.must(err)
	_ = m.Close()
	s.d.core.Lock()
	if s.d.ops.Len() > 300 || s.ep.(*endpoint).receives > 300 { // else there is no place left for the friend's
		s.d.core.Unlock()
		s.drainSome()
		return
	}
	var peers []provider.Peer
	var keys []provider.Key
	for _, p := range s.d.pairs {
		if p.peer.id != friend && len(peers) < 4 {
			peers = append(peers, p.peer.id)
			b := p.home.m.Bytes()
			for i := range 4 {
				keys = append(keys, provider.Key(word(b, homeTable+i*entryLen).Load()))
			}
		}
	}
	s.d.core.Unlock()
	s.drainSome()
	done, cancel := context.WithCancel(s.t.Context())
	cancel()
	for i, p := range peers {
		// Some are refused, or for want of depth or places: that does not matter.
		_ = s.ep.Send(mk(make([]byte, 100), p, 1))
		_ = s.ep.Send(mk(make([]byte, 70000), p, 1))
		_ = s.ep.RecvTagged(provider.Op{Local: provider.Segment{Bytes: make([]byte, 100)}, Peer: p, Tag: 9, Flags: provider.Directed, Context: 1})
		for _, k := range keys[4*i : 4*i+4] {
			o := provider.Op{Local: provider.Segment{Bytes: make([]byte, 1000)}, Peer: p, Key: k, Context: 1}
			_ = s.ep.Read(o)
			_ = s.ep.Write(o)
			if v, err := s.d.View(done, p, k, 0, 64); err == nil {
				_ = v.Bytes()[63]
				v.Release()
			}
		}
	}
}

// eats takes the messages that wait, whatever they are.
func (s *side) eats() {
	for range 64 {
		_ = s.ep.Recv(recvOp(make([]byte, 100), 2))
	}
	for s.ep.Cancel(2) {
	}
	s.drainSome()
}

func withPatience(t testing.TB) (context.Context, context.CancelFunc) {
	return context.WithTimeout(t.Context(), time.Minute)
}
