package dp

import (
	"cmp"
	"slices"
)

// This file knows which steps are over: those that were ended, and those that are
// not delivered. Blocks that come for them are not kept.

// span is a row of steps that are not delivered.
type span struct{ from, to int64 }

// Forget ends a step: what was preloaded for it is given back, and what was
// preloaded for steps before it that are not open.
func (e *Evpath) Forget(number int64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.open, number)
	e.forgot = max(e.forgot, number)
	e.announce(number)
	e.dropped = slices.DeleteFunc(e.dropped, func(s span) bool { return s.to <= e.forgot })
	e.sweep()
}

// Drop says that the steps from..to will never begin. Unlike with Forget, earlier
// ones still may: a rank that is behind reads them yet. A row of them takes no more
// memory than one.
func (e *Evpath) Drop(from, to int64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.drop(from, to)
	e.announce(to)
}

// drop is Drop for who holds mu.
func (e *Evpath) drop(from, to int64) {
	if to <= e.forgot || from > to {
		return
	}
	// Those that touch or overlap the new row become part of it.
	first, _ := slices.BinarySearchFunc(e.dropped, from-1, endsBefore)
	last := first
	for ; last < len(e.dropped) && e.dropped[last].from <= to+1; last++ {
		from, to = min(from, e.dropped[last].from), max(to, e.dropped[last].to)
	}
	e.dropped = slices.Replace(e.dropped, first, last, span{from, to})
	e.sweep()
}

// endsBefore compares the end of a row with a step.
func endsBefore(s span, number int64) int { return cmp.Compare(s.to, number) }

// sweep gives back what was pushed for steps that are over. The caller holds mu.
func (e *Evpath) sweep() {
	for b, p := range e.preloads {
		if e.over(b.step) {
			e.end(b, p)
		}
	}
}

// over reports whether nobody will read the step any more. The caller holds mu.
func (e *Evpath) over(number int64) bool {
	if e.open[number] {
		return false
	}
	i, _ := slices.BinarySearchFunc(e.dropped, number, endsBefore)
	return number <= e.forgot || i < len(e.dropped) && e.dropped[i].from <= number
}
