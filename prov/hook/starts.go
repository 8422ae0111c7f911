package hook

import (
	"errors"
	"sync"
	"time"

	"github.com/weft-fabric/weft/fabric/provider"
)

// starts remembers when operations were posted, and for which peer. Operations of one kind with one context, and for one peer, are taken to end in
// their order. Its
// entries are used again, so that a hook that only counts allocates nothing for an operation.
type starts struct {
	mu      sync.Mutex
	by      map[startKey]line
	entries []entry
	free    int // index+1 of the first free entry
}

type startKey struct {
	kind    provider.Kind
	context uint64
}

// line is a list of entries, as index+1 of its first and last.
type line struct{ first, last int }

type entry struct {
	at    time.Time
	peer  provider.Peer    // 0: of a receive from anybody
	addr  provider.Address // of the peer of a directed receive, whose failure names nothing else
	multi bool
	next  int // index+1; 0 is the end
}

// add notes an operation; addr is the peer's address if it is a directed receive.
func (s *starts) add(kind provider.Kind, op *provider.Op, addr provider.Address, at time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.free == 0 {
		s.entries = append(s.entries, entry{})
		s.free = len(s.entries)
	}
	n := s.free
	e := &s.entries[n-1]
	s.free = e.next
	*e = entry{at: at, peer: op.Peer, addr: addr, multi: op.Flags.Has(provider.Multi)}
	if receives(kind) && !op.Flags.Has(provider.Directed) {
		e.peer = 0
	}
	k := startKey{kind, op.Context}
	l, some := s.by[k]
	if some {
		s.entries[l.last-1].next = n
		l.last = n
	} else {
		l = line{n, n}
	}
	s.by[k] = l
}

// remove takes the last operation back: its post was refused.
func (s *starts) remove(kind provider.Kind, context uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	k := startKey{kind, context}
	l, some := s.by[k]
	if !some {
		return
	}
	before := 0
	for n := l.first; n != l.last; n = s.entries[n-1].next {
		before = n
	}
	s.drop(k, l, l.last, before)
}

// receives says whether kind is that of receives.
func receives(kind provider.Kind) bool {
	return kind == provider.RecvDone || kind == provider.TRecvDone
}

// peer is whom the operation was for that has ended; false if it is not known, as for end.
func (s *starts) peer(c *provider.Completion) (provider.Peer, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l, some := s.by[startKey{c.Kind, c.Context}]
	if !some {
		return 0, false
	}
	n, _, sure := s.find(l, c)
	return s.entries[n-1].peer, sure
}

// end says how long the operation took that has ended; false if it is not known, being a peer's or quiet.
func (s *starts) end(c *provider.Completion, now time.Time) (time.Duration, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	k := startKey{c.Kind, c.Context}
	l, some := s.by[k]
	if !some {
		return 0, false
	}
	n, before, _ := s.find(l, c)
	e := s.entries[n-1]
	if !e.multi || c.Err != nil || c.Flags&provider.MultiDone != 0 {
		s.drop(k, l, n, before)
	}
	return now.Sub(e.at), true
}

// find is the first entry of the line that may be what c ends, and the one before it: by its peer, or, of what failed before anybody was known, by
// the address in the error. If there is none it is the line's first, and sure only if that is the only one and nothing is known of c.
func (s *starts) find(l line, c *provider.Completion) (n, before int, sure bool) {
	var addr provider.Address
	if c.Source == 0 {
		addr = addressed(c.Err)
		if addr == "" {
			return l.first, 0, l.first == l.last
		}
	}
	for n = l.first; n != 0; before, n = n, s.entries[n-1].next {
		e := &s.entries[n-1]
		if c.Source != 0 && (e.peer == 0 || e.peer == c.Source) || addr != "" && e.addr == addr {
			return n, before, true
		}
	}
	return l.first, 0, false
}

// addressed is the address that an error names; "" if it names none.
func addressed(err error) provider.Address {
	if oe, ok := errors.AsType[*provider.OpError](err); ok {
		return oe.Addr
	}
	return ""
}

// drop frees an entry of a line, which follows before.
func (s *starts) drop(k startKey, l line, n, before int) {
	e := &s.entries[n-1]
	switch {
	case l.first == l.last:
		delete(s.by, k)
	case before == 0:
		s.by[k] = line{e.next, l.last}
	default:
		s.entries[before-1].next = e.next
		if n == l.last {
			s.by[k] = line{l.first, before}
		}
	}
	e.next, s.free = s.free, n
}
