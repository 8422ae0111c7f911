package interop

import (
	"errors"
	"os"
	"testing"

	"github.com/weft-fabric/weft/fabric"
	"github.com/weft-fabric/weft/internal/provutil"
	"github.com/weft-fabric/weft/memmon"
	_ "github.com/weft-fabric/weft/prov/loop"
)

// openLoop makes a domain and an endpoint on which memory of peers can be viewed.
func openLoop(t *testing.T) (*fabric.Domain, *fabric.Endpoint) {
	t.Helper()
	infos, err := fabric.Discover(t.Context(), fabric.Hints{Provider: "loop", Caps: fabric.Views})
	if err != nil {
		t.Fatal(err)
	}
	d, err := fabric.OpenDomain(infos[0], fabric.DomainConfig{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	q, err := d.OpenCompletionQueue(fabric.CQConfig{})
	if err != nil {
		t.Fatal(err)
	}
	ep, err := d.OpenEndpoint(fabric.EndpointConfig{Send: q, Recv: q})
	if err != nil {
		t.Fatal(err)
	}
	return d, ep
}

// TestRegisteredView sends what a peer's memory holds, which can only be read, through a card that pins for writing.
func TestRegisteredView(t *testing.T) {
	w := newWire(t, arbiter(t))
	here, _ := openLoop(t)
	there, far := openLoop(t)
	m, err := there.Alloc(4*os.Getpagesize(), fabric.PeerRead)
	if err != nil {
		t.Fatal(err)
	}
	peer, err := here.Insert(far.Address())
	if err != nil {
		t.Fatal(err)
	}
	for _, with := range []byte("VW") {
		paint(m.Bytes(), with)
		v, err := here.View(t.Context(), peer, m.Key(), 0, len(m.Bytes()))
		if err != nil {
			t.Fatal(err)
		}
		k := memmon.Mapped(v.Bytes(), v)
		for range 2 {
			if c := w.carries(k); c != with {
				t.Errorf("%q is carried, not %q", c, with)
			}
		}
		v.Release()
		if _, err := w.locals.Begin(&fabric.Segment{Bytes: k.Bytes(), Kind: k}, provutil.ReadLocal); !errors.Is(err, fabric.ErrRemapped) {
			t.Errorf("a view that was released: %v", err)
		}
	}
	if err := m.Close(); err != nil {
		t.Error(err)
	}
}
