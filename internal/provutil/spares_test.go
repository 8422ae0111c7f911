package provutil

import (
	"testing"

	"github.com/weft-fabric/weft/fabric/provider"
)

// Slices that were given back are used again, and hold nothing.
func TestSpares(t *testing.T) {
	var p Spares[provider.Segment]
	if p.Clone(nil) != nil {
		t.Error("a copy of nothing")
	}
	p.Put(nil)
	in := []provider.Segment{{Bytes: []byte("a")}, {Bytes: []byte("b")}}
	c := p.Clone(in)
	if &c[0] == &in[0] || len(c) != 2 || string(c[1].Bytes) != "b" {
		t.Errorf("%v", c)
	}
	p.Put(c)
	if c[0].Bytes != nil || c[1].Bytes != nil {
		t.Error("it holds on to buffers")
	}
	if again := p.Clone(in[:1]); &again[0] != &c[0] {
		t.Error("not used again")
	}
}

// However many slices are given back, the number of those that are kept is bounded.
func TestSparesBound(t *testing.T) {
	var p Spares[int]
	for range 2 * maxSpare {
		p.Put(make([]int, 1))
	}
	if len(p.free) != maxSpare {
		t.Errorf("%d slices are kept", len(p.free))
	}
}
