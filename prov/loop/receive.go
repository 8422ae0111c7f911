package loop

import (
	"fmt"

	"github.com/weft-fabric/weft/fabric/provider"
	"github.com/weft-fabric/weft/internal/provutil"
)

// receive takes what a link's lane has. The link is in no list; it is put into the one where it belongs.
func (d *domain) receive(l *link) (moved bool) {
	l.inInbound = false
	for !l.dead && l.pair != nil {
		p, ok := l.in().peek()
		if !ok {
			if l.why != nil {
				d.endDirected(l.ep, l.peer, l.address, l.why)
				l.pair = nil // it holds all of the peer's domain
				d.retire(l.peer)
			}
			return moved
		}
		if !d.accept(l, &p) {
			l.inInbound = true
			d.stalled.push(l)
			return moved
		}
		moved = true
		if l.in().pop() {
			l.tell(event{kind: room})
		}
	}
	return moved
}

// accept takes one packet. False means that it must wait in the lane.
func (d *domain) accept(l *link, p *packet) bool {
	ep := l.ep
	if l.peer == 0 && !d.rename(l) {
		return true
	}
	if p.kind == written {
		return ep.remoteWrite(l, p)
	}
	if p.loan != nil && !p.loan.open(p.loanNo) {
		return true // it was taken back
	}
	r := ep.matcher.Match(p.kind == tagged, l.peer, p.tag)
	if r == nil {
		return d.wait(l, p)
	}
	part, ok := r.Take(p.len, ep.recv)
	if !ok {
		return false
	}
	m := waiting{Tagged: p.kind == tagged, Source: l.peer, Tag: p.tag, Data: p.data, HasData: p.hasData, Len: p.len, Bytes: p.bytes}
	m.Extra = origin{link: l, op: p.op, ack: p.ack, loan: p.loan, loanNo: p.loanNo}
	if part.Last {
		ep.matcher.Remove(r)
	}
	d.fill(ep, r, &m, part)
	return true
}

// rename gives a new number to a peer that was removed and sends again. False drops what it sends.
func (d *domain) rename(l *link) bool {
	if l.why != nil {
		return false
	}
	p, st, _, err := d.av.Insert(l.address)
	if err != nil {
		d.refuse(l.pair, l.side, err)
		d.lost(l, errFull)
		return false
	}
	return l.ep.linkTo(p, st) == l
}

// remoteWrite tells of a peer's write.
func (ep *endpoint) remoteWrite(l *link, p *packet) bool {
	if ep.recv != nil {
		if !ep.recv.Reserve(1) {
			ep.recv.Stall()
			return false
		}
		l.seen = true
		ep.recv.Push(&provider.Completion{Kind: provider.RemoteWrite, Flags: provider.HasData, Len: p.len, Data: p.data, Source: l.peer})
	}
	ep.counters.remoteWrite.Done(nil)
	return true
}

// wait keeps a message for which there is no receive yet, if the peer may have more of them here.
func (d *domain) wait(l *link, p *packet) bool {
	held := uint64(len(p.bytes))
	if l.waiting > 0 && (l.unexpected+held > l.ep.limit || uint64(l.waiting) >= 64+l.ep.limit/64) {
		return false
	}
	l.unexpected += held
	l.waiting++
	m := l.ep.matcher.Keep(p.kind == tagged)
	m.Source, m.Tag, m.Data, m.HasData, m.Len, m.Bytes = l.peer, p.tag, p.data, p.hasData, p.len, p.bytes
	m.Extra = origin{link: l, op: p.op, ack: p.ack, loan: p.loan, loanNo: p.loanNo}
	return true
}

// unwait ends wait for a message that was taken out of the matcher.
func (l *link) unwait(m *waiting) {
	l.waiting--
	l.unexpected -= uint64(len(m.Bytes))
	if l.why != nil && l.waiting == 0 {
		l.ep.domain.retire(l.peer)
	}
}

// forget drops a message that was taken out of the matcher and does not reach a receive.
func (d *domain) forget(m *waiting) {
	l := m.Extra.link
	l.unwait(m)
	l.giveBack(m.Bytes)
	l.ep.matcher.FreeMessage(m)
}

// transfer is a message on its way into a receive's buffer.
type transfer struct {
	ep     *endpoint
	r      *recv
	m      waiting
	base   uint64 // where in the buffer it starts
	n      uint64 // bytes that have room
	done   uint64
	failed error
	next   *transfer // spare
}

// fill moves a message into its part of a receive, at once as far as the budget goes. m is the caller's again at return.
func (d *domain) fill(ep *endpoint, r *recv, m *waiting, part provutil.Part) {
	base, n := part.At, part.Len
	m.Extra.link.seen = true
	if m.Extra.loan == nil {
		r.Buffer.Scatter(base, m.Bytes[:n])
		m.Extra.link.giveBack(m.Bytes)
		ep.filled(r, m, base, n, nil)
		return
	}
	t := d.spareRuns
	if t == nil {
		t = new(transfer)
	} else {
		d.spareRuns = t.next
	}
	*t = transfer{ep: ep, r: r, m: *m, base: base, n: n}
	d.carry(t)
}

// errTakenBack is of a peer that has removed us while a message of it was under way: as for a provider whose connection ends with
// that, it has gone, though it may come again.
var errTakenBack = fmt.Errorf("%w: it has removed this endpoint, and taken its message back", provider.ErrPeerGone)

// carry copies from the sender, as far as the budget goes.
func (d *domain) carry(t *transfer) {
	o := &t.m.Extra
	for t.done < t.n && t.failed == nil {
		if d.budget == 0 {
			d.transfers.push(t)
			return
		}
		n, ok := o.loan.copyOut(o.loanNo, t.r.Buffer, t.base+t.done, t.done, min(t.n-t.done, d.budget))
		if !ok {
			why := o.link.why
			if why == nil {
				why = errTakenBack
			}
			t.failed = d.fault(t.r.Kind(), o.link.address, why)
		}
		t.done += n
		d.budget -= min(n, d.budget)
	}
	t.ep.filled(t.r, &t.m, t.base, t.done, t.failed)
	d.free(t)
}

func (d *domain) free(t *transfer) {
	*t = transfer{next: d.spareRuns}
	d.spareRuns = t
}

// dropTransfers ends what is being copied for an endpoint that closes.
func (ep *endpoint) dropTransfers() {
	d := ep.domain
	d.transfers.drop(func(t *transfer) bool {
		if t.ep != ep {
			return false
		}
		ep.filled(t.r, &t.m, t.base, t.done, d.fault(t.r.Kind(), t.m.Extra.link.address, provider.ErrClosed))
		d.free(t)
		return true
	})
}

// filled ends a message that has reached its receive, or failed to: the sender hears of it, and the receive completes.
func (ep *endpoint) filled(r *recv, m *waiting, base, n uint64, err error) {
	d, l := ep.domain, m.Extra.link
	if m.Extra.ack && err == nil {
		l.tell(event{kind: ack, op: m.Extra.op})
	}
	if err == nil && n < m.Len {
		err = d.fault(r.Kind(), l.address, &provider.TruncatedError{Message: m.Len, Room: n})
	}
	l.numbers.received++
	l.numbers.bytesReceived += n
	d.stats.Received++
	d.stats.BytesRecv += n
	c := provider.Completion{Context: r.Context, Kind: r.Kind(), Len: n, Source: m.Source, Err: err}
	if r.Tagged {
		c.Tag = m.Tag
	}
	if m.HasData {
		c.Data, c.Flags = m.Data, provider.HasData
	}
	end := r.Complete(&c, base)
	deliver(ep.recv, &c, r.Flags.Has(provider.Quiet) && err == nil)
	ep.counters.recv.Done(err)
	if end {
		ep.freeRecv(r)
	} else if r.Ended != nil && r.Pending == 0 {
		ep.endRecv(r, r.Ended)
	}
}

// freeRecv lets go of a receive that is not posted any more.
func (ep *endpoint) freeRecv(r *recv) {
	ep.receiving--
	if r.Held {
		ep.domain.held.Ended(r.Buffer)
	}
	ep.domain.segments.Put(r.Buffer.More)
	ep.matcher.FreeRecv(r)
	if ep.recv != nil {
		ep.recv.Room()
	}
}

// endRecv ends a receive that is not posted any more without a message.
func (ep *endpoint) endRecv(r *recv, err error) {
	if r.Pending > 0 { // messages are on their way into its buffer
		r.Ended = err
		return
	}
	c := provider.Completion{Context: r.Context, Kind: r.Kind(), Err: err}
	if r.Flags.Has(provider.Multi) {
		c.Flags |= provider.MultiDone
	}
	deliver(ep.recv, &c, false)
	ep.counters.recv.Done(err)
	ep.freeRecv(r)
}

// vector is the buffer of an operation, independent of the caller's list of segments.
func (d *domain) vector(p *provider.Op) provutil.Vector {
	v := provutil.VectorOf(p)
	v.More = d.segments.Clone(v.More)
	return v
}
