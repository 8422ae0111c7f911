package memmon

import (
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/weft-fabric/weft/internal/sys"
)

// fake is a monitor that sees what an arbiter is told, and nothing else; proven says that its own test is well.
type fake struct {
	mu       sync.Mutex
	calls    []string
	gone     func(Range)
	startErr error
	proveErr error
	unseen   []Event
	watchErr error
	broken   atomic.Bool
	coverage Coverage
	open     int
}

var errFake = errors.New("of the fake")

func newFake() *fake {
	return &fake{coverage: Coverage{Events: can[Private], Callers: []Caller{Library}, Classes: []Memory{Private}}}
}

func (f *fake) note(s string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls = append(f.calls, s)
}

func (f *fake) Name() string       { return "fake" }
func (f *fake) Coverage() Coverage { return f.coverage }
func (f *fake) Stop() error        { f.note("stop"); return nil }

func (f *fake) SelfTest() ([]Event, error) {
	f.note("test")
	return f.unseen, f.proveErr
}

func (f *fake) Start(gone func(Range)) error {
	f.note("start")
	f.gone = gone
	return f.startErr
}

func (f *fake) Err() error {
	if f.broken.Load() {
		return errFake
	}
	return nil
}

func (f *fake) Watch(Range) (Watch, error) {
	if f.watchErr != nil {
		return nil, f.watchErr
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.open++
	return &fakeWatch{f: f}, nil
}

type fakeWatch struct {
	f    *fake
	dead atomic.Bool
}

func (w *fakeWatch) Valid() bool { return !w.dead.Load() && !w.f.broken.Load() }

func (w *fakeWatch) Close() {
	w.f.mu.Lock()
	defer w.f.mu.Unlock()
	w.f.open--
}

func ignore(Range) {}

func TestArbiterStates(t *testing.T) {
	a := testArbiter(t)
	if s := a.Status(); s.Monitor != "none" || s.State != Idle {
		t.Errorf("at first: %+v", s)
	}
	f := newFake()
	if err := a.Import(f); err != nil {
		t.Fatal(err)
	}
	if s := a.Status(); s.Monitor != "fake" || s.State != Idle || !s.Imported {
		t.Errorf("imported: %+v", s)
	}
	if err := a.Import(newFake()); !errors.Is(err, ErrImported) {
		t.Errorf("a second one: %v", err)
	}
	if err := a.Choose("none"); !errors.Is(err, ErrImported) {
		t.Errorf("another choice: %v", err)
	}
	one := a.Attach(ignore, nil)
	two := a.Attach(ignore, nil)
	if s := a.Status(); s.State != Running || s.Caches != 2 {
		t.Errorf("with two caches: %+v", s)
	}
	one()
	one()
	if s := a.Status(); s.State != Running || s.Caches != 1 {
		t.Errorf("with one cache: %+v", s)
	}
	two()
	if s := a.Status(); s.State != Idle || s.Caches != 0 {
		t.Errorf("with none: %+v", s)
	}
	if want := []string{"start", "test", "test", "stop"}; !slices.Equal(f.calls, want) {
		t.Errorf("the monitor heard %v, not %v", f.calls, want)
	}
}

func TestArbiterTooLate(t *testing.T) {
	a := testArbiter(t)
	detach := a.Attach(ignore, nil)
	if err := a.Import(newFake()); !errors.Is(err, ErrInUse) {
		t.Errorf("import while a cache is attached: %v", err)
	}
	if err := a.Close(); !errors.Is(err, ErrInUse) {
		t.Errorf("close while a cache is attached: %v", err)
	}
	detach()
	if err := a.Import(newFake()); err != nil {
		t.Error(err)
	}
}

func TestF66ChoiceByName(t *testing.T) {
	a := testArbiter(t)
	if err := a.Choose("none"); err != nil {
		t.Error(err)
	}
	if err := a.Choose("userfautfd"); !errors.Is(err, errSetting) || !strings.Contains(err.Error(), "none") {
		t.Errorf("a name with a slip: %v", err)
	}
	t.Setenv(envMonitor, "memhooks")
	if err := a.FromEnv(); !errors.Is(err, errSetting) || !strings.Contains(err.Error(), envMonitor) {
		t.Errorf("a wrong name in the environment: %v", err)
	}
	t.Setenv(envMonitor, "none")
	t.Setenv(envCache, "perhaps")
	if err := a.FromEnv(); !errors.Is(err, errSetting) || !strings.Contains(err.Error(), "perhaps") {
		t.Errorf("a wrong word in the environment: %v", err)
	}
	t.Setenv(envCache, "off")
	if err := a.FromEnv(); err != nil || a.Enabled() {
		t.Errorf("%v, enabled: %v", err, a.Enabled())
	}
	t.Setenv(envCache, "on")
	if err := a.FromEnv(); err != nil || !a.Enabled() {
		t.Errorf("%v, enabled: %v", err, a.Enabled())
	}
}

// TestF67MonitorsProveThemselves has monitors that do not start, or do not see what they should: nothing is cached on their word.
func TestF67MonitorsProveThemselves(t *testing.T) {
	m, err := sys.MapAnonymous(pageSize)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	m.Bytes()[0] = 1
	for what, f := range map[string]*fake{
		"does not start":    {startErr: errFake, coverage: newFake().coverage},
		"sees nothing":      {proveErr: errFake, coverage: newFake().coverage},
		"sees too little":   {unseen: []Event{MapOver}, coverage: newFake().coverage},
		"sees other memory": {coverage: Coverage{Events: can[Data], Callers: []Caller{Library}, Classes: []Memory{Data}}},
	} {
		a := testArbiter(t)
		if err := a.Import(f); err != nil {
			t.Fatal(err)
		}
		detach := a.Attach(ignore, nil)
		if s := a.Status(); s.State != Failed || !errors.Is(s.Why, ErrMonitor) || !errors.Is(s.Why, errFake) && !errors.Is(s.Why, errUseless) {
			t.Errorf("%s: %+v", what, s)
		}
		if _, err := a.Prove(Mapped(m.Bytes(), nil)); !errors.Is(err, ErrUnanswered) {
			t.Errorf("%s: its word is taken: %v", what, err)
		}
		f.startErr, f.proveErr, f.unseen, f.coverage = nil, nil, nil, newFake().coverage
		again := a.Attach(ignore, nil) // probed again
		if s := a.Status(); s.State != Running {
			t.Errorf("%s: with the next cache: %+v", what, s)
		}
		again()
		detach()
		if f.calls[len(f.calls)-1] != "stop" {
			t.Errorf("%s: it heard %v", what, f.calls)
		}
	}
}

// TestChosenMonitorsProveThemselves: what was chosen serves, or it is an error that it does not (P8).
func TestChosenMonitorsProveThemselves(t *testing.T) {
	defer delete(choices, "fake")
	for what, f := range map[string]*fake{
		"does not start": {startErr: errFake, coverage: newFake().coverage},
		"sees nothing":   {proveErr: errFake, coverage: newFake().coverage},
		"works":          newFake(),
	} {
		choices["fake"] = func(*events) (Monitor, error) { return f, nil }
		a := testArbiter(t)
		works := f.startErr == nil && f.proveErr == nil
		switch err := a.Choose("fake"); {
		case works && err != nil, !works && (!errors.Is(err, ErrMonitor) || !errors.Is(err, errFake)):
			t.Errorf("%s: %v", what, err)
		}
		if s := a.Status(); (s.Monitor == "fake") != works || s.State != Idle || s.Why != nil {
			t.Errorf("%s: %+v", what, s)
		}
		if started := f.startErr == nil; started != (f.calls[len(f.calls)-1] == "stop") {
			t.Errorf("%s: it heard %v", what, f.calls)
		}
	}
}

// TestAnswersOnlyForPrivateMemory has a monitor say that it sees everything: what other processes do it cannot see.
func TestAnswersOnlyForPrivateMemory(t *testing.T) {
	all := Coverage{Callers: []Caller{Library, Raw}}
	for e := range numEvents {
		all.Events = append(all.Events, e)
	}
	for _, m := range AllMemory() {
		answers, misses := all.Answers(m)
		if answers != (m == Private || m == Data) || !slices.Equal(misses, elsewhere[m]) {
			t.Errorf("%v: %v, misses %v", m, answers, misses)
		}
	}
}

// nobodys is an address that no thread is given: nothing lies there unless the test maps it.
const nobodys = 256 << 10

// hasty is a monitor under whose nose memory goes away just before it begins to watch.
type hasty struct {
	*fake
	goes func() error
}

func (h hasty) Watch(r Range) (Watch, error) {
	w, err := h.fake.Watch(r)
	return w, errors.Join(err, h.goes())
}

// TestClassOfWhatIsWatched has memory change while a proof is made: what is watched counts, not what lay there before.
func TestClassOfWhatIsWatched(t *testing.T) {
	a := testArbiter(t)
	m, _, err := sys.MapAnonymousAt(nobodys, pageSize)
	if err != nil || m == nil {
		t.Fatal(m, err)
	}
	b, h := m.Bytes(), hasty{newFake(), m.Close}
	if err := a.Import(h); err != nil {
		t.Fatal(err)
	}
	defer a.Attach(ignore, nil)()
	if _, err := a.Prove(Mapped(b, nil)); !errors.Is(err, errMixed) || !errors.Is(err, ErrUnanswered) {
		t.Errorf("watched is not what was classed: %v", err)
	}
	if h.open != 0 {
		t.Errorf("%d watches are open", h.open)
	}
}

// deaf is a monitor that takes part in the arbiter's own test and sees nothing.
type deaf struct{ Monitor }

// TestF67LosesAnEvent has others destroy a part of a monitor's hooks: from the next cache on it answers only for memory that cannot go in
// that way, and what it has said before does not count.
func TestF67LosesAnEvent(t *testing.T) {
	a, f := testArbiter(t), newFake()
	f.coverage = Coverage{Events: append(slices.Clone(can[Data]), Truncate), Callers: []Caller{Library}}
	if err := a.Import(f); err != nil {
		t.Fatal(err)
	}
	var log strings.Builder
	defer a.Attach(ignore, nil)()
	b := pages(t, 1).Bytes()
	before, err := a.Prove(Mapped(b, nil))
	if err != nil || !before.Valid() {
		t.Fatal(err)
	}
	defer before.Close()
	f.unseen = []Event{Break}
	defer a.Attach(ignore, slog.New(slog.NewTextHandler(&log, nil)))()
	s := a.Status()
	if ok, misses := s.Coverage.Answers(Data); s.State != Running || ok || !slices.Equal(misses, f.unseen) {
		t.Errorf("%+v: it answers for the data segment: %v, but for %v", s, ok, misses)
	}
	if !strings.Contains(log.String(), "unseen=brk") {
		t.Errorf("the log is %q", log.String())
	}
	if before.Valid() {
		t.Error("an old answer counts")
	}
	now, err := a.Prove(Mapped(b, nil))
	if err != nil || !now.Valid() {
		t.Fatalf("it does not answer for a mapping: %v", err)
	}
	now.Close()
	f.unseen = nil
	defer a.Attach(ignore, nil)()
	if ok, _ := a.Status().Coverage.Answers(Data); !ok {
		t.Error("it sees all again, and does not answer for the data segment")
	}
}

func TestF67DeafMonitor(t *testing.T) {
	a := testArbiter(t)
	if err := a.Import(deaf{newFake()}); err != nil { // embedded as a Monitor: no SelfTest
		t.Fatal(err)
	}
	defer a.Attach(ignore, nil)()
	if s := a.Status(); s.State != Failed || !errors.Is(s.Why, errUnseen) {
		t.Errorf("%+v", s)
	}
}

func TestObserved(t *testing.T) {
	a, f := testArbiter(t), newFake()
	if err := a.Import(f); err != nil {
		t.Fatal(err)
	}
	detach := a.Attach(ignore, nil)
	m, err := sys.MapAnonymous(4 * pageSize)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	prove := func() Proof {
		p, err := a.Prove(Mapped(m.Bytes()[100:pageSize+100], nil))
		if err != nil || !p.Valid() {
			t.Fatal(err)
		}
		return p
	}
	p := prove()
	a.Notify(RangeOf(m.Bytes()[2*pageSize:]))
	if !p.Valid() {
		t.Error("dead by what happened to its neighbour")
	}
	a.Notify(RangeOf(m.Bytes()[2*pageSize-1 : 2*pageSize]))
	if p.Valid() {
		t.Error("valid although its last page went")
	}
	q := prove()
	f.broken.Store(true)
	if s := a.Status(); q.Valid() || s.State != Failed || !errors.Is(s.Why, errFake) {
		t.Errorf("valid %v although the monitor is broken; %+v", q.Valid(), s)
	}
	if _, err := a.Prove(Mapped(m.Bytes(), nil)); !errors.Is(err, ErrUnanswered) {
		t.Errorf("proven by a broken monitor: %v", err)
	}
	f.broken.Store(false)
	f.watchErr = errFake
	if _, err := a.Prove(Mapped(m.Bytes(), nil)); !errors.Is(err, ErrUnanswered) || !errors.Is(err, errFake) {
		t.Errorf("what cannot be watched: %v", err)
	}
	p.Close()
	q.Close()
	detach()
	if f.open != 0 {
		t.Errorf("%d watches are open", f.open)
	}
	if a.events.wanted(Everything) {
		t.Error("something is wanted yet")
	}
}

// shared is a page that others could truncate.
func shared(t *testing.T) []byte {
	t.Helper()
	fd, err := sys.Memfd(sys.MemfdConfig{Name: "shared", Size: int64(pageSize)})
	if err != nil {
		t.Fatal(err)
	}
	m, err := sys.Map(fd, 0, pageSize, true)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = m.Close(), fd.Close() })
	return m.Bytes()
}

func TestObservedOnlyWhatIsCovered(t *testing.T) {
	a, f := testArbiter(t), newFake()
	f.coverage.Classes = nil
	if err := a.Import(f); err != nil {
		t.Fatal(err)
	}
	defer a.Attach(ignore, nil)()
	if _, err := a.Prove(Mapped(shared(t), nil)); !errors.Is(err, ErrUnanswered) {
		t.Errorf("shared memory that others can truncate: %v", err)
	}
	if _, err := a.Prove(Mapped(sys.BytesAt(nobodys, pageSize), nil)); !errors.Is(err, ErrUnanswered) {
		t.Errorf("memory that is not mapped: %v", err)
	}
}

func TestFlushAndDisable(t *testing.T) {
	a := testArbiter(t)
	var told []Range
	defer a.Attach(func(r Range) { told = append(told, r) }, nil)()
	before := a.Epoch()
	a.Flush()
	a.Disable()
	if a.Enabled() || a.Epoch() != before+2 || !slices.Equal(told, []Range{Everything, Everything}) {
		t.Errorf("enabled %v, epoch %d after %d, told %v", a.Enabled(), a.Epoch(), before, told)
	}
	a.Enable()
	if !a.Enabled() {
		t.Error("off after Enable")
	}
}
