package cp

import (
	"testing"

	"pgregory.net/rapid"
)

// TestFifo plays pushes and pops against a slice.
func TestFifo(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var q fifo[*int]
		var model []*int
		for i := range evenly(t, 8, "events") {
			if evenly(t, 1, "pop") == 0 || len(model) == 0 {
				q.push(&i)
				model = append(model, &i)
			} else {
				if got := q.pop(); got != model[0] {
					t.Fatalf("%v, want %v", got, model[0])
				}
				model = model[1:]
			}
			if q.len() != len(model) {
				t.Fatalf("%d items, want %d", q.len(), len(model))
			}
			if last := q.last(); (last == nil) != (len(model) == 0) || last != nil && *last != model[len(model)-1] {
				t.Fatal("another last item")
			}
		}
		kept := 0
		for _, p := range q.items[:cap(q.items)] {
			if p != nil {
				kept++
			}
		}
		if kept != len(model) {
			t.Fatalf("%d items are kept alive, %d are in", kept, len(model))
		}
	})
}

// TestFifoStaysSmall: a queue that is never empty does not grow for ever.
func TestFifoStaysSmall(t *testing.T) {
	var q fifo[int]
	for i := range 10 {
		q.push(i)
	}
	for i := range 10_000 {
		q.push(i)
		q.pop()
	}
	if c := cap(q.items); c > 100 {
		t.Errorf("room for %d of 10 items", c)
	}
}
