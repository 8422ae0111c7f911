package shm

import (
	"math/rand/v2"
	"testing"

	"github.com/weft-fabric/weft/fabric/provider"
	"github.com/weft-fabric/weft/internal/provutil"
	"github.com/weft-fabric/weft/internal/testutil"
)

// idler is one of several sides that post in bursts, and then call nothing.
type idler struct {
	*side
	peers []provider.Peer   // by number of the other; of itself too
	mem   provider.Memory   // is read
	to    []provider.Memory // is written, by number of the other
	own   []byte            // is sent
	want  int               // completions
}

const idleBytes = 1 << 20

// idlers know each other.
func idlers(t *testing.T, n int, c provider.DomainConfig) []*idler {
	t.Helper()
	var all []*idler
	for range n {
		s := newSide(t, c, provider.EndpointConfig{Unexpected: 8192})
		all = append(all, &idler{side: s, mem: s.alloc(idleBytes, peerBoth), own: make([]byte, idleBytes)})
	}
	for _, x := range all {
		for _, y := range all {
			x.peers = append(x.peers, x.insert(y.ep.Address()))
			x.to = append(x.to, x.alloc(idleBytes, peerBoth))
		}
	}
	return all
}

// calls are some of the i-th towards the j-th, with the receive if they need one.
func calls(rnd *rand.Rand, all []*idler, i, j int) []func() {
	x, y, to := all[i], all[j], all[i].peers[j]
	n := []int{0, 8, 4096, 5000, 100 << 10, idleBytes}[rnd.IntN(6)]
	var flags provider.Flags
	if rnd.IntN(2) == 0 {
		flags |= provider.More
	}
	if rnd.IntN(4) == 0 {
		flags |= provider.Fence
	}
	switch rnd.IntN(7) {
	case 0, 1, 2:
		o := provider.Op{Local: provider.Segment{Bytes: x.own[:n]}, Peer: to, Flags: flags}
		if rnd.IntN(2) == 0 {
			o.Local = provider.Segment{Bytes: x.mem.Bytes()[:n], Memory: x.mem}
		}
		if rnd.IntN(3) == 0 {
			o.Flags |= provider.DeliveryComplete
		}
		x.want++
		y.want++
		return []func(){
			func() { x.must(x.ep.Send(o)) },
			func() { y.must(y.ep.Recv(recvOp(make([]byte, idleBytes), 0))) },
		}
	case 3:
		x.want++
		o := provider.Op{Local: provider.Segment{Bytes: make([]byte, n)}, Peer: to, Key: y.mem.Key(), Flags: flags}
		return []func(){func() { x.must(x.ep.Read(o)) }}
	case 4:
		x.want++
		o := provider.Op{Local: provider.Segment{Bytes: x.own[:n]}, Peer: to, Key: y.to[i].Key(), Flags: flags}
		return []func(){func() { x.must(x.ep.Write(o)) }}
	case 5:
		return []func(){func() {
			if v, err := x.d.View(x.t.Context(), to, y.mem.Key(), 0, n); err != nil {
				x.t.Error(err)
			} else {
				v.Release()
			}
		}}
	}
	return []func(){func() { x.ep.Cancel(12345) }, func() { _, _ = x.d.View(x.t.Context(), to, 99<<20, 0, 8) }}
}

// Programs post bursts of all kinds and then call nothing: all that can end ends. Nobody polls but the sleepers, which have no timer.
func TestSoakNobodyPolls(t *testing.T) {
	for _, off := range []string{"", "eventfd"} {
		t.Run("without "+off, func(t *testing.T) {
			seed := rand.Uint64()
			t.Logf("seed %d", seed)
			rnd := rand.New(rand.NewPCG(seed, 1))
			all := idlers(t, 3, provider.DomainConfig{Options: map[string]string{"disable": off}})
			for range testutil.Count(t, 40, 2000) {
				var todo []func()
				for range 1 + rnd.IntN(40) {
					todo = append(todo, calls(rnd, all, rnd.IntN(len(all)), rnd.IntN(len(all)))...)
				}
				rnd.Shuffle(len(todo), func(i, j int) { todo[i], todo[j] = todo[j], todo[i] })
				if rnd.IntN(2) == 0 {
					for _, x := range all {
						x.sleeps()
					}
				}
				for _, call := range todo {
					call()
				}
				for i, x := range all { // ends what was kept back by More
					x.want++
					x.must(x.ep.Read(provider.Op{Local: provider.Segment{Bytes: make([]byte, 8)}, Peer: x.peers[i], Key: x.mem.Key()}))
				}
				for _, x := range all {
					x.so("all has ended", func() bool { return x.cq.(*provutil.CQ).Unread() == x.want })
					x.has(x.want)
					x.want = 0
				}
			}
		})
	}
}
