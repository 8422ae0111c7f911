package memmon

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/weft-fabric/weft/internal/sys"
)

var (
	errUnseen  = errors.New("it was not seen")
	errTooMuch = errors.New("memory is not valid although nothing has happened")

	pageSize = os.Getpagesize()
)

var errUseless = errors.New("it answers for no memory")

// test has a monitor prove itself: nobody's word is taken for what can be tried. The coverage is what it has shown.
func (a *Arbiter) test(s *serving) (Coverage, error) {
	sees := s.monitor.Coverage()
	if t, ok := s.monitor.(SelfTester); ok {
		unseen, err := t.SelfTest()
		if err != nil {
			return sees, fmt.Errorf("%s: its own test: %w: %w", s.monitor.Name(), ErrMonitor, err)
		}
		sees = sees.without(unseen)
		switch ok, misses := sees.Answers(Private); {
		case ok:
			return sees, s.monitor.Err()
		case misses == nil:
			return sees, fmt.Errorf("%s: %w: %w: %v are all that it watches", s.monitor.Name(), ErrMonitor, errUseless, sees.Classes)
		default:
			return sees, fmt.Errorf("%s: its own test: %w: %w: %w: %v", s.monitor.Name(), ErrMonitor, errUseless, errUnseen, misses)
		}
	}
	return sees, a.tryAll(s)
}

// tryOut has a monitor prove itself that is not to serve yet.
func (a *Arbiter) tryOut(m Monitor) error {
	if err := start(m, func(Range) {}); err != nil {
		return err
	}
	_, err := a.test(&serving{monitor: m, coverage: m.Coverage()})
	if stop := m.Stop(); stop != nil {
		err = errors.Join(err, fmt.Errorf("%s: stop: %w: %w", m.Name(), ErrMonitor, stop))
	}
	return err
}

// tryAll has all happen to pages that Go can do.
func (a *Arbiter) tryAll(s *serving) error {
	m := s.monitor
	for _, trial := range []struct {
		event Event
		do    func(*sys.Anonymous) error
	}{
		{Unmap, (*sys.Anonymous).Close},
		{MapOver, (*sys.Anonymous).MapOver},
		{DontNeed, func(p *sys.Anonymous) error { return sys.NewPages(p.Bytes()) }},
	} {
		if !slices.Contains(s.coverage.Events, trial.event) {
			continue
		}
		if err := a.try(s, trial.do); err != nil {
			return fmt.Errorf("%s: test with %v: %w: %w", m.Name(), trial.event, ErrMonitor, err)
		}
	}
	return m.Err()
}

// try has one thing happen to a page that is watched.
func (a *Arbiter) try(s *serving, do func(*sys.Anonymous) error) error {
	p, err := sys.MapAnonymous(pageSize)
	if err != nil {
		return err
	}
	defer p.Close()
	p.Bytes()[0] = 1
	w, err := a.calm(s, RangeOf(p.Bytes()))
	if err != nil {
		return err
	}
	defer w.Close()
	if err := do(p); err != nil {
		return err
	}
	if w.Valid() {
		return errUnseen
	}
	return nil
}

// testPatience is how long the test looks for a moment at which nothing else happens in the process: whoever is posting an event may have to wait for a core.
const testPatience = time.Second

// calm observes a range of which nothing is told at the moment.
func (a *Arbiter) calm(s *serving, r Range) (*observed, error) {
	for end := time.Now().Add(testPatience); ; sys.Yield() {
		w, err := a.observe(s, r)
		if err != nil || w.Valid() {
			return w, err
		}
		w.Close()
		if time.Now().After(end) {
			return nil, errTooMuch
		}
	}
}
