package fabric

import (
	"sync"

	"github.com/weft-fabric/weft/fabric/provider"
)

// EndpointConfig says how an endpoint is to be.
type EndpointConfig struct {
	// Name is what others reach it by; "" means a random one. Letters, digits, "-", "_" and "." go with
	// every provider; what else does, and how long it may be, its page in docs/prov says, and ErrInvalid. A name that another endpoint
	// has is ErrBusy.
	Name string
	// Send and Recv take the completions, of what this side starts and of what it receives. They may be the same queue. Both
	// are needed: errors always make completions.
	Send, Recv *CompletionQueue
	// Counters count completions as well, or, with Quiet, instead. Each may be nil.
	Counters Counters
	// Depth bounds the outstanding operations of each direction; 0 means 1024. More get ErrAgain.
	Depth int
	// Unexpected bounds the bytes of messages that wait here for a receive, for each peer; 0 means 1 MiB. Beyond it the
	// peer waits, and gets ErrAgain.
	Unexpected uint64
	// MinMultiRecv is when the buffer of a Multi receive is used up: fewer bytes than this are left; 0 means 64.
	MinMultiRecv int
}

// Counters of an endpoint, by what they count.
type Counters struct {
	Send, Recv  *Counter // messages and tagged messages
	Read        *Counter // reads, and atomic operations with a result
	Write       *Counter // writes, and the other atomic operations
	RemoteWrite *Counter // writes of peers with RemoteData; of others nobody here hears
}

// Endpoint is a mailbox with an address: it sends and receives messages, and reads and writes the memory of peers.
//
// Each post returns at once. Without an error, its completion will come to the queue, exactly once, and until it is read
// the buffers belong to the fabric (with Inject, they are the caller's again when the post returns). With an error
// nothing was started and no completion will come. ErrAgain means that completions must be read before there is room for more.
//
// Besides Quiet (no completion unless it fails) and More (another post follows at once), these flags go with these calls:
//
//	Send, SendTagged, Write   RemoteData, Inject, DeliveryComplete, Fence
//	Read                      Fence
//	Atomic                    Inject (without result or comparison), DeliveryComplete, Fence
//	Recv                      Directed, Multi (not with Quiet)
//	RecvTagged                Directed, Peek (not with Quiet), Claim, Discard
type Endpoint struct {
	domain *Domain
	inner  provider.Endpoint
	queues [2]*CompletionQueue // in use; not owned
	again  [numCalls]*OpError  // made before, because ErrAgain is no exception on a busy endpoint

	closing  sync.Once
	closeErr error
}

// OpenEndpoint makes an endpoint that is ready at once. It fails with ErrInvalid (the configuration), ErrBusy (the name), ErrTooLong (the
// depth), ErrNoMemory (descriptors, or what the system has) and ErrClosed (the domain, a queue or a counter of it).
func (d *Domain) OpenEndpoint(c EndpointConfig) (*Endpoint, error) {
	const op = "open endpoint"
	inner, err := d.endpointConfig(c)
	if err != nil {
		return nil, d.fail(op, err)
	}
	e := &Endpoint{domain: d, queues: [2]*CompletionQueue{c.Send, c.Recv}}
	for i := range e.again {
		e.again[i] = &OpError{Op: calls[i].name, Provider: d.name, Err: ErrAgain}
	}
	if err := d.begin(); err != nil {
		return nil, d.fail(op, err)
	}
	defer d.opening.Done()
	if err := c.Send.retain(); err != nil {
		return nil, d.fail(op, err)
	}
	if err := c.Recv.retain(); err != nil {
		c.Send.release()
		return nil, d.fail(op, err)
	}
	if e.inner, err = d.inner.OpenEndpoint(inner); err != nil {
		c.Send.release()
		c.Recv.release()
		return nil, d.fail(op, err)
	}
	adopt(d, d.ends, e)
	return e, nil
}

// endpointConfig checks a configuration and turns it into the provider's.
func (d *Domain) endpointConfig(c EndpointConfig) (provider.EndpointConfig, error) {
	p := provider.EndpointConfig{Name: c.Name, Depth: c.Depth, Unexpected: c.Unexpected, MinMultiRecv: c.MinMultiRecv}
	switch {
	case c.Send == nil || c.Recv == nil:
		return p, invalid("an endpoint needs a queue for sends and one for receives; they may be the same")
	case c.Send.domain != d || c.Recv.domain != d:
		return p, invalid("a completion queue is of another domain")
	case c.Depth < 0 || c.MinMultiRecv < 0:
		return p, invalid("depth %d, smallest rest of a buffer %d", c.Depth, c.MinMultiRecv)
	}
	p.Send, p.Recv = c.Send.inner, c.Recv.inner
	for _, pair := range []struct {
		from *Counter
		to   *provider.Counter
	}{
		{c.Counters.Send, &p.Counters.Send}, {c.Counters.Recv, &p.Counters.Recv}, {c.Counters.Read, &p.Counters.Read},
		{c.Counters.Write, &p.Counters.Write}, {c.Counters.RemoteWrite, &p.Counters.RemoteWrite},
	} {
		if pair.from == nil {
			continue
		}
		if pair.from.domain != d {
			return p, invalid("a counter is of another domain")
		}
		if !pair.from.open() {
			return p, closed("counter")
		}
		*pair.to = pair.from.inner
	}
	return p, nil
}

// Address is where others reach the endpoint.
func (e *Endpoint) Address() Address { return e.inner.Address() }

// Send sends a message to op.Peer.
func (e *Endpoint) Send(op Op) error {
	err := e.domain.check.post(callSend, &op)
	if err == nil {
		err = e.inner.Send(op)
	}
	return e.result(callSend, op.Peer, err)
}

// Recv posts a buffer for a message; with Directed, of op.Peer. One that is longer than the buffer ends with ErrTruncated.
func (e *Endpoint) Recv(op Op) error {
	err := e.domain.check.post(callRecv, &op)
	if err == nil {
		err = e.inner.Recv(op)
	}
	return e.result(callRecv, op.Peer, err)
}

// SendTagged sends a message with op.Tag, which meets only tagged receives.
func (e *Endpoint) SendTagged(op Op) error {
	err := e.domain.check.post(callSendTagged, &op)
	if err == nil {
		err = e.inner.SendTagged(op)
	}
	return e.result(callSendTagged, op.Peer, err)
}

// RecvTagged posts a buffer for a message whose tag equals op.Tag in all bits but those of op.Ignore. With Peek it looks for
// one that has arrived, and completes at once.
func (e *Endpoint) RecvTagged(op Op) error {
	err := e.domain.check.post(callRecvTagged, &op)
	if err == nil {
		err = e.inner.RecvTagged(op)
	}
	return e.result(callRecvTagged, op.Peer, err)
}

// Read reads memory of op.Peer into the local buffer. The peer's program takes no part in it.
func (e *Endpoint) Read(op Op) error {
	err := e.domain.check.post(callRead, &op)
	if err == nil {
		err = e.inner.Read(op)
	}
	return e.result(callRead, op.Peer, err)
}

// Write writes the local buffer into memory of op.Peer. With RemoteData the peer gets a completion.
func (e *Endpoint) Write(op Op) error {
	err := e.domain.check.post(callWrite, &op)
	if err == nil {
		err = e.inner.Write(op)
	}
	return e.result(callWrite, op.Peer, err)
}

// Atomic changes elements in memory of op.Peer, which needs PeerWrite, each atomically against every other Atomic. The operands may
// lie in several segments, which are taken as one; the elements at the peer in several, each of whole elements. Of an operation that
// fails, some elements may have been changed; then the result is not to be used.
func (e *Endpoint) Atomic(op Atomic) error {
	err := e.domain.check.atomic(&op)
	if err == nil {
		err = e.inner.Atomic(op)
	}
	return e.result(callAtomic, op.Peer, err)
}

// result gives an error the form that all have.
func (e *Endpoint) result(c call, p Peer, err error) error {
	if err == nil {
		return nil
	}
	if err == ErrAgain { //nolint:errorlint // only the bare one lacks the form
		return e.again[c]
	}
	return e.domain.failPeer(calls[c].name, p, err)
}

// Cancel takes back the posted receive, or the operation that has not started, with this context; it completes with
// ErrCancelled. False if there is none: it has ended, or cannot be stopped any more, and its completion says how it went.
func (e *Endpoint) Cancel(context uint64) bool { return e.inner.Cancel(context) }

// Close ends all operations of the endpoint with ErrClosed, in no order in particular. Their completions can be read until the queue closes. More than once
// is harmless.
func (e *Endpoint) Close() error {
	e.closing.Do(func() {
		e.closeErr = e.domain.fail("close endpoint", e.inner.Close())
		for _, q := range e.queues {
			q.release()
		}
		forget(e.domain, e.domain.ends, e)
	})
	return e.closeErr
}
