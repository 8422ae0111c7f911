package memmon

import (
	"slices"
	"testing"
)

// TestExport tells others of what Go takes away, before it goes, until they want no more.
func TestExport(t *testing.T) {
	a := testArbiter(t)
	m, err := a.NewArena(4 * pageSize)
	if err != nil {
		t.Fatal(err)
	}
	all := RangeOf(m.Bytes())
	b := m.Bytes()
	b[0] = 1
	var first, second []Range
	stop := a.Export(func(r Range) {
		if b[0] != 1 {
			t.Error("it has gone before it was told")
		}
		first = append(first, r)
	})
	defer a.Export(func(r Range) { second = append(second, r) })()
	if err := m.Discard(0, pageSize); err != nil {
		t.Fatal(err)
	}
	b[0] = 1
	a.Notify(Range{1, 2})
	stop()
	stop()
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	a.events.post(Range{3, 4}) // as hooks in C do
	if want := []Range{all, {1, 2}}; !slices.Equal(first, want) {
		t.Errorf("told %v, not %v", first, want)
	}
	if want := []Range{all, {1, 2}, all}; !slices.Equal(second, want) {
		t.Errorf("told %v, not %v", second, want)
	}
}
