package shm

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/weft-fabric/weft/fabric/provider"
	"github.com/weft-fabric/weft/internal/sys"
	"github.com/weft-fabric/weft/internal/testutil"
)

const huge2M = 2 << 20

func huge(v string) provider.DomainConfig {
	return provider.DomainConfig{Options: map[string]string{"hugetlb": v}}
}

// hugePages reserves n pages of 2 MiB besides those that there are, until the test ends.
func hugePages(t *testing.T, n uint64) {
	t.Helper()
	const file = "/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages"
	testutil.Require(t, testutil.Capability{Name: "huge pages that can be reserved", Fixed: true, Probe: func() error {
		f, err := os.OpenFile(file, os.O_WRONLY, 0)
		if err == nil {
			err = f.Close()
		}
		return err
	}})
	before := pool2M()
	set := func(pages uint64) error { return os.WriteFile(file, []byte(strconv.FormatUint(pages, 10)), 0) }
	t.Cleanup(func() {
		if err := set(before.Pages); err != nil {
			t.Error(err)
		}
	})
	if err := set(before.Pages + n); err != nil {
		t.Fatal(err)
	}
	testutil.Require(t, testutil.Capability{Name: fmt.Sprintf("memory for %d huge pages", n), Fixed: true, Probe: func() error {
		if p := pool2M(); p.Free < n {
			return fmt.Errorf("%+v", p)
		}
		return nil
	}})
}

func pool2M() sys.HugePool {
	for _, p := range sys.HugePools() {
		if p.Page == huge2M {
			return p
		}
	}
	return sys.HugePool{}
}

// segmentsOf lists the sizes of the pages that the segments of a domain lie on.
func (s *side) segmentsOf() (pages []int) {
	s.t.Helper()
	s.d.arena.mu.Lock()
	defer s.d.arena.mu.Unlock()
	for _, seg := range s.d.arena.segments {
		pages = append(pages, pageOf(s.t, seg.file))
	}
	return pages
}

// pageOf is the size of a page of a file's memory, as the kernel shows it.
func pageOf(t testing.TB, f *file) int {
	t.Helper()
	maps, err := os.ReadFile("/proc/self/smaps")
	if err != nil {
		t.Fatal(err)
	}
	at := fmt.Sprintf("%08x-", sys.Address(f.m.Bytes()))
	_, rest, ok := strings.Cut(string(maps), "\n"+at)
	if !ok {
		t.Fatalf("no mapping at %s", at)
	}
	_, rest, _ = strings.Cut(rest, "KernelPageSize:")
	kib := 0
	if _, err := fmt.Sscan(rest, &kib); err != nil {
		t.Fatal(err)
	}
	return kib << 10
}

// Arenas lie on huge pages where some are reserved, do all that others do, and leave none behind.
func TestHugeArena(t *testing.T) {
	hugePages(t, 12)
	free := pool2M().Free
	for _, how := range []string{"on", "auto", "2M"} {
		for _, disable := range []string{"", "populate", "noexec_seal"} {
			t.Run(how+" "+disable, func(t *testing.T) {
				c := huge(how)
				c.Options["disable"] = disable
				a, err := open(provider.Info{}, provider.DomainConfig{})
				if err != nil {
					t.Fatal(err)
				}
				_ = a.Close()
				t.Run("life", func(t *testing.T) { hugeLife(t, c) })
				if p := pool2M(); p.Free != free {
					t.Errorf("%d of %d pages are free again", p.Free, free)
				}
			})
		}
	}
}

func hugeLife(t *testing.T, c provider.DomainConfig) {
	a, b, ab, _ := twoSides(t, c)
	const n = 3<<20 + 5
	m := b.alloc(n, provider.PeerRead)
	small := b.alloc(100, provider.PeerRead)
	if got := b.segmentsOf(); len(got) != 1 || got[0] != huge2M {
		t.Fatalf("pages of %v", got)
	}
	if b.d.Stats().Arena != 2*huge2M {
		t.Errorf("%d bytes", b.d.Stats().Arena)
	}
	if !bytes.Equal(m.Bytes(), make([]byte, n)) {
		t.Error("not zero")
	}
	copy(m.Bytes(), pattern(n, 1))
	copy(small.Bytes(), "small")
	v := a.view(ab, m, 1, n-1)
	if !bytes.Equal(v.Bytes(), pattern(n, 1)[1:]) {
		t.Error("a view shows other bytes")
	}
	in := make([]byte, n)
	a.must(a.ep.Read(provider.Op{Local: provider.Segment{Bytes: in}, Peer: ab, Key: m.Key(), Context: 1}))
	a.good(a.wait(), provider.ReadDone, 1)
	if !bytes.Equal(in, pattern(n, 1)) {
		t.Error("a read brings other bytes")
	}
	if m.Close() != nil || small.Close() != nil {
		t.Error("close")
	}
	other := b.alloc(100_000, provider.PeerRead) // used anew
	if !bytes.Equal(other.Bytes(), make([]byte, 100_000)) {
		t.Error("memory that was given back is not zero")
	}
	v.Release()
	// The file is as all of its kind: nobody but its owner writes it, and no page of it goes away.
	fd := b.d.arena.segments[0].file.fd
	for what, err := range map[string]error{
		"shorter": sys.Truncate(fd, huge2M), "hole": sys.Discard(fd, 0, huge2M), "seals": sys.CheckSealed(fd, 2*huge2M, lengthSeals|sys.SealFutureWrite),
	} {
		if (err == nil) != (what == "seals") {
			t.Errorf("%s: %v", what, err)
		}
	}
	if w, err := sys.Map(fd, 0, 2*huge2M, true); err == nil {
		_ = w.Close()
		t.Error("a peer can write it")
	}
}

// Without room: auto goes on with ordinary pages, the others say what is missing.
func TestHugeNone(t *testing.T) {
	none := func() []sys.HugePool { return []sys.HugePool{{Page: huge2M, Pages: 7, Free: 1}} }
	for how, text := range map[string]string{
		"on": "5000000 bytes", "2M": "3 pages of 2048 KiB; the system has 7, 1 of them free", "1G": "no such pages", "auto": "",
	} {
		a := newSide(t, huge(how), provider.EndpointConfig{})
		a.d.arena.pools = none
		text = strings.Replace(text, "5000000 bytes", "3 pages of 2048 KiB; the system has 7, 1 of them free", 1)
		m, err := a.d.Alloc(5_000_000, provider.PeerRead)
		if how == "auto" {
			if err != nil || a.segmentsOf()[0] != pageSize {
				t.Errorf("auto: %v", err)
			}
			continue
		}
		if m != nil || !errors.Is(err, provider.ErrNoMemory) || !strings.Contains(err.Error(), text) || !strings.Contains(err.Error(), "hugetlb="+how) {
			t.Errorf("%s: %v, not with %q", how, err, text)
		}
		if a.d.Stats().Arena != 0 {
			t.Errorf("%s: %d bytes are counted", how, a.d.Stats().Arena)
		}
		if _, err := a.d.Alloc(100, provider.PeerWrite); !errors.Is(err, provider.ErrNotSupported) {
			t.Errorf("%s: memory that peers may write: %v", how, err)
		}
	}
	for _, feature := range []string{"hugetlb", "future_write"} {
		for _, how := range []string{"on", "auto"} {
			c := huge(how)
			c.Options["disable"] = feature
			a := newSide(t, c, provider.EndpointConfig{})
			a.d.arena.pools = func() []sys.HugePool { return []sys.HugePool{{Page: huge2M, Pages: 100, Free: 100}} }
			_, err := a.d.Alloc(5_000_000, provider.PeerRead)
			if how == "on" && (!errors.Is(err, provider.ErrNotSupported) || !strings.Contains(err.Error(), feature)) || how == "auto" && err != nil {
				t.Errorf("%s without %s: %v", how, feature, err)
			}
		}
	}
	// A pool that says it has pages, and has none: the kernel knows better, and nothing is ever touched that is not there.
	if pool2M().Free < 1000 {
		a := newSide(t, huge("on"), provider.EndpointConfig{})
		a.d.arena.pools = func() []sys.HugePool { return []sys.HugePool{{Page: huge2M, Pages: 1 << 20, Free: 1 << 20}} }
		if _, err := a.d.Alloc(2<<30, provider.PeerRead); !errors.Is(err, provider.ErrNoMemory) {
			t.Error(err)
		}
	}
}

// The bound on arenas holds: pages are not rounded up past it, and small segments do not take a page in auto.
func TestHugeBound(t *testing.T) {
	hugePages(t, 8)
	for how, ok := range map[string]bool{"auto": true, "on": false} {
		c := huge(how)
		c.Memory = 5 << 20 // in between
		a := newSide(t, c, provider.EndpointConfig{})
		m, err := a.d.Alloc(4<<20+1, provider.PeerRead)
		if ok != (err == nil) || !ok && !errors.Is(err, provider.ErrNoMemory) || a.d.Stats().Arena > c.Memory {
			t.Errorf("%s: %v, %d bytes", how, err, a.d.Stats().Arena)
		}
		if ok && a.segmentsOf()[0] != pageSize {
			t.Error("on huge pages")
		}
		_ = m
	}
	a := newSide(t, huge("auto"), provider.EndpointConfig{})
	a.alloc(100, provider.PeerRead)
	a.alloc(100, provider.PeerWrite|provider.PeerRead)
	a.alloc(huge2M, provider.PeerWrite|provider.PeerRead)
	a.alloc(huge2M, provider.PeerRead)
	if got := a.segmentsOf(); fmt.Sprint(got) != fmt.Sprint([]int{pageSize, pageSize, pageSize, huge2M}) {
		t.Errorf("pages of %v", got)
	}
}

// A peer that sends huge pages which are not all there, or can go away, would kill who touches them: it is refused.
func TestHostileHuge(t *testing.T) {
	hugePages(t, 4)
	for _, c := range []struct {
		name   string
		fill   int64
		seals  sys.Seals
		refuse bool
	}{
		{"all there", 2 * huge2M, lengthSeals | sys.SealFutureWrite, false},
		{"none there", 0, lengthSeals | sys.SealFutureWrite, true},
		{"one there", huge2M, lengthSeals | sys.SealFutureWrite, true},
		{"may go away", 2 * huge2M, lengthSeals, true},
	} {
		fd, err := sys.Memfd(sys.MemfdConfig{Name: "hostile", Size: 2 * huge2M, Huge: true, HugePage: huge2M})
		if err != nil {
			t.Fatal(err)
		}
		if c.fill > 0 {
			if err := sys.Allocate(fd, 0, c.fill); err != nil {
				t.Fatal(err)
			}
		}
		if err := sys.Seal(fd, c.seals); err != nil {
			t.Fatal(err)
		}
		m, err := mapForeign(fd, 2*huge2M, false)
		if c.refuse != errors.Is(err, sys.ErrSeals) || !c.refuse && err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		if m != nil {
			_ = m.Close()
		}
	}
}

func TestHugeOptions(t *testing.T) {
	for _, v := range hugeNames() {
		if o, err := parseOptions(map[string]string{"hugetlb": v}); err != nil || o.huge != v {
			t.Error(o.huge, err)
		}
	}
	if _, err := parseOptions(map[string]string{"hugetlb": "4M"}); !errors.Is(err, provider.ErrInvalid) {
		t.Error(err)
	}
	if o, _ := parseOptions(nil); o.huge != hugeOff {
		t.Error("not off by itself")
	}
	i := describe(sys.Features{}.Without(sys.HugeTLB))
	for _, f := range i.Features {
		if f.Name == "hugetlb" && (f.On || !strings.Contains(f.Detail, "turned off")) {
			t.Errorf("%+v", f)
		}
	}
	if s := hugeRoom([]sys.HugePool{{Page: huge2M, Pages: 8, Free: 6}, {Page: 1 << 30}}); s != "6 of 8 pages of 2048 KiB free, 0 of 0 pages of 1048576 KiB free" {
		t.Error(s)
	}
}
