package fabric

import (
	"slices"
	"testing"

	"github.com/weft-fabric/weft/memmon"
)

// seen is a provider's view.
type seen struct {
	bytes []byte
	goes  func() // is called by Release
}

func (s *seen) Bytes() []byte { return s.bytes }
func (s *seen) Release()      { s.goes() }

// TestReleasedViewsAreNotRegistered has somebody ask for the memory of a view while it is unmapped, and after that: a registration that was made of
// it then is never good.
func TestReleasedViewsAreNotRegistered(t *testing.T) {
	s := &seen{bytes: make([]byte, 100)}
	v := &View{inner: s}
	kind := memmon.Mapped(v.Bytes(), v)
	var proofs []memmon.Proof
	prove := func() {
		p, err := memmon.Process().Prove(kind)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(p.Close)
		proofs = append(proofs, p)
	}
	s.goes = prove
	prove()
	for range 2 {
		if !proofs[0].Valid() {
			t.Error("it is not released")
		}
	}
	v.Release()
	prove()
	for i, p := range proofs {
		if p.Valid() {
			t.Errorf("what was registered %s is good", []string{"before Release", "while it was unmapped", "after Release"}[i])
		}
	}
}

// TestReleaseTellsCaches has caches clean up what was registered of a view, which nobody will look up again. Of others they are told nothing.
func TestReleaseTellsCaches(t *testing.T) {
	var told []memmon.Range
	detach := memmon.Process().Attach(func(r memmon.Range) { told = append(told, r) }, nil)
	defer detach()
	var before []memmon.Range // the pages go
	asked, quiet := &seen{bytes: make([]byte, 100)}, &seen{bytes: make([]byte, 100), goes: func() {}}
	asked.goes = func() { before = slices.Clone(told) }
	v, other := &View{inner: asked}, &View{inner: quiet}
	memmon.Mapped(v.Bytes(), v).Generation()
	v.Release()
	v.Release()
	other.Release()
	if want := []memmon.Range{memmon.RangeOf(asked.bytes)}; !slices.Equal(told, want) || !slices.Equal(before, want) {
		t.Errorf("told of %v, of %v before the memory went; not of %v", told, before, want)
	}
}
