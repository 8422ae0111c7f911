package mrcache

import (
	"errors"
	"testing"

	"github.com/weft-fabric/weft/internal/testutil"
	"github.com/weft-fabric/weft/memmon"
)

func TestFlush(t *testing.T) {
	for what, flush := range map[string]func(*bench){
		"cache":   func(b *bench) { b.Flush() },
		"arbiter": func(b *bench) { b.arbiter.Flush() },
	} {
		b := newBench(t, newDevice(), Config{})
		p := singles(t, 2)
		idle := b.pass(t, p[0])
		busy := b.acquire(t, p[1])
		old := busy.Handle()
		flush(b)
		if b.pass(t, p[0]) == idle || b.pass(t, p[1]) == old {
			t.Errorf("%s: from before", what)
		}
		if !b.device.has(old) {
			t.Errorf("%s: deregistered in use", what)
		}
		release(t, &busy, nil) // the memory is what it was
		b.idle()
		if s := b.Stats(); s.Entries != 2 || s.Hits != 0 {
			t.Errorf("%s: %+v", what, s)
		}
	}
}

func TestDisable(t *testing.T) {
	b := newBench(t, newDevice(), Config{})
	p := singles(t, 2)
	b.pass(t, p[0])
	b.arbiter.Disable()
	for range 2 {
		r := b.acquire(t, p[0])
		if r.Why() != Disabled {
			t.Errorf("%v", r.Why())
		}
		release(t, &r, nil)
	}
	if _, err := b.Acquire(memmon.HeapBytes(global[:])); !errors.Is(err, memmon.ErrNotHeap) {
		t.Errorf("not heap: %v", err)
	}
	b.idle()
	if s := b.Stats(); s.Disabled != 2 || s.Entries != 0 {
		t.Errorf("%+v", s)
	}
	b.arbiter.Enable()
	if first := b.pass(t, p[0]); b.pass(t, p[0]) != first {
		t.Error("enabled, and not kept")
	}
}

// TestFlushWhileRegistered flushes in the middle: what comes of it is not kept.
func TestFlushWhileRegistered(t *testing.T) {
	for what, change := range map[string]func(*memmon.Arbiter){"flush": (*memmon.Arbiter).Flush, "disable": (*memmon.Arbiter).Disable} {
		b := newBench(t, newDevice(), Config{})
		k := singles(t, 1)[0]
		b.device.before = func([]byte) {
			b.device.before = nil
			change(b.arbiter)
		}
		first := b.pass(t, k)
		b.arbiter.Enable()
		if b.pass(t, k) == first {
			t.Errorf("%s: from before", what)
		}
	}
}

// TestFlushGivesBack has nobody come again: what is forgotten is not kept registered for that.
func TestFlushGivesBack(t *testing.T) {
	for what, change := range map[string]func(*memmon.Arbiter){"flush": (*memmon.Arbiter).Flush, "disable": (*memmon.Arbiter).Disable} {
		b := newBench(t, newDevice(), Config{})
		p := singles(t, 2)
		b.pass(t, p[0])
		change(b.arbiter)
		testutil.Eventually(t, what+": what was idle is deregistered", func() bool { return b.device.count() == 0 })
		b.arbiter.Enable()
		b.device.before = func([]byte) {
			b.device.before = nil
			change(b.arbiter)
			b.idle() // the goroutine has looked before it is known
		}
		b.pass(t, p[1])
		testutil.Eventually(t, what+": what was being registered is deregistered", func() bool { return b.device.count() == 0 })
		if s := b.Stats(); s.Entries != 0 || s.New != 2 {
			t.Errorf("%s: %+v", what, s)
		}
	}
}

func TestClose(t *testing.T) {
	b := newBench(t, newDevice(), Config{})
	own := new(owner)
	m := pages(t, 2).Bytes()
	b.pass(t, singles(t, 1)[0])
	kept := b.acquire(t, memmon.Mapped(m[:pageSize], own))
	again := b.acquire(t, memmon.Mapped(m[:pageSize], own))
	b.monitor.refuse.Store(true)
	once := b.acquire(t, memmon.Mapped(m[pageSize:], nil))
	if once.Why() != NoMonitor {
		t.Errorf("%v", once.Why())
	}
	for range 2 {
		if err := b.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if n := b.device.count(); n != 2 {
		t.Errorf("%d are registered, 2 are in use", n)
	}
	if _, err := b.Acquire(memmon.Mapped(m[:pageSize], own)); !errors.Is(err, ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
	if n := b.arbiter.Status().Caches; n != 1 {
		t.Errorf("%d caches, of which one has proofs", n)
	}
	release(t, &kept, nil)
	release(t, &once, nil)
	own.n.Add(1)
	release(t, &again, ErrRemapped)
	if n, s := b.device.count(), b.arbiter.Status(); n != 0 || s.Caches != 0 || s.State != memmon.Idle {
		t.Errorf("%d registrations and %d caches after the last release; %v", n, s.Caches, s.State)
	}
	if _, err := b.Acquire(memmon.Mapped(m[:pageSize], own)); !errors.Is(err, ErrClosed) {
		t.Errorf("after the end: %v", err)
	}
	b.Flush()
}

// TestCloseWhileRegistered closes in the middle.
func TestCloseWhileRegistered(t *testing.T) {
	b := newBench(t, newDevice(), Config{})
	k := singles(t, 1)[0]
	b.device.before = func([]byte) {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	}
	if _, err := b.Acquire(k); !errors.Is(err, ErrClosed) {
		t.Errorf("%v", err)
	}
}
