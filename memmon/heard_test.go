package memmon

import "testing"

// post is what the thread does with an event.
func (h *heard) post(r Range) {
	h.begun++
	h.slots[2*(h.done%numSlots)], h.slots[2*(h.done%numSlots)+1] = r.Addr, r.Len
	h.done++
}

func TestHeard(t *testing.T) {
	h := new(heard)
	r := Range{0x10000, 0x1000}
	seen := h.now()
	check := func(what string, want answer) {
		t.Helper()
		now, got := h.look(seen, r)
		if got != want {
			t.Errorf("%s: the answer is %d", what, got)
		}
		seen = now
	}
	check("nothing happened", same)
	h.post(Range{0x11000, 0x1000})
	h.post(Range{0xf000, 0x1000})
	check("neighbours", same)
	h.post(Range{0x10fff, 1})
	check("its last byte", changed)
	seen = h.now()
	for range numSlots {
		h.post(Range{0, 1})
	}
	check("as many as can be remembered", same)
	for range numSlots + 1 {
		h.post(Range{0, 1})
	}
	check("more than can be remembered", unsure)
	seen = h.now()
	h.begun++ // the thread has been woken, and reads
	check("an event is being read", unsure)
	h.done++
	check("it was none", same)

	var got []Range
	note := func(r Range) { got = append(got, r) }
	h.post(r)
	drained := h.drain(h.now()-1, note)
	if drained != h.now() || len(got) != 1 || got[0] != r {
		t.Errorf("drained %v, up to %d", got, drained)
	}
	got = nil
	for range numSlots + 1 {
		h.post(r)
	}
	if drained = h.drain(drained, note); drained != h.now() || len(got) != 1 || got[0] != Everything {
		t.Errorf("drained %d, up to %d", len(got), drained)
	}
}
