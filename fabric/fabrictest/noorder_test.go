package fabrictest

import (
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/weft-fabric/weft/fabric/provider"
)

// atAnEnd says whether an operation ended because a peer, or an endpoint, did.
func atAnEnd(c provider.Completion) bool {
	for _, why := range []error{provider.ErrPeerGone, provider.ErrUnreachable, provider.ErrClosed, provider.ErrCancelled} {
		if errors.Is(c.Err, why) {
			return true
		}
	}
	return false
}

// In which order operations end when a peer dies, or an endpoint closes, is no law: a provider that tells of them backwards, and before what
// has ended well, passes as well. What has ended well stays in its order.
func TestOrderAtDeathIsNoLaw(t *testing.T) {
	var swapped atomic.Int64
	backwards := &mutant{batch: func(list []provider.Completion) {
		var ends, others []provider.Completion
		for _, c := range list {
			if atAnEnd(c) {
				ends = append(ends, c)
			} else {
				others = append(others, c)
			}
		}
		slices.Reverse(ends)
		if len(ends) > 1 || len(ends) > 0 && len(others) > 0 {
			swapped.Add(1)
		}
		copy(list, append(ends, others...))
	}}
	for name, procs := range map[string]int{"loop": 1, crossing: 2} {
		t.Run(fmt.Sprintf("%s-%d", name, procs), func(t *testing.T) {
			swapped.Store(0)
			Run(t, Config{Provider: name, Procs: procs, Wrap: backwards.wrap(), Groups: []string{
				"insert", "cancel", "multi-receive", "memory-close", "statistics", "exit", "never", "unreachable",
				"names", "stale", "death", "one-dies", "kill", "stop", "viewer-dies", "view-outlives", "close-ends", "close-races",
			}})
			if swapped.Load() == 0 {
				t.Error("nothing was told in another order")
			}
		})
	}
}
