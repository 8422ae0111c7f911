//go:build !invariants

package invariants

import (
	"reflect"
	"testing"
)

func TestNoCostWhenOff(t *testing.T) {
	if size := reflect.TypeFor[CloseChecker]().Size(); size != 0 {
		t.Errorf("a CloseChecker has %d bytes", size)
	}
	n := 1000 // too large for the runtime's table of small integers
	allocs := testing.AllocsPerRun(100, func() {
		var c CloseChecker
		c.CheckOpen()
		Checkf(n > 0, "n is %d", n)
		c.Close()
		c.CheckClosed()
	})
	if allocs != 0 {
		t.Errorf("%v allocations", allocs)
	}
}
