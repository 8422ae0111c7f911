package cohort

import (
	"fmt"
	"maps"
	"slices"
	"sync"
)

const (
	maxName = 4096 // bytes of a channel's name

	// eventCost is what an event counts in limits besides its bytes, so that
	// many small messages are bounded as well.
	eventCost = 64

	// channelCost is what a channel counts that waits for a Join, besides its name.
	channelCost = 512
)

// key names a channel: the n-th of a name, from 1.
type key struct {
	name string
	n    uint32
}

// cost is what the record of a channel counts in the limit of what is kept.
func (k key) cost() int { return channelCost + len(k.name) }

// mover brings what a rank does to other ranks. All calls come with the lock of
// the hub held and must not block. What comes from other ranks enters through the
// hub's own methods.
type mover interface {
	joined(c *channel)
	message(to int, c *channel, msg []byte, u urgency) error
	left(c *channel)
	// flush returns channels that are closed as what was sent so far arrives.
	flush() []<-chan struct{}
}

// urgency is how soon a message is to go out.
type urgency uint8

const (
	now   urgency = iota
	later         // with the next one to its rank, or after a moment
)

// hub holds the channels of one rank, whatever carries the messages. It knows
// which ranks have left which channel and which are gone.
//
// The lock is a pointer because the ranks of one process share one: a message
// goes from hub to hub under it. No lock is taken while it is held but that of a
// link's queue.
type hub struct {
	mu    *sync.Mutex
	room  sync.Cond // an inbox has shrunk, or nothing will come in any more
	rank  int
	size  int
	mover mover
	limit int // of kept; 0 means none

	// joins counts those of each name, so far. The others count theirs, so that no
	// rank may begin anew by itself: between processes, which do not know of each
	// other what they are about to join, an entry stays as long as the cohort.
	joins    map[string]uint32
	channels map[key]*channel
	records  map[string]int // how many of channels have a name
	gone     map[int]error  // ranks that are gone, and why
	lastID   uint32
	kept     int // bytes that wait for a Join
	closed   bool

	calls sync.WaitGroup // goroutines that call handlers
}

func newHub(rank, size int, mu *sync.Mutex) *hub {
	h := &hub{
		mu:       mu,
		rank:     rank,
		size:     size,
		joins:    make(map[string]uint32),
		channels: make(map[key]*channel),
		records:  make(map[string]int),
		gone:     make(map[int]error),
	}
	h.room.L = mu
	return h
}

// Rank implements Cohort.
func (h *hub) Rank() int { return h.rank }

// Size implements Cohort.
func (h *hub) Size() int { return h.size }

// Join implements Cohort.
func (h *hub) Join(name string, handler Handler) (Channel, error) {
	if handler == nil {
		return nil, fmt.Errorf("%w: joining channel %q without a handler", ErrConfig, name)
	}
	if len(name) > maxName {
		return nil, fmt.Errorf("%w: the name of a channel has %d bytes, at most %d are allowed", ErrLimit, len(name), maxName)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return nil, fmt.Errorf("joining channel %q: %w", name, ErrClosed)
	}
	h.joins[name]++
	k := key{name, h.joins[name]}
	c := h.channels[k]
	if c == nil {
		c = h.add(k)
	} else {
		h.kept -= k.cost() + c.bytes
	}
	h.lastID++
	c.id = h.lastID
	c.handler = handler
	_, c.quick = handler.(QuickHandler)
	h.mover.joined(c)
	c.rouse()
	return c, nil
}

// add makes the record of a channel and tells it who is gone already. The caller
// holds mu.
func (h *hub) add(k key) *channel {
	c := &channel{hub: h, key: k, left: make(map[int]struct{})}
	h.channels[k] = c
	h.records[k.name]++
	lead, led := h.gone[0]
	for _, rank := range slices.Sorted(maps.Keys(h.gone)) {
		if rank != 0 {
			c.push(event{from: rank, lost: h.gone[rank]})
		}
	}
	if led {
		c.push(event{from: 0, lost: lead})
	}
	return c
}

// find returns the channel of an incoming message. If this rank has yet to join
// it, what comes is kept; if it has left, find returns nil. The caller holds mu.
func (h *hub) find(k key) *channel {
	if c := h.channels[k]; c != nil {
		return c
	}
	if h.closed || k.n <= h.joins[k.name] {
		return nil
	}
	h.kept += k.cost()
	return h.add(k)
}

// deliver takes in a message of a rank. It returns the channel, if the channel is
// open: the caller, who holds mu, sees to it that the message is handled, and if it
// reads from a network, it can wait until the channel has room.
func (h *hub) deliver(from int, k key, msg []byte) (*channel, error) {
	c := h.find(k)
	if c == nil || c.closed {
		return nil, nil
	}
	if c.handler == nil {
		h.kept += eventCost + len(msg)
		if h.limit > 0 && h.kept > h.limit {
			return nil, fmt.Errorf("%w: %d bytes are kept for channels that rank %d has not joined yet, the last for %q, number %d",
				ErrLimit, h.kept, h.rank, k.name, k.n)
		}
	}
	c.add(event{from: from, msg: msg})
	return c, nil
}

// leave notes that a rank has left a channel. The caller holds mu.
func (h *hub) leave(rank int, k key) error {
	c := h.find(k)
	if c == nil {
		return nil
	}
	c.left[rank] = struct{}{}
	h.forget(c)
	if h.limit > 0 && h.kept > h.limit {
		return fmt.Errorf("%w: too many channels that rank %d has not joined yet, the last %q, number %d", ErrLimit, h.rank, k.name, k.n)
	}
	return nil
}

// lose notes that a rank is gone and tells the channels that it had not left. left
// names channels that it has left, as far as that is not known here. lose returns
// all that are known, for rank 0 to pass on, and false if the loss is no news.
// The caller holds mu.
func (h *hub) lose(rank int, err error, left []key) ([]key, bool) {
	_, known := h.gone[rank]
	_, alone := h.gone[0]
	if h.closed || known || alone {
		return nil, false
	}
	for _, k := range left {
		if h.limit > 0 && h.kept > h.limit {
			break // it hears of the loss once too often
		}
		if c := h.find(k); c != nil {
			c.left[rank] = struct{}{}
		}
	}
	h.gone[rank] = err
	left = nil
	for _, c := range h.channels {
		if _, ok := c.left[rank]; ok {
			left = append(left, c.key)
		} else {
			c.push(event{from: rank, lost: err})
		}
		h.forget(c)
	}
	return left, true
}

// forget removes the record of a closed channel if nobody needs it. Rank 0 keeps
// it until no rank can die on it any more: it tells the others who had left. The
// caller holds mu.
func (h *hub) forget(c *channel) {
	if !c.closed {
		return
	}
	if h.rank == 0 {
		for rank := 1; rank < h.size; rank++ {
			_, left := c.left[rank]
			if _, gone := h.gone[rank]; !left && !gone {
				return
			}
		}
	}
	delete(h.channels, c.key)
	if h.records[c.key.name]--; h.records[c.key.name] == 0 {
		delete(h.records, c.key.name)
	}
}

// waitRoom waits until little is left in the inbox of an open channel.
func (h *hub) waitRoom(c *channel, limit int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for c.handler != nil && !c.closed && c.bytes > limit {
		h.room.Wait()
	}
}

// shut ends all channels; it returns false if that was done before. The caller
// holds mu, and waits for calls without it: what has come is still handed over,
// and then that everybody is lost, so that nobody here waits on.
func (h *hub) shut() bool {
	if h.closed {
		return false
	}
	err := fmt.Errorf("%w: rank %d has closed the cohort itself: %w", ErrRankGone, h.rank, ErrClosed)
	for _, c := range h.channels {
		if c.handler == nil {
			c.end()
			continue
		}
		for _, rank := range h.partners() {
			_, left := c.left[rank]
			if _, gone := h.gone[rank]; !left && !gone {
				c.push(event{from: rank, lost: err})
			}
		}
	}
	h.closed = true
	clear(h.channels)
	clear(h.records)
	clear(h.joins)
	return true
}

// partners are the ranks that this one exchanges messages with.
func (h *hub) partners() []int {
	if h.rank != 0 {
		return []int{0}
	}
	ranks := make([]int, 0, h.size-1)
	for rank := 1; rank < h.size; rank++ {
		ranks = append(ranks, rank)
	}
	return ranks
}
