package pinnic

import (
	"errors"
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/weft-fabric/weft/internal/sys"
	"github.com/weft-fabric/weft/internal/testutil"
	"github.com/weft-fabric/weft/memmon"
)

// outcome is a line of the table.
type outcome struct{ shows, carries, receives, again string }

// nowhere stands for what cannot be seen.
const nowhere = "(fault)"

func shown(m *memory) string {
	if m.bytes == nil {
		return nowhere
	}
	return contents(m.bytes)
}

// TestSoakStaleTable shows that the card does what network cards do: what was registered, not what the address means, is sent and received into. Nobody
// looks whether the memory is still the one that was registered, so this is also what a cache without validity does.
func TestSoakStaleTable(t *testing.T) {
	eachWay(t, func(t *testing.T, w *wired) {
		for _, e := range events {
			var got outcome
			for range e.rounds(w) {
				got = staleRound(t, w, e)
				if want := expected(e); got != want {
					t.Fatalf("%s: %+v, not %+v", e.name, got, want)
				}
			}
			t.Logf("%-34s | shows %-7s | wire carries %-4s | after receiving it shows %-7s | re-registered: %s",
				e.name, got.shows, got.carries, got.receives, got.again)
		}
	})
}

func expected(e event) outcome {
	o := outcome{shows: newBytes, carries: e.wire, receives: newBytes, again: newBytes}
	if e.wire == newBytes {
		o.receives = wireBytes
	}
	if e.blind {
		o.shows, o.receives, o.again = nowhere, nowhere, nowhere
	}
	return o
}

func staleRound(t *testing.T, w *wired, e event) (o outcome) {
	t.Helper()
	var h Handle
	m := e.happens(t, func(m *memory) {
		if h != (Handle{}) { // of memory whose address was lost
			w.deregister(h)
		}
		h = w.register(m.bytes)
	})
	defer m.close()
	o.shows = shown(m)
	o.carries = w.carries(h, memoryBytes)
	o.again = nowhere
	if m.bytes != nil {
		again := w.register(m.bytes)
		o.again = w.carries(again, memoryBytes)
		w.deregister(again)
	}
	w.receive(h, memoryBytes)
	o.receives = shown(m)
	w.deregister(h)
	return o
}

// owner tells of memory by a number.
type owner struct{ gen atomic.Uint64 }

func (o *owner) Generation() uint64 { return o.gen.Load() }

// monitor is another middleware's that hears of everything: by Notify.
type monitor struct{}

func (monitor) Name() string                             { return "of the test" }
func (monitor) Start(func(memmon.Range)) error           { return nil }
func (monitor) Stop() error                              { return nil }
func (monitor) Err() error                               { return nil }
func (monitor) SelfTest() ([]memmon.Event, error)        { return nil, nil }
func (monitor) Watch(memmon.Range) (memmon.Watch, error) { return watch{}, nil }

func (monitor) Coverage() memmon.Coverage {
	return memmon.Coverage{
		Events: []memmon.Event{
			memmon.Unmap, memmon.MapOver, memmon.MoveAway, memmon.DontNeed, memmon.Free, memmon.Remove, memmon.Break, memmon.Detach,
			memmon.PunchHole, memmon.Truncate,
		},
		Callers: []memmon.Caller{memmon.Library, memmon.Raw},
	}
}

type watch struct{}

func (watch) Valid() bool { return true } // the arbiter's events say when it is not
func (watch) Close()      {}

// newArbiter makes one with the monitor, which serves until the test ends.
func newArbiter(t *testing.T) *memmon.Arbiter {
	t.Helper()
	return arbiterWith(t, func(a *memmon.Arbiter) error { return a.Import(monitor{}) })
}

func userfaultArbiter(t *testing.T) *memmon.Arbiter {
	t.Helper()
	testutil.Require(t, testutil.Capability{Name: "userfaultfd with write protection", Probe: sys.CanUserfault, Fixed: true})
	return arbiterWith(t, func(a *memmon.Arbiter) error { return a.Choose("userfaultfd") })
}

func arbiterWith(t *testing.T, install func(*memmon.Arbiter) error) *memmon.Arbiter {
	t.Helper()
	a, err := memmon.NewArbiter()
	if err != nil {
		t.Fatal(err)
	}
	if err := install(a); err != nil {
		t.Fatal(err)
	}
	detach := a.Attach(func(memmon.Range) {}, nil)
	t.Cleanup(func() {
		detach()
		if err := a.Close(); err != nil {
			t.Error(err)
		}
	})
	if s := a.Status(); s.State != memmon.Running {
		t.Fatalf("%+v", s)
	}
	return a
}

// answerer is somebody who answers for mapped memory.
type answerer struct {
	arbiter func(*testing.T) *memmon.Arbiter
	// of says what kind memory is, and what is done before it goes.
	of     func(*memmon.Arbiter, memmon.Range) (kind func([]byte) memmon.Kind, goes func())
	shared bool // also for memory that other processes can change
}

// answers are the proper ones. Nobody tells userfaultfd of anything: it hears of it from the kernel.
var answers = map[string]answerer{
	"owner": {arbiter: newArbiter, shared: true, of: func(*memmon.Arbiter, memmon.Range) (func([]byte) memmon.Kind, func()) {
		o := new(owner)
		return func(b []byte) memmon.Kind { return memmon.Mapped(b, o) }, func() { o.gen.Add(1) }
	}},
	"monitor": {arbiter: newArbiter, of: func(a *memmon.Arbiter, r memmon.Range) (func([]byte) memmon.Kind, func()) {
		return ofNobody, func() { a.Notify(r) }
	}},
	"userfaultfd": {arbiter: userfaultArbiter, of: func(*memmon.Arbiter, memmon.Range) (func([]byte) memmon.Kind, func()) {
		return ofNobody, func() {}
	}},
}

func ofNobody(b []byte) memmon.Kind { return memmon.Mapped(b, nil) }

// entry is what a cache has: a registration, and the proof that it may be used, made before.
type entry struct {
	w      *wired
	proof  memmon.Proof
	handle Handle
}

// maxProofs is how many proofs are made when what happened before is still being told, so that they are not valid, to be safe.
const maxProofs = 1_000_000

func newEntry(t *testing.T, w *wired, a *memmon.Arbiter, k memmon.Kind) *entry {
	t.Helper()
	for range maxProofs {
		p, err := a.Prove(k)
		if err != nil {
			t.Fatal(err)
		}
		if p.Valid() {
			return &entry{w, p, w.register(k.Bytes())}
		}
		p.Close()
		runtime.Gosched()
	}
	t.Fatal("no proof is valid")
	return nil
}

// valid asks the proof, in both ways.
func (e *entry) valid() bool {
	e.w.t.Helper()
	held, is := e.proof.Hold()
	if also := e.proof.Valid(); also != is {
		e.w.t.Fatalf("held: %v (%v), valid: %v", is, held, also)
	}
	return is
}

func (e *entry) drop() {
	e.proof.Close()
	e.w.deregister(e.handle)
}

// TestSoakStaleProofs plays the table with whoever answers for mapped memory: a registration whose proof is valid carries what memory
// shows, and after each event that gives other pages it is not valid.
func TestSoakStaleProofs(t *testing.T) {
	for who, answer := range answers {
		t.Run(who, func(t *testing.T) {
			a, rounds := answer.arbiter(t), 0
			eachEvent(t, func(t *testing.T, w *wired, e event) {
				for range e.rounds(w) {
					rounds++
					if e.shared && !answer.shared {
						refusedRound(t, a)
					} else {
						proofRound(t, w, e, a, answer)
					}
				}
			})
			t.Logf("registration: %d rounds of the table with proofs", rounds)
		})
	}
}

// refusedRound has no monitor be asked for memory that other processes can change, whatever it says of itself.
func refusedRound(t *testing.T, a *memmon.Arbiter) {
	t.Helper()
	m := newMemory(t, true)
	defer m.close()
	if p, err := a.Prove(ofNobody(m.bytes)); !errors.Is(err, memmon.ErrUnanswered) {
		t.Errorf("shared memory: %v, %v", p, err)
	}
}

func proofRound(t *testing.T, w *wired, e event, a *memmon.Arbiter, answer answerer) {
	t.Helper()
	var x *entry
	var kind func([]byte) memmon.Kind
	m := e.happens(t, func(m *memory) {
		if x != nil {
			x.drop()
		}
		kind, m.goes = answer.of(a, m.where)
		x = newEntry(t, w, a, kind(m.bytes))
	})
	defer m.close()
	if valid := x.valid(); valid != e.keeps {
		t.Fatalf("valid: %v", valid)
	}
	if !x.valid() && m.bytes != nil { // as a cache does
		x.drop()
		x = newEntry(t, w, a, kind(m.bytes))
	}
	if x.valid() {
		if carries := w.carries(x.handle, memoryBytes); carries != newBytes {
			t.Errorf("a valid registration carries %s", carries)
		}
		w.receive(x.handle, memoryBytes)
		if shows := shown(m); shows != wireBytes && shows != nowhere {
			t.Errorf("what a valid registration received is not there, but %s", shows)
		}
	}
	x.drop()
}
