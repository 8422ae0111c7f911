package memmon

import (
	"runtime"
	"sync/atomic"
	"time"

	"github.com/weft-fabric/weft/internal/sys"
)

// heard is what the thread of userfaultfd has heard. It alone writes, and it begins before it reads an event, which lets go of who made it: so
// what is being written may have happened.
type heard struct {
	begun, done uint64
	slots       [2 * numSlots]uint64 // address and length
}

const (
	// How often a hit looks again if the thread is writing at this very moment; in the end it lets others run between the looks. That is
	// cheaper than what a miss costs, unless the others take long.
	inFlightLooks = 64
	patientLooks  = 32
	lookPatience  = 10 * time.Millisecond
)

func (h *heard) words(wake sys.Eventfd) sys.EventWords {
	return sys.EventWords{Begun: &h.begun, Done: &h.done, Slots: h.slots[:], Wake: wake}
}

// now is how many events were heard, for who begins to watch. One that is being heard comes after.
func (h *heard) now() uint64 { return atomic.LoadUint64(&h.done) }

// look says what was heard of the range by the events from seen on, and how many there have been.
func (h *heard) look(seen uint64, r Range) (uint64, answer) {
	var patient time.Time // since when
	for i := range inFlightLooks {
		done := atomic.LoadUint64(&h.done)
		if atomic.LoadUint64(&h.begun) == done {
			return done, h.asked(seen, done, r)
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
func (h *heard) asked(seen, done uint64, r Range) answer {
	if done-seen > numSlots {
		return unsure
	}
	for k := seen; k != done; k++ {
		slot := h.slots[2*(k%numSlots):]
		event := Range{atomic.LoadUint64(&slot[0]), atomic.LoadUint64(&slot[1])}
		if atomic.LoadUint64(&h.begun)-k > numSlots {
			return unsure
		}
		if event.Overlaps(r) {
			return changed
		}
	}
	return same
}

// drain gives what was heard since an event to f; everything if that is not known any more.
func (h *heard) drain(seen uint64, f func(Range)) (now uint64) {
	now = h.now()
	for k := seen; k != now; k++ {
		slot := h.slots[2*(k%numSlots):]
		event := Range{atomic.LoadUint64(&slot[0]), atomic.LoadUint64(&slot[1])}
		if atomic.LoadUint64(&h.begun)-k > numSlots {
			f(Everything)
			return now
		}
		f(event)
	}
	return now
}
