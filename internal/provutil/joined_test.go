package provutil

import (
	"testing"

	"github.com/weft-fabric/weft/fabric/provider"
)

// A vector of one piece is joined without a copy, one of several in the scratch memory.
func TestJoined(t *testing.T) {
	one := []byte("abc")
	if b := (Vector{First: one}).Joined(nil); &b[0] != &one[0] || len(b) != 3 {
		t.Errorf("%q", b)
	}
	v := Vector{First: one[:1], More: []provider.Segment{{}, {Bytes: one[1:]}}}
	scratch := make([]byte, 8)
	if b := v.Joined(scratch); string(b) != "abc" || &b[0] != &scratch[0] {
		t.Errorf("%q", b)
	}
}
