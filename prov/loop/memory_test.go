package loop

import (
	"errors"
	"sync"
	"testing"

	"github.com/weft-fabric/weft/fabric/provider"
)

// Memory counts against the bound of its domain as long as somebody has a view of it.
func TestViewsCount(t *testing.T) {
	const n = 1 << 20
	modes(t, func(t *testing.T, p *Provider, mode provider.Progress) {
		a, b := open(t, p, mode), open(t, p, mode, func(c *config) { c.dom.Memory = n })
		if !b.d.Info().Caps.Has(provider.Views) {
			t.Skip("the system cannot map memory twice")
		}
		to := a.insert(b)
		m, err := b.d.Alloc(n, provider.PeerRead)
		if err != nil {
			t.Fatal(err)
		}
		var views [2]provider.View
		for i := range views {
			if views[i], err = a.d.View(t.Context(), to, m.Key(), 0, 10); err != nil {
				t.Fatal(err)
			}
		}
		a.must(m.Close())
		for _, v := range views {
			if _, err := b.d.Alloc(n, 0); !errors.Is(err, provider.ErrNoMemory) {
				t.Errorf("memory that is viewed is free: %v", err)
			}
			if s := b.d.Stats(); s.Arena != n || s.ArenaUsed != n {
				t.Errorf("%+v", s)
			}
			v.Release()
			v.Release()
		}
		if s := b.d.Stats(); s.Arena != 0 || s.ArenaMost != n {
			t.Errorf("%+v", s)
		}
		if m, err = b.d.Alloc(n, provider.PeerRead); err != nil {
			t.Fatal(err)
		}
		v, err := a.d.View(t.Context(), to, m.Key(), 0, 10)
		if err != nil {
			t.Fatal(err)
		}
		a.must(b.d.Close())
		if s := b.d.Stats(); s.Arena != n {
			t.Errorf("after the end of its domain: %+v", s)
		}
		v.Release()
		if s := b.d.Stats(); s.Arena != 0 {
			t.Errorf("after the end of its domain and of the view: %+v", s)
		}
	})
}

// A view can be looked at while another goroutine gives it back: the race detector sees it.
func TestViewShared(t *testing.T) {
	p := New()
	a := open(t, p, provider.Manual)
	if !a.d.Info().Caps.Has(provider.Views) {
		t.Skip("the system cannot map memory twice")
	}
	to := a.insert(a)
	m, err := a.d.Alloc(64, provider.PeerRead)
	if err != nil {
		t.Fatal(err)
	}
	v, err := a.d.View(t.Context(), to, m.Key(), 0, 64)
	if err != nil {
		t.Fatal(err)
	}
	var both sync.WaitGroup
	both.Go(v.Release)
	if n := len(v.Bytes()); n != 64 && n != 0 {
		t.Error(n)
	}
	both.Wait()
	if v.Bytes() != nil {
		t.Error("it has bytes after its release")
	}
}

// More memory than there can be is refused, also where it would be the program's ordinary memory.
func TestTooMuchMemory(t *testing.T) {
	a := open(t, New(), provider.Manual)
	_, err := a.d.Alloc(maxAlloc+1, 0)
	refused(t, "more than an arena can have", err, provider.ErrNoMemory)
	_, err = a.d.Alloc(0, 0)
	refused(t, "nothing", err, provider.ErrInvalid)
	if _, err := plain(maxPlain + 1); !errors.Is(err, provider.ErrNoMemory) {
		t.Error(err)
	}
	if b, err := plain(10); err != nil || len(b) != 10 {
		t.Error(len(b), err)
	}
	if s := a.d.Stats(); s.Arena != 0 {
		t.Errorf("%+v", s)
	}
}
