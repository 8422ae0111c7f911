package mrcache

import (
	"errors"
	"runtime"
	"testing"

	"github.com/weft-fabric/weft/internal/testutil"
	"github.com/weft-fabric/weft/memmon"
)

// mortal is memory, how it dies, and whether anybody tells.
type mortal struct {
	k    memmon.Kind
	dies func()
	told bool
}

// dying is memory of each kind but the heap's.
func dying(t *testing.T, b *bench) map[string]mortal {
	a, quiet, loud := arena(t, b.arbiter, 4), new(owner), new(owner)
	var m [4][]byte
	for i := range m {
		m[i] = pages(t, 4).Bytes()
	}
	return map[string]mortal{
		"arena": {a, func() {
			if err := a.Discard(0, int(pageSize)); err != nil {
				t.Error(err)
			}
		}, true},
		"owner":          {memmon.Mapped(m[0], quiet), func() { quiet.n.Add(1) }, false},
		"told owner":     {memmon.Mapped(m[1], loud), func() { loud.n.Add(1); b.arbiter.Notify(memmon.RangeOf(m[1])) }, true},
		"watched":        {memmon.Mapped(m[2], nil), func() { b.monitor.goes(memmon.RangeOf(m[2][:1])) }, true},
		"event by event": {memmon.Mapped(m[3], nil), func() { b.arbiter.Notify(memmon.RangeOf(m[3][pageSize : pageSize+1])) }, true},
	}
}

func TestDeadWhenIdle(t *testing.T) {
	gone := make(chan *region, 10)
	d := newDevice()
	d.leaving = func(r *region) { gone <- r }
	b := newBench(t, d, Config{})
	for what, m := range dying(t, b) {
		first := b.pass(t, m.k)
		m.dies()
		if m.told { // the goroutine hears of it
			if r := <-gone; r != first {
				t.Errorf("%s: region %d left, not %d", what, r.id, first.id)
			}
		}
		if again := b.pass(t, m.k); again == first {
			t.Errorf("%s: the dead one again", what)
		}
		if !m.told {
			<-gone
		}
	}
	if s := b.Stats(); s.DeadOwner != 1 || s.New != 9 {
		t.Errorf("%+v", s)
	}
}

func TestDeadInUse(t *testing.T) {
	b := newBench(t, newDevice(), Config{})
	for what, m := range dying(t, b) {
		one, two := b.acquire(t, m.k), b.acquire(t, m.k)
		old := one.Handle()
		m.dies()
		b.idle()
		next := b.acquire(t, m.k)
		if next.Handle() == old || !b.device.has(old) {
			t.Errorf("%s: the same one %v, registered %v", what, next.Handle() == old, b.device.has(old))
		}
		release(t, &one, ErrRemapped)
		b.idle()
		if !b.device.has(old) {
			t.Errorf("%s: deregistered while it is in use", what)
		}
		release(t, &two, ErrRemapped)
		release(t, &two, nil)
		b.idle()
		testutil.Eventually(t, "the dead one is deregistered", func() bool { return !b.device.has(old) })
		release(t, &next, nil)
	}
}

// TestReleaseOfTheDead is who finds out: nobody else was told.
func TestReleaseOfTheDead(t *testing.T) {
	b := newBench(t, newDevice(), Config{})
	own := new(owner)
	r := b.acquire(t, memmon.Mapped(pages(t, 1).Bytes(), own))
	own.n.Add(1)
	release(t, &r, ErrRemapped)
	testutil.Eventually(t, "it is deregistered", func() bool { return b.device.count() == 0 })
}

// TestDeadAroundTheNew has memory get another owner, and the old one tell nobody: whose registration comes upon the dead one has it go.
func TestDeadAroundTheNew(t *testing.T) {
	b := newBench(t, newDevice(), Config{})
	m, old := pages(t, 3).Bytes(), new(owner)
	dead := b.pass(t, memmon.Mapped(m, old))
	other := b.pass(t, memmon.Mapped(m[:pageSize], new(owner)))
	old.n.Add(1)
	b.pass(t, memmon.Mapped(m[pageSize:2*pageSize], new(owner)))
	testutil.Eventually(t, "the dead one is deregistered", func() bool { return !b.device.has(dead) })
	if s := b.Stats(); !b.device.has(other) || s.Entries != 2 || s.Grown != 0 {
		t.Errorf("%+v", s)
	}
}

// TestDeadForOneOperation is memory that dies while it is registered for one operation.
func TestDeadForOneOperation(t *testing.T) {
	b := newBench(t, newDevice(), Config{MaxCount: -1})
	for what, m := range dying(t, b) {
		r := b.acquire(t, m.k)
		if m.dies(); r.Why() != Full {
			t.Errorf("%s: %v", what, r.Why())
		}
		release(t, &r, ErrRemapped)
	}
}

// TestDeadObject waits for the runtime to say that an object died, of which nothing more is heard.
func TestDeadObject(t *testing.T) {
	gone := make(chan *region, 1)
	d := newDevice()
	d.leaving = func(r *region) { gone <- r }
	b := newBench(t, d, Config{})
	m := make([]byte, 1<<20)
	first := b.pass(t, memmon.HeapBytes(m))
	runtime.GC()
	if again := b.pass(t, memmon.HeapBytes(m)); again != first {
		t.Error("it is alive, and another region")
	}
	r := b.acquire(t, memmon.HeapBytes(m))
	runtime.KeepAlive(m)
	m = nil
	runtime.GC()
	if n := b.Stats().InUse; n != 1 || !b.device.has(first) {
		t.Errorf("the registration holds it, and yet: %d in use", n)
	}
	release(t, &r, nil)
	testutil.Eventually(t, "the dead object's registration goes", func() bool {
		runtime.GC()
		select {
		case left := <-gone:
			return left == first
		default:
			return false
		}
	})
}

func TestChangedWhileRegistered(t *testing.T) {
	own, n := new(owner), 0
	d := newDevice()
	d.before = func([]byte) {
		if n > 0 {
			n--
			own.n.Add(1)
		}
	}
	b := newBench(t, d, Config{})
	k := memmon.Mapped(pages(t, 1).Bytes(), own)
	n = 2
	if r := b.pass(t, k); r.id != 3 {
		t.Errorf("region %d", r.id)
	}
	own.n.Add(1)
	n = 100
	if _, err := b.Acquire(k); !errors.Is(err, ErrRemapped) {
		t.Errorf("memory that never rests: %v", err)
	}
	n = 0
	b.pass(t, k)
}

func TestRace(t *testing.T) {
	b := newBench(t, newDevice(), Config{})
	k := singles(t, 1)[0]
	var fast *region
	b.device.after = func([]byte) {
		b.device.after = nil
		fast = b.pass(t, k)
	}
	r := b.acquire(t, k)
	if r.Handle() != fast || b.device.count() != 1 {
		t.Errorf("region %d, not %d; %d registered", r.Handle().id, fast.id, b.device.count())
	}
	release(t, &r, nil)
	if s := b.Stats(); s.Raced != 1 || s.New != 1 || s.Hits != 1 || s.Pinned != pageSize {
		t.Errorf("%+v", s)
	}
}

// TestNoLockAroundTheDevice asks for statistics, which takes the lock, wherever the device is called.
func TestNoLockAroundTheDevice(t *testing.T) {
	d := newDevice()
	b := newBench(t, d, Config{MaxCount: 2})
	d.before = func([]byte) { b.Stats() }
	d.leaving = func(*region) { b.Stats() }
	p := singles(t, 5)
	for _, k := range p {
		b.pass(t, k)
	}
	one, two, three := b.acquire(t, p[0]), b.acquire(t, p[1]), b.acquire(t, p[2])
	b.Flush()
	release(t, &one, nil)
	release(t, &two, nil)
	release(t, &three, nil)
}

// TestTellingWaitsForNobody has a device that takes its time, while more is told than can be noted: who tells goes on.
func TestTellingWaitsForNobody(t *testing.T) {
	began, goOn := make(chan *region, 1), make(chan struct{})
	d := newDevice()
	slow := true
	d.leaving = func(r *region) {
		if slow {
			slow = false
			began <- r
			<-goOn
		}
	}
	b := newBench(t, d, Config{})
	one, two, own := arena(t, b.arbiter, 1), pages(t, 1).Bytes(), new(owner)
	b.pass(t, one)
	b.pass(t, memmon.Mapped(two, own))
	if err := one.Close(); err != nil {
		t.Fatal(err)
	}
	<-began
	own.n.Add(1)
	for range 2 * eventsNoted {
		b.arbiter.Notify(memmon.Range{Addr: 1 << 12, Len: 1})
	}
	b.arbiter.Notify(memmon.RangeOf(two))
	close(goOn)
	testutil.Eventually(t, "what was told too much is found", func() bool { return b.device.count() == 0 })
}

func TestDeviceKeepsIt(t *testing.T) {
	lines, log := testutil.NewLog(0)
	d := newDevice()
	b := newBench(t, d, Config{Logger: log})
	m := arena(t, b.arbiter, 1)
	b.pass(t, m)
	d.keep.Store(true)
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	lines.Expect(t, "stays registered", errDevice.Error())
	r := b.acquire(t, memmon.Mapped(pages(t, 1).Bytes(), new(owner)))
	release(t, &r, nil)
	if err := b.Close(); !errors.Is(err, errDevice) {
		t.Errorf("closed: %v", err)
	}
	if s := b.Stats(); s.Failed != 2 {
		t.Errorf("%+v", s)
	}
}

// TestNobodyCanTell has so much happen near by, each time that memory is registered, that the monitor has forgotten what: the registration is for one
// operation, and counted.
func TestNobodyCanTell(t *testing.T) {
	d := newDevice()
	b := newBench(t, d, Config{})
	m := pages(t, 1).Bytes()
	near := memmon.Range{Addr: memmon.RangeOf(m).Addr ^ pageSize, Len: pageSize}
	d.before = func([]byte) {
		for range 2000 { // more than are remembered
			b.arbiter.Notify(near)
		}
	}
	r := b.acquire(t, memmon.Mapped(m, nil))
	if r.Why() != Unsure {
		t.Errorf("%v", r.Why())
	}
	release(t, &r, nil)
	if s := b.Stats(); s.Unsure != 1 || s.Entries != 0 || s.Pinned != 0 {
		t.Errorf("%+v", s)
	}
}
