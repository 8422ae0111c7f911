package dp

import (
	"slices"
	"sync"

	"github.com/weft-fabric/weft/internal/invariants"
)

// A step goes back to its writer when nobody looks at its memory any more: the writer
// computes the next one there.

// uses counts what is in use of the writers' memory, by step.
type uses struct {
	mu    sync.Mutex
	steps map[int64]*use // those that were begun and may still be in use; guarded by mu
	ended bool           // nothing begins any more; guarded by mu
}

// use counts views and copies of one step. The lock of uses guards it.
type use struct {
	number int64
	n      int
	over   bool     // nothing begins any more
	then   []func() // to be called when nothing is in use
	leases []*lease // by writer rank, the newest of each
}

// AfterViews says that the step is over: no view or copy of its memory begins any more.
// It calls then, once, as soon as none is in use: now, in the goroutine of the caller,
// or, with the release of the last one, in one of its own, since who releases may hold
// any lock. It reports whether that was now.
//
// Fail and Close do not hurry it: views outlive them, and to say of a step that nobody
// looks at it while somebody does would damage what he sees. A view that is never
// released keeps then from being called. The plane does not wait for it either.
func (p *Native) AfterViews(number int64, then func()) (now bool) {
	if p.uses.after(number, then) {
		return false
	}
	then()
	return true
}

// InUse lists the steps of whose memory a view or a copy is in use, rising. After Fail
// there will be no others.
func (p *Native) InUse() []int64 {
	p.uses.mu.Lock()
	defer p.uses.mu.Unlock()
	var list []int64
	for number, s := range p.uses.steps {
		if s.n > 0 {
			list = append(list, number)
		}
	}
	slices.Sort(list)
	return list
}

// open returns the counts of a step that begins.
func (u *uses) open(number int64) *use {
	u.mu.Lock()
	defer u.mu.Unlock()
	s := u.steps[number]
	if s == nil {
		s = &use{number: number}
		u.steps[number] = s
	}
	return s
}

// begin counts one more use; false if the step is over.
func (u *uses) begin(s *use) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	if s.over {
		return false
	}
	s.n++
	return true
}

// end ends a use.
func (u *uses) end(s *use) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.endLocked(s)
}

// endLocked is end for who holds mu.
func (u *uses) endLocked(s *use) {
	s.n--
	if invariants.Enabled {
		invariants.Checkf(s.n >= 0, "step %d: a view was released twice", s.number)
	}
	if s.n > 0 || !s.over {
		return
	}
	delete(u.steps, s.number)
	then := s.then
	go func() {
		for _, f := range then {
			f()
		}
	}()
}

// after ends the step, and keeps then for when it is in use no more; false if it is not
// in use.
func (u *uses) after(number int64, then func()) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	s := u.steps[number]
	if s == nil {
		return false
	}
	s.over = true
	s.retire()
	if s.n == 0 {
		delete(u.steps, number)
		return false
	}
	s.then = append(s.then, then)
	return true
}
