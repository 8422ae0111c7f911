package provutil

import (
	"time"

	"github.com/weft-fabric/weft/fabric/provider"
)

// Views are the views that a domain holds, the oldest first: who wonders where memory has gone asks for them. One lock of the
// provider guards it; the zero value holds none.
type Views struct {
	first, last *HeldView
	n, most     int
	bytes       uint64
}

// HeldView is a part of a provider's view.
type HeldView struct {
	since      time.Time // zero: it is not held
	bytes      uint64
	prev, next *HeldView
}

// Add notes a view of so many bytes.
func (v *Views) Add(h *HeldView, bytes uint64) {
	*h = HeldView{since: time.Now(), bytes: bytes, prev: v.last}
	if v.last == nil {
		v.first = h
	} else {
		v.last.next = h
	}
	v.last = h
	v.n++
	v.most = max(v.most, v.n)
	v.bytes += bytes
}

// Remove says that a view was released; false if it had been before.
func (v *Views) Remove(h *HeldView) bool {
	if h.since.IsZero() {
		return false
	}
	if h.prev == nil {
		v.first = h.next
	} else {
		h.prev.next = h.next
	}
	if h.next == nil {
		v.last = h.prev
	} else {
		h.next.prev = h.prev
	}
	v.n--
	v.bytes -= h.bytes
	*h = HeldView{}
	return true
}

// Tell fills in the statistics of a domain.
func (v *Views) Tell(s *provider.Stats) {
	s.Views, s.ViewsMost, s.ViewBytes, s.OldestView = v.n, v.most, v.bytes, 0
	if v.first != nil {
		s.OldestView = time.Since(v.first.since)
	}
}
