package fabric

import (
	"testing"

	"github.com/weft-fabric/weft/internal/fakeprov"
	"github.com/weft-fabric/weft/internal/testutil"
	"github.com/weft-fabric/weft/memmon"
)

func TestMain(m *testing.M) {
	memmon.Process() // whose memory events stay for the life of the process
	testutil.Main(m)
}

// side is one side of a test: a domain with a queue and an endpoint.
type side struct {
	d  *Domain
	q  *CompletionQueue
	ep *Endpoint
}

// open makes a side on the provider.
func open(t testing.TB, p *fakeprov.Provider, name string) side {
	t.Helper()
	infos, err := DiscoverIn(t.Context(), p, Hints{})
	if err != nil {
		t.Fatal(err)
	}
	d, err := OpenDomainIn(p, infos[0], DomainConfig{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Errorf("closing %s: %v", name, err)
		}
	})
	q, err := d.OpenCompletionQueue(CQConfig{})
	if err != nil {
		t.Fatal(err)
	}
	ep, err := d.OpenEndpoint(EndpointConfig{Name: name, Send: q, Recv: q})
	if err != nil {
		t.Fatal(err)
	}
	return side{d, q, ep}
}

// peer inserts the address of another side.
func (s side) peer(t testing.TB, other side) Peer {
	t.Helper()
	p, err := s.d.Insert(other.ep.Address())
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// one waits for one completion.
func (s side) one(t testing.TB) Completion {
	t.Helper()
	var c [1]Completion
	if _, err := s.q.Wait(t.Context(), c[:]); err != nil {
		t.Fatal(err)
	}
	return c[0]
}
