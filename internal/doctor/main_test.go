package doctor

import (
	"testing"

	"github.com/weft-fabric/weft/internal/testutil"
)

func TestMain(m *testing.M) { testutil.Main(m, testutil.Role{Name: "doctor", Run: roleDoctor}) }
