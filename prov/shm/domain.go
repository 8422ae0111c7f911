package shm

import (
	"context"
	"encoding/hex"
	"log/slog"
	"sync"
	"sync/atomic"

	"github.com/weft-fabric/weft/fabric/provider"
	"github.com/weft-fabric/weft/internal/provutil"
	"github.com/weft-fabric/weft/internal/sys"
)

// String is the id in hex digits.
func (b bootID) String() string { return hex.EncodeToString(b[:]) }

// domain is an open provider. The lock of its core guards all that can change, but where another is named.
type domain struct {
	watcher

	info     provider.Info
	opts     options
	features sys.Features
	log      *slog.Logger
	tracer   provider.Tracer
	core     *provutil.Core
	boot     bootID
	net      uint64
	uid      uint32

	home   *home
	vigil  *vigil // nil: there is none yet
	arena  *arena
	held   provutil.Held // blocks that were closed while operations are posted on them
	epoch  uint64        // of the doorbell
	news   atomic.Bool
	ticks  uint64
	copied *sync.Cond // a copy outside of the lock has ended, or what waits for these

	av       provutil.AV[*peer]
	byName   map[string][]*peer // not the dead
	eps      []*endpoint
	queues   []*provutil.CQ
	counters []*provutil.Counter
	pairs    []*pair // to poll
	dirty    []*pair // to publish
	dead     []*pair // to release
	parting  []*pair // that have ended, of which the other side has not
	foreign  foreign // of all pairs
	wakes    []*wake // for the dead in the folder
	tidied   bool    // the folder
	ghosts   []*peer // oldest first
	gone     bool    // a peer has died: directed receives may have to end

	ops     provutil.Pool[op]
	bufs    provutil.Buffers
	locals  provutil.Spares[provider.Segment]
	remotes provutil.Spares[provider.RemoteSegment]
	bounces []*bounces
	blocks  int // bounce blocks out
	atomics provutil.Atomics
	views   provutil.Views
	restart []*endpoint // with stalled receives
	stuck   bool        // a message waits for a receive or a place
	looks   bool        // somebody looks for messages that nobody waits for
	chunked uint64      // bytes that chunks have brought
	hunger

	scratch               provider.Completion // so that completions need no memory of their own
	record, controlRecord record
	old                   [maxAtomic]byte

	stats      provider.Stats
	said       map[string]bool
	closed     bool          // or closing
	ending     chan struct{} // closed with it
	down       bool
	closing    int // endpoints whose close has begun and not ended
	background context.Context
}

var _ provider.Domain = (*domain)(nil)

// open starts everything.
func (d *domain) open(c provider.DomainConfig) (err error) {
	d.background, d.ending = context.Background(), make(chan struct{})
	d.byName, d.said, d.sources = make(map[string][]*peer), make(map[string]bool), make(map[uint64]source)
	d.features = d.opts.features.Failing(d.opts.failures)
	d.log = c.Logger
	if d.log == nil {
		d.log = slog.New(slog.DiscardHandler)
	}
	if c.Tracer != nil {
		d.tracer = *c.Tracer
	}
	d.ops.Veil()
	d.info.Progress = []provider.Progress{c.Progress}
	if d.poller, err = sys.NewPoller(); err != nil {
		return systemError(err)
	}
	if d.home, err = newHome(d.features); err != nil {
		_ = d.poller.Close()
		return systemError(err)
	}
	if err = d.announceCross(c.Progress); err != nil {
		d.home.close()
		_ = d.poller.Close()
		return err
	}
	d.arena = newArena(d.home, c.Memory, d.opts.prefault, d.features)
	d.arena.huge = d.opts.huge
	core := provutil.CoreConfig{
		Progress: c.Progress, Spin: c.Spin, Yield: sys.Yield, Tracer: c.Tracer, NewBell: provutil.SystemBells(d.features),
	}
	d.core = provutil.NewCore(d, core)
	d.copied = sync.NewCond(d.core)
	d.core.Start()
	return nil
}

// Info is what was opened.
func (d *domain) Info() provider.Info { return d.info }

// OpenCompletionQueue opens a completion queue.
func (d *domain) OpenCompletionQueue(c provider.CQConfig) (provider.CompletionQueue, error) {
	d.core.Lock()
	defer d.core.Unlock()
	if d.closed {
		return nil, fail("open completion queue", "", provider.ErrClosed)
	}
	q, err := provutil.NewCQ(d.core, c)
	if err != nil {
		return nil, fail("open completion queue", "", err)
	}
	d.queues = append(d.queues, q)
	return q, nil
}

// OpenCounter opens a counter.
func (d *domain) OpenCounter() (provider.Counter, error) {
	d.core.Lock()
	defer d.core.Unlock()
	if d.closed {
		return nil, fail("open counter", "", provider.ErrClosed)
	}
	n := provutil.NewCounter(d.core)
	d.counters = append(d.counters, n)
	return n, nil
}

// Stats may be read at any time.
func (d *domain) Stats() provider.Stats {
	d.core.Lock()
	defer d.core.Unlock()
	s := d.stats
	core := d.core.Stats()
	s.Wakes, s.Errors, s.Again = core.Wakes, core.Errors, core.Again
	d.views.Tell(&s)
	d.arena.tell(&s)
	return s
}

// warnOnce tells the logger of something that may come again and again.
func (d *domain) warnOnce(key, what string, err error) {
	if !d.said[key] {
		d.said[key] = true
		d.tell(slog.LevelWarn, what, "error", err)
	}
}

// tell tells the logger, when the lock is given back: it may be slow, and may ask the domain.
func (d *domain) tell(level slog.Level, what string, args ...any) {
	d.core.After(func() { d.log.Log(d.background, level, "shm: "+what, args...) })
}

// Close ends everything. Views stay readable.
func (d *domain) Close() error {
	d.core.Lock()
	if d.closed {
		for !d.down {
			d.copied.Wait()
		}
		d.core.Unlock()
		return nil
	}
	d.closed = true
	close(d.ending)
	for len(d.eps) > 0 {
		d.eps[0].close()
	}
	for d.closing > 0 { // by others
		d.copied.Wait()
	}
	d.reap()
	queues, counters := d.queues, d.counters
	d.queues, d.counters = nil, nil
	d.core.Unlock()
	for _, q := range queues {
		_ = q.Close() // no endpoint uses it any more
	}
	for _, n := range counters {
		_ = n.Close()
	}
	d.core.Stop()
	d.vigil.end()
	d.arena.stop()
	d.core.Lock()
	defer d.core.Unlock()
	d.av.Each(func(_ provider.Peer, _ provider.Address, v **peer) {
		for len((*v).pairs) > 0 {
			(*v).pairs[0].end(provider.ErrClosed, nil)
		}
	})
	d.sitOut()
	for len(d.parting) > 0 { // our memory is used for nothing else any more
		p := d.parting[0]
		p.away()
		p.parts()
	}
	d.reap()
	d.endHunger()
	_ = d.poller.Close()
	d.arena.close()
	d.home.close()
	d.down = true
	d.copied.Broadcast()
	return nil
}
