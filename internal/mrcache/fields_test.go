package mrcache

import (
	"encoding/binary"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weft-fabric/weft/internal/sys"
	"github.com/weft-fabric/weft/internal/testutil"
	"github.com/weft-fabric/weft/memmon"
)

// Reports of users, by number; those about monitors are in memmon.

// TestF59RemappedMemory has other memory come to the address of what is registered: the old registration is dead, for who has it and for the device.
func TestF59RemappedMemory(t *testing.T) {
	b := newBench(t, newDevice(), Config{})
	own, m := new(owner), pages(t, 4)
	k := memmon.Mapped(m.Bytes(), own)
	r := b.acquire(t, k)
	old := r.Handle()
	own.n.Add(1)
	if err := m.MapOver(); err != nil {
		t.Fatal(err)
	}
	if b.pass(t, k) == old {
		t.Error("the old key for new memory")
	}
	release(t, &r, ErrRemapped)
	b.idle()
	testutil.Eventually(t, "the device does not know the old key", func() bool { return !b.device.has(old) })
	if s := b.Stats(); s.DeadOwner != 1 || s.Pinned != 4*pageSize {
		t.Errorf("%+v", s)
	}
}

// TestF60ReleaseAfterTheNextOne registers A, has other memory come to its address, registers that as B, and only then releases A: B is still watched.
func TestF60ReleaseAfterTheNextOne(t *testing.T) {
	b := newBench(t, newDevice(), Config{})
	m := pages(t, 2)
	k, at := memmon.Mapped(m.Bytes(), nil), memmon.RangeOf(m.Bytes())
	first := b.acquire(t, k)
	b.monitor.goes(at)
	if err := m.MapOver(); err != nil {
		t.Fatal(err)
	}
	second := b.acquire(t, k)
	release(t, &first, ErrRemapped)
	b.idle()
	testutil.Eventually(t, "only the second is watched", func() bool { return b.monitor.open.Load() == 1 })
	of := second.Handle()
	release(t, &second, nil)
	if b.pass(t, k) != of {
		t.Error("the second is not kept")
	}
	b.monitor.goes(at)
	if b.pass(t, k) == of {
		t.Error("the second went, and was not noticed")
	}
}

// TestF65WhatCannotBeWatched registers memory that cannot be watched, or odd pieces of it: it works, uncached, and is counted.
func TestF65WhatCannotBeWatched(t *testing.T) {
	b := newBench(t, newDevice(), Config{MaxBytes: 1 << 20})
	shared, err := sys.Memfd(sys.MemfdConfig{Name: "shared", Size: int64(pageSize)})
	if err != nil {
		t.Fatal(err)
	}
	defer shared.Close()
	ofShared, err := sys.Map(shared, 0, int(pageSize), true)
	if err != nil {
		t.Fatal(err)
	}
	defer ofShared.Close()
	name := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(name, make([]byte, pageSize), 0o600); err != nil {
		t.Fatal(err)
	}
	private := pages(t, 1).Bytes()
	huge := pages(t, 512).Bytes() // more than may be kept
	for _, c := range []struct {
		what   string
		k      memmon.Kind
		refuse bool
		want   Reason
	}{
		{"408 bytes of the heap", memmon.HeapBytes(make([]byte, 408)), true, Kept},
		{"408 bytes in the middle of a page", memmon.Mapped(private[8:416], nil), false, Kept},
		{"the same, when the monitor refuses", memmon.Mapped(pages(t, 1).Bytes()[8:416], nil), true, NoMonitor},
		{"shared memory", memmon.Mapped(ofShared.Bytes()[:408], nil), false, NoMonitor},
		{"a file", memmon.Mapped(mapFile(t, name), nil), false, NoMonitor},
		{"much", memmon.Mapped(huge, nil), false, Full},
		{"much, when the monitor refuses", memmon.Mapped(huge, nil), true, NoMonitor},
		{"a global variable", memmon.Mapped(global[:], nil), true, NoMonitor},
	} {
		b.monitor.refuse.Store(c.refuse)
		r := b.acquire(t, c.k)
		if r.Why() != c.want {
			t.Errorf("%s: %v, not %v", c.what, r.Why(), c.want)
		}
		release(t, &r, nil)
	}
	if s := b.Stats(); s.NoMonitor != 5 || s.Full != 1 || s.Entries != 2 {
		t.Errorf("%+v", s)
	}
}

// TestF71CollectedMemory allocates, registers and forgets, so that addresses come again whose pages the runtime has given back: what the device has
// is always of this round.
func TestF71CollectedMemory(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(10))
	d := newDevice()
	d.tell = func(b []byte) any { return binary.NativeEndian.Uint64(b) }
	b := newBench(t, d, Config{})
	seen, again := map[uint64]bool{}, 0
	for round := range uint64(testutil.Count(t, 100, 2000)) {
		m := make([]byte, 4<<20)
		at := memmon.RangeOf(m).Addr
		if seen[at] {
			again++
		}
		seen[at] = true
		binary.NativeEndian.PutUint64(m, round)
		for range 2 {
			r := b.acquire(t, memmon.HeapBytes(m))
			if of := r.Handle().page.(uint64); of != round {
				t.Fatalf("round %d: the device has memory of round %d", round, of)
			}
			release(t, &r, nil)
		}
		m = nil
		if round%10 == 9 {
			debug.FreeOSMemory()
		}
	}
	if s := b.Stats(); again == 0 || s.Hits != s.New+s.DeadHeap {
		t.Errorf("%d addresses came again: %+v", again, s)
	}
}

// withUserfault is a cache of memory that userfaultfd answers for.
func withUserfault(t *testing.T) *Cache[*region] {
	t.Helper()
	testutil.Require(t, testutil.Capability{Name: "userfaultfd with write protection", Probe: sys.CanUserfault, Fixed: true})
	a, err := memmon.NewArbiter()
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Choose("userfaultfd"); err != nil {
		t.Fatal(err)
	}
	c, err := New(newDevice(), Config{Arbiter: a, MaxBytes: 1 << 40})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(c.Close(), a.Close()); err != nil {
			t.Error(err)
		}
	})
	return c
}

// used acquires memory and releases it, and says whether it was there already.
func used(c *Cache[*region], m *sys.Anonymous) (hit bool, err error) {
	before := c.Stats().Hits
	r, err := c.Acquire(memmon.Mapped(m.Bytes(), nil))
	if err == nil {
		err = r.Release()
	}
	return c.Stats().Hits > before, err
}

// TestSoakF64LargeUnmaps has four goroutines register, unmap and map again 64 MiB each while others keep the cache busy: who unmaps is not held up.
func TestSoakF64LargeUnmaps(t *testing.T) {
	const bytes = 64 << 20
	c := withUserfault(t)
	rounds := testutil.Count(t, 40, 10_000)
	var longest, over atomic.Int64
	var unmapping, busy sync.WaitGroup
	for range 2 {
		busy.Go(func() {
			m, err := sys.MapAnonymous(int(pageSize))
			if err != nil {
				t.Error(err)
				return
			}
			defer m.Close()
			m.Bytes()[0] = 1
			for over.Load() == 0 {
				if _, err := used(c, m); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	for range 4 {
		unmapping.Go(func() {
			for range rounds / 4 {
				m, err := sys.MapAnonymous(bytes)
				if err != nil {
					t.Error(err)
					return
				}
				for i := 0; i < bytes; i += 1 << 20 {
					m.Bytes()[i] = 1
				}
				_, err = used(c, m)
				began := time.Now()
				err = errors.Join(err, m.Close())
				took := int64(time.Since(began))
				for most := longest.Load(); took > most && !longest.CompareAndSwap(most, took); most = longest.Load() {
				}
				if err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	unmapping.Wait()
	over.Store(1)
	busy.Wait()
	t.Logf("registration: %d unmaps of 64 MiB, the longest %v", rounds, time.Duration(longest.Load()))
	if longest.Load() > int64(testutil.Pick(t, 10*time.Second, time.Second)) {
		t.Errorf("one took %v", time.Duration(longest.Load()))
	}
}

// TestSoakF63ChildrenBeside has goroutines register, unmap and map again while programs are started: os/exec always works, and nobody hangs.
func TestSoakF63ChildrenBeside(t *testing.T) {
	testutil.Require(t, testutil.Program("true"))
	c := withUserfault(t)
	var over atomic.Bool
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for !over.Load() {
				m, err := sys.MapAnonymous(4 * int(pageSize))
				if err == nil {
					m.Bytes()[0] = 1
					_, err = used(c, m)
					err = errors.Join(err, m.Close())
				}
				if err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	for range testutil.Count(t, 20, 500) {
		if out, err := exec.Command("true").CombinedOutput(); err != nil {
			t.Errorf("%v: %s", err, out)
			break
		}
	}
	over.Store(true)
	all.Wait()
}

// mapFile maps the first page of a file, read-only.
func mapFile(t *testing.T, name string) []byte {
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	fd := sys.NewFD(int(f.Fd()), "file")
	defer fd.Disown() // it is f's
	m, err := sys.Map(fd, 0, int(pageSize), false)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.Close() })
	return m.Bytes()
}
