package loop

import (
	"log/slog"
	"sync"

	"github.com/weft-fabric/weft/fabric/provider"
	"github.com/weft-fabric/weft/internal/provutil"
	"github.com/weft-fabric/weft/internal/sys"
)

// maxAtomic bounds the bytes of an atomic operation.
const maxAtomic = 4 << 10

// domain implements provider.Domain. Its Core's lock guards what has no lock of its own.
type domain struct {
	net    *network
	info   provider.Info
	core   *provutil.Core
	engine engine
	mail   mailbox
	log    *slog.Logger
	tracer provider.Tracer
	eager  uint64 // option: longer messages stay with their sender
	limit  uint64 // of arena bytes

	av        provutil.AV[peerState]
	ghosts    []provider.Peer // see retire
	endpoints []*endpoint
	queues    []*provutil.CQ
	counters  []*provutil.Counter
	closed    bool
	budget    uint64 // bytes that this poll may still copy

	inbound   fifo[*link]     // have packets
	stalled   fifo[*link]     // have packets that wait for room or a receive
	transfers fifo[*transfer] // messages that are being copied from their senders
	outbound  fifo[*link]     // have operations that may start
	restart   []*endpoint     // have receives that are stalled

	segments  provutil.Spares[provider.Segment]
	remotes   provutil.Spares[provider.RemoteSegment]
	loans     *loan
	spareRuns *transfer
	stats     provider.Stats

	keys    provutil.Keys
	atomics provutil.Atomics
	operand [maxAtomic]byte // of an atomic operation in pieces

	memory arenas
	held   provutil.Held // arenas that were closed while operations are posted on them
}

// arenas is the memory of a domain. Its lock is below the domain's: peers take it to make views.
type arenas struct {
	mu     sync.Mutex
	by     map[provider.Key]*memory
	bytes  uint64
	most   uint64
	views  provutil.Views
	closed bool
}

func (d *domain) open(c provider.DomainConfig) {
	d.log = c.Logger
	if d.log == nil {
		d.log = slog.New(slog.DiscardHandler)
	}
	if c.Tracer != nil {
		d.tracer = *c.Tracer
	}
	d.engine = engine{d: d, bell: make(chan struct{}, 1)}
	d.mail.engine = &d.engine
	d.av.Max = maxPeers
	d.memory.by = make(map[provider.Key]*memory)
	d.core = provutil.NewCore(&d.engine, provutil.CoreConfig{
		Progress: c.Progress, Spin: c.Spin, Tracer: c.Tracer, Yield: sys.Yield, NewBell: provutil.SystemBell,
	})
	d.core.Start()
}

// Info is what was opened.
func (d *domain) Info() provider.Info { return d.info }

// OpenCompletionQueue opens a queue.
func (d *domain) OpenCompletionQueue(c provider.CQConfig) (provider.CompletionQueue, error) {
	q, err := provutil.NewCQ(d.core, c)
	if err != nil {
		return nil, d.fail("open completion queue", err)
	}
	d.core.Lock()
	defer d.core.Unlock()
	if d.closed {
		return nil, d.fail("open completion queue", provider.ErrClosed)
	}
	d.queues = append(d.queues, q)
	return q, nil
}

// OpenCounter opens a counter.
func (d *domain) OpenCounter() (provider.Counter, error) {
	d.core.Lock()
	defer d.core.Unlock()
	if d.closed {
		return nil, d.fail("open counter", provider.ErrClosed)
	}
	n := provutil.NewCounter(d.core)
	d.counters = append(d.counters, n)
	return n, nil
}

// Insert makes a peer of an address.
func (d *domain) Insert(a provider.Address) (provider.Peer, error) {
	if err := parse(a); err != nil {
		return 0, d.fail("insert", err)
	}
	d.core.Lock()
	defer d.core.Unlock()
	if d.closed {
		return 0, d.fail("insert", provider.ErrClosed)
	}
	d.notice(a)
	p, st, _, err := d.av.Insert(a)
	if err != nil {
		return 0, d.fail("insert", err)
	}
	st.named = true
	return p, nil
}

// notice takes note of the death of a peer that the domain has not been told of yet in a poll, so that a new peer is made of
// its address.
func (d *domain) notice(a provider.Address) {
	_, st := d.av.Find(a)
	if st == nil {
		return
	}
	for _, l := range st.links {
		if l.pair != nil && l.pair.down.Load() {
			d.lost(l, l.pair.why)
			return
		}
	}
}

// Address is the address of a peer.
func (d *domain) Address(p provider.Peer) (provider.Address, error) {
	d.core.Lock()
	defer d.core.Unlock()
	a, err := d.av.Address(p)
	if err != nil {
		return "", d.fail("address", err)
	}
	return a, nil
}

// Remove forgets a peer.
func (d *domain) Remove(p provider.Peer) error {
	d.core.Lock()
	defer d.core.Unlock()
	st := d.av.Lookup(p)
	if st == nil {
		_, err := d.av.Address(p)
		return d.fail("remove", err)
	}
	for _, l := range st.links {
		d.endOps(l, provider.ErrCancelled)
		l.peer = 0
		if l.pair != nil && l.why == nil {
			l.ep.orphan(l) // the peer may go on to send
		}
	}
	a, _ := d.av.Address(p)
	for _, ep := range d.endpoints {
		d.endDirected(ep, p, a, provider.ErrCancelled)
	}
	d.av.Remove(p)
	return nil
}

// Stats are the domain's numbers.
func (d *domain) Stats() provider.Stats {
	d.core.Lock()
	defer d.core.Unlock()
	s := d.stats
	c := d.core.Stats()
	s.Errors, s.Again, s.Wakes = c.Errors, c.Again, c.Wakes
	d.av.Each(func(_ provider.Peer, _ provider.Address, st *peerState) {
		if st.why == nil && connected(st) {
			s.Peers++
		}
	})
	d.memory.mu.Lock()
	defer d.memory.mu.Unlock()
	s.Arena, s.ArenaUsed, s.ArenaMost = d.memory.bytes, d.memory.bytes, d.memory.most
	d.memory.views.Tell(&s)
	return s
}

func connected(st *peerState) bool {
	for _, l := range st.links {
		if l.pair != nil && l.why == nil {
			return true
		}
	}
	return false
}

// Peers lists what is known of each peer.
func (d *domain) Peers() []provider.PeerStats {
	d.core.Lock()
	defer d.core.Unlock()
	var all []provider.PeerStats
	d.av.Each(func(p provider.Peer, a provider.Address, st *peerState) {
		s := provider.PeerStats{Peer: p, Address: a, State: "new", Path: "memory", Why: st.why}
		switch {
		case st.why != nil:
			s.State = "gone"
		case connected(st):
			s.State = "connected"
		}
		for _, l := range st.links {
			s.Sent += l.numbers.sent
			s.Received += l.numbers.received
			s.BytesSent += l.numbers.bytesSent
			s.BytesRecv += l.numbers.bytesReceived
			s.Unexpected += l.unexpected
		}
		all = append(all, s)
	})
	return all
}

// Close ends everything of the domain.
func (d *domain) Close() error {
	d.core.Lock()
	d.closed = true
	endpoints, queues, counters := d.endpoints, d.queues, d.counters
	d.core.Unlock()
	for _, ep := range endpoints {
		ep.shut(nil)
	}
	for _, q := range queues {
		_ = q.Close() // no endpoint uses it any more
	}
	for _, n := range counters {
		_ = n.Close()
	}
	d.core.Stop()
	d.mail.close()
	d.engine.close()
	d.freeAll()
	return nil
}

func (d *domain) fail(op string, err error) error {
	return provutil.OpError(op, Name, "", err)
}
