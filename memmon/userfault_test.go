package memmon

import (
	"errors"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/weft-fabric/weft/internal/sys"
	"github.com/weft-fabric/weft/internal/testutil"
)

// withUserfault is an arbiter that userfaultfd serves.
func withUserfault(t *testing.T) *Arbiter {
	t.Helper()
	testutil.Require(t, testutil.Capability{Name: "userfaultfd with write protection", Probe: sys.CanUserfault, Fixed: true})
	a := testArbiter(t)
	if err := a.Choose("userfaultfd"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(a.Attach(ignore, nil))
	if s := a.Status(); s.State != Running || s.Monitor != "userfaultfd" {
		t.Fatalf("%+v", s)
	}
	return a
}

func pages(t *testing.T, n int) *sys.Anonymous {
	t.Helper()
	m, err := sys.MapAnonymous(n * pageSize)
	if err != nil {
		t.Fatal(err)
	}
	m.Bytes()[0] = 1
	t.Cleanup(func() { _ = m.Close() })
	return m
}

// proofOf makes a proof at a moment at which nothing waits to be told: else it would not be valid, to be safe.
func proofOf(t *testing.T, a *Arbiter, b []byte) Proof {
	t.Helper()
	for {
		p, err := a.Prove(Mapped(b, nil))
		if err != nil {
			t.Fatal(err)
		}
		if p.Valid() {
			return p
		}
		p.Close()
		runtime.Gosched()
	}
}

func TestUserfault(t *testing.T) {
	a := withUserfault(t)
	for what, do := range map[string]func(*sys.Anonymous) error{
		"unmapped":    (*sys.Anonymous).Close,
		"mapped over": (*sys.Anonymous).MapOver,
		"dropped":     func(m *sys.Anonymous) error { return sys.NewPages(m.Bytes()) },
		"a part":      func(m *sys.Anonymous) error { return sys.NewPages(m.Bytes()[pageSize:]) },
	} {
		m := pages(t, 2)
		p := proofOf(t, a, m.Bytes())
		if err := do(m); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if p.Valid() {
				t.Errorf("%s: it is still valid", what)
			}
		}
		p.Close()
	}
	if _, err := a.Prove(Mapped(make([]byte, 1<<20), nil)); err == nil {
		t.Error("it watches the Go heap")
	}
}

// TestF60WatchesAreTheirOwners closes the watch of memory that is gone after other memory came to lie there: that is still watched.
func TestF60WatchesAreTheirOwners(t *testing.T) {
	a := withUserfault(t)
	m := pages(t, 4)
	old := proofOf(t, a, m.Bytes())
	if err := m.MapOver(); err != nil {
		t.Fatal(err)
	}
	m.Bytes()[0] = 2
	young := proofOf(t, a, m.Bytes()[pageSize:3*pageSize])
	if old.Valid() {
		t.Error("valid although other memory lies there, and is watched")
	}
	old.Close()
	if !young.Valid() {
		t.Error("the end of an old watch has ended a new one")
	}
	if err := m.MapOver(); err != nil {
		t.Fatal(err)
	}
	if young.Valid() {
		t.Error("not seen any more")
	}
	young.Close()
}

func TestWithout(t *testing.T) {
	for i, c := range []struct {
		list []Range
		o    Range
		want []Range
	}{
		{[]Range{{10, 10}}, Range{0, 10}, []Range{{10, 10}}},
		{[]Range{{10, 10}}, Range{12, 3}, []Range{{10, 2}, {15, 5}}},
		{[]Range{{10, 10}}, Range{5, 10}, []Range{{15, 5}}},
		{[]Range{{10, 10}, {30, 5}}, Range{15, 16}, []Range{{10, 5}, {31, 4}}},
		{[]Range{{10, 10}}, Range{0, 100}, nil},
	} {
		if got := without(c.list, c.o); !slices.Equal(got, c.want) {
			t.Errorf("%d: %v", i, got)
		}
	}
}

// TestUserfaultWindow has a second thread map the address again while the first one is still inside of munmap: the old proof must never
// be valid once new memory lies there.
func TestUserfaultWindow(t *testing.T) {
	a := withUserfault(t)
	for n := range testutil.Count(t, 500, 20000) {
		m := pages(t, 1)
		b := m.Bytes()
		p := proofOf(t, a, b)
		var all sync.WaitGroup
		var unmapped atomic.Bool
		all.Go(func() {
			if err := m.Close(); err != nil {
				t.Error(err)
			}
			unmapped.Store(true)
		})
		late := false
		again, taken, err := claim(RangeOf(b).Addr)
		for taken && err == nil && !late {
			late = unmapped.Load() // then what lies there is not ours
			again, taken, err = claim(RangeOf(b).Addr)
		}
		if err != nil {
			t.Fatal(err)
		}
		if taken { // a thread of the runtime was faster
			all.Wait()
			p.Close()
			continue
		}
		if p.Valid() {
			t.Errorf("round %d: valid although other memory lies there", n)
		}
		all.Wait()
		p.Close()
		if err := again.Close(); err != nil {
			t.Fatal(err)
		}
		if t.Failed() {
			return
		}
	}
}

// EndReader ends the thread that reads userfaultfd, as an error does. It does not wait.
func EndReader(a *Arbiter) error { return a.monitor.(*userfault).fd.Load().End() }

func claim(addr uint64) (*sys.Anonymous, bool, error) { return sys.MapAnonymousAt(addr, pageSize) }

// TestHoleIsNotAnswered has a range of which a page is not mapped: its monitor is told nothing when memory comes to lie there.
func TestHoleIsNotAnswered(t *testing.T) {
	a := withUserfault(t)
	for hole := range 3 {
		m := pages(t, 3)
		b := m.Bytes()
		if err := m.Close(); err != nil {
			t.Fatal(err)
		}
		for i := range 3 {
			if i == hole {
				continue
			}
			part, taken, err := claim(RangeOf(b).Addr + uint64(i*pageSize))
			if err != nil || taken {
				t.Fatal(taken, err)
			}
			defer part.Close()
		}
		if p, err := a.Prove(Mapped(b, nil)); !errors.Is(err, ErrUnanswered) {
			t.Errorf("page %d is not mapped, and there is a proof: %v", hole, err)
			p.Close()
		}
	}
}
