package memmon

import "sync/atomic"

// trail is how far somebody has looked at the events.
type trail struct {
	seen    uint64 // all before this one were told, and looked at
	lost    uint64 // how many were lost, and do not matter
	touched uint64 // the number of the granules, when all that had touched them was looked at
	sure    uint64 // the first event that began after the trail did. Of those before it that come after seen, some had been told before
}

// answer is what can be said of a range.
type answer uint8

const (
	same    answer = iota // nothing was told of it
	unsure                // something was told near by, and is not remembered
	changed               // something was told of it
)

// start is the trail of who begins to watch a range: what is being told at this moment comes after.
func (e *events) start(r Range) trail {
	t := trail{touched: e.touched(r)}
	t.lost = atomic.LoadUint64(&e.w[wordLost])
	done := atomic.LoadUint64(&e.w[wordDone])
	t.seen = atomic.LoadUint64(&e.w[wordBegun])
	t.sure = t.seen
	if t.seen == done {
		return t
	}
	// Who was overtaken by a lap will be lost.
	begun := t.seen
	for k := begun - min(begun, e.slots()); k != begun; k++ {
		if _, s := e.at(k); s == telling {
			t.seen = k
			break
		}
	}
	return t
}

// state is that of an event.
type state uint8

const (
	telling state = iota // its memory has not gone yet
	told
	forgotten
)

// at is event k.
func (e *events) at(k uint64) (Range, state) {
	slot := e.slot(k)
	switch turn := atomic.LoadUint64(&slot[2]); {
	case turn&^writing > k+1:
		return Range{}, forgotten
	case turn != k+1:
		return Range{}, telling
	}
	r := Range{atomic.LoadUint64(&slot[0]), atomic.LoadUint64(&slot[1])}
	if atomic.LoadUint64(&slot[2]) != k+1 {
		return Range{}, forgotten
	}
	return r, told
}

// look says what was told of a range since t, and how far it has looked.
func (e *events) look(t trail, r Range) (trail, answer) {
	if atomic.LoadUint64(&e.w[wordBegun]) == t.seen && atomic.LoadUint64(&e.w[wordLost]) == t.lost {
		return t, same
	}
	a, touched := same, e.touched(r)
	done := atomic.LoadUint64(&e.w[wordDone])
	quiet := atomic.LoadUint64(&e.w[wordBegun]) == done // then all that has touched them is told or lost
	after, all := e.follow(t, func(k uint64, event Range) bool {
		if event.Overlaps(r) {
			a = unsure
			if k >= t.sure {
				a = changed
			}
		}
		return a != changed
	})
	switch {
	case a != same:
		return t, a
	case !all:
		return e.forget(t, r)
	}
	if quiet {
		after.touched = touched // by events that were looked at
	}
	return after, same
}

// forget is look where events are not remembered: the granules of the range have to be as they were. The numbers are those of a moment after the
// new trail's: what that takes for told or lost has touched them before. They are compared with those of the last look that left nothing out.
func (e *events) forget(t trail, r Range) (trail, answer) {
	now := e.start(r)
	if e.touched(r) != t.touched {
		return t, unsure
	}
	now.touched, now.sure = t.touched, t.sure
	return now, same
}

// follow gives f the events that were told since t, until it returns false; all is false if some cannot be told any more. The trail goes up to
// the first one that is not told yet.
func (e *events) follow(t trail, f func(k uint64, r Range) bool) (after trail, all bool) {
	begun := atomic.LoadUint64(&e.w[wordBegun])
	if begun-t.seen > e.slots() { // also if it has been set back
		return t, false
	}
	whole := true
	for k := t.seen; k != begun; k++ {
		r, s := e.at(k)
		switch {
		case s == forgotten:
			return t, false
		case s == telling:
			whole = false
			continue
		case !f(k, r):
			return t, true
		}
		if whole {
			t.seen = k + 1
		}
	}
	return t, atomic.LoadUint64(&e.w[wordLost]) == t.lost
}

// drain gives the events since the last drain to f, some perhaps twice; everything if they cannot be told any more.
func (e *events) drain(f func(Range)) {
	t, all := e.follow(e.drained, func(_ uint64, r Range) bool { f(r); return true })
	if !all {
		t = e.start(Range{})
		f(Everything)
	}
	e.drained = t
}

// count is how many events there have been.
func (e *events) count() uint64 { return atomic.LoadUint64(&e.w[wordBegun]) }
