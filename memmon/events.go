package memmon

import (
	"fmt"
	"os"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/weft-fabric/weft/internal/shmem"
	"github.com/weft-fabric/weft/internal/sys"
)

// The page of events: words of 64 bits in the machine's byte order (docs/registration.md; weft_memory_events.h is the same in C).
const (
	eventsMagic   = 0x53544e5645544657 // "WFTEVNTS"
	eventsVersion = 1

	wordMagic   = 0
	wordVersion = 1
	wordSlots   = 2  // how many slots
	wordProcess = 3  // the process whose memory it is about: a child of fork has another
	wordWake    = 4  // 1 + a descriptor (eventfd) to write to if somebody is interested; 0: none
	wordProven  = 5  // not 0: a poster in C has seen by itself that its hooks work
	wordBegun   = 8  // posts that have begun; a cache line each
	wordDone    = 16 // posts that are done
	wordWanted  = 32 // how many ranges are watched in each granule
	numWanted   = 512
	wordFirst   = 1024 // the slots, each of an address and a length
	numSlots    = 1024
	eventsWords = wordFirst + 2*numSlots
	eventsBytes = 8 * eventsWords

	granuleBits = 21 // 2 MiB

	// How often a hit looks again if somebody is posting at this very moment; in the end it lets others run between the looks. That is
	// cheaper than what a miss costs, unless the others take long.
	inFlightLooks = 64
	patientLooks  = 32
	lookPatience  = 10 * time.Millisecond
)

// eventsName is how the page is found in /proc/self/maps.
const eventsName = "weft-memory-events"

// events are the memory events of this process, told by whoever sees them. Posting takes no lock and calls nothing, so that hooks
// can do it.
type events struct {
	w       []uint64
	wake    sys.Eventfd
	others  bool   // another copy of Weft, or hooks in C, have made the page
	drained uint64 // the reader's
}

// newEvents makes a page in memory of the heap, for an arbiter that only Go posts to.
func newEvents() (*events, error) {
	e := &events{w: make([]uint64, eventsWords)}
	return e, e.format()
}

// format writes the head. The magic comes last: then it is a page of events.
func (e *events) format() (err error) {
	if e.wake, err = sys.NewEventfd(sys.Features{}); err != nil {
		return fmt.Errorf("memmon: events: %w", err)
	}
	e.w[wordVersion], e.w[wordSlots], e.w[wordProcess] = eventsVersion, numSlots, uint64(os.Getpid())
	atomic.StoreUint64(&e.w[wordWake], uint64(e.wake.Int()+1))
	atomic.StoreUint64(&e.w[wordMagic], eventsMagic)
	return nil
}

// close is for arbiters of tests: of the process's own somebody may still know the descriptor.
func (e *events) close() error {
	if !e.others {
		atomic.StoreUint64(&e.w[wordWake], 0)
	}
	return e.wake.Close()
}

// post says that memory goes away, before it does.
func (e *events) post(r Range) {
	n := atomic.AddUint64(&e.w[wordBegun], 1) - 1
	slot := e.w[wordFirst+2*(n%numSlots):]
	atomic.StoreUint64(&slot[0], r.Addr)
	atomic.StoreUint64(&slot[1], r.Len)
	atomic.AddUint64(&e.w[wordDone], 1)
	if e.wanted(r) {
		_ = e.wake.Ring()
	}
}

// granules calls f for the granules of a range until it returns false.
func granules(r Range, f func(i uint64) bool) {
	if r.Len == 0 {
		return
	}
	first, last := r.Addr>>granuleBits, (r.End()-1)>>granuleBits
	for i := first; i <= last && i < first+numWanted; i++ {
		if !f(i % numWanted) {
			return
		}
	}
}

// want counts a watched range, or one less.
func (e *events) want(r Range, by int64) {
	granules(r, func(i uint64) bool {
		atomic.AddUint64(&e.w[wordWanted+i], uint64(by))
		return true
	})
}

// wanted says whether something is watched near by.
func (e *events) wanted(r Range) (is bool) {
	granules(r, func(i uint64) bool {
		is = atomic.LoadUint64(&e.w[wordWanted+i]) != 0
		return !is
	})
	return is
}

// now is how many events have been told, for who begins to watch. One that is being told comes after.
func (e *events) now() uint64 { return atomic.LoadUint64(&e.w[wordDone]) }

// answer is what can be said of a range.
type answer uint8

const (
	same    answer = iota // nothing was told of it
	unsure                // an event is being told, or there have been more than can be remembered
	changed               // something was told of it
)

// look says what was told of the range by the events from seen on, and how many there have been.
func (e *events) look(seen uint64, r Range) (uint64, answer) {
	var patient time.Time // since when
	for i := range inFlightLooks {
		done := atomic.LoadUint64(&e.w[wordDone])
		// A poster counts itself in begun before it writes a slot, so if the two are equal nobody writes.
		if atomic.LoadUint64(&e.w[wordBegun]) == done {
			return done, e.asked(seen, done, r)
		}
		switch {
		case i < inFlightLooks-patientLooks:
			continue
		case i == inFlightLooks-patientLooks:
			patient = time.Now()
		case time.Since(patient) > lookPatience:
			return seen, unsure
		}
		runtime.Gosched()
	}
	return seen, unsure
}

// asked is look at the events seen..done.
func (e *events) asked(seen, done uint64, r Range) answer {
	told := same
	if !e.scan(seen, done, func(event Range) bool {
		if event.Overlaps(r) {
			told = changed
		}
		return told == same
	}) && told == same {
		return unsure
	}
	return told
}

// scan gives the events from..to to f until it returns false; scan is false then, and if an event is not there any more.
func (e *events) scan(from, to uint64, f func(Range) bool) bool {
	if to-from > numSlots { // also if from is beyond to
		return false
	}
	for ; from != to; from++ {
		slot := e.w[wordFirst+2*(from%numSlots):]
		event := Range{atomic.LoadUint64(&slot[0]), atomic.LoadUint64(&slot[1])}
		if atomic.LoadUint64(&e.w[wordBegun])-from > numSlots || !f(event) {
			return false
		}
	}
	return true
}

// drain gives the events since the last drain to f; everything if they cannot be told any more.
func (e *events) drain(f func(Range)) {
	from, to := e.drained, atomic.LoadUint64(&e.w[wordDone])
	for range inFlightLooks {
		if atomic.LoadUint64(&e.w[wordBegun]) == to {
			e.drained = to
			if !e.scan(from, to, func(r Range) bool { f(r); return true }) {
				f(Everything)
			}
			return
		}
		runtime.Gosched()
		to = atomic.LoadUint64(&e.w[wordDone])
	}
	e.drained = to
	f(Everything)
}

// eventsOf is a page in mapped memory.
func eventsOf(b []byte) (*events, error) {
	w, ok := shmem.As[uint64](b)
	if !ok || len(w) < eventsWords {
		return nil, fmt.Errorf("memmon: %d bytes are no page of events", len(b))
	}
	return &events{w: w[:eventsWords]}, nil
}

// shareWake gets the descriptor of a page that was found. The posters of all copies of Weft ring one; each copy is woken by its own
// reads of it, so the one that sleeps longest may be woken for another: it is a hint.
func (e *events) shareWake() (err error) {
	n := atomic.LoadUint64(&e.w[wordWake])
	if n == 0 { // made by hooks in C, which have none
		if e.wake, err = sys.NewEventfd(sys.Features{}); err != nil {
			return fmt.Errorf("memmon: events: %w", err)
		}
		atomic.CompareAndSwapUint64(&e.w[wordWake], 0, uint64(e.wake.Int()+1))
		return nil
	}
	e.wake, err = sys.SharedEventfd(int(n - 1))
	return err
}
