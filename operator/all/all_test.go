package all

import (
	"testing"

	"github.com/weft-fabric/weft/operator"
)

func TestAllAreRegistered(t *testing.T) {
	for _, id := range []operator.ID{operator.Blosc, operator.Bzip2, operator.PNG, operator.Null} {
		if d, ok := operator.Lookup(id); !ok || d.ID() != id {
			t.Errorf("%s: %v, %v", id, d, ok)
		}
	}
}
