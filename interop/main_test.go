package interop

import (
	"testing"

	"github.com/weft-fabric/weft/internal/testutil"
	"github.com/weft-fabric/weft/memmon"
)

func TestMain(m *testing.M) {
	memmon.Process() // whose memory events stay for the life of the process
	testutil.Main(m, Roles()...)
}
