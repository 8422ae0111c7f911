package loop

import (
	"fmt"

	"github.com/weft-fabric/weft/fabric/provider"
	"github.com/weft-fabric/weft/internal/provutil"
)

// Recv posts a receive.
func (ep *endpoint) Recv(o provider.Op) error { return ep.postRecv(provider.RecvDone, o) }

// RecvTagged posts a receive of a tagged message, or looks for one.
func (ep *endpoint) RecvTagged(o provider.Op) error { return ep.postRecv(provider.TRecvDone, o) }

func (ep *endpoint) postRecv(kind provider.Kind, o provider.Op) error {
	err := provider.Check(&ep.domain.info.Limits, kind, &o)
	if err == nil {
		ep.domain.core.Lock()
		defer ep.domain.core.Unlock()
		err = ep.beginRecv(kind, &o)
	}
	return ep.posted(kind, o, err)
}

// beginRecv takes a receive, and gives it the messages that wait for it. Locked.
func (ep *endpoint) beginRecv(kind provider.Kind, p *provider.Op) error {
	d := ep.domain
	if ep.closed {
		return provider.ErrClosed
	}
	if p.Flags.Has(provider.Multi) && uint64(len(p.Local.Bytes)) < ep.minMulti {
		return fmt.Errorf("multi receive of %d bytes, MinMultiRecv is %d: %w", len(p.Local.Bytes), ep.minMulti, provider.ErrInvalid)
	}
	if p.Peer != 0 && d.av.Lookup(p.Peer) == nil {
		return fmt.Errorf("peer %v was not inserted here, or was removed: %w", p.Peer, provider.ErrInvalid)
	}
	if err := provutil.CheckOpen(d, p); err != nil {
		return err
	}
	d.budget = pieceBytes
	d.resume() // older ones come first
	if ep.receiving >= ep.depth || ep.recv != nil && !ep.recv.Reserve(1) {
		return refuse(ep.recv)
	}
	ep.receiving++
	r := ep.matcher.NewRecv()
	r.Context, r.Tagged, r.Tag, r.Ignore, r.Peer, r.Flags = p.Context, kind == provider.TRecvDone, p.Tag, p.Ignore, p.Peer, p.Flags
	r.Buffer, r.Least = d.vector(p), ep.minMulti
	if p.Flags&(provider.Peek|provider.Claim) != 0 {
		ep.look(r)
	} else {
		ep.serve(r)
	}
	if d.stalled.len() > 0 || d.transfers.len() > 0 {
		d.core.Poll() // the receive may be what a message waited for
		if d.transfers.len() > 0 {
			d.core.Nudge()
		}
	}
	return nil
}

// serve gives waiting messages to a new receive, and posts it if it takes more.
func (ep *endpoint) serve(r *recv) {
	if ep.feed(r) {
		return
	}
	if r.Peer != 0 {
		if a, why := ep.over(r.Peer); why != nil {
			ep.endRecv(r, ep.domain.fault(r.Kind(), a, why))
			return
		}
	}
	ep.matcher.Add(r)
}

// feed gives waiting messages to a receive, posted or not, and says whether it is used up. It is stalled if there is no place
// for a completion.
func (ep *endpoint) feed(r *recv) bool {
	for m := ep.find(r); m != nil; m = ep.find(r) {
		part, ok := r.Take(m.Len, ep.recv)
		if !ok {
			r.Stalled = true
			ep.domain.restart = append(ep.domain.restart, ep)
			return false
		}
		if part.Last {
			ep.matcher.Remove(r)
		}
		ep.hand(r, m, part)
		if part.Last {
			return true
		}
	}
	return false
}

// find finds the oldest waiting message for a receive, and drops those whose senders have taken them back.
func (ep *endpoint) find(r *recv) *waiting {
	for {
		m := ep.matcher.Find(r)
		if m == nil || m.Extra.loan == nil || m.Extra.loan.open(m.Extra.loanNo) {
			return m
		}
		ep.matcher.Take(m)
		ep.domain.forget(m)
	}
}

// resume tries again to feed the receives that are stalled.
func (d *domain) resume() {
	list := d.restart
	d.restart = nil
	for _, ep := range list {
		ep.matcher.Unstall(func(r *recv) { ep.feed(r) })
	}
}

// over is why a peer will send nothing more to the endpoint; nil if it may.
func (ep *endpoint) over(p provider.Peer) (provider.Address, error) {
	st := ep.domain.av.Lookup(p)
	switch {
	case st == nil:
		return "", provider.ErrPeerGone // and was forgotten since the post began
	case st.why == nil:
		return "", nil
	}
	if l := ep.linkTo(p, st); !l.inInbound {
		return l.address, l.why
	}
	return "", nil
}

// hand gives a waiting message to a receive that has taken it.
func (ep *endpoint) hand(r *recv, m *waiting, part provutil.Part) {
	ep.matcher.Take(m)
	ep.domain.fill(ep, r, m, part)
	m.Extra.link.unwait(m) // now that the peer's number is known to be told
	ep.matcher.FreeMessage(m)
}

// look carries out a receive with Peek or Claim, which ends at once or, for a claimed long message, with its bytes.
func (ep *endpoint) look(r *recv) {
	d := ep.domain
	d.core.Poll() // what has arrived counts
	var m *waiting
	peek := r.Flags.Has(provider.Peek)
	if peek {
		m = ep.find(r)
	} else {
		m = ep.matcher.Claimed(r.Context)
	}
	switch {
	case m == nil:
		ep.endRecv(r, d.fault(r.Kind(), "", provider.ErrNoMessage))
	case !peek && !r.Flags.Has(provider.Discard):
		part, _ := r.Take(m.Len, nil) // it is not Multi
		ep.hand(r, m, part)
	default:
		ep.found(r, m)
	}
}

// found completes a peek, or a discard, without the message's bytes.
func (ep *endpoint) found(r *recv, m *waiting) {
	d := ep.domain
	m.Extra.link.seen = true
	c := provider.Completion{Context: r.Context, Kind: r.Kind(), Len: m.Len, Tag: m.Tag, Source: m.Source}
	if m.HasData {
		c.Data, c.Flags = m.Data, provider.HasData
	}
	switch {
	case r.Flags.Has(provider.Discard):
		ep.matcher.Take(m)
		if m.Extra.ack {
			m.Extra.link.tell(event{kind: ack, op: m.Extra.op})
		}
		d.forget(m)
	case r.Flags.Has(provider.Claim):
		ep.matcher.Claim(m, r.Context)
		m.Extra.claimed = true
		c.Flags |= provider.Claimed
	}
	deliver(ep.recv, &c, false)
	ep.freeRecv(r)
}
