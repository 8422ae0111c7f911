package mrcache

import (
	"errors"
	"math"
	"runtime"
	"syscall"
	"testing"

	"github.com/weft-fabric/weft/memmon"
)

// singles are pages of one owner, one kind each.
func singles(t tester, n int) []memmon.Kind {
	m, own := pages(t, n).Bytes(), new(owner)
	list := make([]memmon.Kind, n)
	for i := range list {
		list[i] = memmon.Mapped(m[i*int(pageSize):(i+1)*int(pageSize)], own)
	}
	return list
}

func TestLimits(t *testing.T) {
	for what, cfg := range map[string]Config{"count": {MaxCount: 4}, "bytes": {MaxBytes: 4*pageSize + 5}} {
		t.Run(what, func(t *testing.T) {
			b := newBench(t, newDevice(), cfg)
			p := singles(t, 10)
			for _, k := range p {
				b.pass(t, k)
			}
			if s := b.Stats(); s.Entries != 4 || s.Evicted != 6 || s.MostPinned != 4*pageSize || b.device.count() != 4 {
				t.Errorf("all idle: %+v", s)
			}
			var held []Registration[*region]
			for i, k := range p {
				r := b.acquire(t, k)
				held = append(held, r)
				if why := r.Why(); (why == Kept) != (i < 4) || why != Kept && why != Full {
					t.Errorf("number %d in use: %v", i, why)
				}
			}
			if s := b.Stats(); s.Entries != 4 || s.InUse != 4 || s.Full != 6 || s.Pinned != 10*pageSize {
				t.Errorf("all in use: %+v", s)
			}
			for i := range held {
				release(t, &held[i], nil)
			}
			if s := b.Stats(); s.Entries != 4 || s.InUse != 0 || s.Pinned != 4*pageSize || b.device.count() != 4 {
				t.Errorf("after that: %+v", s)
			}
		})
	}
}

func TestLimitsOfNothing(t *testing.T) {
	b := newBench(t, newDevice(), Config{MaxCount: -1})
	r := b.acquire(t, memmon.HeapBytes(make([]byte, 100)))
	if r.Why() != Full {
		t.Errorf("kept: %v", r.Why())
	}
	release(t, &r, nil)
	release(t, &r, nil)
	if s := b.Stats(); s.Full != 1 || b.device.count() != 0 {
		t.Errorf("%+v", s)
	}
}

// TestTooLargeToKeep does not evict for what never fits, and keeps at least what was asked for of a slice with a large capacity.
func TestTooLargeToKeep(t *testing.T) {
	b := newBench(t, newDevice(), Config{MaxBytes: 3 * pageSize})
	p := singles(t, 2)
	b.pass(t, p[0])
	r := b.acquire(t, memmon.Mapped(pages(t, 4).Bytes(), new(owner)))
	if r.Why() != Full {
		t.Errorf("%v", r.Why())
	}
	release(t, &r, nil)
	large := make([]byte, 8*pageSize)
	r = b.acquire(t, memmon.HeapBytes(large[:pageSize]))
	if r.Why() != Kept || r.Range() != memmon.RangeOf(large[:pageSize]) {
		t.Errorf("%v of %v", r.Why(), r.Range())
	}
	release(t, &r, nil)
	if s := b.Stats(); s.Entries != 2 || s.Evicted != 0 {
		t.Errorf("%+v", s)
	}
}

// TestClock uses some over and over, and others once: those go.
func TestClock(t *testing.T) {
	b := newBench(t, newDevice(), Config{MaxCount: 8})
	p := singles(t, 40)
	var often [4]*region
	for i := range often {
		often[i] = b.pass(t, p[i])
	}
	for _, k := range p[4:] {
		b.pass(t, k)
		for i, first := range often {
			if b.pass(t, p[i]) != first {
				t.Errorf("number %d went", i)
			}
		}
	}
	if s := b.Stats(); s.Evicted != 32 || s.Entries != 8 {
		t.Errorf("%+v", s)
	}
}

// TestClockOfManyInFavour has more than the hand passes at a time, all of them used again: one goes all the same.
func TestClockOfManyInFavour(t *testing.T) {
	const many = handSteps + 10
	b := newBench(t, newDevice(), Config{MaxCount: many})
	p := singles(t, many+1)
	for range 2 {
		for _, k := range p[:many] {
			b.pass(t, k)
		}
	}
	r := b.acquire(t, p[many])
	if s := b.Stats(); r.Why() != Kept || s.Evicted != 1 || s.Entries != many {
		t.Errorf("%v: %+v", r.Why(), s)
	}
	release(t, &r, nil)
}

// TestTheDeadMakeRoomFirst has one that died wait for the goroutine, which the device holds up with another: nobody who is alive has to go.
func TestTheDeadMakeRoomFirst(t *testing.T) {
	began, goOn := make(chan struct{}), make(chan struct{})
	d := newDevice()
	slow := true
	d.leaving = func(*region) {
		if slow {
			slow = false
			close(began)
			<-goOn
		}
	}
	b := newBench(t, d, Config{MaxCount: 3})
	first, own, p := arena(t, b.arbiter, 1), new(owner), singles(t, 2)
	b.pass(t, first)
	alive := b.pass(t, p[0])
	waits := b.acquire(t, memmon.Mapped(pages(t, 1).Bytes(), own))
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	<-began
	own.n.Add(1)
	release(t, &waits, ErrRemapped)
	b.pass(t, p[1])
	if b.pass(t, p[0]) != alive || b.Stats().Evicted != 0 {
		t.Errorf("%+v", b.Stats())
	}
	close(goOn)
}

// TestShortage has a device that can pin less than the cache may.
func TestShortage(t *testing.T) {
	d := newDevice()
	d.limit = 3 * pageSize
	b := newBench(t, d, Config{})
	p := singles(t, 5)
	busy := b.acquire(t, p[0])
	b.pass(t, p[1])
	b.pass(t, p[2])
	b.pass(t, p[3])
	if s := b.Stats(); s.Entries != 2 || s.InUse != 1 || s.Pinned != 2*pageSize {
		t.Errorf("idle ones make room: %+v", s)
	}
	two := b.acquire(t, p[1])
	three := b.acquire(t, p[2])
	if _, err := b.Acquire(p[4]); !errors.Is(err, syscall.ENOMEM) {
		t.Errorf("all in use: %v", err)
	}
	if s := b.Stats(); s.Pinned != 3*pageSize {
		t.Errorf("what failed is counted: %+v", s)
	}
	release(t, &busy, nil)
	release(t, &two, nil)
	release(t, &three, nil)
	b.pass(t, p[4])
	large := make([]byte, 8*pageSize)
	r := b.acquire(t, memmon.HeapBytes(large[:100])) // its capacity is too much for the device
	if r.Why() != Kept || r.Range() != memmon.RangeOf(large[:100]) {
		t.Errorf("%v of %v", r.Why(), r.Range())
	}
	release(t, &r, nil)
}

func TestLimitOfTheProcess(t *testing.T) {
	d := newDevice()
	a, err := memmon.NewArbiter()
	if err != nil {
		t.Fatal(err)
	}
	c, err := newCache(d, Config{Arbiter: a}, func() (uint64, error) { return 2 * pageSize, nil })
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range singles(t, 5) {
		r, err := c.Acquire(k)
		if err != nil {
			t.Fatal(err)
		}
		release(t, &r, nil)
	}
	if s := c.Stats(); s.Entries != 2 || s.MostPinned != 2*pageSize {
		t.Errorf("%+v", s)
	}
	if err := errors.Join(c.Close(), a.Close()); err != nil {
		t.Error(err)
	}
}

func TestMaximumOfBytes(t *testing.T) {
	b := newBench(t, newDevice(), Config{MaxBytes: math.MaxUint64})
	b.pass(t, singles(t, 1)[0])
	if s := b.Stats(); s.Entries != 1 {
		t.Errorf("%+v", s)
	}
}

// TestNothingGoesInVain has a large buffer for which there is no room beside what is in use, whatever else goes: so nothing does.
func TestNothingGoesInVain(t *testing.T) {
	b := newBench(t, newDevice(), Config{MaxBytes: 10 * pageSize})
	busy := b.acquire(t, memmon.Mapped(pages(t, 6).Bytes(), new(owner)))
	small := singles(t, 3)
	large := memmon.Mapped(pages(t, 5).Bytes(), new(owner))
	for range 5 {
		for _, k := range small {
			b.pass(t, k)
		}
		r := b.acquire(t, large)
		if r.Why() != Full {
			t.Errorf("%v", r.Why())
		}
		release(t, &r, nil)
	}
	if s := b.Stats(); s.Evicted != 0 || s.Hits != 12 {
		t.Errorf("%+v", s)
	}
	release(t, &busy, nil)
	if r := b.acquire(t, large); r.Why() != Kept {
		t.Errorf("there is room: %v", r.Why())
	} else {
		release(t, &r, nil)
	}
}

// TestShortageBesideAnother has two caches of one process, two domains say, on a device that can pin less than both may: what one of them keeps idle
// does not keep the other one from registering.
func TestShortageBesideAnother(t *testing.T) {
	d := newDevice()
	d.limit = 3 * pageSize
	b := newBench(t, d, Config{})
	other, err := newCache(d, Config{Arbiter: b.arbiter}, func() (uint64, error) { return math.MaxUint64, nil })
	if err != nil {
		t.Fatal(err)
	}
	p := singles(t, 4)
	for _, k := range p[:3] {
		b.pass(t, k)
	}
	r, err := other.Acquire(p[3])
	if err != nil {
		t.Errorf("the other cache has only idle ones: %v", err)
	} else {
		release(t, &r, nil)
	}
	if err := other.Close(); err != nil {
		t.Error(err)
	}
}

// TestShortageWhileClosing has three caches of devices that use each other: one that gives back what is idle for a shortage comes to a shortage again,
// while somebody closes it. Nobody waits for himself.
func TestShortageWhileClosing(t *testing.T) {
	d, full, third := newDevice(), newDevice(), newDevice()
	full.limit = 0
	first := newBench(t, third, Config{})
	anybody := func() (uint64, error) { return math.MaxUint64, nil }
	other, err := newCache(full, Config{Arbiter: first.arbiter}, anybody)
	if err != nil {
		t.Fatal(err)
	}
	c, err := newCache(d, Config{Arbiter: first.arbiter}, anybody)
	if err != nil {
		t.Fatal(err)
	}
	p, closed := singles(t, 3), make(chan error, 1)
	short := func() {
		if _, err := other.Acquire(p[0]); !errors.Is(err, syscall.ENOMEM) {
			t.Errorf("there is no room: %v", err)
		}
	}
	d.leaving = func(*region) { // first's turn comes before this one's
		first.pass(t, p[1])
		short()
	}
	third.leaving = func(*region) {
		go func() { closed <- c.Close() }()
		for c.sparing.TryRLock() {
			c.sparing.RUnlock()
			runtime.Gosched()
		}
	}
	r, err := c.Acquire(p[2])
	if err != nil {
		t.Fatal(err)
	}
	release(t, &r, nil)
	short()
	if err := errors.Join(<-closed, other.Close()); err != nil {
		t.Error(err)
	}
}

// TestShortageInVain has a buffer that is too large for the device, of which a part would do: nothing else is let go for it.
func TestShortageInVain(t *testing.T) {
	d := newDevice()
	d.limit = 4 * pageSize
	b := newBench(t, d, Config{})
	small := singles(t, 2)
	large := memmon.Mapped(pages(t, 5).Bytes(), new(owner))
	for range 3 {
		for _, k := range small {
			b.pass(t, k)
		}
		r, err := b.AcquirePart(large, large.Bytes()[:100])
		if err != nil {
			t.Fatal(err)
		}
		release(t, &r, nil)
	}
	if s := b.Stats(); s.Hits != 6 || s.Entries != 3 {
		t.Errorf("%+v", s)
	}
}
