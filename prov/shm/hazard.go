package shm

import "github.com/weft-fabric/weft/fabric/provider"

// hazards are the keys of a peer's blocks that this side uses now: copies that run and views. A key has one slot
// however many use it. The lock guards it.
//
// The protocol: publish the key in a slot, then look the key up in the owner's table. The owner takes the key out of its
// table, then looks at the slots. All of these are sequentially consistent, so one of the two sees the other.
type hazards struct {
	lanes *lanes
	held  map[provider.Key]held
	free  []int
	used  int
}

type held struct {
	slot, users int
}

// take publishes the key; false if all slots are taken.
func (h *hazards) take(key provider.Key) bool {
	if e, ok := h.held[key]; ok {
		e.users++
		h.held[key] = e
		return true
	}
	slot := h.used
	switch n := len(h.free); {
	case n > 0:
		slot = h.free[n-1]
		h.free = h.free[:n-1]
	case h.used == hazardSlots:
		return false
	default:
		h.used++
		h.lanes.inUse.Store(uint64(h.used))
	}
	if h.held == nil {
		h.held = make(map[provider.Key]held)
	}
	h.held[key] = held{slot: slot, users: 1}
	h.lanes.hazard(slot).Store(uint64(key))
	return true
}

// drop ends one use of the key, which take has published, and says whether it was the last.
func (h *hazards) drop(key provider.Key) bool {
	e := h.held[key]
	if e.users--; e.users > 0 {
		h.held[key] = e
		return false
	}
	delete(h.held, key)
	h.lanes.hazard(e.slot).Store(0)
	h.free = append(h.free, e.slot)
	return true
}

// letGo ends one use of the key. An owner that has closed the memory meanwhile waits for that: either it finds the slot empty, or we
// find the key gone, and tell it.
func (p *pair) letGo(key provider.Key) {
	if p.hazards.drop(key) && p.state == pairUp && !p.home.holds(key) {
		p.mine.let.Add(1)
		p.ring()
	}
}

// heed gives back what peers have let go of.
func (d *domain) heed() {
	some := false
	for _, p := range d.pairs {
		if n := p.theirs.let.Load(); n != p.let {
			p.let, some = n, true
		}
	}
	if some {
		d.shed()
	}
}
