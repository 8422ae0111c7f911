package shm

import (
	"sync/atomic"

	"github.com/weft-fabric/weft/fabric/provider"
	"github.com/weft-fabric/weft/internal/provutil"
)

// role is what an operation does now, and so what a peer may say of it.
type role uint8

const (
	roleQueued  role = iota + 1 // waits in a queue of its pair
	roleCopying                 // its poster copies, outside of the lock
	roleAck                     // message: waits for opAck
	roleOffer                   // message: waits for opClear
	roleSending                 // message: its bytes go, or are on their way
	roleMoving                  // read, write or atomic: waits for answers
	roleReceive                 // takes the bytes of a message into a posted receive
	roleServe                   // takes the bytes of a peer's write
)

// op is an operation that did not end in its post, or the part that this side has in one of the peer's. Peers name it by
// its id. The lock guards it.
type op struct {
	id   uint64
	kind provider.Kind
	role role

	flags   provider.Flags
	ep      *endpoint
	pair    *pair
	seq     uint64 // order of posting towards the peer
	context uint64
	local   provutil.Vector
	length  uint64 // of local; of a receive or serve the bytes that come
	own     []byte // of Inject: the copy that local is
	held    bool   // memory of the buffers was closed
	tag     uint64
	data    uint64
	err     error // the first thing that went wrong

	// RMA and atomics
	key     provider.Key
	offset  uint64
	remotes []provider.RemoteSegment
	piece   int    // remote pieces that were started
	start   uint64 // position of the piece that is next
	within  uint64 // bytes of that piece that were copied already
	pending int    // pieces whose answer is to come
	unsent  int    // of a write: pieces that were started and whose bytes are not all in the lane
	note    bool   // the data has moved: what is left is to tell the target
	atomic  atomicOp

	// what the peer holds of us
	mem   *memory // pinned
	block *bounce // lent

	// receives
	recv  *provutil.Recv
	at    uint64 // Multi: where in the buffer
	arr   arrival
	src   []byte          // the message, in the sender's memory
	grown *atomic.Uint64  // how many bytes of src are there; nil: all
	seg   *foreignSegment // where src lies

	// served writes
	target  *memory
	answers uint64 // the peer's context

	prev, next *op // in list
	list       *opList
}

// opList holds operations in the order in which they were added.
type opList struct {
	head, tail *op
}

func (l *opList) add(o *op) {
	o.list, o.prev, o.next = l, l.tail, nil
	if l.tail == nil {
		l.head = o
	} else {
		l.tail.next = o
	}
	l.tail = o
}

// unlink takes the operation out of the list that it is in.
func (o *op) unlink() {
	l := o.list
	if l == nil {
		return
	}
	if o.prev == nil {
		l.head = o.next
	} else {
		o.prev.next = o.next
	}
	if o.next == nil {
		l.tail = o.prev
	} else {
		o.next.prev = o.prev
	}
	o.list, o.prev, o.next = nil, nil, nil
}

// newOp makes a record of an operation that was posted.
func (p *pair) newOp(kind provider.Kind, o *provider.Op) *op {
	n := p.bareOp(kind, roleQueued)
	n.flags, n.context = o.Flags, o.Context
	n.local = provutil.VectorOf(o)
	n.local.More = p.d.locals.Clone(o.Locals)
	n.length = n.local.Len()
	n.tag, n.data = o.Tag, o.Data
	n.key, n.offset = o.Key, o.Offset
	n.remotes = p.d.remotes.Clone(o.Remotes)
	if o.Flags.Has(provider.Inject) {
		n.own = p.d.bufs.Get(int(n.length))
		n.local.Gather(0, n.own)
		p.d.locals.Put(n.local.More)
		n.local = provutil.Vector{First: n.own}
	}
	p.seq++
	n.seq = p.seq
	p.live.add(n)
	p.ep.posted++
	return n
}

// bareOp makes a record that is in no list.
func (p *pair) bareOp(kind provider.Kind, r role) *op {
	id, o := p.d.ops.New()
	o.id, o.kind, o.role, o.ep, o.pair = id, kind, r, p.ep, p
	return o
}

// free gives back all that the record holds, and the record.
func (d *domain) free(o *op) {
	o.unlink()
	if o.own != nil {
		d.bufs.Put(o.own)
	}
	if o.mem != nil {
		o.mem.pins.Add(-1)
	}
	if o.held { // after what its memory waits for besides
		d.held.Ended(o.local, o.atomic.compare, o.atomic.result)
	}
	if o.block != nil {
		o.pair.giveBlock(o.block)
	}
	if o.seg != nil {
		o.seg.users--
		o.seg.unmap()
	}
	d.locals.Put(o.local.More)
	d.remotes.Put(o.remotes)
	d.ops.Put(o.id)
}

// finish ends an operation that was posted towards the peer.
func (d *domain) finish(o *op, err error) {
	ep, p := o.ep, o.pair
	ep.posted--
	if ep.short {
		ep.short = false
		if ep.sendCQ != nil {
			ep.sendCQ.Room()
		}
	}
	c := &d.scratch
	*c = provider.Completion{Context: o.context, Kind: o.kind, Len: o.length, Source: p.peer.id}
	if err != nil {
		c.Len = 0
		c.Err = fail(o.kind.String(), p.peer.text, err)
	}
	quiet, counts := o.flags.Has(provider.Quiet), o.kind
	if o.atomic.result != nil {
		counts = provider.ReadDone // so libfabric's FI_READ has it: what brings something back is a read
	}
	d.free(o)
	ep.counters[counts].Done(c.Err)
	ep.push(ep.sendCQ, quiet)
}
