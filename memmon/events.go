package memmon

import (
	"fmt"
	"os"
	"sync/atomic"

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
	wordProven  = 5  // bits of Event: posters in C have seen by themselves that their hooks see these
	wordBegun   = 8  // posts that have begun
	wordLost    = 9  // posts that found their slot taken, or were overtaken by a lap
	wordDone    = 16 // posts that are done, lost ones too; another cache line
	// 24 to 31: four who have subscribed in C, a function and its argument each; only posters in C can call them.
	wordWanted  = 32  // how many ranges are watched in each granule
	wordTouched = 544 // how many posts have concerned each granule
	numGranules = 512
	wordFirst   = 2048 // the slots
	numSlots    = 1024
	slotWords   = 4 // address, length, turn, nothing
	eventsWords = wordFirst + slotWords*numSlots
	eventsBytes = 8 * eventsWords

	// A slot's turn is 1 + the number of the event that it holds, with this bit while that is being written.
	writing = 1 << 63

	granuleBits = 21 // 2 MiB
)

// eventsName is how the page is found in /proc/self/maps.
const eventsName = "weft-memory-events"

// events are the memory events of this process, told by whoever sees them, before the memory goes. Posting takes no lock and calls nothing, so
// that hooks can do it. They are remembered for a while each, and for ever as numbers of granules, pieces of the address space, of which some
// share a number.
//
// A post is not told until its slot has its turn: until then its memory has not gone. Many may post at once, and be stopped in the middle for
// any time, by a signal, a debugger, or for ever; who comes round the ring to a slot that is being written does not wait, but counts itself as
// lost, and so does who was overtaken by a lap, even if it has got its slot: then only the granules say what has gone.
type events struct {
	w       []uint64
	wake    sys.Eventfd
	others  bool  // another copy of Weft, or hooks in C, have made the page
	drained trail // the reader's
}

// newEvents makes a page in memory of the heap, for an arbiter that only Go posts to.
func newEvents() (*events, error) {
	return newEventsOf(numSlots)
}

func newEventsOf(slots int) (*events, error) {
	e := &events{w: make([]uint64, wordFirst+slotWords*slots)}
	return e, e.format()
}

// deafEvents are a page in memory of the heap with no descriptor that could wake somebody.
func deafEvents() *events { return &events{w: make([]uint64, eventsWords), wake: noWake()} }

// noWake is a descriptor that is closed from the beginning.
func noWake() sys.Eventfd { return sys.Eventfd{FD: new(sys.FD)} }

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
	e.touch(r) // before it is told or lost: who does not remember that asks the granules
	told := e.write(n, r) && atomic.LoadUint64(&e.w[wordBegun])-n <= e.slots()
	if !told {
		atomic.AddUint64(&e.w[wordLost], 1)
	}
	atomic.AddUint64(&e.w[wordDone], 1)
	if !told || e.wanted(r) {
		_ = e.wake.Ring()
	}
}

// write takes the slot of event n and fills it; false if somebody is writing there, or has been faster by a lap.
func (e *events) write(n uint64, r Range) bool {
	slot := e.slot(n)
	was := atomic.LoadUint64(&slot[2])
	if was&writing != 0 || was > n || !atomic.CompareAndSwapUint64(&slot[2], was, (n+1)|writing) {
		return false
	}
	atomic.StoreUint64(&slot[0], r.Addr)
	atomic.StoreUint64(&slot[1], r.Len)
	atomic.StoreUint64(&slot[2], n+1)
	return true
}

// slots is how many events can be remembered.
func (e *events) slots() uint64 { return uint64(len(e.w)-wordFirst) / slotWords }

func (e *events) slot(n uint64) []uint64 { return e.w[wordFirst+slotWords*(n%e.slots()):] }

// granules calls f for the numbers of a range's granules, some perhaps twice, until it returns false.
func granules(r Range, f func(i uint64) bool) {
	if r.Len == 0 {
		return
	}
	first, last := r.Addr>>granuleBits, (r.End()-1)>>granuleBits
	if last-first >= numGranules {
		for i := uint64(0); i < numGranules && f(i); i++ {
		}
		return
	}
	for g := first; g <= last && f(numberOf(g)); g++ {
	}
}

// numberOf spreads granules over the numbers, of which there are 2^9: memory is mostly mapped at round addresses.
func numberOf(granule uint64) uint64 { return granule * 0x9e3779b97f4a7c15 >> (64 - 9) }

// touch counts the granules of an event.
func (e *events) touch(r Range) {
	granules(r, func(i uint64) bool {
		atomic.AddUint64(&e.w[wordTouched+i], 1)
		return true
	})
}

// touched is how often events have concerned a range, or what shares its granules: it grows if one does.
func (e *events) touched(r Range) (n uint64) {
	granules(r, func(i uint64) bool {
		n += atomic.LoadUint64(&e.w[wordTouched+i])
		return true
	})
	return n
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
		if atomic.CompareAndSwapUint64(&e.w[wordWake], 0, uint64(e.wake.Int()+1)) {
			return nil
		}
		_ = e.wake.Close() // another copy of Weft was faster
		n = atomic.LoadUint64(&e.w[wordWake])
	}
	e.wake, err = sys.SharedEventfd(int(n - 1))
	return err
}
