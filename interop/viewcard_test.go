package interop

import (
	"os"
	"testing"

	"github.com/weft-fabric/weft/fabric"
	"github.com/weft-fabric/weft/memmon"
	_ "github.com/weft-fabric/weft/prov/loop"
)

// TestRegisteredView sends what a peer's memory holds, as View says that one can.
func TestRegisteredView(t *testing.T) {
	w := newWire(t, arbiter(t))
	infos, err := fabric.Discover(t.Context(), fabric.Hints{Provider: "loop"})
	if err != nil {
		t.Fatal(err)
	}
	open := func() (*fabric.Domain, *fabric.Endpoint) {
		d, err := fabric.OpenDomain(infos[0], fabric.DomainConfig{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = d.Close() })
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
	here, _ := open()
	there, ep := open()
	m, err := there.Alloc(4*os.Getpagesize(), fabric.PeerRead)
	if err != nil {
		t.Fatal(err)
	}
	paint(m.Bytes(), 'V')
	p, err := here.Insert(ep.Address())
	if err != nil {
		t.Fatal(err)
	}
	v, err := here.View(t.Context(), p, m.Key(), 0, len(m.Bytes()))
	if err != nil {
		t.Fatal(err)
	}
	defer v.Release()
	if c := w.carries(memmon.Mapped(v.Bytes(), v)); c != 'V' {
		t.Errorf("%q", c)
	}
}
