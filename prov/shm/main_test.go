package shm

import (
	"testing"

	"github.com/weft-fabric/weft/fabric/fabrictest"
	"github.com/weft-fabric/weft/internal/testutil"
)

func TestMain(m *testing.M) { testutil.Main(m, append(roles, fabrictest.Role())...) }
