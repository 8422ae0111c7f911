package loop

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/weft-fabric/weft/fabric/provider"
	"github.com/weft-fabric/weft/internal/testutil"
	"github.com/weft-fabric/weft/memmon"
)

// bounded fails the test if f takes more than a second, on a machine that may be busy.
func bounded(t *testing.T, what string, f func()) {
	t.Helper()
	start := time.Now()
	f()
	if took := time.Since(start); took > 5*time.Second {
		t.Errorf("%s took %v", what, took)
	}
}

// Domains close, endpoints close and are killed, memory closes, while everything is used from many goroutines on both sides.
// Every accepted operation has one completion.
func TestSoakCloseDuringEverything(t *testing.T) {
	for _, mode := range []provider.Progress{provider.Auto, provider.Manual} {
		t.Run(mode.String(), func(t *testing.T) {
			rng := testutil.Rand(t)
			for range testutil.Count(t, 10, 1000) {
				closeRound(t, mode, rng)
			}
		})
	}
}

func closeRound(t *testing.T, mode provider.Progress, rng *rand.Rand) {
	p := New()
	nodes := [2]*node{}
	for i := range nodes {
		nodes[i] = open(t, p, mode, func(c *config) { c.cq.Size = 64; c.ep.Depth = 16 })
	}
	var wg sync.WaitGroup
	var tally [2]struct {
		mu            sync.Mutex
		posted, ended map[uint64]int
	}
	var peers [2]provider.Peer
	var targets [2]map[string]provider.Memory
	for i, n := range nodes {
		peers[i] = n.insert(nodes[1-i])
		targets[i] = memories(t, nodes[1-i], 300_000, provider.PeerRead|provider.PeerWrite)
	}
	src := make([]byte, 300_000)
	for i, n := range nodes {
		tally[i].posted, tally[i].ended = map[uint64]int{}, map[uint64]int{}
		to, m := peers[i], targets[i]
		ctx, cancel := context.WithCancel(t.Context())
		count := func(c []provider.Completion) {
			tally[i].mu.Lock()
			defer tally[i].mu.Unlock()
			for _, c := range c {
				if c.Kind != provider.RemoteWrite {
					tally[i].ended[c.Context]++
				}
			}
		}
		for worker := range 2 {
			context := uint64(worker) << 32
			wg.Go(func() {
				for ctx.Err() == nil {
					context++
					buf := src[:context%5*context*1001%300_000]
					if k := context % 7; k < 4 && k > 0 || k == 6 {
						buf = make([]byte, len(buf))
					}
					o := provider.Op{Local: local(buf), Peer: to, Context: context}
					var err error
					switch context % 7 {
					case 0:
						err = n.ep.Send(o)
					case 1, 2:
						o.Peer = 0
						err = n.ep.Recv(o)
					case 3:
						o.Key = m["arena"].Key()
						err = n.ep.Read(o)
					case 4:
						o.Key, o.Flags = m["heap"].Key(), provider.RemoteData
						err = n.ep.Write(o)
					case 5:
						o.Flags = provider.DeliveryComplete
						err = n.ep.SendTagged(o)
					case 6:
						o.Peer, o.Ignore = 0, ^uint64(0)
						err = n.ep.RecvTagged(o)
					}
					switch {
					case err == nil:
						tally[i].mu.Lock()
						tally[i].posted[context]++
						tally[i].mu.Unlock()
					case errors.Is(err, provider.ErrClosed):
						return
					case !errors.Is(err, provider.ErrAgain):
						t.Error(err)
						return
					}
					if context%11 == 0 {
						n.ep.Cancel(context - 5)
					}
				}
			})
			wg.Go(func() {
				c := make([]provider.Completion, 5)
				for {
					var got int
					var err error
					if worker == 0 {
						got, err = n.cq.Wait(ctx, c)
					} else {
						got, err = n.cq.Read(c)
					}
					count(c[:got])
					if err != nil && got == 0 {
						return
					}
				}
			})
		}
		pause := time.Duration(rng.IntN(3000)) * time.Microsecond
		how := rng.IntN(3)
		wg.Go(func() {
			<-time.After(pause)
			switch how {
			case 0:
				p.Kill(n.addr)
			case 1:
				_ = n.ep.Close()
			}
			bounded(t, "close", func() { _ = n.d.Close() })
			cancel()
		})
	}
	wg.Wait()
	for i := range tally {
		var c [64]provider.Completion
		for {
			got, _ := nodes[i].cq.Read(c[:])
			if got == 0 {
				break
			}
			for _, c := range c[:got] {
				if c.Kind != provider.RemoteWrite {
					tally[i].ended[c.Context]++
				}
			}
		}
		for context := range tally[i].posted {
			if n := tally[i].ended[context]; n != 1 {
				t.Errorf("operation %#x ended %d times", context, n)
			}
		}
		if len(tally[i].ended) != len(tally[i].posted) {
			t.Errorf("%d operations were posted, %d ended", len(tally[i].posted), len(tally[i].ended))
		}
	}
}

// Opening and closing endpoints has no end (F42).
func TestSoakF42OpenClose(t *testing.T) {
	p := New()
	a, b := open(t, p, provider.Auto), open(t, p, provider.Auto)
	for i := range testutil.Count(t, 100, 5000) {
		eps := [2]provider.Endpoint{}
		ns := [2]*node{a, b}
		for j, n := range ns {
			ep, err := n.d.OpenEndpoint(provider.EndpointConfig{Name: []string{"x", "y"}[j], Send: n.cq, Recv: n.cq})
			if err != nil {
				t.Fatal(i, err)
			}
			eps[j] = ep
		}
		for j, n := range ns {
			m, err := ns[1-j].d.Register(memmon.HeapBytes(make([]byte, 8)), provider.PeerWrite)
			if err != nil {
				t.Fatal(err)
			}
			to, err := n.d.Insert(eps[1-j].Address())
			if err != nil {
				t.Fatal(err)
			}
			n.must(eps[j].Write(provider.Op{Local: local([]byte("hi")), Peer: to, Key: m.Key(), Data: uint64(i), Flags: provider.RemoteData}))
			if c := n.wait(); c.Err != nil || c.Kind != provider.WriteDone {
				t.Fatalf("%d: %+v", i, c)
			}
			if c := ns[1-j].wait(); c.Err != nil || c.Kind != provider.RemoteWrite || c.Data != uint64(i) {
				t.Fatalf("%d: %+v", i, c)
			}
			n.must(m.Close())
		}
		a.must(eps[i%2].Close())
		a.must(eps[1-i%2].Close())
		for _, n := range ns { // the dead ones are forgotten by who wants to
			for _, s := range n.d.Peers() {
				n.must(n.d.Remove(s.Peer))
			}
		}
	}
}

// Sixteen senders into one receiver that starts late (F37).
func TestSoakF37Incast(t *testing.T) {
	modes(t, func(t *testing.T, p *Provider, mode provider.Progress) {
		r := open(t, p, mode, func(c *config) { c.ep.Depth = 64; c.ep.Unexpected = 16 << 10 })
		const senders = 16
		each := testutil.Count(t, 300, 10_000)
		var wg sync.WaitGroup
		ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
		defer cancel()
		for range senders {
			s := open(t, p, mode, func(c *config) { c.ep.Depth = 8; c.cq.Size = 8 })
			to := s.insert(r)
			wg.Go(func() {
				buf := fill(1000, 7)
				var c [8]provider.Completion
				for sent, ended := 0, 0; ended < each; {
					if sent < each {
						err := s.ep.Send(provider.Op{Local: local(buf), Peer: to})
						if err == nil {
							sent++
							continue
						}
						if !errors.Is(err, provider.ErrAgain) {
							t.Error(err)
							return
						}
					}
					n, err := s.cq.Wait(ctx, c[:])
					if err != nil {
						t.Error(err)
						return
					}
					ended += n
				}
			})
		}
		want := fill(1000, 7)
		bufs := make([][]byte, 32)
		post := func(i uint64) {
			bufs[i] = make([]byte, 1000)
			r.must(r.ep.Recv(provider.Op{Local: local(bufs[i]), Context: i}))
		}
		for i := range uint64(len(bufs)) {
			post(i)
		}
		for range senders * each {
			c := r.wait()
			if c.Err != nil || c.Len != 1000 || string(bufs[c.Context]) != string(want) {
				t.Fatalf("%+v", c)
			}
			post(c.Context)
		}
		wg.Wait()
	})
}

// A post that names memory is refused when the memory was closed after package fabric had looked, and what is posted on memory
// counts against the bound of the domain until it ends.
func TestMemoryClosedUnderPosts(t *testing.T) {
	const n = 1 << 20
	modes(t, func(t *testing.T, p *Provider, mode provider.Progress) {
		a := open(t, p, mode, func(c *config) { c.dom.Memory = n })
		m, err := a.d.Alloc(n, 0)
		if err != nil {
			t.Fatal(err)
		}
		to, err := a.d.Insert(a.addr)
		if err != nil {
			t.Fatal(err)
		}
		seg := provider.Segment{Bytes: m.Bytes(), Memory: m}
		for context, part := range []provider.Segment{seg, {Bytes: m.Bytes()[10:20]}} {
			if err := a.ep.Recv(provider.Op{Local: part, Context: uint64(context)}); err != nil {
				t.Fatal(err)
			}
		}
		for range 2 {
			if err := m.Close(); err != nil {
				t.Error(err)
			}
		}
		refused(t, "receive", a.ep.Recv(provider.Op{Local: seg}), provider.ErrInvalid)
		refused(t, "send", a.ep.Send(provider.Op{Local: seg, Peer: to}), provider.ErrInvalid)
		refused(t, "read", a.ep.Read(provider.Op{Locals: []provider.Segment{seg}, Peer: to}), provider.ErrInvalid)
		for context := range uint64(2) {
			if _, err := a.d.Alloc(n, 0); !errors.Is(err, provider.ErrNoMemory) {
				t.Errorf("memory in which receives are posted is free: %v", err)
			}
			if got := a.d.Stats().Arena; got != n {
				t.Errorf("%d bytes of arenas", got)
			}
			if !a.ep.Cancel(context) {
				t.Errorf("receive %d has gone", context)
			}
		}
		if m, err = a.d.Alloc(n, 0); err != nil {
			t.Fatal(err)
		}
		if err := m.Close(); err != nil {
			t.Error(err)
		}
		if got := a.d.Stats().Arena; got != 0 {
			t.Errorf("%d bytes of arenas", got)
		}
	})
}
