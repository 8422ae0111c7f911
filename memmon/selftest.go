package memmon

import (
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/weft-fabric/weft/internal/sys"
)

var (
	errUnseen  = errors.New("it was not seen")
	errTooMuch = errors.New("memory is not valid although nothing has happened")

	pageSize = os.Getpagesize()
)

// test has a monitor prove itself: nobody's word is taken for what can be tried.
func (a *Arbiter) test(m Monitor) error {
	if t, ok := m.(SelfTester); ok {
		if err := t.SelfTest(); err != nil {
			return fmt.Errorf("%s: its own test: %w: %w", m.Name(), ErrMonitor, err)
		}
		return m.Err()
	}
	sees := m.Coverage().Events
	for _, trial := range []struct {
		event Event
		do    func(*sys.Anonymous) error
	}{
		{Unmap, (*sys.Anonymous).Close},
		{MapOver, (*sys.Anonymous).MapOver},
		{DontNeed, func(p *sys.Anonymous) error { return sys.NewPages(p.Bytes()) }},
	} {
		if !slices.Contains(sees, trial.event) {
			continue
		}
		if err := try(m, trial.do); err != nil {
			return fmt.Errorf("%s: test with %v: %w: %w", m.Name(), trial.event, ErrMonitor, err)
		}
	}
	return m.Err()
}

// try has one thing happen to a page that is watched.
func try(m Monitor, do func(*sys.Anonymous) error) error {
	p, err := sys.MapAnonymous(pageSize)
	if err != nil {
		return err
	}
	defer p.Close()
	p.Bytes()[0] = 1
	w, err := m.Watch(RangeOf(p.Bytes()))
	if err != nil {
		return err
	}
	defer w.Close()
	if !w.Valid() {
		return errTooMuch
	}
	if err := do(p); err != nil {
		return err
	}
	if w.Valid() {
		return errUnseen
	}
	return nil
}
