package carrier

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weft-fabric/weft/fabric"
)

// Completions must be dealt with in the order of the queue, so one at a time takes them
// out: who has the turn. That is the Fabric's goroutine, which sleeps in Queue.Wait, or who
// polls.
//
// Who sleeps there does not keep the turn, but completions that it has taken and not yet
// shown are older than what a Read would find. So nobody reads while somebody sleeps: a
// Poll asks the sleeper to leave, and as long as there are Polls the goroutine stays
// away, and costs nothing for each message. It looks five thousand times a second whether
// there are Polls; while nobody polls there is no timer.

const (
	batch    = 64                     // completions taken at once
	lookEach = 200 * time.Microsecond // at polling programs; as package fabric's providers do
)

// rota is who reads the queue.
type rota struct {
	turn    sync.Mutex    // held to read the queue, and during callbacks
	waiting atomic.Bool   // somebody sleeps in Queue.Wait; changed with the turn
	asked   atomic.Bool   // to leave
	polls   atomic.Uint64 // by programs
	wake    chan struct{} // capacity 1: there is something for the goroutine while it is away
	seat    chan struct{} // capacity 1: held by who sleeps, in manual mode
	over    bool          // nobody reads any more; guarded by turn
	polled  [batch]fabric.Completion
	slept   [batch]fabric.Completion
}

func (r *rota) init() {
	r.wake, r.seat = make(chan struct{}, 1), make(chan struct{}, 1)
}

// run is the goroutine of the Fabric.
func (f *Fabric) run() {
	defer close(f.gone)
	look := time.NewTimer(0)
	defer look.Stop()
	for seen := uint64(0); !f.over(); {
		if n := f.rota.polls.Load(); n != seen {
			seen = n
			f.standBy(look)
		} else {
			f.round(context.Background(), nil)
		}
		if f.brokenBy() != nil && !f.over() { // there is nothing to wait for but what is to be done here
			<-f.rota.wake
		}
	}
	f.retire()
}

// standBy leaves the queue to those who poll, for a moment.
func (f *Fabric) standBy(look *time.Timer) {
	look.Reset(lookEach)
	select {
	case <-look.C:
	case <-f.rota.wake:
	}
	f.rota.turn.Lock()
	f.handle(nil, nil)
	f.giveTurn()
}

// round sleeps until there are completions, or something else to do, and deals with it.
// It does not sleep if done is closed: whoever takes completions out has the turn, so what
// they lead to is seen here, or comes while Wait sleeps, which Wake ends.
func (f *Fabric) round(ctx context.Context, done <-chan struct{}) {
	if until := f.todo.deadline(); !until.IsZero() {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, until)
		defer cancel()
	}
	r := &f.rota
	r.turn.Lock()
	if isClosed(done) {
		r.turn.Unlock()
		return
	}
	r.asked.Store(false)
	r.waiting.Store(true)
	r.turn.Unlock()
	n, err := f.config.Queue.Wait(ctx, r.slept[:])
	r.turn.Lock()
	r.waiting.Store(false)
	f.handle(r.slept[:n], err)
	f.giveTurn()
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// giveTurn gives the turn up, and tells the log what has come up meanwhile.
func (f *Fabric) giveTurn() {
	notes := f.notes
	f.notes = nil
	f.rota.turn.Unlock()
	for _, n := range notes {
		f.config.Logger.Warn(n.text, n.args...)
	}
}

// Wake has a Wait that sleeps return.
func (f *Fabric) Wake() { f.config.Queue.Signal() }

// kick has somebody do what is to be done with the turn.
func (f *Fabric) kick() {
	f.todo.any.Store(true)
	select {
	case f.rota.wake <- struct{}{}:
	default:
	}
	f.config.Queue.Signal() // also if nobody sleeps: somebody may be about to
}

// poll reads what has come, without waiting, and has it dealt with.
func (f *Fabric) poll() bool {
	r := &f.rota
	r.polls.Add(1)
	if r.waiting.Load() {
		if r.asked.CompareAndSwap(false, true) {
			f.config.Queue.Signal()
		}
		return false
	}
	if !r.turn.TryLock() {
		return false
	}
	if r.waiting.Load() || r.over {
		r.turn.Unlock()
		return false
	}
	n, err := f.config.Queue.Read(r.polled[:])
	came := f.handle(r.polled[:n], err)
	f.giveTurn()
	return came
}

// Wait sleeps until something has come, and has the Handler take it, on this goroutine.
// It may also return when nothing has. It is for programs whose domain is in manual
// mode, which call it over and over until what they wait for is there: done, which may be nil, is closed then, by the
// Handler, or by somebody who calls Wake afterwards. In another mode the error wraps ErrConfig. It ends with the error of
// the context, and with ErrClosed after Close. One call at a time sleeps; others wait for it.
func (f *Fabric) Wait(ctx context.Context, done <-chan struct{}) error {
	if !f.manual {
		return fmt.Errorf("%w: Wait is for domains in manual mode", ErrConfig)
	}
	if f.over() {
		return ErrClosed
	}
	return f.wait(ctx, done)
}

func (f *Fabric) wait(ctx context.Context, done <-chan struct{}) error {
	select {
	case f.rota.seat <- struct{}{}:
		defer func() { <-f.rota.seat }()
	case <-done:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if f.over() { // while we waited for the seat
		return ErrClosed
	}
	if err := f.brokenBy(); err != nil {
		f.rota.turn.Lock()
		f.handle(nil, nil)
		f.giveTurn()
		return err
	}
	f.round(ctx, done)
	return context.Cause(ctx)
}

// handle deals with completions, in their order, and with what else is to be done. It
// reports whether there was a unit of a peer. The caller has the turn.
func (f *Fabric) handle(list []fabric.Completion, err error) (came bool) {
	for i := range list {
		came = f.complete(&list[i]) || came
		list[i].Err = nil
	}
	if errors.Is(err, fabric.ErrClosed) {
		f.breakOff(err)
	}
	if f.todo.any.Load() {
		f.attend()
	}
	return came
}

// Kinds of operations, in the upper bits of their contexts. The lower ones say which.
const (
	forReceive = iota + 1 // number of the buffer
	forSlot               // number of the slot
	forUnit               // token of the link
	forWatch              // token of the peer

	contextShift = 56
)

// complete deals with one completion.
func (f *Fabric) complete(c *fabric.Completion) bool {
	which := c.Context & (1<<contextShift - 1)
	switch c.Context >> contextShift {
	case forReceive:
		return f.received(int(which), c)
	case forSlot:
		f.sent(int(which), c.Err)
	case forUnit:
		f.unsent(which, c.Err)
	case forWatch:
		f.watchEnded(which, c.Err)
	}
	return false
}

// retire takes back what is posted, and reads the queue to the end of that: afterwards
// nothing of ours is in the fabric but units that a peer does not take.
func (f *Fabric) retire() {
	f.rota.turn.Lock()
	defer f.giveTurn()
	f.rota.over = true
	for i := range f.inbox.posted {
		if f.inbox.posted[i] {
			f.config.Endpoint.Cancel(forReceive<<contextShift | uint64(i))
		}
	}
	for _, token := range f.watchTokens() {
		f.config.Endpoint.Cancel(forWatch<<contextShift | token)
	}
	ctx, cancel := context.WithTimeout(context.Background(), f.config.CloseTimeout)
	defer cancel()
	for f.brokenBy() == nil && (f.inbox.any() || len(f.watchTokens()) > 0) && ctx.Err() == nil {
		n, err := f.config.Queue.Wait(ctx, f.rota.polled[:])
		f.handle(f.rota.polled[:n], err)
	}
	f.slots.close()
}
