package hook

import (
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/weft-fabric/weft/fabric/provider"
)

// endpoint passes on, by embedding, what it has nothing to add to: its address.
type endpoint struct {
	provider.Endpoint
	d          *domain
	send, recv *queue

	mu     sync.Mutex
	held   []post // dropped, in the order in which they came
	closed bool
}

// post is a dropped operation.
type post struct {
	kind    provider.Kind
	context uint64
	peer    provider.Peer
	q       *queue
}

func (e *endpoint) Send(op provider.Op) error {
	t, done, err := e.before(Send, provider.SendDone, e.send, &op)
	if done {
		return err
	}
	return e.after(t, e.Endpoint.Send(op))
}

func (e *endpoint) Recv(op provider.Op) error {
	t, done, err := e.before(Recv, provider.RecvDone, e.recv, &op)
	if done {
		return err
	}
	return e.after(t, e.Endpoint.Recv(op))
}

func (e *endpoint) SendTagged(op provider.Op) error {
	t, done, err := e.before(SendTagged, provider.TSendDone, e.send, &op)
	if done {
		return err
	}
	return e.after(t, e.Endpoint.SendTagged(op))
}

func (e *endpoint) RecvTagged(op provider.Op) error {
	t, done, err := e.before(RecvTagged, provider.TRecvDone, e.recv, &op)
	if done {
		return err
	}
	return e.after(t, e.Endpoint.RecvTagged(op))
}

func (e *endpoint) Read(op provider.Op) error {
	t, done, err := e.before(Read, provider.ReadDone, e.send, &op)
	if done {
		return err
	}
	return e.after(t, e.Endpoint.Read(op))
}

func (e *endpoint) Write(op provider.Op) error {
	t, done, err := e.before(Write, provider.WriteDone, e.send, &op)
	if done {
		return err
	}
	return e.after(t, e.Endpoint.Write(op))
}

func (e *endpoint) Atomic(op provider.Atomic) error {
	t, done, err := e.before(Atomic, provider.AtomicDone, e.send, &op.Op)
	if done {
		return err
	}
	return e.after(t, e.Endpoint.Atomic(op))
}

// try is a post on its way to the provider.
type try struct {
	kind    provider.Kind
	context uint64
	peer    provider.Peer
	timed   *queue // nil: not remembered
}

// before asks the rules. done means that the provider does not see the post, which ends with err.
func (e *endpoint) before(at Point, kind provider.Kind, q *queue, op *provider.Op) (t try, done bool, err error) {
	v := e.d.hook.faults.at(at)
	pause(v.delay)
	if v.kill {
		e.d.kill(op.Peer)
	}
	if a, dead := e.d.dead(op.Peer); dead {
		return t, true, e.refuse(kind, op, e.d.gone(kind.String(), a))
	}
	if v.err != nil {
		if errors.Is(v.err, provider.ErrAgain) {
			e.d.again.Add(1)
			if q != nil {
				q.makeRoom()
			}
		}
		return t, true, e.refuse(kind, op, e.wrap(kind, op.Peer, v.err))
	}
	if v.drop && e.hold(kind, q, op) {
		e.d.hook.stats.on(kind, func(s *OpStats) { s.Posted++; s.Dropped++ })
		e.trace(kind, op, nil)
		return t, true, nil
	}
	t = try{kind: kind, context: op.Context, peer: op.Peer}
	if q != nil && !op.Flags.Has(provider.Quiet) {
		t.timed = q
		var a provider.Address
		if receives(kind) && op.Flags.Has(provider.Directed) {
			a, _ = e.d.Domain.Address(op.Peer) // who is not known has none, and the post is refused
		}
		q.starts.add(kind, op, a, time.Now()) // before the post: its completion may be read before it returns
	}
	return t, false, nil
}

// after counts a post that the provider has seen.
func (e *endpoint) after(t try, err error) error {
	if err != nil {
		if t.timed != nil {
			t.timed.starts.remove(t.kind, t.context)
		}
		if a, dead := e.d.dead(t.peer); dead {
			err = e.d.gone(t.kind.String(), a) // killed meanwhile
		}
	}
	e.d.hook.stats.on(t.kind, func(s *OpStats) {
		if err != nil {
			s.Refused++
		} else {
			s.Posted++
		}
	})
	return err
}

// trace tells of a post that the provider never saw. It gets a copy, so that the operation of one that passes stays off the heap.
func (e *endpoint) trace(kind provider.Kind, op *provider.Op, err error) {
	if t := e.d.tracer.Post; t != nil {
		c := *op
		t(kind, &c, err)
	}
}

// refuse counts a post that the provider does not see.
func (e *endpoint) refuse(kind provider.Kind, op *provider.Op, err error) error {
	e.d.hook.stats.on(kind, func(s *OpStats) { s.Refused++ })
	e.trace(kind, op, err)
	return err
}

func (e *endpoint) wrap(kind provider.Kind, p provider.Peer, err error) error {
	var a provider.Address
	if p != 0 {
		a, _ = e.d.Domain.Address(p) // who is not known has none
	}
	return e.d.hook.opError(kind.String(), a, err)
}

// hold keeps a dropped post for its end.
func (e *endpoint) hold(kind provider.Kind, q *queue, op *provider.Op) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if q == nil || e.closed || len(e.held) >= held {
		return false
	}
	e.held = append(e.held, post{kind: kind, context: op.Context, peer: op.Peer, q: q})
	return true
}

// finish ends the dropped posts that match, and says whether there were any. a is the peer that this is about, if it is about one.
func (e *endpoint) finish(a provider.Address, why error, match func(*post) bool) bool {
	var over []post
	e.mu.Lock()
	e.held = slices.DeleteFunc(e.held, func(p post) bool {
		if !match(&p) {
			return false
		}
		over = append(over, p)
		return true
	})
	e.mu.Unlock()
	for _, p := range over {
		c := provider.Completion{Context: p.context, Kind: p.kind, Err: e.d.hook.opError(p.kind.String(), a, why)}
		if p.kind != provider.RecvDone && p.kind != provider.TRecvDone {
			c.Source = p.peer
		}
		if t := e.d.tracer.Complete; t != nil {
			t(&c)
		}
		p.q.emit(c)
	}
	return len(over) > 0
}

func (e *endpoint) Cancel(context uint64) bool {
	one := true // of several with one context, as a provider does
	if e.finish("", provider.ErrCancelled, func(p *post) bool {
		hit := one && p.context == context
		one = one && !hit
		return hit
	}) {
		return true
	}
	return e.Endpoint.Cancel(context)
}

func (e *endpoint) Close() error {
	err := e.Endpoint.Close()
	e.ended()
	e.d.mu.Lock()
	defer e.d.mu.Unlock()
	delete(e.d.ends, e)
	return err
}

// ended ends what was dropped, when the endpoint has closed.
func (e *endpoint) ended() {
	e.mu.Lock()
	e.closed = true
	e.mu.Unlock()
	e.finish("", provider.ErrClosed, func(*post) bool { return true })
}
