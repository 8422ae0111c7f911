package sys

import (
	"testing"

	"github.com/weft-fabric/weft/internal/testutil"
)

func TestMain(m *testing.M) {
	testutil.MainExplained(m, Open, roles...)
}

// nothingOpen fails a test at its end if it leaves a handle open, and says where that was made.
func nothingOpen(t *testing.T) {
	t.Helper()
	before := len(Open())
	t.Cleanup(func() {
		for _, site := range Open()[before:] {
			t.Errorf("left open: %s", site)
		}
	})
}
