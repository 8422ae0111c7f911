//go:build amd64 || arm64

package sys

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/weft-fabric/weft/internal/testutil"
)

func TestUserfaultLayout(t *testing.T) {
	want := map[string]uintptr{
		"stop": 4, "begun": 8, "done": 16, "slots": 24, "mask": 32, "wake": 40, "thread": 48, "alive": 52, "errno": 56, "poll": 64, "message": 96,
		"one": 128, "all": 160, "saved": 168, "name": 176,
	}
	if d := cmp.Diff(want, controlOffsets()); d != "" {
		t.Error("the assembly reads words elsewhere than they lie:", d)
	}
}

func testUserfault(t *testing.T) (*Userfault, *EventWords) {
	t.Helper()
	wake, err := NewEventfd(Features{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = wake.Close() })
	w := EventWords{Begun: new(uint64), Done: new(uint64), Slots: make([]uint64, 2*16), Wake: wake}
	testutil.Require(t, testutil.Capability{Name: "userfaultfd with write protection", Probe: CanUserfault, Fixed: true})
	u, err := NewUserfault(w)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := u.Close(); err != nil {
			t.Error(err)
		}
	})
	return u, &w
}

func TestUserfault(t *testing.T) {
	u, w := testUserfault(t)
	page := uint64(osPageSize)
	watched := func() *Anonymous {
		m, err := MapAnonymous(2 * osPageSize)
		if err != nil {
			t.Fatal(err)
		}
		m.Bytes()[0] = 1
		if err := u.Watch(Address(m.Bytes()), 2*page); err != nil {
			t.Fatal(err)
		}
		if is := settled(u, Address(m.Bytes()), 2*page); !is {
			t.Fatal("not watched")
		}
		return m
	}
	for what, do := range map[string]func(m *Anonymous) error{
		"unmapped":    (*Anonymous).Close,
		"mapped over": (*Anonymous).MapOver,
		"dropped":     func(m *Anonymous) error { return NewPages(m.Bytes()) },
	} {
		m := watched()
		at, before := Address(m.Bytes()), atomic.LoadUint64(w.Done)
		if err := do(m); err != nil {
			t.Fatal(what, err)
		}
		for atomic.LoadUint64(w.Begun) == before || atomic.LoadUint64(w.Begun) != atomic.LoadUint64(w.Done) {
			runtime.Gosched()
		}
		slot := w.Slots[2*(before%16):]
		if slot[0] != at || slot[1] != 2*page {
			t.Errorf("%s: told of %x, %d; not of %x, %d", what, slot[0], slot[1], at, 2*page)
		}
		if is := settled(u, at, 2*page); is != (what == "dropped") {
			t.Errorf("%s: watched: %v", what, is)
		}
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	}
	if err := u.Err(); err != nil {
		t.Error(err)
	}
}

// TestUserfaultErrAfterClose asks while it ends, and after that.
func TestUserfaultErrAfterClose(t *testing.T) {
	testutil.Require(t, testutil.Capability{Name: "userfaultfd with write protection", Probe: CanUserfault, Fixed: true})
	wake, err := NewEventfd(Features{})
	if err != nil {
		t.Fatal(err)
	}
	defer wake.Close()
	for range 50 {
		u, err := NewUserfault(EventWords{Begun: new(uint64), Done: new(uint64), Slots: make([]uint64, 2*16), Wake: wake})
		if err != nil {
			t.Fatal(err)
		}
		ended := make(chan struct{})
		go func() {
			for u.Err() == nil {
				runtime.Gosched()
			}
			close(ended)
		}()
		if err := u.Close(); err != nil {
			t.Error(err)
		}
		<-ended
		if u.Err() == nil {
			t.Error("it reads after its end")
		}
	}
}

// TestUserfaultRaces unmaps by raw calls, which hold a processor of Go's, beside the garbage collector: a reader that needed one would
// hang the process.
func TestUserfaultRaces(t *testing.T) {
	u, _ := testUserfault(t)
	for _, procs := range []int{1, 2} {
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(procs))
		var all sync.WaitGroup
		var stop atomic.Bool
		all.Go(func() {
			for !stop.Load() {
				runtime.GC()
				debug.FreeOSMemory()
			}
		})
		for range testutil.Count(t, 300, 20000) {
			m, err := MapAnonymous(osPageSize)
			if err != nil {
				t.Fatal(err)
			}
			m.Bytes()[0] = 1
			if err := u.Watch(Address(m.Bytes()), uint64(osPageSize)); err != nil {
				t.Fatal(err)
			}
			if err := rawUnmap(m); err != nil {
				t.Fatal(err)
			}
		}
		stop.Store(true)
		all.Wait()
	}
}

// TestUserfaultEnds ends the reader while threads unmap what it watches: they go on.
func TestUserfaultEnds(t *testing.T) {
	u, _ := testUserfault(t)
	var list []*Anonymous
	for range 64 {
		m, err := MapAnonymous(osPageSize)
		if err != nil {
			t.Fatal(err)
		}
		m.Bytes()[0] = 1
		if err := u.Watch(Address(m.Bytes()), uint64(osPageSize)); err != nil {
			t.Fatal(err)
		}
		list = append(list, m)
	}
	var all sync.WaitGroup
	for i, m := range list {
		all.Go(func() {
			if err := m.Close(); err != nil {
				t.Error(err)
			}
		})
		if i == len(list)/2 {
			if err := u.End(); err != nil {
				t.Error(err)
			}
		}
	}
	all.Wait()
	for u.Err() == nil {
		runtime.Gosched()
	}
	m, err := MapAnonymous(osPageSize)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	if u.Watch(Address(m.Bytes()), uint64(osPageSize)) == nil {
		t.Error("watched although nobody reads")
	}
}

// TestUserfaultCloseLetsGo closes one of which there is a copy, as the child of a fork has it: who gives back memory that is watched still does not
// wait for a reader that is no more.
func TestUserfaultCloseLetsGo(t *testing.T) {
	testutil.Require(t, testutil.Capability{Name: "userfaultfd with write protection", Probe: CanUserfault, Fixed: true})
	wake, err := NewEventfd(Features{})
	if err != nil {
		t.Fatal(err)
	}
	defer wake.Close()
	u, err := NewUserfault(EventWords{Begun: new(uint64), Done: new(uint64), Slots: make([]uint64, 2*16), Wake: wake})
	if err != nil {
		t.Fatal(err)
	}
	child, err := unix.Dup(u.fd.Int())
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(child)
	file, err := Memfd(MemfdConfig{Name: "weft test", Size: int64(osPageSize)})
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	page := uint64(osPageSize)
	var list []*Anonymous
	for _, do := range []func(m *Anonymous) error{
		func(*Anonymous) error { return nil },
		func(m *Anonymous) error { return m.Move() },
		func(m *Anonymous) error {
			at := Address(m.Bytes()) + page
			_, err := unix.MmapPtr(file.Int(), 0, pointer(at), uintptr(page), unix.PROT_READ, unix.MAP_SHARED|unix.MAP_FIXED)
			return err
		},
	} {
		m, err := MapAnonymous(3 * osPageSize)
		if err != nil {
			t.Fatal(err)
		}
		m.Bytes()[0] = 1
		if err := u.Watch(Address(m.Bytes()), 3*page); err != nil {
			t.Fatal(err)
		}
		if err := do(m); err != nil {
			t.Fatal(err)
		}
		list = append(list, m)
	}
	if err := u.Close(); err != nil {
		t.Error(err)
	}
	for _, m := range list {
		if err := m.Close(); err != nil { // or it waits until the test is killed
			t.Error(err)
		}
	}
}

// TestUserfaultCloseLeavesOthers closes one beside somebody else's, who keeps watch over writes: that one's pages stay protected.
func TestUserfaultCloseLeavesOthers(t *testing.T) {
	u, _ := testUserfault(t)
	fd, err := openUserfault()
	if err != nil {
		t.Fatal(err)
	}
	defer fd.Close()
	m, err := MapAnonymous(osPageSize)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	m.Bytes()[0] = 1
	others, page := &Userfault{fd: fd}, uint64(osPageSize)
	if err := others.Watch(Address(m.Bytes()), page); err != nil {
		t.Fatal(err)
	}
	defer others.Unwatch(Address(m.Bytes()), page)
	if err := others.protect(Address(m.Bytes()), page, 1); err != nil { // UFFDIO_WRITEPROTECT_MODE_WP
		t.Fatal(err)
	}
	if !writeProtected(t, m.Bytes()) {
		t.Fatal("not protected")
	}
	for what, do := range map[string]func(){"it closes": u.letGo, "it watched there before": func() { _ = u.Unwatch(Address(m.Bytes()), page) }} {
		if do(); !writeProtected(t, m.Bytes()) {
			t.Errorf("%s: not protected any more: what is written is not seen", what)
		}
	}
}

// writeProtected says whether a userfaultfd protects the first page of b: bit 57 of pagemap.
func writeProtected(t *testing.T, b []byte) bool {
	t.Helper()
	f, err := os.Open("/proc/self/pagemap")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var entry [8]byte
	if _, err := f.ReadAt(entry[:], int64(Address(b)/uint64(osPageSize)*8)); err != nil {
		t.Fatal(err)
	}
	return binary.NativeEndian.Uint64(entry[:])>>57&1 != 0
}

// TestUserfaultRefused is under a filter of system calls that refuses what lets go of the threads that wait when the reader ends: better none than one
// at whose end they hang.
func TestUserfaultRefused(t *testing.T) {
	testutil.Require(t, testutil.Capability{Name: "userfaultfd with write protection", Probe: CanUserfault, Fixed: true})
	if err := testutil.Child(t, "unreplaced").Wait(); err != nil {
		t.Error(err)
	}
}

func roleUnreplaced([]string) error {
	if err := deny(unix.SYS_DUP3); err != nil {
		return err
	}
	if err := CanUserfault(); !errors.Is(err, unix.EPERM) {
		return fmt.Errorf("it can: %w", err)
	}
	return nil
}

// rawUnmap unmaps as the Go runtime does, and programs without a C library: the processor of Go's is not given back meanwhile.
func rawUnmap(m *Anonymous) error {
	b := m.bytes
	m.bytes = nil
	untrack(m.ticket)
	_, _, errno := unix.RawSyscall(unix.SYS_MUNMAP, uintptr(Address(b)), uintptr(len(b)), 0)
	if errno != 0 {
		return errno
	}
	return nil
}

// settled is Watched when no event waits to be read.
func settled(u *Userfault, addr, n uint64) bool {
	is, busy := u.Watched(addr, n)
	for ; busy; is, busy = u.Watched(addr, n) {
		runtime.Gosched()
	}
	return is
}
