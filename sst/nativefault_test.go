package sst_test

import (
	"runtime/debug"
	"testing"

	"github.com/weft-fabric/weft/internal/invariants"
	"github.com/weft-fabric/weft/sst"
)

// faults reports whether reading the first value is a fault.
func faults(data []int64) (fault bool) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() { fault = recover() != nil }()
	lastRead = data[0]
	return false
}

var lastRead int64

// TestF88NativeUseAfterRelease is field report F88: under the tag invariants, who looks at a view's values after
// its release is found out by a fault, while other views of the same block stay.
func TestF88NativeUseAfterRelease(t *testing.T) {
	name := streamName(t)
	x := define(t, create(t, name, sst.WriterConfig{}), viewValues)
	r := attach(t, name, sst.ReaderConfig{})
	x.must(t)
	st, h := viewNext(t, r)
	other := viewOf(t, st)
	data := h.view.Data()
	if faults(data) {
		t.Fatal("before the release")
	}
	h.view.Release()
	if faults(data) != invariants.Enabled {
		t.Errorf("a fault after the release: %v, while invariants are %v", !invariants.Enabled, invariants.Enabled)
	}
	other.intact(t, "after the release of another view")
	other.view.Release()
	st.End()
}
