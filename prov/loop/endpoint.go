package loop

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/weft-fabric/weft/fabric/provider"
	"github.com/weft-fabric/weft/internal/provutil"
)

// endpoint implements provider.Endpoint. The lock of its domain guards it, but for what is set when it is opened.
type endpoint struct {
	domain   *domain
	address  provider.Address
	send     *provutil.CQ // nil takes none
	recv     *provutil.CQ
	counters struct{ send, recv, read, write, remoteWrite *provutil.Counter }
	depth    int
	limit    uint64 // of unexpected bytes, for each peer
	minMulti uint64

	closed    bool
	ops       provutil.Pool[op]
	matcher   provutil.Matcher[origin]
	orphans   map[provider.Address]*link // of peers that were removed
	seq       uint64                     // of operations
	receiving int                        // receives posted
	buffers   provutil.Buffers           // of injected operations that wait
}

// The names of the matcher's records.
type (
	recv    = provutil.Recv
	waiting = provutil.Message[origin]
)

// origin is where a message that waits has come from.
type origin struct {
	link   *link
	op     uint64 // of the sender, for the ack
	ack    bool
	loan   *loan
	loanNo uint64

	claimed bool
}

// The defaults and bounds of EndpointConfig.
const (
	defaultDepth      = 1024
	maxDepth          = 1 << 20
	defaultUnexpected = 1 << 20
	defaultMinMulti   = 64
)

// OpenEndpoint opens an endpoint.
func (d *domain) OpenEndpoint(c provider.EndpointConfig) (provider.Endpoint, error) {
	ep := &endpoint{domain: d, depth: c.Depth, limit: c.Unexpected, minMulti: uint64(max(c.MinMultiRecv, 0))}
	if ep.depth == 0 {
		ep.depth = defaultDepth
	}
	if ep.limit == 0 {
		ep.limit = defaultUnexpected
	}
	if ep.minMulti == 0 {
		ep.minMulti = defaultMinMulti
	}
	err := ep.open(c)
	if err != nil {
		return nil, d.fail("open endpoint", err)
	}
	return ep, nil
}

func (ep *endpoint) open(c provider.EndpointConfig) (err error) {
	if ep.depth < 0 || ep.depth > maxDepth || c.MinMultiRecv < 0 {
		return fmt.Errorf("depth %d, at most %d; MinMultiRecv %d: %w", c.Depth, maxDepth, c.MinMultiRecv, provider.ErrInvalid)
	}
	core := ep.domain.core
	if ep.send, err = provutil.OwnCQ(core, c.Send); err != nil {
		return err
	}
	if ep.recv, err = provutil.OwnCQ(core, c.Recv); err != nil {
		return err
	}
	n := &ep.counters
	for _, x := range []struct {
		to   **provutil.Counter
		from provider.Counter
	}{{&n.send, c.Counters.Send}, {&n.recv, c.Counters.Recv}, {&n.read, c.Counters.Read}, {&n.write, c.Counters.Write}, {&n.remoteWrite, c.Counters.RemoteWrite}} {
		if *x.to, err = provutil.OwnCounter(core, x.from); err != nil {
			return err
		}
	}
	core.Lock()
	defer core.Unlock()
	if ep.domain.closed {
		return provider.ErrClosed
	}
	return ep.attach(c.Name)
}

// attach is the last step of opening. Locked.
func (ep *endpoint) attach(name string) error {
	queues := []*provutil.CQ{ep.send, ep.recv}
	for i, q := range queues {
		if q == nil {
			continue
		}
		if err := q.Attach(); err != nil {
			detach(queues[:i])
			return err
		}
	}
	if err := ep.domain.net.add(ep, name); err != nil {
		detach(queues)
		return err
	}
	ep.domain.endpoints = append(ep.domain.endpoints, ep)
	return nil
}

func detach(queues []*provutil.CQ) {
	for _, q := range queues {
		if q != nil {
			q.Detach()
		}
	}
}

// Address is where others reach the endpoint.
func (ep *endpoint) Address() provider.Address { return ep.address }

// Close ends all operations with ErrClosed.
func (ep *endpoint) Close() error {
	ep.shut(nil)
	return nil
}

// shut is Close, with what peers are told; nil means that it closed.
func (ep *endpoint) shut(why error) {
	d := ep.domain
	d.core.Lock()
	defer d.core.Unlock()
	if ep.closed {
		return
	}
	ep.closed = true
	if why == nil {
		why = errClosedThere
	}
	d.net.remove(ep, why)
	ep.endAll(provider.ErrClosed, func(*op) bool { return true })
	ep.matcher.EachMessage(func(m *waiting) {
		ep.matcher.Take(m)
		d.forget(m)
	})
	ep.dropTransfers()
	ep.matcher.EachRecv(func(r *recv) {
		ep.matcher.Remove(r)
		ep.endRecv(r, d.fault(r.Kind(), "", provider.ErrClosed))
	})
	d.av.Each(func(p provider.Peer, _ provider.Address, st *peerState) {
		st.drop(ep)
		d.retire(p)
	})
	for i, e := range d.endpoints {
		if e == ep {
			d.endpoints = append(d.endpoints[:i:i], d.endpoints[i+1:]...)
			break
		}
	}
	detach([]*provutil.CQ{ep.send, ep.recv})
}

// endAll ends the operations that match, in the order in which they were posted.
func (ep *endpoint) endAll(err error, match func(*op) bool) {
	var ids []uint64
	ep.ops.Each(func(id uint64, o *op) {
		if match(o) {
			ids = append(ids, id)
		}
	})
	slices.SortFunc(ids, func(a, b uint64) int { return cmp.Compare(ep.ops.Get(a).seq, ep.ops.Get(b).seq) })
	for _, id := range ids {
		ep.finish(id, ep.ops.Get(id), err)
	}
}

var errClosedThere = fmt.Errorf("%w: it closed its endpoint", provider.ErrPeerGone)

// drop forgets the link of an endpoint that closes.
func (s *peerState) drop(ep *endpoint) {
	for i, l := range s.links {
		if l.ep == ep {
			l.dead = true
			s.seen = s.seen || l.seen
			s.links = append(s.links[:i:i], s.links[i+1:]...)
			return
		}
	}
}

// refuse is a post for which there is no room on this side.
func refuse(q *provutil.CQ) error {
	if q == nil {
		return provider.ErrAgain
	}
	return q.Refuse()
}

// Cancel takes back a posted receive or an operation that has not started.
func (ep *endpoint) Cancel(context uint64) bool {
	d := ep.domain
	d.core.Lock()
	defer d.core.Unlock()
	if ep.closed {
		return false
	}
	if r := ep.matcher.Posted(context); r != nil {
		ep.matcher.Remove(r)
		ep.endRecv(r, d.fault(r.Kind(), "", provider.ErrCancelled))
		return true
	}
	id, o := ep.oldest(context)
	if o == nil {
		return false
	}
	o.queue().drop(func(v uint64) bool { return v == id })
	l := o.link
	ep.finish(id, o, provider.ErrCancelled)
	d.wantPump(l) // what stood behind it may start
	d.core.Nudge()
	return true
}

// oldest is the operation with a context that was posted first of those that have not started; nil if there is none.
func (ep *endpoint) oldest(context uint64) (id uint64, first *op) {
	ep.ops.Each(func(n uint64, o *op) {
		if o.context == context && !o.begun() && (first == nil || o.seq < first.seq) {
			id, first = n, o
		}
	})
	return id, first
}
