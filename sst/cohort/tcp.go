package cohort

import (
	"context"
	"fmt"
	"maps"
	"net"
	"slices"
	"sync"
)

// TCP connects this process to the others of its cohort and returns when all are
// connected; ctx bounds that, and nothing afterwards. The connections form a
// star: each rank has one with rank 0.
//
// Both ends of a connection prove that they have the token, for this rank of a
// cohort of this size. Who does not is refused, and the cohort goes on waiting
// for the right one. A rank that dies while the cohort forms fails it, for all.
// When TCP returns nobody listens any more.
//
// An error wraps ErrConfig, ErrRefused, ErrRankGone, or what ended ctx.
func TCP(ctx context.Context, config TCPConfig) (Cohort, error) {
	c, err := config.resolve()
	if err != nil || c.Size == 1 {
		if config.Listener != nil {
			_ = config.Listener.Close()
		}
		if err != nil {
			return nil, err
		}
		return Solo(), nil
	}
	if c.Rank != 0 {
		return dial(ctx, c, c.Root, c.fixed)
	}
	l, err := c.listen(ctx)
	if err != nil {
		return nil, err
	}
	return gather(ctx, c, l, newCohortID(), nil)
}

// tcpRank is one rank of a cohort of processes, and the mover of its hub.
type tcpRank struct {
	*hub
	config  TCPConfig
	links   map[int]*link // by rank, reserved or running; guarded by hub.mu
	running sync.WaitGroup

	forming bool          // guarded by hub.mu
	started chan struct{} // closed when rank 0 says that all are there
	failed  chan error    // capacity 1: a rank that is gone while the cohort forms

	closing sync.Once
}

func newTCP(c TCPConfig) *tcpRank {
	t := &tcpRank{
		hub:     newHub(c.Rank, c.Size, new(sync.Mutex)),
		config:  c,
		links:   make(map[int]*link),
		forming: true,
		started: make(chan struct{}),
		failed:  make(chan error, 1),
	}
	t.mover = t
	t.limit = c.MaxKept
	return t
}

// launch starts the link of a connection whose handshake is done. It returns false
// if the cohort has been closed.
func (t *tcpRank) launch(conn net.Conn, rank int) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return false
	}
	l := newLink(t, conn, rank)
	t.links[rank] = l
	t.running.Go(l.run)
	return true
}

// Close implements Cohort.
func (t *tcpRank) Close() error {
	t.quit("")
	return nil
}

// quit leaves the cohort and tells the others why, if it is no ordinary end.
func (t *tcpRank) quit(text string) {
	t.closing.Do(func() {
		t.mu.Lock()
		t.shut()
		links := slices.Collect(maps.Values(t.links))
		t.mu.Unlock()
		for _, l := range links {
			if l != nil {
				l.close(text, t.config.CloseTimeout)
			}
		}
		t.running.Wait()
		t.calls.Wait()
	})
}

// joined implements mover.
func (t *tcpRank) joined(c *channel) {
	t.spread(frame{kind: frameJoin, id: c.id, body: appendJoin(nil, c.key)})
}

// left implements mover.
func (t *tcpRank) left(c *channel) { t.spread(frame{kind: frameLeave, id: c.id}) }

// flush implements mover.
func (t *tcpRank) flush() []<-chan struct{} {
	list := make([]<-chan struct{}, 0, len(t.links))
	for _, l := range t.links {
		if l != nil {
			list = append(list, l.flush())
		}
	}
	return list
}

// spread sends a frame to everybody this rank is connected to. The caller holds mu.
func (t *tcpRank) spread(f frame) {
	for _, l := range t.links {
		if l != nil {
			l.post(f)
		}
	}
}

// message implements mover.
func (t *tcpRank) message(to int, c *channel, msg []byte, u urgency) error {
	if len(msg) > t.config.MaxMessage {
		return fmt.Errorf("%w: a message of %d bytes, at most %d are allowed", ErrLimit, len(msg), t.config.MaxMessage)
	}
	f := frame{kind: frameMessage, id: c.id, body: msg}
	if u == later {
		t.links[to].postLater(f)
	} else {
		t.links[to].post(f)
	}
	return nil
}

// take is a message of a rank, on the goroutine that reads from it. It calls a quick
// handler itself, and waits while the channel has plenty to do: the rank is not read
// meanwhile.
func (t *tcpRank) take(rank int, k key, msg []byte) error {
	t.mu.Lock()
	c, err := t.deliver(rank, k, msg)
	here := c != nil && c.quick && c.claim()
	if c != nil && !here {
		c.rouse()
	}
	t.mu.Unlock()
	if here {
		c.runHere()
	}
	if c != nil {
		t.waitRoom(c, inboxPlenty)
	}
	return err
}

// leaves notes that a rank leaves a channel.
func (t *tcpRank) leaves(rank int, k key) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.leave(rank, k)
}

// start notes that all ranks are there.
func (t *tcpRank) start() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.forming {
		return fmt.Errorf("%w: told twice that all ranks are there", ErrProtocol)
	}
	t.forming = false
	close(t.started)
	return nil
}

// told notes that a rank is gone, as rank 0 says.
func (t *tcpRank) told(rank int, g goneBody) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lose(rank, fmt.Errorf("%w: rank 0 says: %s", ErrRankGone, g.text), g.left)
}

// ended notes that a link is down, which means that its rank is gone. Rank 0 tells
// the others.
func (t *tcpRank) ended(l *link, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	left, news := t.lose(l.rank, err, nil)
	if !news {
		return
	}
	if t.forming {
		t.failed <- err // capacity 1, and rank by rank only the first is news:
		t.forming = false
	}
	orderly := l.bye != nil && *l.bye == ""
	if !orderly {
		t.config.Logger.Warn("cohort: a rank is gone", "rank", l.rank, "of", t.size, "here", t.rank, "err", err)
	}
	if t.rank != 0 {
		return
	}
	text := clip(err.Error()[len(ErrRankGone.Error()+": "):])
	g := goneBody{text: text, left: left}
	f := frame{kind: frameGone, id: uint32(l.rank), body: g.append(nil)}
	for rank, o := range t.links {
		if rank != l.rank && o != nil {
			o.post(f)
		}
	}
}
