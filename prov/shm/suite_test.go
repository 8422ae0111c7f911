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

// Every newer thing of the kernel is used only if it is there.
func TestWithoutFeatures(t *testing.T) {
	groups := []string{"messages", "rma", "arena", "views", "ways", "death-F29", "wait-ends-F48-F49"}
	for _, off := range []string{"future_write", "populate,noexec_seal", "eventfd", "future_write,noexec_seal,populate,pidfd,peer_pidfd,futex_waitv,hugetlb,cma,eventfd,robust_list"} {
		t.Run(off, func(t *testing.T) {
			fabrictest.Run(t, fabrictest.Config{Provider: "shm", Procs: 2, Options: map[string]string{"disable": off}, Groups: groups})
		})
	}
}
