package fabrictest

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/weft-fabric/weft/fabric/provider"
	"github.com/weft-fabric/weft/internal/testutil"
)

// testInject (F43): after the call returns the buffer is the program's, whatever other flags there are and however
// late the receive is; what is too long is refused.
func testInject(e *env) {
	a, b := e.pair()
	to := a.knows(b)
	b.knows(a)
	limit := int(min(e.info.Limits.Inject, 1<<20))
	if limit == 0 {
		limit = 1 << 16
	}
	sizes := slices.Compact([]int{0, 1, limit / 2, limit - 1, limit})
	late := testutil.Count(e, 5, 200)
	for _, more := range []provider.Flags{0, provider.DeliveryComplete, provider.Quiet} {
		for _, kind := range e.sendKinds() {
			for _, n := range sizes {
				seed := e.fresh()
				out, in := a.heap(n, seed), b.heap(n, 0)
				send, recv := sendOp(to, 1, out.all()), recvOp(2, in.all())
				if kind == provider.TSendDone {
					send, recv = tsendOp(to, 3, 1, out.all()), trecvOp(3, 0, 2, in.all())
				}
				a.post(send.with(provider.Inject|more, 0))
				a.fill(out.all(), seed+1)
				pause(time.Duration(late) * time.Millisecond)
				b.post(recv)
				b.one(recv.Kind, 2)
				b.holds(fmt.Sprintf("%d injected bytes with %v", n, more), in.all(), seed)
				if more != provider.Quiet {
					a.one(kind, 1)
				}
			}
		}
	}
	e.injectWrites(a, b, to, sizes)
	if e.info.Limits.Inject == 0 || e.info.Limits.Inject > 1<<20 {
		return
	}
	out := a.heap(limit+1, 1)
	for _, kind := range e.sendKinds() {
		op := opSpec{Kind: kind, Peer: to, Segs: []seg{out.all()}, Flags: provider.Inject}
		if err := a.tryPost(op); !errors.Is(err, provider.ErrTooLong) {
			e.Fatalf("%d injected bytes where the limit is %d: %v", limit+1, limit, err)
		}
	}
	a.none("an operation that was refused")
}

func (e *env) sendKinds() []provider.Kind {
	kinds := []provider.Kind{provider.SendDone}
	if e.has(provider.Tagged) {
		kinds = append(kinds, provider.TSendDone)
	}
	return kinds
}

func (e *env) injectWrites(a, b *side, to provider.Peer, sizes []int) {
	e.Helper()
	if !e.has(provider.RMA) {
		return
	}
	for _, kind := range e.remoteKinds() {
		target := b.mem(kind, 1<<20, readWrite)
		for _, n := range sizes {
			seed := e.fresh()
			out := a.heap(n, seed)
			a.post(rmaOp(provider.WriteDone, to, target, 0, 1, out.all()).with(provider.Inject|provider.DeliveryComplete, 0))
			a.fill(out.all(), seed+1)
			a.one(provider.WriteDone, 1)
			b.holds("an injected write", target.part(0, n), seed)
		}
	}
}
