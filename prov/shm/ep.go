package shm

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"syscall"

	"github.com/weft-fabric/weft/fabric/provider"
	"github.com/weft-fabric/weft/internal/provutil"
	"github.com/weft-fabric/weft/internal/sys"
)

const (
	defaultDepth      = 1024
	maxDepth          = 1 << 16
	defaultUnexpected = 1 << 20
	defaultMinMulti   = 64
	maxStrangers      = 256 // connections that have not said who they are
)

// endpoint sends and receives. The domain's lock guards it.
type endpoint struct {
	d       *domain
	addr    address
	text    provider.Address
	inc     uint64
	matcher provutil.Matcher[kept]

	sendCQ, recvCQ *provutil.CQ
	counters       [provider.RemoteWrite + 1]*provutil.Counter // by kind
	depth          int
	posted         int // operations towards peers that have not ended
	receives       int // posted receives
	short          bool
	unexpected     uint64
	minMulti       int
	copying        int // copies that run outside of the lock

	listeners []*listener
	strangers []*stranger // oldest first
	pairs     []*pair
	closed    bool
	closing   bool // a close has begun and not ended
}

var _ provider.Endpoint = (*endpoint)(nil)

// OpenEndpoint opens an endpoint and listens at its name. A name of a process that is dying is waited for.
func (d *domain) OpenEndpoint(c provider.EndpointConfig) (provider.Endpoint, error) {
	ep, err := d.openEndpoint(c)
	if err != nil && c.Name != "" && errors.Is(err, syscall.EADDRINUSE) {
		ep, err = d.openAfter(c, err)
	}
	if err != nil {
		return nil, fail("open endpoint", "", err) // which says the name
	}
	return ep, nil
}

func (d *domain) openEndpoint(c provider.EndpointConfig) (*endpoint, error) {
	d.core.Lock()
	defer d.core.Unlock()
	if d.closed {
		return nil, provider.ErrClosed
	}
	ep := &endpoint{d: d, depth: c.Depth, unexpected: c.Unexpected, minMulti: c.MinMultiRecv}
	if err := ep.resolve(c); err != nil {
		return nil, err
	}
	for ep.inc == 0 {
		ep.inc = rand.Uint64()
	}
	ep.addr = address{name: c.Name, boot: d.boot.String(), inc: ep.inc, net: d.net, path: d.opts.folder, uid: d.uid, has: true}
	if err := ep.listen(c.Name); err != nil {
		return nil, err
	}
	ep.text = provider.Address(ep.addr.String())
	if err := ep.attach(); err != nil {
		ep.unlisten()
		return nil, err
	}
	d.eps = append(d.eps, ep)
	return ep, nil
}

// resolve checks the configuration and fills in what it leaves open.
func (ep *endpoint) resolve(c provider.EndpointConfig) (err error) {
	core := ep.d.core
	if ep.sendCQ, err = provutil.OwnCQ(core, c.Send); err != nil {
		return err
	}
	if ep.recvCQ, err = provutil.OwnCQ(core, c.Recv); err != nil {
		return err
	}
	k := c.Counters
	for kind, n := range [...]provider.Counter{
		provider.SendDone: k.Send, provider.TSendDone: k.Send, provider.RecvDone: k.Recv, provider.TRecvDone: k.Recv, provider.ReadDone: k.Read,
		provider.WriteDone: k.Write, provider.AtomicDone: k.Write, provider.RemoteWrite: k.RemoteWrite,
	} {
		if n == nil {
			continue
		}
		if ep.counters[kind], err = provutil.OwnCounter(core, n); err != nil {
			return err
		}
	}
	for _, v := range []*int{&ep.depth, &ep.minMulti} {
		if *v < 0 {
			return fmt.Errorf("a depth or size of %d: %w", *v, provider.ErrInvalid)
		}
	}
	if ep.depth == 0 {
		ep.depth = defaultDepth
	}
	if ep.depth > maxDepth {
		return fmt.Errorf("depth %d, the limit is %d: %w", ep.depth, maxDepth, provider.ErrTooLong)
	}
	if ep.unexpected == 0 {
		ep.unexpected = defaultUnexpected
	}
	if ep.minMulti == 0 {
		ep.minMulti = defaultMinMulti
	}
	if len(c.Name) > maxName {
		return fmt.Errorf("a name of %d bytes, the limit is %d: %w", len(c.Name), maxName, provider.ErrInvalid)
	}
	if err := checkName(c.Name); err != nil {
		return fmt.Errorf("%w: %w", err, provider.ErrInvalid)
	}
	return nil
}

func (ep *endpoint) attach() error {
	for i, q := range []*provutil.CQ{ep.sendCQ, ep.recvCQ} {
		if q == nil {
			continue
		}
		if err := q.Attach(); err != nil {
			if i == 1 && ep.sendCQ != nil {
				ep.sendCQ.Detach()
			}
			return err
		}
	}
	return nil
}

func (ep *endpoint) detach() {
	for _, q := range []*provutil.CQ{ep.sendCQ, ep.recvCQ} {
		if q != nil {
			q.Detach()
		}
	}
}

// listen binds the name; a random one is drawn again if it is taken.
func (ep *endpoint) listen(name string) error {
	for {
		if name == "" {
			ep.addr.name = strconv.FormatUint(rand.Uint64(), 16)
		}
		err := ep.bind()
		if err == nil || name != "" || !errors.Is(err, provider.ErrBusy) {
			return err
		}
	}
}

// Address is where others reach it.
func (ep *endpoint) Address() provider.Address { return ep.text }

// count counts a completion, at the counter of its kind.
func (ep *endpoint) count(c *provider.Completion) { ep.counters[c.Kind].Done(c.Err) }

// push queues the completion in d.scratch in a place that was reserved, or, if it is quiet, gives the place back.
func (ep *endpoint) push(q *provutil.CQ, quiet bool) {
	switch c := &ep.d.scratch; {
	case q == nil:
	case quiet && c.Err == nil:
		q.Release(1)
	default:
		q.Push(c)
	}
}

// Close ends all operations with ErrClosed.
func (ep *endpoint) Close() error {
	d := ep.d
	d.core.Lock()
	defer d.core.Unlock()
	ep.close()
	return nil
}

func (ep *endpoint) close() {
	d := ep.d
	if ep.closed {
		for ep.closing {
			d.copied.Wait()
		}
		return
	}
	d.Flush()
	ep.closed, ep.closing = true, true
	d.closing++
	d.eps = without(d.eps, ep)
	ep.unlisten()
	for len(ep.strangers) > 0 {
		ep.strangers[0].close(refusal{code: refuseClosed, text: "the endpoint closes"})
	}
	for len(ep.pairs) > 0 {
		ep.pairs[0].end(provider.ErrClosed, &refusal{code: refuseClosed, text: "the endpoint was closed"})
	}
	ep.matcher.EachRecv(func(r *recv) { ep.endRecv(r, provider.ErrClosed) })
	ep.matcher.EachMessage(func(m *waiting) {
		ep.matcher.Take(m)
		ep.discard(m)
	})
	d.waitCopies(ep)
	ep.detach()
	ep.closing = false
	d.closing--
	d.copied.Broadcast()
	d.reap()
}

// Cancel takes back a posted receive or an operation that has not started.
func (ep *endpoint) Cancel(context uint64) bool {
	ep.d.core.Lock()
	defer ep.d.core.Unlock()
	if r := ep.matcher.Posted(context); r != nil {
		ep.endRecv(r, provider.ErrCancelled)
		return true
	}
	for _, p := range ep.pairs {
		if p.cancel(context) {
			return true
		}
	}
	return false
}

// socketName is the abstract name that an endpoint's name stands for: names of different users do not meet.
func socketName(uid uint32, name string) sys.UnixAddress {
	s := "weft-shm-1/" + strconv.FormatUint(uint64(uid), 10) + "/" + name
	if len(s) > maxSocketName {
		s = "weft-shm-1/" + strconv.FormatUint(uint64(uid), 10) + "#" + digest(name)
	}
	return sys.UnixAddress{Name: s, Abstract: true}
}
