package dp

import (
	"slices"
	"sync"

	"github.com/weft-fabric/weft/internal/invariants"
	"github.com/weft-fabric/weft/internal/sys"
)

// A view of each small variable would be a call to the fabric for each, which costs more than to look at it. So a step
// views an extent as a whole, when something in it is wanted for the first time, and lends parts of that: a lease. It ends with the
// step, or when another extent of the rank is wanted and nothing of it is in use. While nothing is, it does not count as a use of
// the step: whoever gives that back gives the lease back before.

// lease is a view of an extent that parts are lent of. The lock of uses guards what changes.
type lease struct {
	of      *uses
	use     *use
	rank    int
	from    uint64 // of the block
	mem     []byte // from there on
	free    func()
	n       int    // parts that are lent
	newest  bool   // of the rank: it stays when nothing is lent
	release func() // gives back one part; made once, since a method value takes memory
}

// again lends a range of a rank's block, if that is leased; nil if not, or nothing begins any more.
func (u *uses) again(s *use, rank int, offset, n uint64) *lease {
	u.mu.Lock()
	defer u.mu.Unlock()
	if s.over || u.ended || rank < 0 || rank >= len(s.leases) {
		return nil
	}
	l := s.leases[rank]
	if l == nil || offset < l.from || offset-l.from > uint64(len(l.mem)) || n > uint64(len(l.mem))-(offset-l.from) {
		return nil
	}
	l.n++
	s.n++
	return l
}

// lease makes a lease of what a rank's block has from an offset on. A use was begun: that is its first part.
func (u *uses) lease(s *use, rank int, from uint64, mem []byte, free func()) *lease {
	l := &lease{of: u, use: s, rank: rank, from: from, mem: mem, free: free, n: 1}
	l.release = l.end
	u.mu.Lock()
	defer u.mu.Unlock()
	if s.over || u.ended {
		return l // the part is its last
	}
	if n := rank + 1 - len(s.leases); n > 0 {
		s.leases = append(s.leases, make([]*lease, n)...)
	}
	if old := s.leases[rank]; old != nil {
		old.retire()
	}
	s.leases[rank], l.newest = l, true
	return l
}

// end gives a part back. When none is lent, the program has released one twice: counted, that would give the step back
// under the next view of it, or never.
func (l *lease) end() {
	l.of.mu.Lock()
	defer l.of.mu.Unlock()
	if invariants.Enabled {
		invariants.Checkf(l.n > 0, "step %d: a view was released twice", l.use.number)
	}
	if l.n == 0 {
		return
	}
	if l.n--; l.n == 0 && !l.newest {
		l.free()
	}
	l.of.endLocked(l.use)
}

// retire ends the lease as soon as nothing of it is lent. The caller holds the lock.
func (l *lease) retire() {
	if l.newest = false; l.n == 0 {
		l.free()
	}
}

// retire ends the leases of a step. The caller holds the lock.
func (s *use) retire() {
	for _, l := range s.leases {
		if l != nil {
			l.retire()
		}
	}
	s.leases = nil
}

// tidy ends the leases of which nothing is lent, and reports whether there were any.
func (u *uses) tidy() (some bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, s := range u.steps {
		for rank, l := range s.leases {
			if l != nil && l.n == 0 {
				l.retire()
				s.leases[rank], some = nil, true
			}
		}
	}
	return some
}

// finish ends the leases of all steps: nothing begins any more.
func (u *uses) finish() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.ended = true
	for _, s := range u.steps {
		s.retire()
	}
}

// part is the range of the block that begins at an offset.
func (l *lease) part(offset, n uint64) []byte {
	return slices.Clip(l.mem[offset-l.from:][:n])
}

// shown is a part as the program sees it, and what gives it back. Under the tag invariants that is a mapping of its own where the
// kernel makes one: who touches it after the release is found out.
func shown(b []byte, release func()) ([]byte, func()) {
	if !invariants.Enabled {
		return b, release
	}
	twin, err := sys.MapAgain(b)
	if err != nil { // huge pages, say, or nothing is seen
		return b, release
	}
	return twin.Bytes(), sync.OnceFunc(func() {
		twin.Fault()
		release()
	})
}
