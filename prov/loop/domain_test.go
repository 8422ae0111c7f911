package loop

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weft-fabric/weft/fabric/provider"
	"github.com/weft-fabric/weft/memmon"
)

// refused checks an error that is no completion's.
func refused(t *testing.T, what string, err, want error) {
	t.Helper()
	var oe *provider.OpError
	if !errors.Is(err, want) || !errors.As(err, &oe) || oe.Provider != Name || oe.Op == "" {
		t.Errorf("%s: %v, want %v with operation and provider", what, err, want)
		return
	}
	if strings.Count(err.Error(), "loop: ") != 1 {
		t.Errorf("%s: %q says twice what failed", what, err)
	}
}

func TestOpenDomain(t *testing.T) {
	p := New()
	infos, err := p.Discover(t.Context())
	if err != nil || len(infos) != 1 || !infos[0].Usable {
		t.Fatal(infos, err)
	}
	if c := infos[0].Caps; c&(provider.LocalComm|provider.RemoteComm) != 0 {
		t.Errorf("it reaches its own process only, and says %v", c)
	}
	for what, c := range map[string]struct {
		info provider.Info
		dom  provider.DomainConfig
		want error
	}{
		"another provider's": {provider.Info{Provider: "tcp"}, provider.DomainConfig{}, provider.ErrInvalid},
		"progress":           {infos[0], provider.DomainConfig{Progress: 9}, provider.ErrInvalid},
		"option":             {infos[0], provider.DomainConfig{Options: map[string]string{"eagre": "1"}}, provider.ErrInvalid},
		"value":              {infos[0], provider.DomainConfig{Options: map[string]string{"eager": "2M"}}, provider.ErrInvalid},
		"no number":          {infos[0], provider.DomainConfig{Options: map[string]string{"eager": "many"}}, provider.ErrInvalid},
	} {
		_, err := p.OpenDomain(c.info, c.dom)
		refused(t, what, err, c.want)
	}
	d, err := p.OpenDomain(provider.Info{}, provider.DomainConfig{Options: map[string]string{"eager": "0"}})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(infos[0], d.Info()); diff != "" {
		t.Error(diff)
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
}

// Each call of a closed domain says so, and leaves nothing.
func TestClosedDomain(t *testing.T) {
	modes(t, func(t *testing.T, p *Provider, mode provider.Progress) {
		a, b := open(t, p, mode), open(t, p, mode)
		to := a.insert(b)
		m := memories(t, a, 64, provider.PeerRead)
		n, err := a.d.OpenCounter()
		if err != nil {
			t.Fatal(err)
		}
		a.must(a.d.Close())
		for what, call := range map[string]func() error{
			"queue":    func() error { _, err := a.d.OpenCompletionQueue(provider.CQConfig{}); return err },
			"counter":  func() error { _, err := a.d.OpenCounter(); return err },
			"endpoint": func() error { _, err := a.d.OpenEndpoint(provider.EndpointConfig{Send: a.cq}); return err },
			"insert":   func() error { _, err := a.d.Insert(b.addr); return err },
			"alloc":    func() error { _, err := a.d.Alloc(1, 0); return err },
			"register": func() error { _, err := a.d.Register(memmon.HeapBytes(make([]byte, 1)), 0); return err },
			"view":     func() error { _, err := a.d.View(context.Background(), to, 1, 0, 1); return err },
			"send":     func() error { return a.ep.Send(provider.Op{Peer: to}) },
			"atomic": func() error {
				return a.ep.Atomic(provider.Atomic{Op: provider.Op{Local: local(make([]byte, 8)), Peer: to}, Code: provider.AtomicSum, Type: provider.Int64})
			},
		} {
			refused(t, what, call(), provider.ErrClosed)
		}
		if err := n.Wait(t.Context(), 1); !errors.Is(err, provider.ErrClosed) {
			t.Error(err)
		}
		if s := a.d.Stats(); s.Arena != 0 || s.Views != 0 {
			t.Errorf("%+v", s)
		}
		for _, m := range m {
			a.must(m.Close()) // once more
		}
		if err := a.d.Close(); err != nil {
			t.Error(err)
		}
	})
}

// Endpoints are refused for what is not theirs, and the queues they were to use stay free.
func TestOpenEndpoint(t *testing.T) {
	p := New()
	a, b := open(t, p, provider.Manual), open(t, p, provider.Manual)
	n, err := b.d.OpenCounter()
	if err != nil {
		t.Fatal(err)
	}
	q, err := a.d.OpenCompletionQueue(provider.CQConfig{Size: 3})
	if err != nil {
		t.Fatal(err)
	}
	closed, err := a.d.OpenCompletionQueue(provider.CQConfig{})
	if err != nil {
		t.Fatal(err)
	}
	a.must(closed.Close())
	for what, c := range map[string]struct {
		ep   provider.EndpointConfig
		want error
	}{
		"depth":          {provider.EndpointConfig{Send: q, Depth: -1}, provider.ErrInvalid},
		"deep":           {provider.EndpointConfig{Send: q, Depth: maxDepth + 1}, provider.ErrInvalid},
		"multi":          {provider.EndpointConfig{Send: q, MinMultiRecv: -1}, provider.ErrInvalid},
		"foreign send":   {provider.EndpointConfig{Send: b.cq}, provider.ErrInvalid},
		"foreign recv":   {provider.EndpointConfig{Send: q, Recv: b.cq}, provider.ErrInvalid},
		"foreign number": {provider.EndpointConfig{Send: q, Counters: provider.Counters{RemoteWrite: n}}, provider.ErrInvalid},
		"closed queue":   {provider.EndpointConfig{Send: q, Recv: closed}, provider.ErrClosed},
		"name":           {provider.EndpointConfig{Send: q, Recv: q, Name: "a b"}, provider.ErrInvalid},
	} {
		_, err := a.d.OpenEndpoint(c.ep)
		refused(t, what, err, c.want)
	}
	a.must(q.Close())
	for _, size := range []int{-1, 1 << 25} {
		_, err := a.d.OpenCompletionQueue(provider.CQConfig{Size: size})
		refused(t, "queue", err, provider.ErrInvalid)
	}
}

// The numbers of a domain and its peers are those of what was done, also of what failed and what still waits.
func TestStats(t *testing.T) {
	modes(t, func(t *testing.T, p *Provider, mode provider.Progress) {
		a, b := open(t, p, mode, func(c *config) { c.ep.Depth = 4 }), open(t, p, provider.Manual)
		to := a.insert(b)
		if s := a.d.Peers(); len(s) != 1 || s[0].State != "new" || s[0].Address != b.addr || s[0].Peer != to {
			t.Errorf("%+v", s)
		}
		m := memories(t, b, 4096, provider.PeerRead|provider.PeerWrite)
		buf := make([]byte, 1000)
		want := provider.Stats{Peers: 1}
		for i := range uint64(3) {
			a.must(a.ep.Send(provider.Op{Local: local(buf[:100*i]), Peer: to}))
			want.Sent, want.BytesSent = want.Sent+1, want.BytesSent+100*i
			a.must(a.ep.Read(provider.Op{Local: local(buf[:10]), Peer: to, Key: m["heap"].Key()}))
			want.Reads, want.BytesRead = want.Reads+1, want.BytesRead+10
			for range 2 {
				a.wait()
			}
		}
		a.must(a.ep.Write(provider.Op{Local: local(buf), Peer: to, Key: m["arena"].Key(), Flags: provider.Quiet}))
		want.Writes, want.BytesWritten = 1, 1000
		a.must(a.ep.Atomic(provider.Atomic{Op: provider.Op{Local: local(make([]byte, 8)), Peer: to, Key: m["heap"].Key()}, Type: provider.Uint64, Code: provider.AtomicSum}))
		a.wait()
		want.Atomics = 1
		a.must(a.ep.Write(provider.Op{Local: local(buf), Peer: to, Key: 12345}))
		wants(t, a.wait(), provider.ErrKey, b.addr)
		want.Errors = 1
		for range 4 {
			a.must(a.ep.Recv(provider.Op{Local: local(buf)}))
		}
		refused(t, "a fifth receive", a.ep.Recv(provider.Op{Local: local(buf)}), provider.ErrAgain)
		want.Again = 1
		v, err := a.d.View(t.Context(), to, m["arena"].Key(), 0, 100)
		if err != nil {
			t.Fatal(err)
		}
		want.Views, want.ViewsMost, want.ViewBytes = 1, 1, 100
		own := memories(t, a, 777, 0)
		want.Arena, want.ArenaUsed, want.ArenaMost = 777, 777, 777
		got := a.d.Stats()
		got.Wakes, got.Rings, got.OldestView = 0, 0, 0 // of the machine's pace
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
		v.Release()
		v.Release()
		a.must(own["arena"].Close())
		if s := a.d.Stats(); s.Views != 0 || s.Arena != 0 {
			t.Errorf("%+v", s)
		}
		b.none() // it looks: 300 bytes wait for a receive
		peers := b.d.Peers()
		if len(peers) != 1 || peers[0].Unexpected != 300 || peers[0].State != "connected" || peers[0].Address != a.addr {
			t.Errorf("%+v", peers)
		}
		for range 3 {
			b.must(b.ep.Recv(provider.Op{Local: local(make([]byte, 150))}))
		}
		var c [4]provider.Completion
		if n, _ := b.cq.Read(c[:]); n != 3 || !errors.Is(c[2].Err, provider.ErrTruncated) || c[2].Len != 150 {
			t.Errorf("%d: %+v", n, c)
		}
		if s := b.d.Stats(); s.Received != 3 || s.BytesRecv != 250 || s.Errors != 1 {
			t.Errorf("%+v", s)
		}
		peers = b.d.Peers()
		if len(peers) != 1 || peers[0].Unexpected != 0 || peers[0].Received != 3 || peers[0].BytesRecv != 250 {
			t.Errorf("%+v", peers)
		}
		b.must(b.ep.Close())
		for a.d.Peers()[0].State != "gone" {
			_, _ = a.cq.Read(c[:])
		}
		if s := a.d.Peers()[0]; !errors.Is(s.Why, provider.ErrPeerGone) || s.Sent != 3 || s.BytesSent != 300 || a.d.Stats().Peers != 0 {
			t.Errorf("%+v", s)
		}
	})
}

// Arenas are bounded by the domain's limit; what is given back is there again.
func TestArenaLimit(t *testing.T) {
	p := New()
	a := open(t, p, provider.Manual, func(c *config) { c.dom.Memory = 10_000 })
	for _, n := range []int{0, -1} {
		_, err := a.d.Alloc(n, 0)
		refused(t, "alloc", err, provider.ErrInvalid)
	}
	_, err := a.d.Alloc(10_001, 0)
	refused(t, "more than all", err, provider.ErrNoMemory)
	for range 3 {
		m, err := a.d.Alloc(9_000, 0)
		if err != nil {
			t.Fatal(err)
		}
		_, err = a.d.Alloc(1_001, 0)
		refused(t, "more than is left", err, provider.ErrNoMemory)
		rest, err := a.d.Alloc(1_000, 0)
		if err != nil {
			t.Fatal(err)
		}
		_, err = a.d.Alloc(1, 0)
		refused(t, "one more", err, provider.ErrNoMemory)
		for range 2 {
			a.must(m.Close())
			a.must(rest.Close())
		}
	}
	_, err = a.d.Alloc(10, 1<<7)
	refused(t, "an access that there is not", err, provider.ErrInvalid)
	if s := a.d.Stats(); s.Arena != 0 {
		t.Errorf("%d bytes of arenas that were refused or given back", s.Arena)
	}
	m, err := a.d.Alloc(10, 0)
	if err != nil {
		t.Fatal(err)
	}
	a.must(m.Refresh(0, 10))
	for _, r := range [][2]uint64{{0, 11}, {11, 0}, {1, 10}, {^uint64(0), 2}} {
		refused(t, "refresh", m.Refresh(r[0], r[1]), provider.ErrInvalid)
	}
}

// Peers by number: those that there are not, and those that were removed.
func TestPeerNumbers(t *testing.T) {
	p := New()
	a, b := open(t, p, provider.Manual), open(t, p, provider.Manual)
	to := a.insert(b)
	if again := a.insert(b); again != to {
		t.Errorf("%d, then %d", to, again)
	}
	if got, err := a.d.Address(to); got != b.addr || err != nil {
		t.Error(got, err)
	}
	a.must(a.d.Remove(to))
	for _, odd := range []provider.Peer{0, to, to + 1, ^provider.Peer(0)} {
		_, err := a.d.Address(odd)
		refused(t, "address", err, provider.ErrInvalid)
		refused(t, "remove", a.d.Remove(odd), provider.ErrInvalid)
		_, err = a.d.View(t.Context(), odd, 1, 0, 1)
		refused(t, "view", err, provider.ErrInvalid)
		refused(t, "send", a.ep.Send(provider.Op{Peer: odd}), provider.ErrInvalid)
		if odd != 0 {
			refused(t, "recv", a.ep.Recv(provider.Op{Peer: odd, Flags: provider.Directed}), provider.ErrInvalid)
		}
	}
	if again := a.insert(b); again == to {
		t.Error("a removed peer has its old number")
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := a.d.View(ended, to, 1, 0, 1); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	_, err := a.d.View(t.Context(), a.insert(b), 1, 0, -1)
	refused(t, "view", err, provider.ErrInvalid)
	a.must(a.ep.Close())
	_, err = a.d.View(t.Context(), a.insert(b), 1, 0, 1)
	refused(t, "a view without an endpoint", err, provider.ErrInvalid)
}
