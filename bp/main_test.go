package bp

import (
	"testing"

	"go.uber.org/goleak"

	_ "github.com/weft-fabric/weft/operator/all" // some fixtures are compressed
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
