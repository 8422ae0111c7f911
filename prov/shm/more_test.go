package shm

import (
	"testing"

	"github.com/weft-fabric/weft/fabric/provider"
)

// Posts with More are seen by the peer at the next one without, and when a queue is read, also if that finds completions
// enough and has no reason to poll.
func TestMore(t *testing.T) {
	for what, publish := range map[string]func(a *side, to provider.Peer){
		"the next post": func(a *side, to provider.Peer) { a.must(a.ep.Send(mk(make([]byte, 8), to, 1))) },
		"a read":        func(a *side, _ provider.Peer) { a.must(oneRead(a)) },
		"a wait":        func(a *side, _ provider.Peer) { a.wait() },
	} {
		t.Run(what, func(t *testing.T) {
			a, b, ab, _ := twoSides(t, provider.DomainConfig{})
			exchange(t, a, b)
			b.must(b.ep.Recv(recvOp(make([]byte, 8), 7)))
			for left := 100; ; left-- {
				for range 3 {
					o := mk(make([]byte, 8), ab, 1)
					o.Flags = provider.More
					a.must(a.ep.Send(o))
				}
				a.d.core.Lock()
				pending := a.d.pairs[0].data.Pending()
				a.d.core.Unlock()
				if pending {
					break
				}
				if left == 0 { // else the domain's own poll came in between
					t.Fatal("nothing was kept back")
				}
			}
			publish(a, ab)
			b.good(b.wait(), provider.RecvDone, 7)
		})
	}
}

func oneRead(a *side) error {
	var c [1]provider.Completion
	_, err := a.cq.Read(c[:])
	return err
}
