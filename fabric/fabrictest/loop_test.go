package fabrictest

import (
	"testing"

	_ "github.com/weft-fabric/weft/prov/loop"
	_ "github.com/weft-fabric/weft/prov/shm"
)

// The reference must pass, or the suite is wrong.
func TestLoop(t *testing.T) {
	Run(t, Config{Provider: "loop", Denied: map[string]string{}})
}
