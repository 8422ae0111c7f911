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

// small is a page of few slots, which are soon used again.
func small(t *testing.T, slots int) *events {
	t.Helper()
	e, err := newEventsOf(slots)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.close() })
	return e
}

func TestEvents(t *testing.T) {
	e := testEvents(t)
	r := Range{0x10000, 0x1000}
	seen := e.start(r)
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
	seen = e.start(r)
	for range numSlots {
		e.post(Range{0, 1})
	}
	check("as many as can be remembered", same)
	for range 3 {
		for range numSlots + 1 {
			e.post(Range{1 << 30, 1})
		}
		check("more than can be remembered, elsewhere", same)
	}
	for range numSlots + 1 {
		e.post(Range{0, 1})
	}
	check("more than can be remembered, near by", unsure)
	seen = e.start(r)
	e.post(Everything)
	for range numSlots {
		e.post(Range{1 << 30, 1})
	}
	check("everything, and more than can be remembered", unsure)
}

// TestEventsInTheMiddle has posters stop at each step of a post: what they tell has not gone yet, and is not forgotten.
func TestEventsInTheMiddle(t *testing.T) {
	r := Range{0x10000, 0x1000}
	for _, taken := range []bool{false, true} {
		e := small(t, 4)
		e.post(Range{1, 1})
		before := e.start(r)
		e.w[wordBegun]++ // a poster begins
		slot := e.slot(1)
		if taken {
			slot[2] = 2 | writing
		}
		late := e.start(r)
		if late.seen != 1 {
			t.Errorf("who comes now begins to look at %d", late.seen)
		}
		e.post(Range{2, 1})
		for _, seen := range []trail{before, late} {
			now, got := e.look(seen, r)
			if got != same || now.seen != 1 {
				t.Errorf("while it is told: %d, looked up to %d", got, now.seen)
			}
			slot[0], slot[1], slot[2] = r.Addr, r.Len, 2
			want := changed
			if seen == late { // it could be that it was told before
				want = unsure
			}
			if _, got := e.look(now, r); got != want {
				t.Errorf("then: %d, not %d", got, want)
			}
			slot[2] = 0
			if taken {
				slot[2] = 2 | writing
			}
		}
		// A lap later its slot is needed.
		far := Range{1 << 30, 1}
		for range 3 {
			e.post(far)
		}
		if _, got := e.look(e.start(r), r); got != same {
			t.Error("nothing was told since just now")
		}
		if _, got := e.look(before, r); got != unsure { // of the second post
			t.Errorf("more was told than can be remembered: %d", got)
		}
		lost := uint64(0)
		if taken {
			lost = 1
		}
		if e.w[wordLost] != lost {
			t.Errorf("%d lost", e.w[wordLost])
		}
		if taken { // the stopped one goes on: nobody else has its slot
			continue
		}
		near, away := e.start(r), e.start(far)
		if e.write(1, r) {
			t.Error("who was overtaken by a lap has written over a newer event")
		}
		atomic.AddUint64(&e.w[wordLost], 1) // as post does then
		e.touch(r)
		if _, got := e.look(near, r); got != unsure {
			t.Errorf("what was lost: %d", got)
		}
		if now, got := e.look(away, far); got != same || now.lost != 1 {
			t.Errorf("what was lost elsewhere: %d", got)
		}
	}
}

// TestSoakEventsCrowd has many posters in few slots, and asks after what each has posted: once it has, nobody is told that nothing has happened.
func TestSoakEventsCrowd(t *testing.T) {
	for _, slots := range []int{1, 2, 8, 64} {
		e := small(t, slots)
		const posters = 6
		var gone [posters]atomic.Uint64 // rounds that were posted
		var stop atomic.Bool
		var all sync.WaitGroup
		at, far := func(i int) Range { return Range{uint64(i+1) << 20, 4096} }, Range{100 << 20, 4096}
		for i := range posters {
			all.Go(func() {
				for n := 0; !stop.Load(); n++ {
					e.post(at(i))
					gone[i].Add(1)
					if n%3 == i%3 {
						runtime.Gosched()
					}
				}
			})
		}
		var answers [3]int
		for n := range testutil.Count(t, 20_000, 5_000_000) {
			i := n % posters
			tr, calm := e.start(at(i)), e.start(far)
			had := gone[i].Load()
			for range n % 5 {
				runtime.Gosched()
			}
			went := gone[i].Load() >= had+2 // from beginning to end, since the trail began
			_, got := e.look(tr, at(i))
			answers[got]++
			if went && got == same {
				t.Errorf("%d slots: what went in round %d was not seen", slots, n)
				break
			}
			if _, got := e.look(calm, far); got != same {
				t.Errorf("%d slots: what nobody told of: %d", slots, got)
				break
			}
		}
		stop.Store(true)
		all.Wait()
		t.Logf("%d slots: same %d, unsure %d, changed %d; %d of %d posts lost", slots, answers[same], answers[unsure], answers[changed], e.w[wordLost], e.count())
		if e.w[wordBegun] != e.w[wordDone] {
			t.Errorf("%d begun, %d done", e.w[wordBegun], e.w[wordDone])
		}
		if n, got := e.look(e.start(at(0)), at(0)); got != same || n.seen != e.count() {
			t.Errorf("afterwards: %d, %+v", got, n)
		}
	}
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
