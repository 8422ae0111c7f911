package shm

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/weft-fabric/weft/fabric/provider"
	"github.com/weft-fabric/weft/internal/testutil"
)

func init() { roles = append(roles, testutil.Role{Name: "victim", Run: victim}) }

// victim sends three messages, of each way, and then waits to be killed.
func victim(args []string) error {
	d, err := open(provider.Info{}, provider.DomainConfig{})
	if err != nil {
		return err
	}
	cq, err := d.OpenCompletionQueue(provider.CQConfig{})
	if err != nil {
		return err
	}
	ep, err := d.OpenEndpoint(provider.EndpointConfig{Name: args[1], Send: cq, Recv: cq})
	if err != nil {
		return err
	}
	to, err := d.Insert(provider.Address(args[0]))
	if err != nil {
		return err
	}
	m, err := d.Alloc(1<<20, provider.PeerRead)
	if err != nil {
		return err
	}
	copy(m.Bytes(), pattern(1<<20, 5))
	for _, n := range []int{100, 5000, 1 << 20} {
		if err := ep.Send(mk(pattern(n, 1), to, 0)); err != nil {
			return err
		}
	}
	var c [1]provider.Completion
	if _, err := cq.Wait(d.background, c[:]); err != nil { // the short one is with the peer now
		return err
	}
	fmt.Println("ready", ep.Address(), uint64(m.Key()))
	_, _ = bufio.NewReader(os.Stdin).ReadString('\n')
	return nil
}

// F31, F29, F32: what a killed peer had sent in full is received; what it had not ends with an error; views of its memory stay readable; its name is
// free at once; and nothing of it is left.
func TestF31AfterAKill(t *testing.T) {
	a := newSide(t, provider.DomainConfig{}, provider.EndpointConfig{})
	before := a.d.Stats().Peers
	for range testutil.Count(t, 3, 100) {
		child := testutil.Child(t, "victim", string(a.ep.Address()), "victim")
		var addr string
		var key uint64
		if _, err := fmt.Sscan(child.Expect("ready "), &addr, &key); err != nil {
			t.Fatal(err)
		}
		to := a.insert(provider.Address(addr))
		v, err := a.d.View(t.Context(), to, provider.Key(key), 0, 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		o := provider.Op{Local: provider.Segment{Bytes: make([]byte, 8)}, Tag: 77, Context: 9, Peer: to, Flags: provider.Directed}
		a.must(a.ep.RecvTagged(o))
		testutil.Eventually(t, "its messages have arrived", func() bool { return a.unexpected(to) >= 100+3*keepCost })
		child.Kill()
		<-child.Done()
		killed := time.Now()
		c := a.wait()
		if !errors.Is(c.Err, provider.ErrPeerGone) || c.Context != 9 {
			t.Fatalf("%+v", c)
		}
		if took := time.Since(killed); took > time.Second {
			t.Errorf("the death was noticed after %v", took)
		}
		oe, _ := errors.AsType[*provider.OpError](c.Err)
		if string(oe.Addr) != addr {
			t.Errorf("the error names %s", oe.Addr)
		}
		// The short message is here; the others have gone with their sender.
		in := make([]byte, 100)
		a.must(a.ep.Recv(recvOp(in, 1)))
		if c := a.good(a.wait(), provider.RecvDone, 1); c.Len != 100 || !bytes.Equal(in, pattern(100, 1)) || c.Source != to {
			t.Fatalf("%+v", c)
		}
		if !bytes.Equal(v.Bytes(), pattern(1<<20, 5)) {
			t.Error("a view has died with its owner")
		}
		if _, err := a.d.View(t.Context(), to, provider.Key(key), 0, 1); !errors.Is(err, provider.ErrPeerGone) {
			t.Errorf("a view of a dead peer's memory: %v", err)
		}
		v.Release()
		a.must(a.ep.Send(mk(make([]byte, 8), to, 2)))
		if c := a.wait(); !errors.Is(c.Err, provider.ErrPeerGone) || c.Context != 2 {
			t.Fatalf("%+v", c)
		}
		testutil.Eventually(t, "the socket has ended", func() bool { return a.d.Stats().Peers == before })
		if s := a.d.Stats(); s.Views != 0 {
			t.Errorf("%+v", s)
		}
		if err := a.d.Remove(to); err != nil {
			t.Fatal(err)
		}
	}
}

func (s *side) unexpected(p provider.Peer) uint64 {
	for _, q := range s.d.Peers() {
		if q.Peer == p {
			return q.Unexpected
		}
	}
	return 0
}
