package mrcache

import (
	"errors"
	"testing"

	"github.com/weft-fabric/weft/memmon"
)

// memories is memory of each kind, four pages or more, and its first page or so.
func memories(t tester, b *bench) map[string]struct{ whole, piece memmon.Kind } {
	t.Helper()
	a, mapped, watched, own := arena(t, b.arbiter, 4), pages(t, 4).Bytes(), pages(t, 4).Bytes(), new(owner)
	heap := make([]byte, 4*pageSize)
	return map[string]struct{ whole, piece memmon.Kind }{
		"arena":   {a, memmon.Mapped(a.Bytes()[10:pageSize], a)},
		"owner":   {memmon.Mapped(mapped, own), memmon.Mapped(mapped[:100], own)},
		"watched": {memmon.Mapped(watched, nil), memmon.Mapped(watched[100:pageSize+100], nil)},
		"heap":    {memmon.HeapBytes(heap), memmon.HeapBytes(heap[50:70])},
	}
}

func TestHit(t *testing.T) {
	b := newBench(t, newDevice(), Config{})
	for what, m := range memories(t, b) {
		before := b.Stats()
		first := b.pass(t, m.whole)
		for _, k := range []memmon.Kind{m.whole, m.piece} {
			if again := b.pass(t, k); again != first {
				t.Errorf("%s: region %d, then %d", what, first.id, again.id)
			}
		}
		if s := b.Stats(); s.Hits-before.Hits != 2 || s.New-before.New != 1 || s.Entries-before.Entries != 1 {
			t.Errorf("%s: %+v", what, s)
		}
	}
	if s := b.Stats(); s.Pinned != 16*pageSize || s.MostPinned != s.Pinned || s.InUse != 0 {
		t.Errorf("%+v", s)
	}
}

// TestHitTakesNoLock has everything that could be locked be locked.
func TestHitTakesNoLock(t *testing.T) {
	b := newBench(t, newDevice(), Config{})
	for what, m := range memories(t, b) {
		b.pass(t, m.whole)
		b.mu.Lock()
		b.device.mu.Lock()
		r, err := b.Acquire(m.piece)
		if err == nil {
			err = r.Release()
		}
		b.device.mu.Unlock()
		b.mu.Unlock()
		if err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func TestHitAllocatesNothing(t *testing.T) {
	b := newBench(t, newDevice(), Config{})
	for what, m := range memories(t, b) {
		b.pass(t, m.whole)
		if n := testing.AllocsPerRun(100, func() {
			r, err := b.Acquire(m.piece)
			if err != nil || r.Release() != nil {
				t.Fatal(err)
			}
		}); n != 0 {
			t.Errorf("%s: %v allocations", what, n)
		}
	}
}

func TestHeapObjectsAreNotTheirPages(t *testing.T) {
	b := newBench(t, newDevice(), Config{})
	block := make([][]byte, 100)
	for i := range block { // many of a page
		block[i] = make([]byte, 64)
		b.pass(t, memmon.HeapBytes(block[i]))
	}
	if s := b.Stats(); s.New != 100 || s.Hits != 0 || s.Entries != 100 {
		t.Errorf("%+v", s)
	}
	for i := range block {
		r := b.acquire(t, memmon.HeapBytes(block[i][10:20]))
		if r.Range() != memmon.RangeOf(block[i]) {
			t.Errorf("bytes of %v are of %v", memmon.RangeOf(block[i]), r.Range())
		}
		release(t, &r, nil)
	}
}

func TestHeapUpToItsCapacity(t *testing.T) {
	b := newBench(t, newDevice(), Config{})
	m := make([]byte, 2*pageSize)
	part := m[pageSize:]
	first := b.pass(t, memmon.HeapBytes(part[:1]))
	if again := b.pass(t, memmon.HeapBytes(part[5:])); again != first {
		t.Error("the rest of a slice is another region")
	}
	if whole := b.pass(t, memmon.HeapBytes(m)); whole == first {
		t.Error("a region for more than it is of")
	}
	if s := b.Stats(); s.Grown != 1 || s.Entries != 1 {
		t.Errorf("the part lies in the whole: %+v", s)
	}
	b.idle()
	if b.device.has(first) {
		t.Error("what was superseded stays")
	}
}

// TestOwnersAreNotTheSame has two owners in turn for one address.
func TestOwnersAreNotTheSame(t *testing.T) {
	b := newBench(t, newDevice(), Config{})
	m, one, two := pages(t, 1).Bytes(), new(owner), new(owner)
	regions := map[*region]bool{
		b.pass(t, memmon.Mapped(m, one)): true, b.pass(t, memmon.Mapped(m, two)): true, b.pass(t, memmon.Mapped(m, nil)): true,
	}
	if s := b.Stats(); len(regions) != 3 || s.Hits != 0 || s.Entries != 3 {
		t.Errorf("%d regions, %+v", len(regions), s)
	}
	two.n.Add(1)
	b.pass(t, memmon.Mapped(m, one))
	b.pass(t, memmon.Mapped(m, two))
	b.pass(t, memmon.Mapped(m, nil))
	if s := b.Stats(); s.Hits != 2 || s.DeadOwner != 1 {
		t.Errorf("%+v", s)
	}
}

func TestRounding(t *testing.T) {
	b := newBench(t, newDevice(), Config{})
	m, own := pages(t, 3).Bytes(), new(owner)
	r := b.acquire(t, memmon.Mapped(m[pageSize+1:pageSize+2], own))
	if want := memmon.RangeOf(m[pageSize : 2*pageSize]); r.Range() != want {
		t.Errorf("registered %v, not %v", r.Range(), want)
	}
	release(t, &r, nil)
	b.pass(t, memmon.Mapped(m[pageSize:2*pageSize], own))
	if s := b.Stats(); s.Hits != 1 {
		t.Errorf("the rest of the page: %+v", s)
	}
	b.pass(t, memmon.Mapped(m[pageSize:2*pageSize+1], own))
	if s := b.Stats(); s.Hits != 1 || s.Grown != 1 || s.Entries != 1 {
		t.Errorf("a byte of the next page: %+v", s)
	}
	heap := make([]byte, 100) // somebody calls it mapped
	r = b.acquire(t, memmon.Mapped(heap[10:20], own))
	if r.Range() != memmon.RangeOf(heap[10:20]) {
		t.Error("memory of the Go heap was rounded")
	}
	release(t, &r, nil)
}

// TestOverlapping has entries side by side that overlap: none lies in another.
func TestOverlapping(t *testing.T) {
	b := newBench(t, newDevice(), Config{})
	m, own := pages(t, 9).Bytes(), new(owner)
	for i := range 8 {
		b.pass(t, memmon.Mapped(m[i*int(pageSize):(i+2)*int(pageSize)], own))
	}
	if s := b.Stats(); s.Entries != 8 || s.Hits != 0 || s.New != 1 || s.Grown != 7 {
		t.Errorf("%+v", s)
	}
	for i := range 9 {
		b.pass(t, memmon.Mapped(m[i*int(pageSize):(i+1)*int(pageSize)], own))
	}
	if s := b.Stats(); s.Hits != 9 {
		t.Errorf("%+v", s)
	}
	b.pass(t, memmon.Mapped(m, own))
	b.idle()
	if s := b.Stats(); s.Entries != 1 || s.Pinned != 9*pageSize {
		t.Errorf("all lie in the last: %+v", s)
	}
}

// global is not of the heap.
var global [64]byte

func TestRefused(t *testing.T) {
	b := newBench(t, newDevice(), Config{})
	own := new(owner)
	for what, c := range map[string]struct {
		k    memmon.Kind
		want error
	}{
		"nothing":  {nil, ErrEmpty},
		"no bytes": {memmon.HeapBytes(nil), ErrEmpty},
		"empty":    {memmon.Mapped([]byte{}, own), ErrEmpty},
		"not heap": {memmon.HeapBytes(pages(t, 1).Bytes()), memmon.ErrNotHeap},
		"global":   {memmon.HeapBytes(global[:]), memmon.ErrNotHeap},
	} {
		if _, err := b.Acquire(c.k); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, not %v", what, err, c.want)
		}
	}
	if b.device.made != 0 {
		t.Errorf("%d registered", b.device.made)
	}
	b.pass(t, memmon.HeapBytes(make([]byte, 10)))
	b.device.refuse.Store(true)
	if _, err := b.Acquire(memmon.HeapBytes(make([]byte, 10))); !errors.Is(err, errDevice) {
		t.Errorf("the device says no: %v", err)
	}
}

func TestConfig(t *testing.T) {
	if _, err := New[*region](nil, Config{}); !errors.Is(err, ErrConfig) {
		t.Errorf("without a registrar: %v", err)
	}
	c := Config{}.resolve(func() (uint64, error) { return 5, nil })
	if c.Arbiter != memmon.Process() || c.MaxCount != 1024 || c.MaxBytes != 5 || c.Logger == nil {
		t.Errorf("%+v", c)
	}
	c = Config{MaxBytes: 3, MaxCount: -5}.resolve(func() (uint64, error) { return 0, errDevice })
	if c.MaxCount != 0 || c.MaxBytes != 3 {
		t.Errorf("%+v", c)
	}
	if c = (Config{}).resolve(func() (uint64, error) { return 0, errDevice }); c.MaxBytes == 0 {
		t.Errorf("%+v", c)
	}
}

func TestReasons(t *testing.T) {
	seen := map[string]bool{}
	for r := range numReasons + 1 {
		if s := r.String(); s == "" || seen[s] {
			t.Errorf("reason %d is called %q", r, s)
		} else {
			seen[s] = true
		}
	}
}
