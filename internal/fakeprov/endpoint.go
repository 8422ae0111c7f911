package fakeprov

import (
	"slices"

	"github.com/weft-fabric/weft/fabric/provider"
)

type endpoint struct {
	d          *domain
	addr       provider.Address
	send, recv *queue
	counters   provider.Counters
	posted     [2][]provider.Op // receives; [1] are the tagged ones
	arrived    [2][]message     // messages without one
	closed     bool
}

type message struct {
	bytes     []byte
	from      provider.Address
	tag, data uint64
	hasData   bool
}

func (e *endpoint) Address() provider.Address { return e.addr }

func (e *endpoint) Send(op provider.Op) error       { return e.transmit(op, 0, provider.SendDone) }
func (e *endpoint) SendTagged(op provider.Op) error { return e.transmit(op, 1, provider.TSendDone) }

func (e *endpoint) Recv(op provider.Op) error       { return e.receive(op, 0, provider.RecvDone) }
func (e *endpoint) RecvTagged(op provider.Op) error { return e.receive(op, 1, provider.TRecvDone) }

// begin is the start of each post: called locked, it reserves a place for the completion.
func (e *endpoint) begin(kind provider.Kind, op *provider.Op, q *queue) error {
	err := error(nil)
	switch {
	case e.closed:
		err = provider.ErrClosed
	case q.reserved >= q.size:
		err = provider.ErrAgain
		e.d.stats.Again++
	default:
		q.reserved++
	}
	if t := e.d.tracer; t != nil && t.Post != nil {
		t.Post(kind, op, err)
	}
	return err
}

func (e *endpoint) transmit(op provider.Op, lane int, kind provider.Kind) error {
	e.d.net.mu.Lock()
	defer e.d.net.mu.Unlock()
	if err := e.begin(kind, &op, e.send); err != nil {
		return err
	}
	to, err := e.d.end(op.Peer)
	var bytes []byte
	if err == nil {
		bytes, err = e.gather(&op)
	}
	if err == nil {
		to.deliver(message{bytes: bytes, from: e.addr, tag: op.Tag, data: op.Data, hasData: op.Flags.Has(provider.RemoteData)}, lane)
		e.d.stats.Sent++
	}
	e.finish(e.send, e.counters.Send, &op, provider.Completion{Context: op.Context, Kind: kind, Len: uint64(op.Len()), Source: op.Peer, Err: err})
	return nil
}

// finish completes an operation, silently if it asked for that.
func (e *endpoint) finish(q *queue, c provider.Counter, op *provider.Op, done provider.Completion) {
	if c, ok := c.(*counter); ok {
		c.count(done.Err)
	}
	if op.Flags.Has(provider.Quiet) && done.Err == nil {
		q.reserved--
		return
	}
	if t := e.d.tracer; t != nil && t.Complete != nil {
		t.Complete(&done)
	}
	q.push(done)
}

// deliver gives a message to the first receive that wants it.
func (e *endpoint) deliver(m message, lane int) {
	i := slices.IndexFunc(e.posted[lane], func(op provider.Op) bool { return lane == 0 || (op.Tag^m.tag)&^op.Ignore == 0 })
	if i < 0 {
		e.arrived[lane] = append(e.arrived[lane], m)
		return
	}
	op := e.posted[lane][i]
	e.posted[lane] = slices.Delete(e.posted[lane], i, i+1)
	e.take(&op, m, lane)
}

func (e *endpoint) take(op *provider.Op, m message, lane int) {
	n, err := e.scatter(op, m.bytes)
	c := provider.Completion{Context: op.Context, Kind: provider.RecvDone, Len: uint64(n), Source: e.d.peer(m.from), Tag: m.tag, Data: m.data}
	if lane == 1 {
		c.Kind = provider.TRecvDone
	}
	if m.hasData {
		c.Flags = provider.HasData
	}
	switch {
	case err != nil:
		c.Err = &provider.OpError{Op: "receive", Provider: e.d.net.name, Addr: m.from, Err: err}
	case n < len(m.bytes):
		c.Err = &provider.OpError{Op: "receive", Provider: e.d.net.name, Addr: m.from, Err: provider.ErrTruncated}
	}
	e.d.stats.Received++
	e.finish(e.recv, e.counters.Recv, op, c)
}

func (e *endpoint) receive(op provider.Op, lane int, kind provider.Kind) error {
	e.d.net.mu.Lock()
	defer e.d.net.mu.Unlock()
	if op.Flags&(provider.Peek|provider.Claim|provider.Multi|provider.Directed) != 0 {
		return provider.ErrNotSupported
	}
	if err := e.begin(kind, &op, e.recv); err != nil {
		return err
	}
	i := slices.IndexFunc(e.arrived[lane], func(m message) bool { return lane == 0 || (op.Tag^m.tag)&^op.Ignore == 0 })
	if i < 0 {
		e.posted[lane] = append(e.posted[lane], op)
		return nil
	}
	m := e.arrived[lane][i]
	e.arrived[lane] = slices.Delete(e.arrived[lane], i, i+1)
	e.take(&op, m, lane)
	return nil
}

func (e *endpoint) Read(op provider.Op) error {
	return e.move(op, provider.ReadDone, provider.PeerRead, e.counters.Read, func(there []byte) error {
		_, err := e.scatter(&op, there)
		return err
	})
}

func (e *endpoint) Write(op provider.Op) error {
	return e.move(op, provider.WriteDone, provider.PeerWrite, e.counters.Write, func(there []byte) error {
		b, err := e.gather(&op)
		if err != nil {
			return err
		}
		copy(there, b)
		if to, err := e.d.end(op.Peer); err == nil && op.Flags.Has(provider.RemoteData) {
			to.recv.reserved++
			to.recv.push(provider.Completion{
				Kind: provider.RemoteWrite, Flags: provider.HasData, Len: uint64(op.Len()), Data: op.Data, Source: to.d.peer(e.addr),
			})
		}
		return nil
	})
}

func (e *endpoint) move(op provider.Op, kind provider.Kind, a provider.Access, c provider.Counter, transfer func(there []byte) error) error {
	e.d.net.mu.Lock()
	defer e.d.net.mu.Unlock()
	if err := e.begin(kind, &op, e.send); err != nil {
		return err
	}
	if len(op.Remotes) > 0 {
		op.Key, op.Offset = op.Remotes[0].Key, op.Remotes[0].Offset
	}
	there, err := e.d.reach(op.Peer, op.Key, op.Offset, uint64(op.Len()), a)
	if err == nil {
		err = transfer(there)
	}
	e.finish(e.send, c, &op, provider.Completion{Context: op.Context, Kind: kind, Len: uint64(op.Len()), Source: op.Peer, Err: err})
	return nil
}

func (e *endpoint) Atomic(provider.Atomic) error { return provider.ErrNotSupported }

func (e *endpoint) Cancel(context uint64) bool {
	e.d.net.mu.Lock()
	defer e.d.net.mu.Unlock()
	return e.end(provider.ErrCancelled, func(op provider.Op) bool { return op.Context == context })
}

// end completes the posted receives that match, and says whether there were any.
func (e *endpoint) end(why error, match func(provider.Op) bool) bool {
	any := false
	for lane, kind := range []provider.Kind{provider.RecvDone, provider.TRecvDone} {
		e.posted[lane] = slices.DeleteFunc(e.posted[lane], func(op provider.Op) bool {
			if !match(op) {
				return false
			}
			any = true
			e.finish(e.recv, e.counters.Recv, &op, provider.Completion{Context: op.Context, Kind: kind, Err: why})
			return true
		})
	}
	return any
}

func (e *endpoint) Close() error {
	e.d.net.mu.Lock()
	defer e.d.net.mu.Unlock()
	e.close()
	return nil
}

func (e *endpoint) close() {
	if e.closed {
		return
	}
	e.closed = true
	delete(e.d.net.ends, e.addr)
	e.end(provider.ErrClosed, func(provider.Op) bool { return true })
}
