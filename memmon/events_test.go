package memmon

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/weft-fabric/weft/internal/testutil"
)

func testEvents(t *testing.T) *events {
	t.Helper()
	e, err := newEvents()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.close() })
	return e
}

func TestEvents(t *testing.T) {
	e := testEvents(t)
	r := Range{0x10000, 0x1000}
	seen := e.now()
	check := func(what string, want answer) {
		t.Helper()
		now, got := e.look(seen, r)
		if got != want {
			t.Errorf("%s: the answer is %d", what, got)
		}
		seen = now
	}
	check("nothing happened", same)
	e.post(Range{0x11000, 0x1000})
	e.post(Range{0xf000, 0x1000})
	check("neighbours", same)
	e.post(Range{0x10fff, 1})
	check("its last byte", changed)
	seen = e.now()
	for range numSlots {
		e.post(Range{0, 1})
	}
	check("as many as can be remembered", same)
	for range numSlots + 1 {
		e.post(Range{0, 1})
	}
	check("more than can be remembered", unsure)
	seen = e.now()
	e.w[wordBegun]++ // a poster that has stopped in the middle
	check("somebody is posting", unsure)
	e.w[wordDone]++
	check("an event of old words", same)
}

func TestEventsWanted(t *testing.T) {
	e := testEvents(t)
	far := Range{1 << 40, 3 << granuleBits}
	e.want(far, 1)
	e.want(far, 1)
	for r, want := range map[Range]bool{
		{1 << 40, 1}: true, {1<<40 + 3<<granuleBits - 1, 1}: true, {1<<40 + 3<<granuleBits, 1}: false, {1<<40 - 1, 1}: false,
		{1<<40 - 1, 2}: true, Everything: true, {}: false,
	} {
		if e.wanted(r) != want {
			t.Errorf("%v: wanted %v", r, !want)
		}
	}
	e.want(far, -1)
	if !e.wanted(far) {
		t.Error("the second one still watches")
	}
	e.want(far, -1)
	if e.wanted(Everything) {
		t.Error("nobody watches any more")
	}
}

func TestEventsDrain(t *testing.T) {
	e := testEvents(t)
	var got []Range
	drain := func() []Range {
		got = nil
		e.drain(func(r Range) { got = append(got, r) })
		return got
	}
	e.post(Range{1, 2})
	e.post(Range{3, 4})
	if l := drain(); len(l) != 2 || l[0] != (Range{1, 2}) || l[1] != (Range{3, 4}) {
		t.Errorf("drained %v", l)
	}
	if l := drain(); len(l) != 0 {
		t.Errorf("drained %v once more", l)
	}
	for range numSlots + 1 {
		e.post(Range{1, 2})
	}
	if l := drain(); len(l) != 1 || l[0] != Everything {
		t.Errorf("after too many events %d", len(l))
	}
}

// TestEventsBeside asks after an event that was told just now, beside others who tell of other memory all the time.
func TestEventsBeside(t *testing.T) {
	e := testEvents(t)
	own, calm := Range{1 << 20, 4096}, Range{1 << 30, 4096}
	var asked, told atomic.Uint64
	var stop atomic.Bool
	var all sync.WaitGroup
	all.Go(func() {
		for n := uint64(0); !stop.Load(); {
			if a := asked.Load(); a != n {
				n = a
				e.post(own)
				told.Store(n)
			}
			runtime.Gosched()
		}
	})
	all.Go(func() {
		for !stop.Load() {
			e.post(Range{2 << 20, 4096})
			runtime.Gosched()
		}
	})
	valid := 0
	for n := range uint64(testutil.Count(t, 5000, 500000)) {
		seen := e.now()
		asked.Store(n + 1)
		for told.Load() != n+1 {
			runtime.Gosched()
		}
		if _, got := e.look(seen, own); got == same {
			t.Errorf("event %d was not seen", n)
			break
		}
		if _, got := e.look(seen, calm); got == same {
			valid++
		}
	}
	stop.Store(true)
	all.Wait()
	if valid == 0 {
		t.Error("memory of which nothing was told was never valid")
	}
	if e.w[wordBegun] != e.w[wordDone] {
		t.Errorf("%d begun, %d done", e.w[wordBegun], e.w[wordDone])
	}
}
