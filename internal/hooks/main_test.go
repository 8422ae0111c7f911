package hooks

import (
	"testing"

	"github.com/weft-fabric/weft/internal/testutil"
)

func TestMain(m *testing.M) { testutil.Main(m) }
