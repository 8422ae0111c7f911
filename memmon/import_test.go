package memmon

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

// curious is a monitor all of whose methods ask the arbiter whatever they may.
type curious struct {
	*fake
	a *Arbiter
}

func (m curious) ask() {
	m.a.Status()
	m.a.Notify(Range{1, 1})
	m.a.Flush()
	m.a.Disable()
	m.a.Enable()
	m.a.Export(ignore)()
	if p, err := m.a.Prove(HeapBytes(make([]byte, 1))); err == nil {
		p.Close()
	}
}

func (m curious) Name() string { m.ask(); return m.fake.Name() }

func (m curious) Coverage() Coverage { m.ask(); return m.fake.Coverage() }

func (m curious) Start(gone func(Range)) error { m.ask(); return m.fake.Start(gone) }

func (m curious) Stop() error { m.ask(); return m.fake.Stop() }

func (m curious) Err() error { return m.fake.Err() } // Status asks it

func (m curious) SelfTest() ([]Event, error) { m.ask(); return m.fake.SelfTest() }

func (m curious) Watch(r Range) (Watch, error) { m.ask(); return m.fake.Watch(r) }

// TestMonitorAsks has a monitor ask the arbiter from inside of each of its methods.
func TestMonitorAsks(t *testing.T) {
	a := testArbiter(t)
	f := newFake()
	if err := a.Import(curious{f, a}); err != nil {
		t.Fatal(err)
	}
	detach := a.Attach(ignore, nil)
	p, err := a.Prove(Mapped(pages(t, 1).Bytes(), nil))
	if err != nil {
		t.Fatal(err)
	}
	p.Close()
	detach()
	if want := []string{"start", "test", "stop"}; !slices.Equal(f.calls, want) || a.Status().State != Idle {
		t.Errorf("it heard %v; %+v", f.calls, a.Status())
	}
	if err := a.Import(curious{f, a}); !errors.Is(err, ErrImported) {
		t.Error(err)
	}
}

// broken is a monitor that panics when it is asked what it is.
type broken struct{ Monitor }

// TestBrokenMonitorIsNotInstalled has a program go on after the panic: another monitor can serve.
func TestBrokenMonitorIsNotInstalled(t *testing.T) {
	a := testArbiter(t)
	func() {
		defer func() {
			if recover() == nil {
				t.Error("it has a name")
			}
		}()
		_ = a.Import((*broken)(nil))
	}()
	if err := a.Import(newFake()); err != nil {
		t.Error(err)
	}
}

// TestUnknownCoverage has a monitor say things of a later version: it serves, and says so.
func TestUnknownCoverage(t *testing.T) {
	a, f := testArbiter(t), newFake()
	f.coverage.Callers = append(f.coverage.Callers, numCallers)
	f.coverage.Classes = append(f.coverage.Classes, numMemories)
	f.coverage.Events = append(slices.Clone(f.coverage.Events), numEvents, 255)
	if err := a.Import(f); err != nil {
		t.Fatal(err)
	}
	defer a.Attach(ignore, nil)()
	if s := a.Status(); s.State != Running || !strings.Contains(s.Coverage.String(), "unknown callers") {
		t.Errorf("%+v", s)
	}
}

// careless is a monitor that watches, it says, and gives nothing to ask.
type careless struct{ *fake }

func (careless) Watch(Range) (Watch, error) { return nil, nil } //nolint:nilnil // that is the point

// TestNothingToAsk has memory that a careless monitor watches be uncached, and not a panic at each hit.
func TestNothingToAsk(t *testing.T) {
	a := testArbiter(t)
	if err := a.Import(careless{newFake()}); err != nil {
		t.Fatal(err)
	}
	defer a.Attach(ignore, nil)()
	if _, err := a.Prove(Mapped(pages(t, 1).Bytes(), nil)); !errors.Is(err, ErrUnanswered) || a.events.wanted(Everything) {
		t.Errorf("%v, wanted %v", err, a.events.wanted(Everything))
	}
}

// faint is a monitor that panics when it is to watch.
type faint struct{ *fake }

func (faint) Watch(Range) (Watch, error) { panic(errFake) }

// TestWatchPanics has a program go on after the panic: nobody is woken for memory that is not watched.
func TestWatchPanics(t *testing.T) {
	a := testArbiter(t)
	if err := a.Import(faint{newFake()}); err != nil {
		t.Fatal(err)
	}
	defer a.Attach(ignore, nil)()
	defer func() {
		if recover() == nil || a.events.wanted(Everything) {
			t.Errorf("wanted %v", a.events.wanted(Everything))
		}
	}()
	_, _ = a.Prove(Mapped(pages(t, 1).Bytes(), nil))
}

// startled is a monitor that panics when it starts, or is tested.
type startled struct {
	*fake
	late bool
}

func (m startled) Start(gone func(Range)) error {
	if !m.late {
		panic(errFake)
	}
	return m.fake.Start(gone)
}

func (startled) SelfTest() ([]Event, error) { panic(errFake) }

// TestAttachPanics has a program go on after the panic of a monitor: no cache is attached then.
func TestAttachPanics(t *testing.T) {
	for _, late := range []bool{false, true} {
		a, m := testArbiter(t), startled{newFake(), late}
		if err := a.Import(m); err != nil {
			t.Fatal(err)
		}
		func() {
			defer func() {
				if recover() == nil {
					t.Error("it is attached")
				}
			}()
			a.Attach(ignore, nil)
		}()
		if s := a.Status(); s.Caches != 0 || late && (len(m.calls) != 2 || m.calls[1] != "stop") {
			t.Errorf("%+v; it heard %v", s, m.calls)
		}
	}
}
