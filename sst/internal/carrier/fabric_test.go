package carrier

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weft-fabric/weft/fabric"
	"github.com/weft-fabric/weft/fabric/provider"
	"github.com/weft-fabric/weft/prov/loop"
)

// site is one side: a domain, its endpoint and queue, and a carrier over them.
type site struct {
	*recorder
	domain *fabric.Domain
	queue  *fabric.CompletionQueue
	end    *fabric.Endpoint
	f      *Fabric
}

// place opens a domain of a provider without a carrier. It is closed at the end.
func place(t testing.TB, p provider.Provider, c fabric.DomainConfig) *site {
	t.Helper()
	infos, err := fabric.DiscoverIn(t.Context(), p, fabric.Hints{})
	if err != nil {
		t.Fatal(err)
	}
	s := &site{recorder: newRecorder()}
	if s.domain, err = fabric.OpenDomainIn(p, infos[0], c); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.domain.Close(); err != nil {
			t.Error(err)
		}
	})
	if s.queue, err = s.domain.OpenCompletionQueue(fabric.CQConfig{}); err != nil {
		t.Fatal(err)
	}
	if s.end, err = s.domain.OpenEndpoint(FabricEndpoint(s.queue)); err != nil {
		t.Fatal(err)
	}
	return s
}

// settle opens a carrier there.
func (s *site) settle(t testing.TB, c FabricConfig) *site {
	t.Helper()
	c.Domain, c.Endpoint, c.Queue = s.domain, s.end, s.queue
	if c.Handler == nil {
		c.Handler = s.recorder
	}
	if c.CloseTimeout == 0 {
		c.CloseTimeout = 10 * time.Second
	}
	var err error
	if s.f, err = NewFabric(c); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.f.Close() })
	return s
}

func (s *site) address() fabric.Address { return s.end.Address() }

// sitePair opens two sides of a network of their own.
func sitePair(t testing.TB, a, b FabricConfig) (*site, *site) {
	t.Helper()
	p := loop.New()
	return place(t, p, fabric.DomainConfig{}).settle(t, a), place(t, p, fabric.DomainConfig{}).settle(t, b)
}

// reach dials.
func (s *site) reach(t testing.TB, to *site) Link {
	t.Helper()
	l, err := s.f.Dial(t.Context(), to.address())
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// bubble runs a test whose clock costs nothing, and in which everything is asleep at the end.
func bubble(t *testing.T, run func(t *testing.T)) {
	t.Helper()
	synctest.Test(t, run)
}

// vacant fails the test unless a carrier has no books any more.
func vacant(t testing.TB, s *site) {
	t.Helper()
	s.f.mu.Lock()
	defer s.f.mu.Unlock()
	if n := fmt.Sprint(len(s.f.links), len(s.f.byToken), len(s.f.flights), len(s.f.watches), len(s.f.peers)); n != "0 0 0 0 0" {
		t.Errorf("left behind: links, tokens, flights, watches, peers: %s", n)
	}
}

// TestFabricOrder: records of all sizes come in order, whole, with their formats, once each.
func TestFabricOrder(t *testing.T) {
	bubble(t, func(t *testing.T) {
		a, b := sitePair(t, FabricConfig{}, FabricConfig{})
		l := a.reach(t, b)
		formats := []string{"F", "G", "H"}
		sizes := []int{0, 1, 200, 4000, 4096, 5000, 60_000, 65_480, 65_500, 65_536, 70_000, 1 << 20, 5<<20 + 3}
		done := make(chan error, 1000)
		const n = 300
		for i := range n {
			r := record(testFormat(t, formats[i%3]), i, sizes[i%len(sizes)])
			for j := range r.Parts[1] {
				r.Parts[1][j] = byte(i + j*7)
			}
			r.Done = func(err error) { done <- err }
			if err := l.Send(r); err != nil {
				t.Fatal(err)
			}
		}
		for i := range n {
			e := next(t, "record", b.got)
			if number(e.data) != i || e.format != formats[i%3] || len(e.data) != variantHeader+24+sizes[i%len(sizes)] {
				t.Fatalf("record %d is number %d of format %s with %d bytes", i, number(e.data), e.format, len(e.data))
			}
			for j, x := range e.data[variantHeader+8+8:][8:] {
				if x != byte(i+j*7) {
					t.Fatalf("record %d is damaged at %d", i, j)
				}
			}
			e.free()
			if err := next(t, "Done", done); err != nil {
				t.Error(err)
			}
		}
		info := l.Info()
		if info.MessagesOut != n || info.QueuedRecords != 0 || info.QueuedBytes != 0 || info.FormatsSent != 3 || info.Inbound ||
			info.Peer != string(b.address()) || info.Release != ReleaseWeft || info.Remote.IsValid() {
			t.Errorf("%+v", info)
		}
	})
}

// TestFabricEnds: Close delivers what is queued, and both sides hear of it once.
func TestFabricEnds(t *testing.T) {
	bubble(t, func(t *testing.T) {
		a, b := sitePair(t, FabricConfig{}, FabricConfig{})
		l := a.reach(t, b)
		f := testFormat(t, "F")
		const n = 50
		for i := range n {
			if err := l.Send(record(f, i, 300_000)); err != nil {
				t.Fatal(err)
			}
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		if err := l.Send(record(f, n, 1)); !errors.Is(err, ErrClosed) {
			t.Errorf("send after close: %v", err)
		}
		for i := range n {
			if e := next(t, "record", b.got); number(e.data) != i {
				t.Fatalf("number %d at place %d", number(e.data), i)
			}
		}
		if e := next(t, "end", a.lost); e.err != nil || e.link != l {
			t.Error(e.err)
		}
		<-l.Done()
		if e := next(t, "end", b.lost); !errors.Is(e.err, ErrPeerClosed) || !e.link.Info().Inbound {
			t.Error(e.err)
		}
		_ = a.f.Close()
		_ = b.f.Close()
		vacant(t, a)
		vacant(t, b)
		nothingIn(t, "end", a.lost)
		nothingIn(t, "end", b.lost)
	})
}
