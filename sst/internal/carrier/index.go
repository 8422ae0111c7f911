package carrier

import (
	"net/netip"
	"slices"

	"github.com/weft-fabric/weft/internal/wire/cm"
)

// index finds open links by what a contact says. It is guarded by CM.mu.
type index struct {
	all  map[*link]struct{}
	byID map[uint32][]*link         // by the peer's CM ID, oldest first; not for ID 5
	old  map[netip.AddrPort][]*link // 2.10 peers by the address of their contact, oldest first
}

func newIndex() index {
	return index{
		all:  make(map[*link]struct{}),
		byID: make(map[uint32][]*link),
		old:  make(map[netip.AddrPort][]*link),
	}
}

// add enters a link.
func (x *index) add(l *link) {
	x.all[l] = struct{}{}
	if l.peer.id == cm.ID210 {
		at := l.peer.contactAddr()
		x.old[at] = append(x.old[at], l)
	} else {
		x.byID[l.peer.id] = append(x.byID[l.peer.id], l)
	}
}

// remove takes a link out, if it is there.
func (x *index) remove(l *link) {
	delete(x.all, l)
	same := func(other *link) bool { return other == l }
	if l.peer.id == cm.ID210 {
		at := l.peer.contactAddr()
		if x.old[at] = slices.DeleteFunc(x.old[at], same); len(x.old[at]) == 0 {
			delete(x.old, at)
		}
		return
	}
	id := l.peer.id
	if x.byID[id] = slices.DeleteFunc(x.byID[id], same); len(x.byID[id]) == 0 {
		delete(x.byID, id)
	}
}

// find returns an open link to the process that target names. Real peers accept
// a match of the CM ID or of the address (docs/wire/cm.md §7); we hold a process
// that has an ID to it, because at an equal address another process may answer
// by now. self excludes accepted links: of a connection with ourselves both ends
// are in the index, and only one must be used.
func (x *index) find(target target, self bool) *link {
	candidates := x.old[target.addr]
	if target.id != 0 {
		candidates = x.byID[target.id]
	}
	for _, l := range candidates {
		if l.isOpen() && !(self && l.peer.inbound) {
			return l
		}
	}
	return nil
}

// dialledWeft returns an open link that we dialled to the Weft process with that
// ID.
func (x *index) dialledWeft(id uint32) *link {
	for _, l := range x.byID[id] {
		if l.peer.release == ReleaseWeft && !l.peer.inbound && l.isOpen() {
			return l
		}
	}
	return nil
}

// target is what matters of a contact: where to dial and whom to expect.
type target struct {
	addr netip.AddrPort
	id   uint32 // 0: the contact of a 2.10 peer, which has none
	weft bool
}

// targetOf reads a contact.
func targetOf(c cm.Contact) (target, error) {
	addr, err := c.Addr()
	if err != nil {
		return target{}, err
	}
	t := target{addr: addr}
	if id, ok := c.CMID(); ok && id != cm.ID210 {
		t.id = id
	}
	_, t.weft = c.Mark()
	return t, nil
}

// expected is the CM ID that the process behind the target sends.
func (t target) expected() uint32 {
	if t.id == 0 {
		return cm.ID210
	}
	return t.id
}
