package bp

import (
	"slices"
	"testing"

	"github.com/weft-fabric/weft/step"
)

func flattened(t *testing.T, name string) *memory {
	m := fixture(t, name)
	idx := slices.Clone(m.get(indexName))
	idx[41] = 1
	m.set(indexName, idx)
	return m
}

// The writer's wish to show all steps as one: later blocks lie over earlier
// ones. What ADIOS2 2.10.2 shows for the same bytes was looked at with bpls.
func TestFlatten(t *testing.T) {
	r := mustOpen(t, flattened(t, "main-shapes-3ranks"), Config{})
	if steps, err := collect(t.Context(), r); len(steps) != 1 || err != nil || r.NumSteps() != 1 {
		t.Fatalf("steps %v, error %v, NumSteps %d", steps, err, r.NumSteps())
	}
	st := mustStep(t, r, 0)
	g2, err := step.Lookup[float64](st, "g2")
	if err != nil {
		t.Fatal(err)
	}
	got, err := g2.Get(t.Context(), step.All, nil)
	want := []float64{2000.25, 2001.25, 2002.25, 2003.25, 2004.25, 2005.25, 2100.25, 2101.25, 2102.25, 2103.25, 2104.25, 2105.25, 2200.25, 2201.25, 2202.25, 2203.25, 2204.25, 2205.25}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("g2: %v %v", got, err)
	}
	if n := g2.NumBlocks(); n != 9 {
		t.Errorf("g2 has %d blocks, want 9", n)
	}
	// An array that grows keeps its first shape.
	grow, err := step.Lookup[int64](st, "grow")
	if err != nil {
		t.Fatal(err)
	}
	if got, err := grow.Get(t.Context(), step.All, nil); err != nil || !slices.Equal(got, []int64{2000, 2001, 2002, 2003, 2100, 2101}) {
		t.Errorf("grow: %v %v", got, err)
	}
	joined, _ := st.Variable("joined")
	if !slices.Equal(joined.Shape(), []uint64{18, 2}) {
		t.Errorf("joined: shape %v", joined.Shape())
	}
	if n := r.Writers(); n != st.Ranks() || n != 9 {
		t.Errorf("%d writers, the step has %d ranks", n, st.Ranks())
	}
	if _, ok := st.Variable("oddsteps"); !ok {
		t.Error("a variable of a middle step is missing")
	}
}

func TestIgnoreFlatten(t *testing.T) {
	r := mustOpen(t, flattened(t, "main-shapes-3ranks"), Config{IgnoreFlatten: true})
	if n := r.NumSteps(); n != 3 {
		t.Errorf("%d steps, want 3", n)
	}
	if !r.Info().Flatten {
		t.Error("Info does not tell the writer's wish")
	}
}

// Following a flattened dataset means waiting for its end.
func TestFollowFlattened(t *testing.T) {
	m := flattened(t, "main-shapes-3ranks")
	if steps, err := collect(t.Context(), mustOpen(t, m, Config{Follow: true})); len(steps) != 1 || err != nil {
		t.Errorf("steps %v, error %v", steps, err)
	}
}
