package shm_test

import (
	"fmt"
	"testing"

	"github.com/weft-fabric/weft/fabric/fabrictest"
	_ "github.com/weft-fabric/weft/prov/shm"
)

func TestConformance(t *testing.T) {
	for _, procs := range []int{1, 2, 4} {
		t.Run(fmt.Sprintf("procs=%d", procs), func(t *testing.T) {
			fabrictest.Run(t, fabrictest.Config{Provider: "shm", Procs: procs})
		})
	}
}
