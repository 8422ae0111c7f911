package dp

import "slices"

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
	e.dropped = slices.DeleteFunc(e.dropped, func(s span) bool { return s.to <= e.forgot })
	e.sweep()
}

// Drop says that the steps from..to will never begin. Unlike with Forget, earlier
// ones still may: a rank that is behind reads them yet. Steps are dropped in rising
// order, so that a long row of them takes no more memory than one.
func (e *Evpath) Drop(from, to int64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if to <= e.forgot || from > to {
		return
	}
	if n := len(e.dropped); n > 0 && e.dropped[n-1].to >= from-1 {
		e.dropped[n-1].to = max(e.dropped[n-1].to, to)
	} else {
		e.dropped = append(e.dropped, span{from, to})
	}
	e.sweep()
}

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
	i, _ := slices.BinarySearchFunc(e.dropped, number, func(s span, n int64) int { return int(min(max(s.to-n, -1), 1)) })
	return number <= e.forgot || i < len(e.dropped) && e.dropped[i].from <= number
}
