package sst

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/weft-fabric/weft/sst/cohort"
	"github.com/weft-fabric/weft/sst/internal/cp"
)

// cohortEnd is a writer or reader as the other ranks of its stream see it. Both
// methods are called one at a time, without locks.
type cohortEnd interface {
	// heardRank takes a message of another rank.
	heardRank(from int, m cp.Message)
	// lostRank says that another rank is gone, or that what it says makes no sense.
	lostRank(rank int, err error)
}

// cohortLink is this rank's end of what the ranks of one stream say to each
// other. A rank that is alone has no channel, and says nothing. The lock of its
// owner guards it.
type cohortLink struct {
	rank, size int
	channel    cohort.Channel // nil before join, after leave, and if the rank is alone
	// undelivered says that a rank does not get a message, for another reason than
	// that one of us is gone: of that lostRank tells. The owner's lock is held.
	undelivered func(rank int, err error)
}

// join opens the channel of a stream. What the others have sent already comes as
// soon as the owner gives its lock up.
func (c *cohortLink) join(with cohort.Cohort, name string, end cohortEnd) error {
	if c.size == 1 {
		return nil
	}
	ch, err := with.Join(name, cohortHandler{end})
	switch {
	case errors.Is(err, cohort.ErrClosed):
		return fmt.Errorf("joining the other ranks: %w: %w", ErrClosed, err)
	case err != nil:
		return fmt.Errorf("joining the other ranks: %w", err)
	}
	c.channel = ch
	return nil
}

// send queues a message for other ranks. If one cannot take it, both of us are
// told.
func (c *cohortLink) send(m cp.Message, to ...int) {
	if c.channel == nil || len(to) == 0 {
		return
	}
	b := cp.AppendMessage(nil, m)
	send := c.channel.Send
	if d, ok := c.channel.(cohort.Delayer); ok && waits(m) {
		send = d.SendLater
	}
	for _, rank := range to {
		err := send(rank, b)
		if err == nil || errors.Is(err, cohort.ErrRankGone) || errors.Is(err, cohort.ErrClosed) {
			continue
		}
		if _, last := m.(*cp.StreamFailed); last {
			continue
		}
		err = fmt.Errorf("telling rank %d: %w: %w", rank, ErrRankFailed, err)
		if c.rank != 0 { // else the leader does it
			c.sayFailed(err)
		}
		c.undelivered(rank, err)
	}
}

// waits reports whether a message may wait for the next one. Ranks are told of a step that
// they can let go with the verdict on another one, mostly.
func waits(m cp.Message) bool {
	_, free := m.(*cp.Free)
	return free
}

// sayFailed tells the others that this rank cannot go on: rank 0 passes it on.
func (c *cohortLink) sayFailed(err error) {
	if errors.Is(err, ErrClosed) { // for the others it is no end, but a loss
		err = fmt.Errorf("%w: it has ended before the stream did", ErrRankFailed)
	}
	if c.rank != 0 {
		c.send(&cp.StreamFailed{Cause: cp.NewFault(err)}, 0)
		return
	}
	c.send(&cp.StreamFailed{Cause: cp.NewFault(cp.At(0, fmt.Errorf("rank 0: %w", err)))}, c.others()...)
}

// others are all ranks but 0.
func (c *cohortLink) others() []int {
	list := make([]int, 0, c.size-1)
	for rank := 1; rank < c.size; rank++ {
		list = append(list, rank)
	}
	return list
}

// flushTime bounds how long a stream that could not be opened waits until the other
// ranks have the reason: a program that fails exits at once.
const flushTime = 500 * time.Millisecond

// flush waits a moment until what was said has arrived. The owner's lock, which is
// mu, is not held.
func (c *cohortLink) flush(mu sync.Locker) {
	mu.Lock()
	ch, ok := c.channel.(cohort.Flusher)
	mu.Unlock()
	if !ok {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), flushTime)
	defer cancel()
	_ = ch.Flush(ctx) // whoever has not got it by then hears that we are gone
}

// leave ends our part in the channel, after what was said.
func (c *cohortLink) leave() {
	if c.channel != nil {
		_ = c.channel.Close() // what was sent goes out all the same, or nobody is there any more
		c.channel = nil
	}
}

// cohortHandler is the owner as its channel sees it.
type cohortHandler struct{ end cohortEnd }

// Quick implements cohort.QuickHandler: a stream takes its lock, and sends.
func (h cohortHandler) Quick() {}

// Message implements cohort.Handler.
func (h cohortHandler) Message(from int, b []byte) {
	m, err := cp.ParseMessage(b)
	if err != nil {
		h.end.lostRank(from, fmt.Errorf("message of rank %d: %w: %w", from, ErrProtocol, err))
		return
	}
	h.end.heardRank(from, m)
}

// Lost implements cohort.Handler.
func (h cohortHandler) Lost(rank int, err error) { h.end.lostRank(rank, err) }
