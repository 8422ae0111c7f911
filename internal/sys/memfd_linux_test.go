package sys

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/weft-fabric/weft/internal/testutil"
)

// memory makes a memory file that is closed with the test.
func memory(t *testing.T, size int64) *FD {
	t.Helper()
	fd, err := Memfd(MemfdConfig{Name: "test", Size: size})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { fd.Close() })
	return fd
}

func mapped(t *testing.T, fd *FD, n int, writable bool) *Mapping {
	t.Helper()
	m, err := Map(fd, 0, n, writable)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	return m
}

func TestFD(t *testing.T) {
	nothingOpen(t)
	fd := memory(t, 1)
	other, err := fd.Dup()
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if fd.Int() < 3 || other.Int() == fd.Int() {
		t.Errorf("%d and %d", fd.Int(), other.Int())
	}
	if err := fd.Close(); err != nil || fd.Close() != nil || fd.Int() != -1 {
		t.Error(err)
	}
	if _, err := Size(fd); !errors.Is(err, syscall.EBADF) {
		t.Error(err)
	}
	if _, err := fd.Dup(); !errors.Is(err, syscall.EBADF) {
		t.Error(err)
	}
	if n, err := Size(other); n != 1 || err != nil {
		t.Error(n, err)
	}
	CloseAll([]*FD{nil, other})
	if other.Int() != -1 {
		t.Error("open")
	}
}

func TestMemfd(t *testing.T) {
	nothingOpen(t)
	fd := memory(t, 10000)
	if n, err := Size(fd); n != 10000 || err != nil {
		t.Error(n, err)
	}
	m := mapped(t, fd, 10000, true)
	view := mapped(t, fd, 10000, false)
	if !m.Writable() || view.Writable() || len(view.Bytes()) != 10000 {
		t.Error("mappings")
	}
	m.Bytes()[9999] = 7
	if view.Bytes()[9999] != 7 {
		t.Error("two mappings of one file differ")
	}
	if err := Allocate(fd, 0, 10000); err != nil {
		t.Error(err)
	}
	if err := Discard(fd, 0, 12288); err != nil || view.Bytes()[9999] != 0 {
		t.Error(err, view.Bytes()[9999])
	}
	if err := m.Close(); err != nil || m.Close() != nil {
		t.Error(err)
	}
	if err := Truncate(fd, 20); err != nil {
		t.Error(err)
	}
	if n, err := Size(fd); n != 20 || err != nil {
		t.Error(n, err)
	}
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil || !bytes.Contains(maps, []byte("/memfd:test")) {
		t.Error("the name is not shown", err)
	}
	for _, c := range []MemfdConfig{{Name: "x", Size: -1}, {Name: strings.Repeat("x", 250)}, {Name: "x", Huge: true, Features: Features{}.Without(HugeTLB)}} {
		if fd, err := Memfd(c); err == nil {
			fd.Close()
			t.Errorf("%+v: no error", c)
		}
	}
}

func TestHuge(t *testing.T) {
	nothingOpen(t)
	testutil.Require(t, has(HugeTLB))
	pools := HugePools()
	if len(pools) == 0 {
		t.Fatal("the kernel has huge pages, of no size")
	}
	for i := range pools {
		p := pools[i]
		fd, err := Memfd(MemfdConfig{Name: "huge", Size: int64(p.Page), Huge: true, HugePage: p.Page})
		if err != nil {
			t.Fatal(err)
		}
		var st syscall.Stat_t
		if err := syscall.Fstat(fd.Int(), &st); err != nil || uint64(st.Blksize) != p.Page {
			t.Errorf("pages of %d bytes, not %d; %v", st.Blksize, p.Page, err)
		}
		if err := CheckPages(fd, int64(p.Page)); !errors.Is(err, ErrSeals) {
			t.Errorf("a page that may go away: %v", err)
		}
		if err := Seal(fd, SealShrink|SealFutureWrite); err != nil {
			t.Error(err)
		}
		if err := CheckPages(fd, int64(p.Page)); !errors.Is(err, ErrSeals) || !strings.Contains(err.Error(), "0 of") {
			t.Errorf("a page that is not there: %v", err)
		}
		if p.Free == 0 { // else it is somebody's, and others wait for it
			if err := Allocate(fd, 0, int64(p.Page)); !errors.Is(err, syscall.ENOSPC) && !errors.Is(err, syscall.ENOMEM) && !errors.Is(err, syscall.EPERM) {
				t.Errorf("a page of %d bytes: %v", p.Page, err)
			}
		}
		fd.Close()
	}
	if err := CheckPages(memory(t, 4096), 4096); err != nil {
		t.Errorf("ordinary pages: %v", err)
	}
}

func TestHugePools(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"hugepages-2048kB/nr_hugepages": "8\n", "hugepages-2048kB/free_hugepages": "6\n", "hugepages-2048kB/resv_hugepages": "1\n",
		"hugepages-64kB/nr_hugepages": "3", "hugepages-64kB/free_hugepages": "1", "hugepages-64kB/resv_hugepages": "2",
		"hugepages-1048576kB/nr_hugepages": "many", "hugepages-x/nr_hugepages": "1", "other/nr_hugepages": "1",
	} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(dir, name), text)
	}
	want := []HugePool{{64 << 10, 3, 0}, {2 << 20, 8, 5}, {1 << 30, 0, 0}}
	if got := hugePools(dir); !slices.Equal(got, want) {
		t.Errorf("%v", got)
	}
	if got := hugePools(dir + "/none"); got != nil {
		t.Errorf("%v", got)
	}
}

// has is a feature as a capability of the host.
func has(f Feature) testutil.Capability {
	return testutil.Capability{Name: f.String(), Fixed: true, Probe: func() error { return Features{}.Check(f) }}
}

// TestSealed is the way of memory that one process writes and others read.
func TestSealed(t *testing.T) {
	nothingOpen(t)
	testutil.Require(t, has(FutureWrite))
	fd := memory(t, 8192)
	m := mapped(t, fd, 8192, true)
	const seals = SealShrink | SealGrow | SealFutureWrite | SealSeal
	if err := CheckSealed(fd, 8192, SealShrink); !errors.Is(err, ErrSeals) {
		t.Error(err)
	}
	if err := Seal(fd, SealWrite); !errors.Is(err, syscall.EBUSY) {
		t.Error(err)
	}
	if err := Seal(fd, seals); err != nil {
		t.Fatal(err)
	}
	if s, err := SealsOf(fd); !s.Has(seals) || err != nil || seals.String() != "seal|shrink|grow|future-write" || Seals(0).String() != "none" {
		t.Error(s, err)
	}
	if err := CheckSealed(fd, 8192, seals); err != nil {
		t.Error(err)
	}
	if err := CheckSealed(fd, 8193, seals); !errors.Is(err, ErrSeals) {
		t.Error(err)
	}
	m.Bytes()[0] = 1 // the owner still writes
	if view := mapped(t, fd, 8192, false); view.Bytes()[0] != 1 {
		t.Error("not the same memory")
	}
	for what, err := range map[string]error{
		"shorter": Truncate(fd, 1), "longer": Truncate(fd, 10000), "hole": Discard(fd, 0, 4096), "more seals": Seal(fd, SealWrite),
	} {
		if !errors.Is(err, syscall.EPERM) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if m, err := Map(fd, 0, 8192, true); err == nil {
		m.Close()
		t.Error("mapped writable")
	}
	file, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	null := NewFD(int(file.Fd()), "null")
	defer null.Disown()
	if err := CheckSealed(null, 0, 0); !errors.Is(err, ErrSeals) {
		t.Error("a file that is no memory:", err)
	}
}

// TestReadOnly is the same without the seal.
func TestReadOnly(t *testing.T) {
	nothingOpen(t)
	fd := memory(t, 4096)
	m := mapped(t, fd, 4096, true)
	ro, err := ReadOnly(fd)
	if err != nil {
		t.Fatal(err)
	}
	defer ro.Close()
	if m, err := Map(ro, 0, 4096, true); !errors.Is(err, syscall.EACCES) {
		m.Close()
		t.Errorf("mapped writable: %v", err)
	}
	view := mapped(t, ro, 4096, false)
	m.Bytes()[1] = 2
	if view.Bytes()[1] != 2 {
		t.Error("not the same memory")
	}
	fd.Close()
	if _, err := ReadOnly(fd); err == nil {
		t.Error("of a closed one")
	}
}

func TestPopulate(t *testing.T) {
	nothingOpen(t)
	const n = 5 * 4096
	for _, f := range []Features{{}, Features{}.Without(PopulatePages)} {
		fd := memory(t, n)
		m := mapped(t, fd, n, true)
		m.Bytes()[5000] = 5
		if err := Populate(m.Bytes()[4100:n-1], true, f); err != nil {
			t.Error(err)
		}
		var st syscall.Stat_t
		if err := syscall.Fstat(fd.Int(), &st); err != nil || st.Blocks*512 != n-4096 {
			t.Errorf("%d bytes are there, %v", st.Blocks*512, err)
		}
		if m.Bytes()[5000] != 5 {
			t.Error("the content changed")
		}
		view := mapped(t, fd, n, false)
		if err := Populate(view.Bytes(), false, f); err != nil {
			t.Error(err)
		}
		if err := Populate(nil, true, f); err != nil {
			t.Error(err)
		}
		if err := Allocate(fd, 0, n); err != nil {
			t.Error(err)
		}
	}
}

func TestMapErrors(t *testing.T) {
	nothingOpen(t)
	fd := memory(t, 4096)
	for _, c := range []struct{ off, n int }{{1, 10}, {0, 0}, {0, -1}, {-4096, 10}} {
		if m, err := Map(fd, int64(c.off), c.n, false); err == nil {
			m.Close()
			t.Errorf("%+v: no error", c)
		}
	}
	fd.Close()
	if _, err := Map(fd, 0, 1, false); !errors.Is(err, syscall.EBADF) {
		t.Error(err)
	}
}
