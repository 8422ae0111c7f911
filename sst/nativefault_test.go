package sst_test

import (
	"runtime/debug"
	"testing"

	"github.com/weft-fabric/weft/internal/invariants"
	"github.com/weft-fabric/weft/sst"
	"github.com/weft-fabric/weft/step"
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

// TestNativeSmallUseAfterRelease: so it is with small parts of a block, which share pages.
func TestNativeSmallUseAfterRelease(t *testing.T) {
	name := streamName(t)
	x := define(t, create(t, name, sst.WriterConfig{}), viewValues)
	r := attach(t, name, sst.ReaderConfig{})
	x.must(t)
	st, err := r.BeginStep(bounded(t))
	if err != nil {
		t.Fatal(err)
	}
	v, err := step.Lookup[int64](st, "n")
	if err != nil {
		t.Fatal(err)
	}
	var views []step.View[int64]
	for i := range uint64(8) {
		view, err := v.View(bounded(t), step.Box{Start: []uint64{8 * i}, Count: []uint64{8}})
		if err != nil {
			t.Fatal(err)
		}
		views = append(views, view)
	}
	for i, view := range views {
		data := view.Data()
		if want := int64(st.Number())<<20 + int64(8*i); data[0] != want {
			t.Errorf("view %d: %d, want %d", i, data[0], want)
		}
		view.Release()
		if faults(data) != invariants.Enabled {
			t.Errorf("view %d: a fault after the release: %v, while invariants are %v", i, !invariants.Enabled, invariants.Enabled)
		}
	}
	st.End()
}
