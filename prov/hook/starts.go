package hook

import (
	"sync"
	"time"

	"github.com/weft-fabric/weft/fabric/provider"
)

// starts remembers when operations were posted, and for which peer. Operations of one kind with one context are taken to end in their order. Its
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
	peer  provider.Peer // 0: of a receive from anybody
	multi bool
	next  int // index+1; 0 is the end
}

// add notes an operation.
func (s *starts) add(kind provider.Kind, op *provider.Op, at time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.free == 0 {
		s.entries = append(s.entries, entry{})
		s.free = len(s.entries)
	}
	n := s.free
	e := &s.entries[n-1]
	s.free = e.next
	*e = entry{at: at, peer: op.Peer, multi: op.Flags.Has(provider.Multi)}
	if (kind == provider.RecvDone || kind == provider.TRecvDone) && !op.Flags.Has(provider.Directed) {
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
	switch {
	case !some:
	case l.first == l.last:
		s.drop(k, l)
	default:
		before := l.first
		for s.entries[before-1].next != l.last {
			before = s.entries[before-1].next
		}
		s.entries[before-1].next = 0
		s.entries[l.last-1].next, s.free = s.free, l.last
		s.by[k] = line{l.first, before}
	}
}

// peer is whom the operation was for that has ended; false if it is not known, as for end.
func (s *starts) peer(c *provider.Completion) (provider.Peer, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l, some := s.by[startKey{c.Kind, c.Context}]
	if !some {
		return 0, false
	}
	return s.entries[l.first-1].peer, true
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
	e := s.entries[l.first-1]
	if !e.multi || c.Err != nil || c.Flags&provider.MultiDone != 0 {
		s.drop(k, l)
	}
	return now.Sub(e.at), true
}

// drop frees the first entry of a line.
func (s *starts) drop(k startKey, l line) {
	e := &s.entries[l.first-1]
	n := l.first
	if l.first = e.next; l.first == 0 {
		delete(s.by, k)
	} else {
		s.by[k] = l
	}
	e.next, s.free = s.free, n
}
