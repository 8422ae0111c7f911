package loop

import (
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/weft-fabric/weft/fabric/provider"
	"github.com/weft-fabric/weft/internal/testutil"
)

// posts posts operations of every kind that do not end, in random order, and takes some back, so that records are
// used again; it returns the contexts of those that are left, in the order of their posts.
func posts(a *node, r *rand.Rand, to provider.Peer, far provider.Memory) (left []uint64) {
	a.t.Helper()
	buf := make([]byte, 20_000)
	a.must(a.ep.Send(provider.Op{Local: local(buf), Peer: to, Context: 1})) // what stands behind it with Fence waits
	left = append(left, 1)
	for context := uint64(2); context < 60; context++ {
		op := provider.Op{Local: local(buf[:100+r.IntN(19_000)]), Peer: to, Context: context, Flags: provider.Fence}
		var err error
		switch r.IntN(4) {
		case 0:
			err = a.ep.Send(op)
		case 1:
			err = a.ep.SendTagged(op)
		case 2:
			op.Key = far.Key()
			err = a.ep.Read(op)
		default:
			op.Key = far.Key()
			err = a.ep.Write(op)
		}
		a.must(err)
		left = append(left, context)
		if i := 1 + r.IntN(len(left)); i < len(left) && r.IntN(3) == 0 {
			if !a.ep.Cancel(left[i]) {
				a.t.Fatalf("operation %d cannot be cancelled", left[i])
			}
			if c := a.wait(); c.Context != left[i] || !errors.Is(c.Err, provider.ErrCancelled) {
				a.t.Fatalf("%+v", c)
			}
			left = append(left[:i:i], left[i+1:]...)
		}
	}
	return left
}

// What a peer's death, its removal or our own end ends is told in the order in which it was posted, each operation once.
func TestEndsInOrder(t *testing.T) {
	modes(t, func(t *testing.T, p *Provider, mode provider.Progress) {
		r := testutil.Rand(t)
		for name, c := range map[string]struct {
			end  func(a, b *node, to provider.Peer) error
			want error
		}{
			"killed": {func(_, b *node, _ provider.Peer) error { p.Kill(b.addr); return nil }, provider.ErrPeerGone},
			"closed": {func(_, b *node, _ provider.Peer) error { return b.ep.Close() }, provider.ErrPeerGone},
			"remove": {func(a, _ *node, to provider.Peer) error { return a.d.Remove(to) }, provider.ErrCancelled},
			"close":  {func(a, _ *node, _ provider.Peer) error { return a.ep.Close() }, provider.ErrClosed},
		} {
			t.Run(name, func(t *testing.T) {
				a, b := open(t, p, mode), open(t, p, provider.Manual)
				a.t, b.t = t, t
				to := a.insert(b)
				far := memories(t, b, 20_000, provider.PeerRead|provider.PeerWrite)["heap"]
				left := posts(a, r, to, far)
				a.none()
				a.must(c.end(a, b, to))
				for _, want := range left {
					got := a.wait()
					if got.Context != want {
						t.Fatalf("operation %d ends where %d should", got.Context, want)
					}
					wants(t, got, c.want, b.addr)
				}
				a.none()
			})
		}
	})
}

// Two peers, one of which dies: what is posted to the other goes on, in its order.
func TestDeathOfOneOfTwo(t *testing.T) {
	modes(t, func(t *testing.T, p *Provider, mode provider.Progress) {
		a, b, c := open(t, p, mode), open(t, p, provider.Manual), open(t, p, provider.Manual)
		toB, toC := a.insert(b), a.insert(c)
		buf := make([]byte, 10_000)
		for i := range uint64(20) {
			to := toB
			if i%2 == 1 {
				to = toC
			}
			a.must(a.ep.Send(provider.Op{Local: local(buf), Peer: to, Context: i}))
		}
		p.Kill(b.addr)
		for i := uint64(0); i < 20; i += 2 {
			got := a.wait()
			if got.Context != i || got.Source != toB {
				t.Fatalf("%+v, want %d", got, i)
			}
			wants(t, got, provider.ErrPeerGone, b.addr)
		}
		a.none()
		for range 10 {
			c.must(c.ep.Recv(provider.Op{Local: local(make([]byte, len(buf)))}))
			if got := c.wait(); got.Err != nil || got.Len != uint64(len(buf)) {
				t.Fatalf("%+v", got)
			}
		}
		for i := uint64(1); i < 20; i += 2 {
			if got := a.wait(); got.Context != i || got.Err != nil || got.Source != toC {
				t.Fatalf("%+v, want %d", got, i)
			}
		}
	})
}
