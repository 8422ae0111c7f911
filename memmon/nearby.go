package memmon

import "slices"

// nearby are watches, found by where they are: each is in the list of each granule that it lies in.
type nearby map[uint64][]*userfaultWatch

// each calls f for each granule of a range.
func (nearby) each(r Range, f func(granule uint64)) {
	for g := r.Addr >> granuleBits; g <= (r.End()-1)>>granuleBits; g++ {
		f(g)
	}
}

func (n nearby) add(w *userfaultWatch) {
	n.each(w.r, func(g uint64) { n[g] = append(n[g], w) })
}

func (n nearby) remove(w *userfaultWatch) {
	n.each(w.r, func(g uint64) {
		rest := slices.DeleteFunc(n[g], func(o *userfaultWatch) bool { return o == w })
		if len(rest) == 0 {
			delete(n, g)
		} else {
			n[g] = rest
		}
	})
}

// overlapping calls f for each watch that overlaps a range, in the first granule that both lie in.
func (n nearby) overlapping(r Range, f func(*userfaultWatch)) {
	n.each(r, func(g uint64) {
		for _, w := range n[g] {
			if w.r.Overlaps(r) && g == max(w.r.Addr, r.Addr)>>granuleBits {
				f(w)
			}
		}
	})
}
