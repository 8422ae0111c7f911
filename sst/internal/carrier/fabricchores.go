package carrier

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weft-fabric/weft/fabric"
)

// chores are what is to be done by who has the turn. Its lock is a leaf: it may be taken
// with that of a link held.
type chores struct {
	any atomic.Bool // there is something

	mu      sync.Mutex
	ended   []*fabricLink // to be told of
	stalled []*fabricLink // have units for which the fabric had no room
	unsaid  []saying      // for which it had none either
	closing map[*fabricLink]time.Time
}

// saying is a unit that belongs to no link any more.
type saying struct {
	to fabric.Peer
	u  unit
}

// maxUnsaid bounds what waits to be said to peers that are of no interest any more.
const maxUnsaid = 4096

func (c *chores) end(l *fabricLink) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended = append(c.ended, l)
}

func (c *chores) stall(l *fabricLink) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stalled = append(c.stalled, l)
	c.any.Store(true)
}

func (c *chores) closeBy(l *fabricLink, until time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closing == nil {
		c.closing = make(map[*fabricLink]time.Time)
	}
	c.closing[l] = until
}

// deadline is when the next link that is closing is given up; zero: there is none.
func (c *chores) deadline() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	var first time.Time
	for _, t := range c.closing {
		if first.IsZero() || t.Before(first) {
			first = t
		}
	}
	return first
}

// late returns the links that have had time enough to close.
func (c *chores) late() []*fabricLink {
	c.mu.Lock()
	defer c.mu.Unlock()
	var late []*fabricLink
	for l, t := range c.closing {
		if !time.Now().Before(t) {
			late = append(late, l)
			delete(c.closing, l)
		}
	}
	return late
}

// take empties the lists, but for closing.
func (c *chores) take() (ended, stalled []*fabricLink, unsaid []saying) {
	c.mu.Lock()
	defer c.mu.Unlock()
	ended, stalled, unsaid = c.ended, c.stalled, c.unsaid
	c.ended, c.stalled, c.unsaid = nil, nil, nil
	c.any.Store(len(c.closing) > 0)
	return ended, stalled, unsaid
}

// attend does what is to be done. The caller has the turn.
func (f *Fabric) attend() {
	for _, l := range f.todo.late() {
		l.fail("close", fmt.Errorf("%w: the peer has not said goodbye within %v", os.ErrDeadlineExceeded, f.config.CloseTimeout))
	}
	ended, stalled, unsaid := f.todo.take()
	f.postAgain()
	for _, s := range unsaid {
		f.say(s.to, s.u)
	}
	for _, l := range stalled {
		l.goOn()
	}
	f.release()
	for len(ended) > 0 {
		for _, l := range ended {
			f.bury(l)
		}
		f.todo.mu.Lock() // a callback may have ended others
		ended, f.todo.ended = f.todo.ended, nil
		f.todo.mu.Unlock()
	}
}

// say sends a unit that belongs to no link, or no more, to a peer that may not be there
// any more. The caller has the turn.
func (f *Fabric) say(to fabric.Peer, u unit) {
	err := f.config.Endpoint.Send(fabric.Op{
		Local: fabric.Bytes(u.Append(nil)), Peer: to, Flags: fabric.Inject | fabric.Quiet, Context: forUnit << contextShift,
	})
	if !errors.Is(err, fabric.ErrAgain) {
		return
	}
	f.todo.mu.Lock()
	defer f.todo.mu.Unlock()
	if len(f.todo.unsaid) < maxUnsaid {
		f.todo.unsaid = append(f.todo.unsaid, saying{to, u})
	}
	f.todo.any.Store(true)
}
