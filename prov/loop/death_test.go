package loop

import (
	"errors"
	"strings"
	"testing"

	"github.com/weft-fabric/weft/fabric/provider"
)

// wants checks the error of a completion: what it is, and whom it names.
func wants(t *testing.T, c provider.Completion, want error, addr provider.Address) {
	t.Helper()
	var oe *provider.OpError
	if !errors.Is(c.Err, want) || !errors.As(c.Err, &oe) || oe.Addr != addr || oe.Provider != Name {
		t.Errorf("context %d: %v, want %v of %q", c.Context, c.Err, want, addr)
	} else if (want == provider.ErrPeerGone || want == provider.ErrUnreachable) && !strings.HasPrefix(oe.Err.Error(), want.Error()) {
		t.Errorf("%q does not say first what became of the peer", oe)
	}
}

// A peer that is killed, or closes, ends what waits for it, each operation once; what it had sent is received. Afterwards
// its name works again, as another peer.
func TestF29Death(t *testing.T) {
	modes(t, func(t *testing.T, p *Provider, mode provider.Progress) {
		for _, kill := range []bool{true, false} {
			a, b := open(t, p, mode), open(t, p, mode, func(c *config) { c.ep.Name = "b" })
			toB, toA := a.insert(b), b.insert(a)
			b.must(b.ep.Send(provider.Op{Local: local([]byte("last words")), Peer: toA}))
			b.wait()
			big := make([]byte, 100_000)
			a.must(a.ep.Send(provider.Op{Local: local(big), Peer: toB, Context: 1}))
			a.must(a.ep.Send(provider.Op{Local: local(big[:5]), Peer: toB, Context: 2, Flags: provider.DeliveryComplete | provider.Quiet}))
			buf := make([]byte, 20)
			a.must(a.ep.RecvTagged(provider.Op{Local: local(buf), Peer: toB, Context: 3, Flags: provider.Directed}))
			a.none()
			if kill {
				if !p.Kill(b.addr) || p.Kill(b.addr) {
					t.Error("killed not once")
				}
			} else {
				b.must(b.ep.Close())
			}
			seen := map[uint64]int{}
			for range 3 {
				c := a.wait()
				seen[c.Context]++
				wants(t, c, provider.ErrPeerGone, b.addr)
			}
			if len(seen) != 3 {
				t.Errorf("not each once: %v", seen)
			}
			a.must(a.ep.Recv(provider.Op{Local: local(buf), Context: 4}))
			if c := a.wait(); c.Err != nil || c.Len != 10 {
				t.Errorf("%+v", c)
			}
			for i := range uint64(10) { // and never ErrAgain
				a.must(a.ep.Send(provider.Op{Local: local(buf), Peer: toB, Context: i}))
				wants(t, a.wait(), provider.ErrPeerGone, b.addr)
			}
			a.must(a.ep.Recv(provider.Op{Local: local(buf), Peer: toB, Flags: provider.Directed}))
			wants(t, a.wait(), provider.ErrPeerGone, b.addr)
			if s := a.d.Peers(); len(s) != 1 || s[0].State != "gone" || s[0].Why == nil {
				t.Errorf("%+v", s)
			}
			c := open(t, p, mode, func(c *config) { c.ep.Name = "b" })
			toC := a.insert(c)
			if toC == toB {
				t.Error("a restarted peer has its old number")
			}
			a.must(a.ep.Send(provider.Op{Local: local(buf), Peer: toC}))
			if c := a.wait(); c.Err != nil {
				t.Error(c.Err)
			}
			c.must(c.d.Close())
		}
	})
}

func TestUnreachable(t *testing.T) {
	modes(t, func(t *testing.T, p *Provider, mode provider.Progress) {
		a := open(t, p, mode)
		to, err := a.d.Insert("loop://nobody")
		if err != nil {
			t.Fatal(err)
		}
		for i := range uint64(3) {
			a.must(a.ep.Send(provider.Op{Peer: to, Context: i}))
			wants(t, a.wait(), provider.ErrUnreachable, "loop://nobody")
		}
		a.must(a.ep.Read(provider.Op{Local: local(make([]byte, 1)), Peer: to}))
		wants(t, a.wait(), provider.ErrUnreachable, "loop://nobody")
		if _, err := a.d.View(t.Context(), to, 1, 0, 1); !errors.Is(err, provider.ErrUnreachable) {
			t.Error(err)
		}
		b := open(t, p, mode, func(c *config) { c.ep.Name = "nobody" })
		a.must(a.ep.Send(provider.Op{Peer: to}))
		if c := a.wait(); c.Err != nil {
			t.Error(c.Err)
		}
		b.must(b.ep.Recv(provider.Op{}))
		if c := b.wait(); c.Err != nil {
			t.Error(c.Err)
		}
	})
}

func TestRemove(t *testing.T) {
	modes(t, func(t *testing.T, p *Provider, mode provider.Progress) {
		a, b := open(t, p, mode), open(t, p, mode)
		toB, toA := a.insert(b), b.insert(a)
		a.must(a.ep.Send(provider.Op{Local: local(make([]byte, 100_000)), Peer: toB, Context: 1}))
		a.must(a.ep.Recv(provider.Op{Peer: toB, Context: 2, Flags: provider.Directed}))
		a.must(a.ep.Recv(provider.Op{Local: local(make([]byte, 9)), Context: 3}))
		a.must(a.d.Remove(toB))
		for range 2 {
			wants(t, a.wait(), provider.ErrCancelled, b.addr)
		}
		if err := a.d.Remove(toB); !errors.Is(err, provider.ErrInvalid) {
			t.Error(err)
		}
		if err := a.ep.Send(provider.Op{Peer: toB}); !errors.Is(err, provider.ErrInvalid) {
			t.Error(err)
		}
		// The peer does not know, and goes on.
		b.must(b.ep.Send(provider.Op{Local: local([]byte("hi")), Peer: toA}))
		b.wait()
		c := a.wait()
		if c.Err != nil || c.Context != 3 || c.Len != 2 || c.Source == 0 || c.Source == toB {
			t.Errorf("%+v", c)
		}
		if again := a.insert(b); again != c.Source {
			t.Errorf("%x, then %x", c.Source, again)
		}
		b.must(b.ep.Recv(provider.Op{Local: local(make([]byte, 9))}))
		a.must(a.ep.Send(provider.Op{Local: local([]byte("ho")), Peer: c.Source}))
		if c := b.wait(); c.Err != nil || c.Len != 2 || c.Source != toA {
			t.Errorf("%+v", c)
		}
	})
}

// Close ends each operation once, and each call afterwards.
func TestClose(t *testing.T) {
	modes(t, func(t *testing.T, p *Provider, mode provider.Progress) {
		a, b := open(t, p, mode), open(t, p, mode)
		toB := a.insert(b)
		a.must(a.ep.Send(provider.Op{Local: local(make([]byte, 100_000)), Peer: toB, Context: 1}))
		a.must(a.ep.Recv(provider.Op{Context: 2}))
		a.must(a.ep.RecvTagged(provider.Op{Context: 3}))
		a.must(a.ep.Recv(provider.Op{Local: local(make([]byte, 100)), Context: 4, Flags: provider.Multi}))
		if err := a.cq.Close(); !errors.Is(err, provider.ErrBusy) {
			t.Error(err)
		}
		a.must(a.ep.Close())
		a.must(a.ep.Close())
		seen := map[uint64]int{}
		for range 4 {
			c := a.wait()
			seen[c.Context]++
			if !errors.Is(c.Err, provider.ErrClosed) {
				t.Error(c.Err)
			}
			if (c.Flags == provider.MultiDone) != (c.Context == 4) {
				t.Errorf("%+v", c)
			}
		}
		if len(seen) != 4 {
			t.Errorf("%v", seen)
		}
		a.must(a.cq.Close())
		for _, err := range []error{
			a.ep.Send(provider.Op{Peer: toB}), a.ep.Recv(provider.Op{}), a.ep.Read(provider.Op{Peer: toB}),
		} {
			if !errors.Is(err, provider.ErrClosed) {
				t.Error(err)
			}
		}
		if a.ep.Cancel(1) {
			t.Error("cancelled")
		}
		a.must(a.d.Close())
		a.must(a.d.Close())
		if _, err := a.d.OpenEndpoint(provider.EndpointConfig{}); !errors.Is(err, provider.ErrClosed) {
			t.Error(err)
		}
		if _, err := a.d.Alloc(1, 0); !errors.Is(err, provider.ErrClosed) {
			t.Error(err)
		}
	})
}
