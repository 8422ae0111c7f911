package shm

import (
	"errors"
	"testing"

	"github.com/weft-fabric/weft/fabric"
	"github.com/weft-fabric/weft/fabric/provider"
)

// TestForeignMemory names memory in posts that is closed, another domain's, or another provider's. Package fabric leaves it to the
// provider to refuse that, whatever way the post goes.
func TestForeignMemory(t *testing.T) {
	x, y, to, _ := twoSides(t, provider.DomainConfig{Progress: provider.Manual})
	if _, ok := provider.Domain(x.d).(provider.MemoryChecker); !ok {
		t.Fatal("package fabric looks at it in vain")
	}
	x.must(y.ep.Recv(recvOp(make([]byte, 8), 1)))
	x.must(x.ep.Send(mk(make([]byte, 8), to, 2)))
	y.good(y.wait(x), provider.RecvDone, 1) // the short way is open
	x.good(x.wait(y), provider.SendDone, 2)
	closed, err := x.d.Alloc(64, 0)
	x.must(err)
	open, err := x.d.Alloc(64, 0)
	x.must(err)
	other, err := y.d.Alloc(64, 0)
	x.must(err)
	private, err := y.d.Register(heapBytes(64), 0)
	x.must(err)
	b := closed.Bytes()
	x.must(closed.Close())
	for name, s := range map[string]provider.Segment{
		"closed": {Bytes: b[:8], Memory: closed}, "another domain's": {Bytes: other.Bytes()[:8], Memory: other},
		"another domain's, registered": {Bytes: private.Bytes()[:8], Memory: private},
		"another provider's":           {Bytes: make([]byte, 8), Memory: strange{open}},
	} {
		good := provider.Segment{Bytes: open.Bytes()[:8], Memory: open}
		for call, post := range map[string]func(provider.Op) error{
			"send": x.ep.Send, "send tagged": x.ep.SendTagged, "receive": x.ep.Recv, "receive tagged": x.ep.RecvTagged,
			"read": x.ep.Read, "write": x.ep.Write, "atomic": func(o provider.Op) error {
				return x.ep.Atomic(provider.Atomic{Op: o, Code: provider.AtomicSum, Type: provider.Uint64})
			},
		} {
			for _, op := range []provider.Op{{Local: s}, {Local: s, Flags: provider.Quiet}, {Local: good, Locals: []provider.Segment{s}}} {
				if op.Locals != nil && call == "atomic" {
					continue
				}
				if call != "receive" && call != "receive tagged" {
					op.Peer = to
				}
				if err := post(op); !errors.Is(err, fabric.ErrInvalid) {
					t.Errorf("%s of memory that is %s: %v", call, name, err)
				}
			}
		}
	}
}

// strange is memory that no provider made.
type strange struct{ provider.Memory }
