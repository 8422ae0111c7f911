package hook

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/weft-fabric/weft/fabric/provider"
	"github.com/weft-fabric/weft/internal/provutil"
)

// queue passes on, by embedding, what it has nothing to add to: the descriptor.
//
// The hook's own completions, room and signals are told by the flags below; a Signal of the provider's queue makes
// its waiters look at them. So a signal without a flag is one that somebody has answered already.
type queue struct {
	provider.CompletionQueue
	d      *domain
	starts starts

	mu      sync.Mutex
	made    []provider.Completion // of the hook, not yet read
	room    bool                  // for the next Wait: a post may be tried again
	untried bool                  // there was room, since the last TryWait
	round   uint64                // how often that was told to those who wait
	untold  int                   // of these, who have not heard of the last round
	remind  provutil.Reminder
	signals int // of the program, at most as many as wait
	waiting int

	// ready is what Ready gives out if the hook makes events of its own; a goroutine brings those of the provider there.
	ready    chan struct{}
	forward  sync.Once
	stopping sync.Once
	stop     chan struct{}
	running  sync.WaitGroup
}

func newQueue(d *domain, inner provider.CompletionQueue) *queue {
	q := &queue{CompletionQueue: inner, d: d, starts: starts{by: make(map[startKey]line)}, stop: make(chan struct{})}
	if d.hook.c.makes() {
		q.ready = make(chan struct{}, 1)
	}
	return q
}

// emit adds a completion of the hook's own.
func (q *queue) emit(c provider.Completion) {
	q.mu.Lock()
	q.made = append(q.made, c)
	q.mu.Unlock()
	q.tell()
}

// makeRoom lets all waits return after a post was refused, or the next one, as a queue of a provider does.
func (q *queue) makeRoom() {
	q.mu.Lock()
	q.room = q.waiting == 0
	q.untried = true
	q.remind.Room()
	q.nextRound()
	q.mu.Unlock()
	q.tell()
}

// nextRound tells of room to all who wait. Locked; a signal of the provider's queue is to follow.
func (q *queue) nextRound() {
	q.round++
	q.untold = q.waiting
}

// sleep waits at the provider's queue, and no longer than until those who wait are to be told of room once more: who was refused may
// not have waited when there was room. That it is time ends it as a signal does.
func (q *queue) sleep(ctx context.Context, c []provider.Completion) (int, error) {
	q.mu.Lock()
	pause, bounded := q.remind.Sleeps()
	q.mu.Unlock()
	if !bounded {
		return q.CompletionQueue.Wait(ctx, c)
	}
	short, cancel := context.WithTimeout(ctx, pause)
	defer cancel()
	n, err := q.CompletionQueue.Wait(short, c)
	switch {
	case !errors.Is(err, context.DeadlineExceeded):
		return n, err
	case ctx.Err() != nil: // too: its error is the one to give
		return q.CompletionQueue.Wait(ctx, c)
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.remind.Over() {
		q.nextRound() // the others hear of it when this one leaves
	}
	return n, provider.ErrSignal
}

// tell makes somebody look.
func (q *queue) tell() {
	q.CompletionQueue.Signal()
	if q.ready != nil {
		select {
		case q.ready <- struct{}{}:
		default:
		}
	}
}

// own takes what the hook itself has to tell. done is false if that is nothing. round is the last one that a wait has heard of,
// nil for who does not wait.
func (q *queue) own(c []provider.Completion, round *uint64) (n int, done bool, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case round != nil && q.signals > 0:
		q.signals--
		done, err = true, provider.ErrSignal
	case len(q.made) > 0 && len(c) > 0:
		n, done = copy(c, q.made), true
		q.made = q.made[n:]
	case round != nil && *round != q.round:
		*round, done = q.round, true
		q.untold--
	case round != nil && q.room:
		q.room, done = false, true
	}
	return n, done, err
}

// begin is the start of a wait, with the round that it has heard of.
func (q *queue) begin() (round uint64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.waiting++
	return q.round
}

// leave is its end. What it leaves is for another one: there may have been one signal for all of it.
func (q *queue) leave(round uint64, err error) {
	q.mu.Lock()
	q.waiting--
	if round != q.round {
		q.untold--
		q.room = q.room || errors.Is(err, provider.ErrSignal) // who returns with that does not post
	}
	more := q.signals > 0 || len(q.made) > 0 || q.room || q.untold > 0
	q.mu.Unlock()
	if more {
		q.CompletionQueue.Signal()
	}
}

func (q *queue) Read(c []provider.Completion) (int, error) {
	n, _, _ := q.own(c, nil)
	m, err := q.CompletionQueue.Read(c[n:])
	q.hand(c[n : n+m])
	q.count(c[:n+m])
	if n > 0 {
		err = nil // what is wrong is told by the next
	}
	return n + m, err
}

func (q *queue) Wait(ctx context.Context, c []provider.Completion) (n int, err error) {
	round := q.begin()
	defer func() { q.leave(round, err) }()
	for {
		if n, done, err := q.own(c, &round); done {
			q.count(c[:n])
			return n, err
		}
		n, err := q.sleep(ctx, c)
		if errors.Is(err, provider.ErrSignal) {
			continue
		}
		if errors.Is(err, provider.ErrClosed) {
			if n, done, err := q.own(c, &round); done {
				q.count(c[:n])
				return n, err
			}
		}
		q.hand(c[:n])
		q.count(c[:n])
		return n, err
	}
}

// hand changes completions of the provider as the rules say.
func (q *queue) hand(list []provider.Completion) {
	for i := range list {
		c := &list[i]
		if c.Err != nil {
			q.dead(c)
		}
		pause(q.d.hook.faults.at(Done).delay)
	}
}

// dead makes what ended because a killed peer was removed end because it died.
func (q *queue) dead(c *provider.Completion) {
	if !errors.Is(c.Err, provider.ErrCancelled) {
		return
	}
	p := c.Source
	known := p != 0
	if !known { // of a directed receive
		p, known = q.starts.peer(c)
	}
	var a provider.Address
	var dead bool
	if known {
		a, dead = q.d.dead(p)
	} else { // quiet
		a, dead = q.d.deadAt(addressed(c.Err))
	}
	if dead {
		c.Err = q.d.gone(c.Kind.String(), a)
	}
}

// count counts completions that are handed to the program.
func (q *queue) count(list []provider.Completion) {
	if len(list) == 0 {
		return
	}
	now := time.Now()
	for i := range list {
		c := &list[i]
		d, timed := q.starts.end(c, now)
		q.d.hook.stats.on(c.Kind, func(s *OpStats) {
			s.Ended++
			if c.Err != nil {
				s.Failed++
			} else {
				s.Bytes += c.Len
			}
			if timed {
				s.Latency.add(d)
			}
		})
	}
}

func (q *queue) Signal() {
	q.mu.Lock()
	if q.signals < max(1, q.waiting) {
		q.signals++
	}
	q.mu.Unlock()
	q.CompletionQueue.Signal()
}

func (q *queue) TryWait() bool {
	q.mu.Lock()
	own := len(q.made) > 0 || q.room || q.untried
	q.room, q.untried = false, false
	q.mu.Unlock()
	return !own && q.CompletionQueue.TryWait()
}

func (q *queue) Ready() <-chan struct{} {
	if q.ready == nil {
		return q.CompletionQueue.Ready()
	}
	q.forward.Do(func() {
		from := q.CompletionQueue.Ready()
		q.running.Go(func() {
			for {
				select {
				case <-from:
				case <-q.stop:
					return
				}
				select {
				case q.ready <- struct{}{}:
				default:
				}
			}
		})
	})
	return q.ready
}

// stopForwarding joins the goroutine of Ready, and leaves one last word for who waits for it.
func (q *queue) stopForwarding() {
	q.forward.Do(func() {}) // none starts any more
	q.stopping.Do(func() { close(q.stop) })
	q.running.Wait()
	if q.ready != nil {
		select {
		case q.ready <- struct{}{}:
		default:
		}
	}
}

func (q *queue) Close() error {
	if err := q.CompletionQueue.Close(); err != nil {
		return err
	}
	q.stopForwarding()
	q.d.mu.Lock()
	defer q.d.mu.Unlock()
	delete(q.d.queues, q)
	return nil
}
