package shm

import (
	"encoding/binary"

	"github.com/weft-fabric/weft/fabric/provider"
)

// The way of the short message, which is nothing but inline and accept with all that is not needed left out: it is what
// the latency of the provider is made of.

// shortFlags are all that a record of a short message has.
const shortFlags = recTagged | recData

// shortPost are the flags that a post of a short message may have.
const shortPost = provider.RemoteData | provider.Inject | provider.Quiet | provider.More

// sendShort sends a message that can go at once, whole, and needs no record of an operation. False: it has done nothing, and
// begin says what is wrong with the operation, if anything is.
func (ep *endpoint) sendShort(kind provider.Kind, o *provider.Op) bool {
	n := len(o.Local.Bytes)
	if n > maxInline || o.Flags&^shortPost != 0 || o.Locals != nil || o.Remotes != nil || ep.closed || ep.posted >= ep.depth {
		return false
	}
	d, q := ep.d, ep.sendCQ
	v := d.av.Lookup(o.Peer)
	if v == nil || o.Local.Memory != nil && !d.Owns(o.Local.Memory) || q != nil && q.Free() < 1 {
		return false
	}
	p := (*v).pair(ep)
	if p == nil || p.state != pairUp || p.messages.len()|p.notes.len()|len(p.writing) != 0 || p.wroteAt != p.saidAfter || !p.putShort(kind, o) {
		return false
	}
	p.out(o.Flags) // first: the rest is no part of the latency, and the peer polls the line that we have just taken
	p.sent(n)
	ep.counters[kind].Done(nil)
	if q != nil && !o.Flags.Has(provider.Quiet) {
		q.Reserve(1)
		c := &d.scratch
		*c = provider.Completion{Context: o.Context, Kind: kind, Len: uint64(n), Source: p.peer.id}
		q.Push(c)
	}
	return true
}

// putShort is inline for a message without an acknowledgement, when no write is before it.
func (p *pair) putShort(kind provider.Kind, o *provider.Op) bool {
	n, flags, head := len(o.Local.Bytes), uint64(0), 2*wordLen
	if kind == provider.TSendDone {
		flags = recTagged
	}
	if o.Flags.Has(provider.RemoteData) {
		flags |= recData
		head += wordLen
	}
	b, err := p.data.Reserve(head + n)
	if err != nil {
		return p.dataFull(err)
	}
	binary.LittleEndian.PutUint64(b, opInline|flags<<8)
	binary.LittleEndian.PutUint64(b[wordLen:], o.Tag)
	if flags&recData != 0 {
		binary.LittleEndian.PutUint64(b[2*wordLen:], o.Data)
	}
	copy(b[head:], o.Local.Bytes)
	p.data.Commit()
	return true
}

// takeShort is accept for a message that is here in whole, that nobody has to acknowledge, and that a plain receive waits
// for. False: accept does it.
func (p *pair) takeShort(b []byte) bool {
	if len(b) < 3*wordLen {
		return false
	}
	w := binary.LittleEndian.Uint64(b)
	flags := w >> 8
	if uint8(w) != opInline || flags&^shortFlags != 0 {
		return false
	}
	tag, payload := binary.LittleEndian.Uint64(b[wordLen:]), b[2*wordLen:]
	ep := p.ep
	r := ep.matcher.Match(flags&recTagged != 0, p.peer.id, tag)
	if r == nil || r.Flags.Has(provider.Multi) || r.Buffer.More != nil {
		return false
	}
	c := &ep.d.scratch
	*c = provider.Completion{Context: r.Context, Kind: r.Kind(), Source: p.peer.id}
	if r.Tagged {
		c.Tag = tag
	}
	if flags&recData != 0 {
		c.Data, c.Flags = binary.LittleEndian.Uint64(payload), provider.HasData
		payload = payload[wordLen:]
	}
	n := copy(r.Buffer.First, payload)
	c.Len = uint64(n)
	if n < len(payload) {
		c.Err = fail(c.Kind.String(), p.peer.text, &provider.TruncatedError{Message: uint64(len(payload)), Room: c.Len})
	}
	ep.matcher.Remove(r)
	p.received(c.Len)
	ep.count(c)
	ep.push(ep.recvCQ, r.Flags.Has(provider.Quiet))
	ep.freeRecv(r)
	return true
}

// unexpected says whether b is a short message that no receive waits for.
func (p *pair) unexpected(b []byte) bool {
	if len(b) < 3*wordLen {
		return false
	}
	w := binary.LittleEndian.Uint64(b)
	return uint8(w) == opInline && w>>8&^shortFlags == 0 && p.ep.matcher.Match(w>>8&recTagged != 0, p.peer.id, binary.LittleEndian.Uint64(b[wordLen:])) == nil
}

// received counts a message.
func (p *pair) received(n uint64) {
	p.d.stats.Received++
	p.d.stats.BytesRecv += n
	p.peer.stats.Received++
	p.peer.stats.BytesRecv += n
}
