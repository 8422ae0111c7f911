package memmon

import (
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"

	"github.com/weft-fabric/weft/internal/hooks"
)

// Arbiter decides which monitor serves, and joins it with the caches. A process has one, [Process]: memory is the process's.
//
// All methods are safe for concurrent use.
type Arbiter struct {
	events   *events
	alone    error                   // why neither C nor another copy of Weft can find the events; nil: they can
	serving  atomic.Pointer[serving] // nil: no monitor answers
	sinks    atomic.Pointer[[]*sink]
	exports  listeners // those who have registrations of their own, and cannot see what Go does
	shortage listeners // caches
	off      atomic.Bool
	epoch    atomic.Uint64

	turn     sync.Mutex // of who changes what serves; held while a monitor starts, is tested and stops
	monitor  Monitor    // guarded by turn, as is what follows; nil: none
	imported bool
	started  bool
	drainer  *drainer
	find     func() (hooks.Report, error) // looks for hooks; nil: hooks.Find
	looked   bool

	mu     sync.Mutex // of the status, which is its own so that it can be asked at any time
	status Status     // without what Status adds
}

// serving is a monitor that answers.
type serving struct {
	monitor  Monitor
	coverage Coverage
	over     atomic.Bool // it does not answer any more
}

// sink is a cache.
type sink struct {
	gone func(Range)
	log  *slog.Logger
}

// NewArbiter is for tests: its events are only what Go tells it.
func NewArbiter() (*Arbiter, error) {
	e, err := newEvents()
	if err != nil {
		return nil, err
	}
	return &Arbiter{events: e}, nil
}

// Close ends an arbiter of NewArbiter, which no cache uses any more; with [ErrInUse] if one does. The process's is never closed.
func (a *Arbiter) Close() error {
	a.turn.Lock()
	defer a.turn.Unlock()
	if len(a.attached()) > 0 {
		return fmt.Errorf("memmon: close: %w: %d", ErrInUse, len(a.attached()))
	}
	return a.events.close()
}

// Choose says which monitor of Weft's own serves from now on: "none", or "userfaultfd". It is started, has to prove itself, and is stopped until a
// cache attaches: if that does not work here, Choose fails with [ErrMonitor], and what was chosen before stays. It fails with [ErrInUse] when a cache is
// attached.
func (a *Arbiter) Choose(name string) error {
	m, err := monitorOf(name, a)
	if err != nil {
		return err
	}
	return a.install(m, false)
}

// Import makes another middleware's monitor the one that serves. It fails with [ErrImported] if that was done before, and with [ErrInUse] when it is
// too late: a cache is attached. The monitor's methods must not call Choose, FromEnv, Import, Attach, a detach or Close of the arbiter, which wait for
// them, nor close a cache; all else they may.
func (a *Arbiter) Import(m Monitor) error {
	if m == nil {
		return fmt.Errorf("memmon: import: no monitor: %w", ErrMonitor)
	}
	if box, ok := m.(*mailbox); ok && box.e != a.events { // its probes would be seen, and nothing that is told there later
		return fmt.Errorf("memmon: import: %s is of another arbiter: %w", m.Name(), ErrMonitor)
	}
	return a.install(m, true)
}

func (a *Arbiter) install(m Monitor, imported bool) error {
	status := Status{Monitor: nameOf(m), Imported: imported} // asked first: a monitor may ask for the status, and one that is broken is not installed
	if m != nil {
		status.Coverage = m.Coverage()
	}
	a.turn.Lock()
	defer a.turn.Unlock()
	switch {
	case a.imported:
		return fmt.Errorf("memmon: %s serves: %w", a.monitor.Name(), ErrImported)
	case len(a.attached()) > 0:
		return fmt.Errorf("memmon: too late for %s in the place of %s: %w: %d", nameOf(m), nameOf(a.monitor), ErrInUse, len(a.attached()))
	}
	if m != nil && !imported { // others may need more than there is yet
		if err := a.tryOut(m); err != nil {
			return fmt.Errorf("memmon: %w", err)
		}
	}
	a.monitor, a.imported = m, imported
	a.mu.Lock()
	defer a.mu.Unlock()
	status.Hooks, status.HooksErr = a.status.Hooks, a.status.HooksErr
	a.status = status
	return nil
}

func nameOf(m Monitor) string {
	if m == nil {
		return "none"
	}
	return m.Name()
}

// Notify says that memory goes away, before it does: what was registered of it is not handed out any more from now on.
func (a *Arbiter) Notify(r Range) {
	a.events.post(r)
	a.tell(r)
	a.exports.tell(r)
}

// tell tells the caches, for which it is a hint when to clean up.
func (a *Arbiter) tell(r Range) {
	for _, s := range a.attached() {
		s.gone(r)
	}
}

// drain tells the caches what others than Go have told since the last time. One goroutine calls it.
func (a *Arbiter) drain() {
	a.events.drain(a.tell)
	if s := a.serving.Load(); s != nil {
		if m, ok := s.monitor.(interface{ drain(func(Range)) }); ok {
			m.drain(a.tell)
		}
	}
}

func (a *Arbiter) attached() []*sink {
	if l := a.sinks.Load(); l != nil {
		return *l
	}
	return nil
}

// Disable turns all caches off: each registration is for one operation, until Enable.
func (a *Arbiter) Disable() {
	a.off.Store(true)
	a.Flush()
}

// Enable undoes Disable.
func (a *Arbiter) Enable() { a.off.Store(false) }

// Enabled says whether caches may keep registrations.
func (a *Arbiter) Enabled() bool { return !a.off.Load() }

// Flush makes all caches forget what they have.
func (a *Arbiter) Flush() {
	a.epoch.Add(1)
	a.tell(Everything)
}

// Epoch changes with each Flush: what was registered before is not handed out any more.
func (a *Arbiter) Epoch() uint64 { return a.epoch.Load() }

// Attach adds a cache. gone is called when memory has gone, and with [Everything] at a Flush, from any goroutine: it must neither block nor
// call the arbiter; a cache that does not want to hear of it gives nil. It may hear of the same memory more than once, and of memory that the cache never had.
// The first cache starts the monitor; each has it tested. If it does not work, log (or nobody, if nil) is told, and the cache is used
// without one. The first cache also has hooks of others looked for, and log told. The caller closes its proofs, and then calls detach; the last one stops the monitor.
func (a *Arbiter) Attach(gone func(Range), log *slog.Logger) (detach func()) {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	if gone == nil {
		gone = func(Range) {}
	}
	s := &sink{gone, log}
	var said notes
	defer said.tell(log)
	a.turn.Lock()
	defer a.turn.Unlock()
	a.setSinks(append(append([]*sink(nil), a.attached()...), s))
	if a.drainer == nil {
		a.drainer = startDrainer(a)
	}
	whole := false
	defer func() {
		if !whole { // the monitor has panicked: nobody will detach
			a.drop(s, &said)
		}
	}()
	a.ready(&said)
	a.findHooks(&said)
	whole = true
	var once sync.Once
	return func() { once.Do(func() { a.detach(s) }) }
}

func (a *Arbiter) setSinks(l []*sink) { a.sinks.Store(&l) }

func (a *Arbiter) detach(s *sink) {
	var said notes
	defer said.tell(s.log)
	a.turn.Lock()
	defer a.turn.Unlock()
	a.drop(s, &said)
}

// drop takes a cache out, and ends what none needs any more. The caller has the turn.
func (a *Arbiter) drop(s *sink, said *notes) {
	var rest []*sink
	for _, o := range a.attached() {
		if o != s {
			rest = append(rest, o)
		}
	}
	a.setSinks(rest)
	if len(rest) > 0 {
		return
	}
	a.stop(said)
	a.drainer.stop()
	a.drainer = nil
}

// stop stops the monitor if it is started. One that had failed before stays so for people. The caller has the turn.
func (a *Arbiter) stop(said *notes) {
	served := a.endService() != nil
	if !a.started {
		return
	}
	a.started = false
	if served {
		a.become(Stopping, nil)
	}
	m := a.monitor
	switch err := m.Stop(); {
	case err != nil:
		a.become(Failed, fmt.Errorf("%s: stop: %w: %w", m.Name(), ErrMonitor, err))
		said.add(slog.LevelWarn, "the memory monitor did not stop well", slog.String("monitor", m.Name()), slog.Any("error", err))
	case served:
		a.become(Idle, nil)
	}
}

// endService makes all answers of the monitor that serves invalid.
func (a *Arbiter) endService() *serving {
	s := a.serving.Swap(nil)
	if s != nil {
		s.over.Store(true)
	}
	return s
}

// ready starts the monitor if there is one, and tests it. One that fails when it has served is not stopped before the last cache has detached:
// its watches are still asked. The caller has the turn.
func (a *Arbiter) ready(said *notes) {
	m := a.monitor
	if m == nil {
		return
	}
	s := a.serving.Load()
	if s == nil {
		s = &serving{monitor: m, coverage: m.Coverage()}
	}
	began := !a.started
	err := a.begin(m)
	var sees Coverage
	if err == nil {
		sees, err = a.test(s)
	}
	if err == nil {
		if a.serving.Load() == nil || !sees.equal(s.coverage) {
			a.serve(s, sees, said)
		}
		a.become(Running, nil)
		return
	}
	a.endService()
	if began && a.started {
		a.started = false
		err = errors.Join(err, m.Stop())
	}
	a.become(Failed, err)
	a.Flush()
	said.add(slog.LevelWarn, "the memory monitor does not work: memory that only it could see is registered for each operation",
		slog.String("monitor", m.Name()), slog.Any("error", err))
}

// serve has a monitor answer from now on, for what it has shown that it sees; what it said before does not count any more.
func (a *Arbiter) serve(s *serving, sees Coverage, said *notes) {
	s.over.Store(true)
	a.serving.Store(&serving{monitor: s.monitor, coverage: sees})
	a.mu.Lock()
	a.status.Coverage = sees
	a.mu.Unlock()
	said.add(slog.LevelInfo, "a memory monitor serves", slog.String("monitor", s.monitor.Name()), slog.String("sees", sees.String()))
	if all := s.monitor.Coverage(); !sees.equal(all) {
		said.add(slog.LevelWarn, "the memory monitor does not see all that it says: memory that can go in these ways is registered for each operation",
			slog.String("monitor", s.monitor.Name()), slog.String("unseen", all.minus(sees)))
	}
}

func (a *Arbiter) begin(m Monitor) error {
	if a.started {
		return nil
	}
	a.become(Starting, nil)
	err := start(m, a.tell)
	a.started = err == nil
	return err
}

func start(m Monitor, gone func(Range)) error {
	if err := m.Start(gone); err != nil {
		return fmt.Errorf("%s: start: %w: %w", m.Name(), ErrMonitor, err)
	}
	return nil
}

func (a *Arbiter) become(s State, why error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.status.State, a.status.Why = s, why
}

// Status says what serves now.
func (a *Arbiter) Status() Status {
	a.mu.Lock()
	s := a.status
	a.mu.Unlock()
	s.Disabled, s.Caches, s.Events = a.off.Load(), len(a.attached()), a.events.count()
	s.Others, s.Alone = a.events.others, a.alone
	if s.Monitor == "" {
		s.Monitor = nameOf(nil)
	}
	if v := a.serving.Load(); v != nil {
		if err := v.monitor.Err(); err != nil {
			s.State, s.Why = Failed, err
		}
	}
	return s
}
