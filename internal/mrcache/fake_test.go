package mrcache

import (
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/weft-fabric/weft/internal/sys"
	"github.com/weft-fabric/weft/memmon"
)

var errDevice = errors.New("of the device")

// region is a handle of the device.
type region struct {
	id   int
	at   memmon.Range
	page any // what the memory was when it was registered, if the device's tell says
}

// device is a card that registers, knows what is registered, and can be made to fail. before and after are called beside each Register with no
// lock of the device; they and everything else are set before the device is used.
type device struct {
	before, after func(b []byte)
	leaving       func(*region)
	tell          func(b []byte) any
	limit         uint64 // of pinned bytes: more is ENOMEM
	refuse        atomic.Bool
	keep          atomic.Bool // Deregister fails

	mu     sync.Mutex
	made   int
	live   map[*region]bool
	pinned uint64
	most   uint64
	wrong  []string
}

func newDevice() *device {
	return &device{live: map[*region]bool{}, limit: math.MaxUint64}
}

func (d *device) Register(b []byte) (*region, error) {
	if d.before != nil {
		d.before(b)
	}
	r, err := d.register(b)
	if d.after != nil {
		d.after(b)
	}
	return r, err
}

func (d *device) register(b []byte) (*region, error) {
	at := memmon.RangeOf(b)
	d.mu.Lock()
	defer d.mu.Unlock()
	switch n := at.Rounded(pageSize).Len; {
	case d.refuse.Load():
		return nil, errDevice
	case d.pinned+n > d.limit:
		return nil, fmt.Errorf("device: %w", syscall.ENOMEM)
	default:
		d.pinned += n
		d.most = max(d.most, d.pinned)
	}
	d.made++
	r := &region{id: d.made, at: at}
	if d.tell != nil {
		r.page = d.tell(b)
	}
	d.live[r] = true
	return r, nil
}

func (d *device) Deregister(r *region) error {
	if d.leaving != nil {
		d.leaving(r)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.live[r] {
		d.wrong = append(d.wrong, fmt.Sprintf("region %d is deregistered twice", r.id))
	}
	delete(d.live, r)
	d.pinned -= r.at.Rounded(pageSize).Len
	if d.keep.Load() {
		return errDevice
	}
	return nil
}

// has says whether a region is registered.
func (d *device) has(r *region) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.live[r]
}

func (d *device) count() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.live)
}

// tester is *testing.T, *testing.B or *rapid.T.
type tester interface {
	Helper()
	Error(args ...any)
	Errorf(format string, args ...any)
	Fatal(args ...any)
	Cleanup(f func())
}

// bench is a cache under test, with an arbiter, a monitor and a device of its own.
type bench struct {
	*Cache[*region]
	arbiter *memmon.Arbiter
	monitor *watcher
	device  *device
}

// newBench makes a cache that is closed at the end of the test; then nothing may be left of it.
func newBench(t tester, d *device, cfg Config) *bench {
	t.Helper()
	return newBenchOf(t, d, d, cfg)
}

// newBenchOf has registrar before the device.
func newBenchOf(t tester, d *device, registrar Registrar[*region], cfg Config) *bench {
	t.Helper()
	b := &bench{monitor: newWatcher(), device: d}
	var err error
	if b.arbiter, err = memmon.NewArbiter(); err != nil {
		t.Fatal(err)
	}
	if err := b.arbiter.Import(b.monitor); err != nil {
		t.Fatal(err)
	}
	cfg.Arbiter = b.arbiter
	if b.Cache, err = newCache(registrar, cfg, func() (uint64, error) { return math.MaxUint64, nil }); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.end(t) })
	return b
}

func (b *bench) end(t tester) {
	t.Helper()
	if err := b.Close(); err != nil && !b.device.keep.Load() {
		t.Error(err)
	}
	if n := b.device.count(); n != 0 {
		t.Errorf("%d registrations are left", n)
	}
	for _, w := range b.device.wrong {
		t.Error(w)
	}
	if n := b.monitor.open.Load(); n != 0 {
		t.Errorf("%d watches are open", n)
	}
	if s := b.Stats(); s.Pinned != 0 || s.Entries != 0 || s.InUse != 0 {
		t.Errorf("closed, and yet: %+v", s)
	}
	if err := b.arbiter.Close(); err != nil {
		t.Error(err)
	}
}

// acquire is Acquire of what can be acquired.
func (b *bench) acquire(t tester, k memmon.Kind) Registration[*region] {
	t.Helper()
	r, err := b.Acquire(k)
	if err != nil {
		t.Fatal(err)
	}
	if !r.Range().Contains(memmon.RangeOf(k.Bytes())) || r.Handle().at != r.Range() {
		t.Errorf("a registration of %v, on the device %v, for %v", r.Range(), r.Handle().at, memmon.RangeOf(k.Bytes()))
	}
	if !b.device.has(r.Handle()) {
		t.Error("a handle of what is not registered")
	}
	return r
}

// pass acquires and releases.
func (b *bench) pass(t tester, k memmon.Kind) *region {
	t.Helper()
	r := b.acquire(t, k)
	h := r.Handle()
	release(t, &r, nil)
	return h
}

func release(t tester, r *Registration[*region], want error) {
	t.Helper()
	if err := r.Release(); !errors.Is(err, want) {
		t.Errorf("released with %v, not %v", err, want)
	}
}

// idle looks at all that has been told to the cache so far, as its goroutine does some time, and deregisters what is dead.
func (b *bench) idle() {
	b.look(memmon.Everything)
	b.logFailure(b.reap())
	for range 3 { // when the second one is taken the goroutine is done with what it had begun
		select {
		case b.reclaimer.wake <- struct{}{}:
		case <-b.reclaimer.done:
		}
	}
}

// owner is an owner of memory.
type owner struct{ n atomic.Uint64 }

func (o *owner) Generation() uint64 { return o.n.Load() }

// pages maps memory for the test.
func pages(t tester, n int) *sys.Anonymous {
	t.Helper()
	m, err := sys.MapAnonymous(n * int(pageSize))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.Close() })
	return m
}

func arena(t tester, a *memmon.Arbiter, n int) *memmon.Arena {
	t.Helper()
	m, err := a.NewArena(n * int(pageSize))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.Close() })
	return m
}

// watcher is a monitor that sees what it is told.
type watcher struct {
	open   atomic.Int64
	gone   func(memmon.Range)
	refuse atomic.Bool

	mu  sync.Mutex
	all map[*watch]bool
}

type watch struct {
	w    *watcher
	r    memmon.Range
	dead atomic.Bool
}

func newWatcher() *watcher { return &watcher{all: map[*watch]bool{}} }

func (w *watcher) Name() string { return "watcher" }

func (w *watcher) Coverage() memmon.Coverage {
	return memmon.Coverage{
		Events:  []memmon.Event{memmon.Unmap, memmon.MapOver, memmon.MoveAway, memmon.DontNeed, memmon.Free, memmon.Break},
		Callers: []memmon.Caller{memmon.Library, memmon.Raw},
		Classes: []memmon.Memory{memmon.Private},
	}
}

func (w *watcher) SelfTest() ([]memmon.Event, error) { return nil, nil }
func (w *watcher) Stop() error                       { return nil }
func (w *watcher) Err() error                        { return nil }

func (w *watcher) Start(gone func(memmon.Range)) error {
	w.gone = gone
	return nil
}

func (w *watcher) Watch(r memmon.Range) (memmon.Watch, error) {
	if w.refuse.Load() {
		return nil, syscall.EFAULT
	}
	w.open.Add(1)
	v := &watch{w: w, r: r}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.all[v] = true
	return v, nil
}

// goes is called before memory goes away.
func (w *watcher) goes(r memmon.Range) {
	w.mu.Lock()
	for v := range w.all {
		if v.r.Overlaps(r) {
			v.dead.Store(true)
		}
	}
	w.mu.Unlock()
	w.gone(r)
}

func (v *watch) Valid() bool { return !v.dead.Load() }

func (v *watch) Close() {
	v.w.open.Add(-1)
	v.w.mu.Lock()
	defer v.w.mu.Unlock()
	delete(v.w.all, v)
}
