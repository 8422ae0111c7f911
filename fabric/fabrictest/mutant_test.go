package fabrictest

import (
	"context"
	"slices"
	"sync"

	"github.com/weft-fabric/weft/fabric/provider"
	"github.com/weft-fabric/weft/memmon"
)

// mutant breaks a provider. Each field may be nil: then that is left alone. They may be called from any
// goroutine.
type mutant struct {
	info   func(i *provider.Info)
	config func(c *provider.DomainConfig)
	opened func(d provider.Domain)                    // after a domain was opened
	ep     func(c *provider.EndpointConfig)           // before an endpoint is opened
	cq     func(c *provider.CQConfig)                 // before a queue is opened
	post   func(p *posting) error                     // instead of a post; p.forward is the post
	atomic func(a *provider.Atomic)                   // before an atomic
	done   func(c *provider.Completion) int           // for each completion: how often it is delivered
	read   func(q provider.CompletionQueue)           // before each Read or Wait
	batch  func(c []provider.Completion)              // for each batch
	room   func() bool                                // whether a Wait returns for room
	ready  func() <-chan struct{}                     // instead of the queue's channel
	fd     func() (int, error)                        // instead of the queue's descriptor
	try    func(real bool) bool                       // what TryWait returns
	signal func(q provider.CompletionQueue)           // instead of Signal
	insert func(p provider.Peer) provider.Peer        // what Insert returns
	stats  func(s *provider.Stats)                    // what Stats returns
	value  func(v uint64) uint64                      // what Counter.Value returns
	alloc  func(b []byte)                             // fresh memory
	free   func(b []byte)                             // memory that is taken back
	view   func(b []byte) []byte                      // bytes of a view
	shut   func(what string, real func() error) error // instead of a Close of "domain" or "endpoint"
}

// posting is one post.
type posting struct {
	kind    provider.Kind
	op      provider.Op
	forward func(op provider.Op) error
}

// wrap is the mutant as a wrap.
func (m *mutant) wrap() *Wrap {
	return &Wrap{Name: "mutant", Provider: func(p provider.Provider) provider.Provider { return &mutProvider{p, m} }}
}

type mutProvider struct {
	provider.Provider
	m *mutant
}

func (p *mutProvider) Discover(ctx context.Context) ([]provider.Info, error) {
	infos, err := p.Provider.Discover(ctx)
	for i := range infos {
		if p.m.info != nil {
			p.m.info(&infos[i])
		}
	}
	return infos, err
}

func (p *mutProvider) OpenDomain(info provider.Info, c provider.DomainConfig) (provider.Domain, error) {
	if p.m.config != nil {
		p.m.config(&c)
	}
	d, err := p.Provider.OpenDomain(info, c)
	if err != nil {
		return nil, err
	}
	md := &mutDomain{Domain: d, m: p.m}
	if p.m.opened != nil {
		p.m.opened(md)
	}
	return md, nil
}

type mutDomain struct {
	provider.Domain
	m    *mutant
	once sync.Once
	err  error
}

func (d *mutDomain) OpenCompletionQueue(c provider.CQConfig) (provider.CompletionQueue, error) {
	if d.m.cq != nil {
		d.m.cq(&c)
	}
	q, err := d.Domain.OpenCompletionQueue(c)
	if err != nil {
		return nil, err
	}
	return &mutQueue{CompletionQueue: q, m: d.m}, nil
}

func (d *mutDomain) OpenCounter() (provider.Counter, error) {
	c, err := d.Domain.OpenCounter()
	if err != nil {
		return nil, err
	}
	return &mutCounter{c, d.m}, nil
}

func (d *mutDomain) OpenEndpoint(c provider.EndpointConfig) (provider.Endpoint, error) {
	if d.m.ep != nil {
		d.m.ep(&c)
	}
	c.Send, c.Recv = c.Send.(*mutQueue).CompletionQueue, c.Recv.(*mutQueue).CompletionQueue
	for _, k := range []*provider.Counter{&c.Counters.Send, &c.Counters.Recv, &c.Counters.Read, &c.Counters.Write, &c.Counters.RemoteWrite} {
		if *k != nil {
			*k = (*k).(*mutCounter).Counter
		}
	}
	ep, err := d.Domain.OpenEndpoint(c)
	if err != nil {
		return nil, err
	}
	return &mutEndpoint{Endpoint: ep, m: d.m}, nil
}

func (d *mutDomain) Insert(a provider.Address) (provider.Peer, error) {
	p, err := d.Domain.Insert(a)
	if err == nil && d.m.insert != nil {
		p = d.m.insert(p)
	}
	return p, err
}

func (d *mutDomain) Alloc(n int, a provider.Access) (provider.Memory, error) {
	mem, err := d.Domain.Alloc(n, a)
	if err != nil {
		return nil, err
	}
	if d.m.alloc != nil {
		d.m.alloc(mem.Bytes())
	}
	return &mutMemory{mem, d.m}, nil
}

func (d *mutDomain) Register(k memmon.Kind, a provider.Access) (provider.Memory, error) {
	mem, err := d.Domain.Register(k, a)
	if err != nil {
		return nil, err
	}
	return &mutMemory{mem, d.m}, nil
}

func (d *mutDomain) View(ctx context.Context, p provider.Peer, k provider.Key, offset uint64, n int) (provider.View, error) {
	v, err := d.Domain.View(ctx, p, k, offset, n)
	if err != nil || d.m.view == nil {
		return v, err
	}
	return &mutView{v, d.m.view(v.Bytes())}, nil
}

func (d *mutDomain) Stats() provider.Stats {
	s := d.Domain.Stats()
	if d.m.stats != nil {
		d.m.stats(&s)
	}
	return s
}

func (d *mutDomain) Close() error {
	if d.m.shut == nil {
		return d.Domain.Close()
	}
	d.once.Do(func() { d.err = d.m.shut("domain", d.Domain.Close) })
	return d.err
}

type mutView struct {
	provider.View
	b []byte
}

func (v *mutView) Bytes() []byte { return v.b }

type mutMemory struct {
	provider.Memory
	m *mutant
}

func (m *mutMemory) Close() error {
	if m.m.free != nil {
		m.m.free(m.Bytes())
	}
	return m.Memory.Close()
}

type mutCounter struct {
	provider.Counter
	m *mutant
}

func (c *mutCounter) Value() uint64 {
	v := c.Counter.Value()
	if c.m.value != nil {
		v = c.m.value(v)
	}
	return v
}

type mutQueue struct {
	provider.CompletionQueue
	m *mutant

	mu   sync.Mutex
	more []provider.Completion // delivered once more
}

func (q *mutQueue) Read(c []provider.Completion) (int, error) {
	if q.m.read != nil {
		q.m.read(q)
	}
	if n := q.rest(c); n > 0 {
		return n, nil
	}
	n, err := q.CompletionQueue.Read(c)
	return q.pass(c[:n]), err
}

func (q *mutQueue) Wait(ctx context.Context, c []provider.Completion) (int, error) {
	if q.m.read != nil {
		q.m.read(q)
	}
	if n := q.rest(c); n > 0 {
		return n, nil
	}
	for {
		k, err := q.CompletionQueue.Wait(ctx, c)
		n := q.pass(c[:k])
		if n > 0 || err != nil || k == 0 && (q.m.room == nil || q.m.room()) {
			return n, err
		}
	}
}

func (q *mutQueue) rest(c []provider.Completion) int {
	q.mu.Lock()
	defer q.mu.Unlock()
	n := copy(c, q.more)
	q.more = q.more[n:]
	return n
}

// pass lets the mutant have its way with completions; it returns how many are left.
func (q *mutQueue) pass(c []provider.Completion) int {
	if q.m.batch != nil {
		q.m.batch(c)
	}
	if q.m.done == nil {
		return len(c)
	}
	n := 0
	for i := range c {
		times := q.m.done(&c[i])
		if times > 0 {
			c[n] = c[i]
			n++
		}
		for range times - 1 {
			q.mu.Lock()
			q.more = append(q.more, c[i])
			q.mu.Unlock()
		}
	}
	return n
}

func (q *mutQueue) Signal() {
	if q.m.signal != nil {
		q.m.signal(q.CompletionQueue)
		return
	}
	q.CompletionQueue.Signal()
}

func (q *mutQueue) Ready() <-chan struct{} {
	if q.m.ready != nil {
		return q.m.ready()
	}
	return q.CompletionQueue.Ready()
}

func (q *mutQueue) Descriptor() (int, error) {
	fd, err := q.CompletionQueue.Descriptor()
	if q.m.fd != nil {
		return q.m.fd()
	}
	return fd, err
}

func (q *mutQueue) TryWait() bool {
	ok := q.CompletionQueue.TryWait()
	if q.m.try != nil {
		ok = q.m.try(ok)
	}
	return ok
}

type mutEndpoint struct {
	provider.Endpoint
	m    *mutant
	once sync.Once
	err  error
}

func (e *mutEndpoint) Close() error {
	if e.m.shut == nil {
		return e.Endpoint.Close()
	}
	e.once.Do(func() { e.err = e.m.shut("endpoint", e.Endpoint.Close) })
	return e.err
}

func unwrap(op *provider.Op) {
	if m, ok := op.Local.Memory.(*mutMemory); ok {
		op.Local.Memory = m.Memory
	}
	op.Locals = slices.Clone(op.Locals)
	for i := range op.Locals {
		if m, ok := op.Locals[i].Memory.(*mutMemory); ok {
			op.Locals[i].Memory = m.Memory
		}
	}
}

func (e *mutEndpoint) do(k provider.Kind, op provider.Op, real func(provider.Op) error) error {
	unwrap(&op)
	if e.m.post == nil {
		return real(op)
	}
	return e.m.post(&posting{k, op, real})
}

func (e *mutEndpoint) Send(op provider.Op) error { return e.do(provider.SendDone, op, e.Endpoint.Send) }
func (e *mutEndpoint) Recv(op provider.Op) error { return e.do(provider.RecvDone, op, e.Endpoint.Recv) }
func (e *mutEndpoint) SendTagged(op provider.Op) error {
	return e.do(provider.TSendDone, op, e.Endpoint.SendTagged)
}
func (e *mutEndpoint) RecvTagged(op provider.Op) error {
	return e.do(provider.TRecvDone, op, e.Endpoint.RecvTagged)
}
func (e *mutEndpoint) Read(op provider.Op) error { return e.do(provider.ReadDone, op, e.Endpoint.Read) }
func (e *mutEndpoint) Write(op provider.Op) error {
	return e.do(provider.WriteDone, op, e.Endpoint.Write)
}

func (e *mutEndpoint) Atomic(a provider.Atomic) error {
	unwrap(&a.Op)
	if e.m.atomic != nil {
		e.m.atomic(&a)
	}
	return e.Endpoint.Atomic(a)
}
