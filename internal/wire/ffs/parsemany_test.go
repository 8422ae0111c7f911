//go:build !race

// The race detector makes ten times the work a hundred times as long.

package ffs

import (
	"testing"
	"time"
)

// A BP5 format has a field for each variable; 100 000 of them must not take
// more than linear time.
func TestParseMany(t *testing.T) {
	took := func(n int) time.Duration {
		f, rec := wide(t, n)
		start := time.Now()
		g, _, err := Parse(f.Body())
		if err != nil {
			t.Fatal(err)
		}
		r, _, err := g.Record(rec)
		if err != nil {
			t.Fatal(err)
		}
		top := r.Top()
		for i := range top.NumFields() {
			if top.Index(top.Field(i).Name) != i {
				t.Fatalf("field %d is not found by its name", i)
			}
		}
		return time.Since(start)
	}
	small, large := took(10_000), took(100_000)
	t.Logf("10 000 fields: %v, 100 000: %v", small, large)
	if large > 30*small+time.Second/2 { // linear is 10 times, quadratic 100 times
		t.Errorf("10 000 fields took %v, 100 000 took %v", small, large)
	}
}
