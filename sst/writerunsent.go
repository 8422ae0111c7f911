package sst

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/weft-fabric/weft/internal/wire/sstmsg"
	"github.com/weft-fabric/weft/sst/internal/cp"
)

// A step that every reader has given back can still be on its way to one: it was
// pushed to a rank that does not look at it, or asked for by one that has lost its
// patience. Its memory is in use then, so it counts against the limits of the queue
// until it is sent, and a reader that does not take it falls behind as any other.
// The leader is not told of each: a rank says so with its share of the next step.

// unsentStep is a step that was given back and is not sent.
type unsentStep struct {
	number int64
	data   *stepData // in a use of ours
}

// retire lets go of a step's data: now, or when all is sent. The caller holds mu.
func (w *Writer) retire(number int64, d *stepData) {
	d.retired.Store(true)
	if d.uses.Load() == 1 || w.ended {
		d.retired.Store(false)
		d.release()
		return
	}
	w.memory.tellAwaiting()
	w.unread = append(w.unread, unsentStep{number, d})
	if !w.watching {
		w.watching = w.session.background(w.watchUnread)
	}
}

// watchUnread waits until what is on its way is sent.
func (w *Writer) watchUnread(ctx context.Context) {
	for {
		select {
		case <-w.memory.sent:
		case <-ctx.Done():
			return
		}
		w.mu.Lock()
		w.sweepUnread(false)
		w.watching = len(w.unread) > 0
		more := w.watching
		w.mu.Unlock()
		if !more {
			return
		}
	}
}

// sweepUnread forgets the steps that are sent, or, at the end, all. The caller
// holds mu.
func (w *Writer) sweepUnread(all bool) {
	w.unread = slices.DeleteFunc(w.unread, func(u unsentStep) bool {
		if !all && u.data.uses.Load() > 1 {
			return false
		}
		u.data.retired.Store(false)
		u.data.release()
		return true
	})
	if all {
		w.memory.rouse()
	}
	w.checkRoom()
}

// crowded reports whether the steps that are on their way leave no room for the one
// that ends. Of the limit in bytes a rank has the share of its writer ranks. The
// caller holds mu.
func (w *Writer) crowded() bool {
	p := &w.cfg.Params
	unread, bytes := 0, uint64(0)
	for _, u := range w.unread {
		if w.someoneOwes(u.data) {
			unread++
			bytes += u.data.size()
		}
	}
	if unread == 0 {
		return false
	}
	if p.QueueLimit > 0 && unread+len(w.steps)-1 >= p.QueueLimit { // the one that ends is in steps
		return true
	}
	for _, d := range w.steps {
		bytes += d.size()
	}
	return p.QueueLimitBytes > 0 && bytes > p.QueueLimitBytes/uint64(max(w.total, 1))*uint64(w.cfg.Ranks)
}

// someoneOwes reports whether a step is on its way to a reader that is still there
// and that counts. What is on its way to others goes with their connections.
func (w *Writer) someoneOwes(d *stepData) bool {
	return slices.ContainsFunc(d.to, func(p *delivery) bool {
		r := w.readers[p.reader]
		return p.left.Load() > 0 && r != nil && !r.observer
	})
}

// checkRoom tells the leader of room that there was not when a step was ended. The
// caller holds mu.
func (w *Writer) checkRoom() {
	if w.ending != nil && w.crammed && !w.crowded() {
		w.crammed = false
		w.tellMember(cp.HasRoom{})
	}
}

// oldestUnread returns the oldest step that is still on its way to a reader which
// has given it back, and the number of these. The caller holds mu.
func (w *Writer) oldestUnread(key readerKey) (oldest int64, n int) {
	for _, u := range w.unread {
		if p := u.data.find(key); p != nil && p.left.Load() > 0 {
			if n++; n == 1 || u.number < oldest {
				oldest = u.number
			}
		}
	}
	return oldest, n
}

// unreadArgs names, for a log line, readers that have given steps back and do not
// take what is on its way to them. The caller holds mu.
func (w *Writer) unreadArgs() []any {
	var args []any
	for key, r := range w.readers {
		if _, n := w.oldestUnread(key); n > 0 {
			args = append(args, "reader that does not read what it was sent", r.info(cp.Counts{}).Addr, "steps", n)
		}
	}
	return args
}

// chaseUnread detaches readers that lag too much although they have released
// everything. The caller holds mu.
func (w *Writer) chaseUnread() {
	limit := int64(w.cfg.Params.LagLimit)
	if limit == 0 || len(w.unread) == 0 {
		return
	}
	for key, r := range w.readers {
		oldest, n := w.oldestUnread(key)
		if lag := w.member.NextStep() - oldest; n > 0 && !r.observer && lag > limit {
			w.expel(key, fmt.Errorf("%w: it has given back step %d and not read it, %d steps ago; the limit is %d", ErrEvicted, oldest, lag, limit))
		}
	}
}

// noteStep returns where to note that a reader's rank 0 may have heard of a step;
// nil of other messages. The caller holds mu.
func (w *Writer) noteStep(key readerKey, m sstmsg.Message) *atomic.Bool {
	s, ok := m.(*sstmsg.TimestepMetadata)
	if !ok || s.Metadata == nil {
		return nil
	}
	d := w.steps[s.Step]
	if d == nil {
		return nil
	}
	p := d.delivery(key)
	p.told = true
	return &p.begun
}

// disbelieve drops a reader that gives back a step of which it cannot know, because
// nothing was sent to it yet: it does not read from its connection, and with each
// such release we would hold one step more. It reports whether the
// release is a lie. The caller holds mu.
func (w *Writer) disbelieve(key readerKey, r *attached, m *sstmsg.ReleaseTimestep) bool {
	d := w.steps[m.Step]
	if d == nil {
		return false
	}
	p := d.find(key)
	if p == nil || !p.told || p.begun.Load() {
		return false
	}
	w.expel(key, fmt.Errorf("%w: step %d was given back before it was sent", ErrProtocol, m.Step))
	w.cut(r)
	return true
}

// expel has the leader drop a reader. The caller holds mu.
func (w *Writer) expel(key readerKey, err error) {
	if w.readers[key] != nil {
		w.tellMember(cp.PushBroke{PushFailed: &cp.PushFailed{Reader: key, Cause: cp.NewFault(err)}})
	}
}

// cut ends the connections to a reader that does not read from them: what waits
// there would wait for ever.
func (w *Writer) cut(r *attached) {
	w.abortLinks(r, ErrReaderFailed)
	for _, l := range r.links {
		l.Abort(ErrReaderFailed)
	}
}
