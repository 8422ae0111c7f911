package shm

import (
	"bytes"
	"context"
	"errors"
	"testing"

	"github.com/weft-fabric/weft/fabric/provider"
	"github.com/weft-fabric/weft/internal/testutil"
)

const peerBoth = provider.PeerRead | provider.PeerWrite

func (s *side) alloc(n int, a provider.Access) provider.Memory {
	s.t.Helper()
	m, err := s.d.Alloc(n, a)
	if err != nil {
		s.t.Fatal(err)
	}
	return m
}

func (s *side) view(p provider.Peer, m provider.Memory, off uint64, n int) provider.View {
	s.t.Helper()
	v, err := s.d.View(s.t.Context(), p, m.Key(), off, n)
	if err != nil {
		s.t.Fatal(err)
	}
	return v
}

// A block that is viewed is not used anew before the view is released, or its holder is gone.
func TestViewKeepsBlock(t *testing.T) {
	const n = 300 << 10
	a, b, ab, _ := twoSides(t, provider.DomainConfig{})
	for _, dies := range []bool{false, true} {
		m := b.alloc(n, provider.PeerRead)
		copy(m.Bytes(), pattern(n, 1))
		v := a.view(ab, m, 0, n)
		where := m.(*memory).extent
		if err := m.Close(); err != nil {
			t.Fatal(err)
		}
		if _, err := a.d.View(t.Context(), ab, m.Key(), 0, 1); !errors.Is(err, provider.ErrKey) {
			t.Fatalf("a view of memory that was closed: %v", err)
		}
		var others []provider.Memory
		for range 10 {
			o := b.alloc(n, provider.PeerRead)
			if o.(*memory).extent == where {
				t.Fatal("a block is used anew while a peer views it")
			}
			for i := range o.Bytes() {
				o.Bytes()[i] = 0xff
			}
			others = append(others, o)
		}
		if !bytes.Equal(v.Bytes(), pattern(n, 1)) {
			t.Fatal("a view has changed")
		}
		if dies {
			if err := a.d.Close(); err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(v.Bytes(), pattern(n, 1)) {
				t.Fatal("a view does not outlive its domain")
			}
			v.Release()
		} else {
			v.Release()
			v.Release()
		}
		for _, o := range others {
			if err := o.Close(); err != nil {
				t.Fatal(err)
			}
		}
		testutil.Eventually(t, "the block is free", func() bool {
			b.d.arena.mu.Lock()
			defer b.d.arena.mu.Unlock()
			b.d.arena.sweep()
			return len(b.d.arena.limbo) == 0 && b.d.arena.spaces[0].used == 0
		})
		o := b.alloc(n, provider.PeerRead)
		if !bytes.Equal(o.Bytes(), make([]byte, n)) {
			t.Fatal("new memory is not zero")
		}
		_ = o.Close()
	}
}

// A block that a message lies in is not used anew before the peer has taken the message.
func TestMessageKeepsBlock(t *testing.T) {
	const n = 100 << 10
	a, b, ab, _ := twoSides(t, provider.DomainConfig{})
	m := a.alloc(n, 0)
	copy(m.Bytes(), pattern(n, 3))
	a.must(a.ep.Send(provider.Op{Local: provider.Segment{Bytes: m.Bytes(), Memory: m}, Peer: ab, Context: 1}))
	testutil.Eventually(t, "the message is there", func() bool { return b.d.Peers() != nil && b.d.Peers()[0].Unexpected > 0 })
	_ = m.Close()
	for range 20 {
		o := a.alloc(n, 0)
		for i := range o.Bytes() {
			o.Bytes()[i] = 0xff
		}
	}
	in := make([]byte, n)
	b.must(b.ep.Recv(recvOp(in, 2)))
	b.good(b.wait(), provider.RecvDone, 2)
	a.good(a.wait(), provider.SendDone, 1)
	if !bytes.Equal(in, pattern(n, 3)) {
		t.Error("the message has changed on its way")
	}
}

// The bound on arenas holds, and memory that is given back counts no more.
func TestMemoryBound(t *testing.T) {
	const bound = 8 << 20
	a := newSide(t, provider.DomainConfig{Memory: bound}, provider.EndpointConfig{})
	b := newSide(t, provider.DomainConfig{}, provider.EndpointConfig{})
	exchange(t, b, a)
	for range 30 {
		var list []provider.Memory
		for _, n := range []int{100, 3 << 20, 70 << 10, 4 << 20} {
			m, err := a.d.Alloc(n, provider.PeerRead)
			if err != nil {
				if !errors.Is(err, provider.ErrNoMemory) {
					t.Fatal(err)
				}
				break
			}
			list = append(list, m)
		}
		if len(list) < 2 {
			t.Fatalf("only %d blocks", len(list))
		}
		if got := a.d.Stats().Arena; got > bound {
			t.Fatalf("%d bytes of arenas", got)
		}
		for _, m := range list {
			_ = m.Close()
		}
		m, err := a.d.Alloc(7<<20, peerBoth) // another kind, so the segments of the others go
		if err != nil {
			t.Fatal(err)
		}
		copy(m.Bytes(), "seen")
		v := b.view(b.insert(a.ep.Address()), m, 0, 4)
		if string(v.Bytes()) != "seen" {
			t.Errorf("%q", v.Bytes())
		}
		v.Release()
		_ = m.Close()
	}
	if _, err := a.d.Alloc(9<<20, 0); !errors.Is(err, provider.ErrNoMemory) {
		t.Errorf("more than the bound: %v", err)
	}
	testutil.Eventually(t, "the peer has dropped segments", func() bool {
		b.d.core.Lock()
		defer b.d.core.Unlock()
		return len(b.d.pairs) == 1 && len(b.d.pairs[0].segments) <= 4
	})
}

// Far more than is touched: 8 GiB of address space.
func TestSparse(t *testing.T) {
	const n = 8 << 30
	a, b, ab, _ := twoSides(t, provider.DomainConfig{})
	m := b.alloc(n, peerBoth)
	for _, off := range []int{0, 0x7ffff000 - 4, 2 << 30, 4<<30 - 4, n - 8} {
		copy(m.Bytes()[off:], "12345678")
		out := make([]byte, 8)
		a.must(a.ep.Read(provider.Op{Local: provider.Segment{Bytes: out}, Peer: ab, Key: m.Key(), Offset: uint64(off), Context: 1}))
		a.good(a.wait(), provider.ReadDone, 1)
		v := a.view(ab, m, uint64(off), 8)
		if string(out) != "12345678" || string(v.Bytes()) != "12345678" {
			t.Errorf("at %d: %q, %q", off, out, v.Bytes())
		}
		v.Release()
		a.must(a.ep.Write(provider.Op{Local: provider.Segment{Bytes: []byte("abcdefgh")}, Peer: ab, Key: m.Key(), Offset: uint64(off), Context: 2}))
		a.good(a.wait(), provider.WriteDone, 2)
		if got := string(m.Bytes()[off : off+8]); got != "abcdefgh" {
			t.Errorf("at %d: %q", off, got)
		}
	}
}

func TestViewErrors(t *testing.T) {
	a, b, ab, _ := twoSides(t, provider.DomainConfig{})
	m := b.alloc(100, 0)
	p, err := b.d.Register(heapBytes(100), peerBoth)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	nobody := a.insert("shm://nobody-is-there")
	for what, c := range map[string]struct {
		ctx  context.Context
		peer provider.Peer
		key  provider.Key
		n    int
		want error
	}{
		"no access": {t.Context(), ab, m.Key(), 1, provider.ErrKey},
		"no key":    {t.Context(), ab, 12345, 1, provider.ErrKey},
		"private":   {t.Context(), ab, p.Key(), 1, provider.ErrNotSupported},
		"negative":  {t.Context(), ab, m.Key(), -1, provider.ErrInvalid},
		"no peer":   {t.Context(), 999, m.Key(), 1, provider.ErrInvalid},
		"nobody":    {t.Context(), nobody, m.Key(), 1, provider.ErrUnreachable},
	} {
		if _, err := a.d.View(c.ctx, c.peer, c.key, 0, c.n); !errors.Is(err, c.want) {
			t.Errorf("%s: %v", what, err)
		}
	}
	c := newSide(t, provider.DomainConfig{}, provider.EndpointConfig{})
	if _, err := c.d.View(ctx, c.insert(b.ep.Address()), m.Key(), 0, 1); !errors.Is(err, context.Canceled) {
		t.Errorf("a context that has ended: %v", err)
	}
}

// A post that names memory is refused when the memory was closed after package fabric had looked, and what is posted on memory
// counts against the bound of the domain until it ends.
func TestMemoryClosedUnderPosts(t *testing.T) {
	const n = 1 << 20
	for _, mode := range bothModes {
		t.Run(mode.String(), func(t *testing.T) {
			a := newSide(t, provider.DomainConfig{Progress: mode, Memory: n}, provider.EndpointConfig{})
			to := a.insert(a.ep.Address())
			m, err := a.d.Alloc(n, 0)
			a.must(err)
			seg := provider.Segment{Bytes: m.Bytes(), Memory: m}
			for context, part := range []provider.Segment{seg, {Bytes: m.Bytes()[10:20]}} {
				a.must(a.ep.Recv(provider.Op{Local: part, Context: uint64(context)}))
			}
			a.must(m.Close())
			a.must(m.Close())
			for what, err := range map[string]error{
				"receive": a.ep.Recv(provider.Op{Local: seg}),
				"send":    a.ep.Send(provider.Op{Local: seg, Peer: to}),
				"read":    a.ep.Read(provider.Op{Locals: []provider.Segment{seg}, Peer: to}),
			} {
				if !errors.Is(err, provider.ErrInvalid) {
					t.Errorf("a %s that names memory which was closed: %v", what, err)
				}
			}
			for context := range uint64(2) {
				if _, err := a.d.Alloc(n, 0); !errors.Is(err, provider.ErrNoMemory) {
					t.Errorf("memory in which receives are posted is free: %v", err)
				}
				if !a.ep.Cancel(context) {
					t.Errorf("receive %d has gone", context)
				}
			}
			m, err = a.d.Alloc(n, 0)
			a.must(err)
			a.must(m.Close())
			if held := a.d.held.Len(); held != 0 {
				t.Errorf("%d blocks are held", held)
			}
		})
	}
}
