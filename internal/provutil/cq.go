package provutil

import (
	"context"
	"fmt"
	"runtime"

	"github.com/weft-fabric/weft/fabric/provider"
)

// MaxCQSize bounds CQConfig.Size.
const MaxCQSize = 1 << 24

// CQ is a completion queue. It implements provider.CompletionQueue; the methods that are marked locked are for
// the provider.
//
// No completion is ever lost: every operation reserves its places before it is accepted, and what a peer starts
// is left with the peer until there is a place.
type CQ struct {
	core *Core
	ring []provider.Completion
	head int // the oldest that is unread
	n    int // unread
	held int // places reserved

	waiters waiters
	signal  bool // of Signal, for the next Wait
	starved bool // a post got ErrAgain: say when there is room
	stalled bool // something from a peer waits for a place: poll when there is one
	room    bool // there is, for the next Wait
	untried bool // there was, since the last TryWait
	remind  Reminder
	ready   chan struct{}
	wanted  bool // somebody has asked for ready
	empties int  // Reads in a row that found nothing
	users   int  // endpoints
	closed  bool

	bell    Bell
	ringing bool // the bell is to be rung
	listed  bool // in Core.ringers
}

var _ provider.CompletionQueue = (*CQ)(nil)

// NewCQ returns a queue of the Core's domain. Unlocked or locked.
func NewCQ(c *Core, cfg provider.CQConfig) (*CQ, error) {
	size := cfg.Size
	if size == 0 {
		size = 4096
	}
	if size < 0 || size > MaxCQSize {
		return nil, fmt.Errorf("completion queue of %d places, 1 to %d: %w", size, MaxCQSize, provider.ErrInvalid)
	}
	q := &CQ{core: c, ring: make([]provider.Completion, size), ready: make(chan struct{}, 1)}
	q.waiters.init()
	return q, nil
}

// Attach counts an endpoint that uses the queue; it fails with ErrClosed. Locked.
func (q *CQ) Attach() error {
	if q.closed {
		return provider.ErrClosed
	}
	q.users++
	return nil
}

// Detach ends Attach. Locked.
func (q *CQ) Detach() { q.users-- }

// Reserve promises n places, for completions that will come. False means that there is no room: the post gets
// ErrAgain, or what came from a peer stays with it. Locked.
func (q *CQ) Reserve(n int) bool {
	if q.n+q.held+n > len(q.ring) {
		return false
	}
	q.held += n
	return true
}

// Release gives n reserved places back unused. Locked.
func (q *CQ) Release(n int) {
	q.held -= n
	q.freed()
}

// freed tells of places. Locked.
func (q *CQ) freed() {
	q.Room()
	if q.stalled {
		q.stalled = false
		q.core.Nudge()
	}
}

// Push queues a completion in a reserved place, and wakes a waiter. c is copied. Locked.
func (q *CQ) Push(c *provider.Completion) {
	q.held--
	i := q.head + q.n
	if i >= len(q.ring) {
		i -= len(q.ring)
	}
	p := &q.ring[i]
	*p = *c
	q.n++
	if c.Err != nil {
		q.core.stats.Errors++
	}
	if q.core.tracer.Complete != nil {
		q.core.tracer.Complete(p) // not c: it would escape to the heap
	}
	q.announce()
	for w := q.waiters.first(); w != nil; w = w.of.following() {
		if !w.told {
			w.told = true
			q.core.wake(w)
			return
		}
	}
}

// Refuse counts a post that gets ErrAgain for want of room, here or elsewhere, and returns that error. From then on
// Room tells the queue's waiters. Locked.
func (q *CQ) Refuse() error {
	q.starved = true
	q.core.stats.Again++
	return provider.ErrAgain
}

// Stall says that something from a peer waits for a place. When one is free, the engine is made to poll again.
// Locked.
func (q *CQ) Stall() { q.stalled = true }

// Room says that a post that was refused may succeed now; it costs nothing if none was. The provider calls it when
// there is room again elsewhere than in the queue. Locked.
//
// All who wait are told, or else the next one. As who was refused may be none of them, waits are reminded from then on.
func (q *CQ) Room() {
	if !q.starved {
		return
	}
	q.starved = false
	q.room = q.waiters.first() == nil
	q.untried = true // also if others are told: who was refused may be none of them
	q.remind.Room()
	q.tellRoom()
	q.announce()
}

// tellRoom tells all who wait.
func (q *CQ) tellRoom() {
	for w := q.waiters.first(); w != nil; w = w.of.following() {
		w.room = true
		q.core.wake(w)
	}
}

// announce tells those who do not sit in a Wait.
func (q *CQ) announce() {
	if q.wanted {
		select {
		case q.ready <- struct{}{}:
		default:
		}
	}
	if q.ringing {
		q.ringing = false
		q.bell.Ring()
	}
}

// take moves completions out. Locked.
func (q *CQ) take(out []provider.Completion) int {
	n := min(len(out), q.n)
	for i := range n {
		p := &q.ring[q.head]
		out[i] = *p
		p.Err = nil // let it go
		if q.head++; q.head == len(q.ring) {
			q.head = 0
		}
	}
	q.n -= n
	if n == 0 {
		return 0
	}
	q.freed()
	return n
}

// yieldEvery is after how many Reads in a row that find nothing other goroutines get their turn. Without it a program
// that reads in a loop has the lock again before one that waits for it wakes, until, after a millisecond or the ten of
// a goroutine's slice, the runtime intervenes.
const yieldEvery = 64

// Read takes completions that are there.
func (q *CQ) Read(out []provider.Completion) (int, error) {
	n, empties, err := q.read(out)
	if n == 0 && empties%yieldEvery == yieldEvery-1 {
		runtime.Gosched()
	}
	return n, err
}

// read is Read, and says how many Reads in a row have found nothing.
func (q *CQ) read(out []provider.Completion) (n, empties int, err error) {
	q.core.Lock()
	n, empties, err = q.readHere(out) // no defer: a program that polls does this millions of times a second
	q.core.Unlock()
	return n, empties, err
}

// readHere is read. Locked.
func (q *CQ) readHere(out []provider.Completion) (n, empties int, err error) {
	if q.n < len(out) || q.n == 0 {
		q.core.pollOnce()
	} else {
		q.core.flushMore()
	}
	if q.n > 0 {
		n = q.take(out)
	}
	if q.closed && n == 0 && q.n == 0 {
		return 0, 0, provider.ErrClosed
	}
	if n > 0 {
		q.empties = 0
	} else {
		q.empties++
	}
	if q.wanted && q.empties == 1 && !q.core.manual { // of a program that goes back to its select now
		if q.core.settleFor() {
			n = q.take(out)
		}
		return n, q.empties, nil // armed, and not to be watched
	}
	q.core.watch()
	return n, q.empties, nil
}

// Wait takes at least one completion, or gives the context's error, ErrSignal or ErrClosed. It also returns, with
// none and without an error, when a post on this queue got ErrAgain and there is room now; see Reminder.
func (q *CQ) Wait(ctx context.Context, out []provider.Completion) (int, error) {
	if len(out) == 0 {
		return 0, fmt.Errorf("wait for completions without a place for one: %w", provider.ErrInvalid)
	}
	q.core.Lock()
	defer q.core.Unlock()
	if q.n > 0 && !q.signal {
		q.core.flushMore()
		return q.take(out), nil
	}
	w := q.core.newWaiter()
	w.signal, q.signal = q.signal, false
	w.reminds = q
	q.waiters.add(&w.of)
	err := q.core.waitFor(ctx, q, w)
	w.of.remove()
	return q.leave(w, out, err)
}

// over says whether w has something to return for.
func (q *CQ) over(w *waiter) bool {
	w.told = false
	return q.n > 0 || w.signal || w.room || q.room || q.closed
}

// leave ends a wait: what w was told and does not use goes to the next one.
func (q *CQ) leave(w *waiter, out []provider.Completion, err error) (int, error) {
	signal, room := w.signal, w.room || q.room
	q.core.freeWaiter(w)
	if signal {
		q.room = room // it has not been told
		q.pass()
		return 0, provider.ErrSignal
	}
	n := q.take(out)
	q.pass()
	switch {
	case n > 0:
		return n, nil
	case room && !q.closed:
		q.room = false
		return 0, nil
	case q.closed:
		return 0, provider.ErrClosed
	}
	return 0, err
}

// pass wakes another wait if something is left for it.
func (q *CQ) pass() {
	if w := q.waiters.first(); w != nil && (q.n > 0 || q.room) {
		q.core.wake(w)
	}
}

// Signal wakes one Wait, or the next one.
func (q *CQ) Signal() {
	q.core.Lock()
	defer q.core.Unlock()
	for w := q.waiters.first(); w != nil; w = w.of.following() {
		if !w.signal {
			w.signal = true
			q.core.wake(w)
			return
		}
	}
	q.signal = true
}

// Ready is sent to when completions or room for posts may have come.
func (q *CQ) Ready() <-chan struct{} {
	q.core.Lock()
	defer q.core.Unlock()
	late := !q.wanted && q.remind.Due() // others have been told, and this one not: nobody had asked
	q.wanted = true
	if q.n > 0 || q.room || late || q.closed {
		q.room = false // told once, and not at each call
		q.announce()
	}
	return q.ready
}

// Close wakes every waiter with ErrClosed; what is unread can still be read. ErrBusy while an endpoint uses the
// queue.
func (q *CQ) Close() error {
	q.core.Lock()
	defer q.core.Unlock()
	if q.closed {
		return nil
	}
	if q.users > 0 {
		return fmt.Errorf("completion queue: %d endpoints use it: %w", q.users, provider.ErrBusy)
	}
	q.closed = true
	for w := q.waiters.first(); w != nil; w = w.of.following() {
		q.core.wake(w)
	}
	q.announce()
	return q.closeBell()
}

// Unread is the number of completions that wait to be read, Free the number of places that are neither taken
// nor reserved. Locked.
func (q *CQ) Unread() int { return q.n }

// Free is the number of places that can be reserved. Locked.
func (q *CQ) Free() int { return len(q.ring) - q.n - q.held }
