package fabrictest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"sync"

	"github.com/weft-fabric/weft/fabric/provider"
	"github.com/weft-fabric/weft/memmon"
)

// agent is one side of a test: a domain with a queue and endpoints, and the buffers of the
// program that uses them. It does what requests say, in this process or as the child program. One
// goroutine at a time gives it requests.
type agent struct {
	o opener

	spec     openSpec
	d        domain
	q        queue
	eps      []endpoint
	counters counters
	bufs     []*buffer
	views    []view
	col      *collector

	stop    context.CancelFunc // ends the collecting
	stopped sync.WaitGroup
	storms  *stormEnd
	stormed *slots // of the last storm
	events  events
	log     journal
	spins   spins

	// ballast is resident memory of a child that will be killed: the kernel tears it down before others hear
	// of the death.
	ballast []byte
}

// buffer is memory of the program: raw, or registered, or from an arena.
type buffer struct {
	b   []byte
	mem memory // nil for raw bytes
}

var errNothing = errors.New("the agent has no such thing")

// do carries a request out.
func (a *agent) do(r request) reply {
	var out reply
	if err := a.carry(r, &out); err != nil {
		out.Err = pack(err)
	}
	return out
}

func (a *agent) carry(r request, out *reply) error {
	if r.Verb == "open" {
		return a.open(*r.Open, out)
	}
	if a.d == nil && !slices.Contains([]string{"close", "usage", "spin", "stop-spin", "ballast", "descriptors"}, r.Verb) {
		return fmt.Errorf("%s: nothing is open: %w", r.Verb, errNothing)
	}
	for _, verbs := range []func(request, *reply) (bool, error){a.objects, a.memory, a.work, a.state} {
		if known, err := verbs(r, out); known {
			return err
		}
	}
	return fmt.Errorf("the agent does not know %q", r.Verb)
}

// open opens the domain. What was open before is closed.
func (a *agent) open(s openSpec, out *reply) error {
	if err := a.close(); err != nil {
		return err
	}
	a.spec = s
	c := provider.DomainConfig{Progress: s.Progress, Options: s.Options, Memory: s.Memory, Tracer: a.events.tracer()}
	if s.Log {
		c.Logger = slog.New(slog.NewTextHandler(&a.log, &slog.HandlerOptions{Level: slog.LevelInfo}))
	}
	d, err := a.o.open(c)
	if err != nil {
		return err
	}
	a.d, a.col = d, newCollector(&a.o)
	if a.q, err = d.OpenCompletionQueue(provider.CQConfig{Size: s.CQSize}); err != nil {
		return err
	}
	if s.Counters {
		if err := a.openCounters(); err != nil {
			return err
		}
	}
	for i := range max(s.Endpoints, 1) {
		name := s.Name
		if name != "" && i > 0 {
			name = fmt.Sprintf("%s-%d", name, i)
		}
		ep, err := d.OpenEndpoint(endpointConfig{
			Name: name, Send: a.q, Recv: a.q, Counters: a.counters,
			Depth: s.Depth, Unexpected: s.Unexpected, MinMultiRecv: s.MinMulti,
		})
		if err != nil {
			return err
		}
		a.eps = append(a.eps, ep)
		out.Addresses = append(out.Addresses, ep.Address())
	}
	a.startCollecting(s.Way)
	return nil
}

func (a *agent) startCollecting(w way) {
	ctx, cancel := context.WithCancel(context.Background())
	a.stop = cancel
	q, col := a.q, a.col
	a.stopped.Go(func() { col.collect(ctx, q, w) })
}

func (a *agent) openCounters() error {
	for _, c := range []*counter{
		&a.counters.Send, &a.counters.Recv, &a.counters.Read, &a.counters.Write, &a.counters.RemoteWrite,
	} {
		opened, err := a.d.OpenCounter()
		if err != nil {
			return err
		}
		*c = opened
	}
	return nil
}

// counter n of the five, in the order of provider.Counters.
func (a *agent) counter(n int) (counter, error) {
	c := [...]counter{a.counters.Send, a.counters.Recv, a.counters.Read, a.counters.Write, a.counters.RemoteWrite}
	if n < 0 || n >= len(c) || c[n] == nil {
		return nil, fmt.Errorf("counter %d: %w", n, errNothing)
	}
	return c[n], nil
}

// close closes all that is open, from the top down, and forgets it. Closing nothing is fine.
func (a *agent) close() error {
	if a.d == nil {
		return nil
	}
	a.storms.stop()
	a.storms.wait()
	a.quiet()
	var errs []error
	note := func(what string, err error) {
		if err != nil {
			errs = append(errs, fmt.Errorf("closing %s: %w", what, err))
		}
	}
	for _, v := range a.views {
		v.Release()
	}
	for _, b := range a.bufs {
		if b.mem != nil {
			note("memory", b.mem.Close())
		}
	}
	for _, ep := range a.eps {
		note("an endpoint", ep.Close())
	}
	for i := range 5 {
		if c, err := a.counter(i); err == nil {
			note("a counter", c.Close())
		}
	}
	if a.q != nil {
		note("the queue", a.q.Close())
	}
	note("the domain", a.d.Close())
	*a = agent{o: a.o}
	return errors.Join(errs...)
}

// quiet ends the agent's own calls of the domain.
func (a *agent) quiet() {
	if a.stop != nil {
		a.stop()
	}
	a.stopped.Wait()
}

// objects carries out what is about the domain's objects.
func (a *agent) objects(r request, out *reply) (bool, error) {
	var err error
	switch r.Verb {
	case "close":
		err = a.close()
	case "close-domain": // alone, with all below it still open
		err = a.d.Close()
	case "close-endpoint":
		err = a.eps[r.EP].Close()
	case "quiet":
		a.quiet()
	case "collect":
		a.quiet()
		a.startCollecting(way(r.N))
	case "insert":
		out.Peer, err = a.d.Insert(r.Address)
	case "address":
		var addr provider.Address
		addr, err = a.d.Address(r.Peer)
		out.Addresses = []provider.Address{addr}
	case "remove":
		err = a.d.Remove(r.Peer)
	default:
		return false, nil
	}
	return true, err
}

// memory carries out what is about buffers and views.
func (a *agent) memory(r request, out *reply) (bool, error) {
	var err error
	switch r.Verb {
	case "heap":
		err = a.heap(r, out)
	case "alloc":
		var m memory
		if m, err = a.d.Alloc(r.N, r.Access); err == nil {
			a.keep(&buffer{m.Bytes(), m}, out)
		}
	case "register":
		var m memory
		if m, err = a.d.Register(memmon.HeapBytes(make([]byte, r.N)), r.Access); err == nil {
			a.keep(&buffer{m.Bytes(), m}, out)
		}
	case "fill", "wrong", "set", "get":
		err = a.touch(r, out)
	case "unkey":
		var b *buffer
		if b, err = a.buffer(r.Buf); err == nil && b.mem != nil {
			m := b.mem
			b.mem = nil
			err = m.Close()
		}
	case "view", "view-wrong", "view-get", "poke", "crash", "release":
		err = a.viewing(r, out)
	default:
		return false, nil
	}
	return true, err
}

func (a *agent) keep(b *buffer, out *reply) {
	a.bufs = append(a.bufs, b)
	out.N = len(a.bufs) - 1
	if b.mem != nil {
		out.Key = b.mem.Key()
		if a.o.info.Memory.VirtualAddr {
			out.Base = addressOf(b.b)
		}
	}
}

// heap makes ordinary Go memory, which is registered only where the provider wants that.
func (a *agent) heap(r request, out *reply) error {
	b := &buffer{b: make([]byte, r.N)}
	if a.o.info.Memory.Local && r.N > 0 {
		m, err := a.d.Register(memmon.HeapBytes(b.b), 0)
		if err != nil {
			return err
		}
		b.mem = m
	}
	a.keep(b, out)
	return nil
}

func (a *agent) buffer(n int) (*buffer, error) {
	if n < 0 || n >= len(a.bufs) {
		return nil, fmt.Errorf("buffer %d: %w", n, errNothing)
	}
	return a.bufs[n], nil
}

// part returns n bytes of a buffer.
func (a *agent) part(buf, off, n int) ([]byte, *buffer, error) {
	b, err := a.buffer(buf)
	if err != nil {
		return nil, nil, err
	}
	if off < 0 || n < 0 || off > len(b.b)-n {
		return nil, nil, fmt.Errorf("bytes %d to %d of a buffer of %d: %w", off, off+n, len(b.b), errNothing)
	}
	return b.b[off : off+n], b, nil
}

// touch reads and writes a buffer, as the program would.
func (a *agent) touch(r request, out *reply) error {
	n := r.N
	if r.Verb == "set" {
		n = len(r.Bytes)
	}
	b, _, err := a.part(r.Buf, r.Off, n)
	if err != nil {
		return err
	}
	a.meet()
	defer a.meet()
	switch r.Verb {
	case "fill":
		fill(b, r.Seed, 0)
	case "wrong":
		out.N = wrong(b, r.Seed, 0)
	case "set":
		copy(b, r.Bytes)
	case "get":
		out.Bytes = append([]byte(nil), b...)
	}
	return nil
}

// meet takes a lock of the domain. That the test has ordered what we do after, or before, what the domain's engine does
// in this process is by way of another process, which the race detector does not see.
func (a *agent) meet() {
	if a.d != nil {
		_ = a.d.Stats()
	}
}

func (a *agent) segment(s seg) (provider.Segment, error) {
	b, whole, err := a.part(s.Buf, s.Off, s.N)
	if err != nil {
		return provider.Segment{}, err
	}
	if whole.mem == nil || s.Raw {
		return provider.Segment{Bytes: b}, nil
	}
	return whole.mem.Slice(s.Off, s.N), nil
}

// post starts an operation.
func (a *agent) post(n int, s opSpec) error {
	if n < 0 || n >= len(a.eps) {
		return fmt.Errorf("endpoint %d: %w", n, errNothing)
	}
	op := provider.Op{
		Peer: s.Peer, Key: s.Key, Offset: s.Offset, Remotes: s.Remotes, Tag: s.Tag, Ignore: s.Ignore, Data: s.Data,
		Flags: s.Flags, Context: s.Context,
	}
	for i, part := range s.Segs {
		segment, err := a.segment(part)
		if err != nil {
			return err
		}
		if i == 0 {
			op.Local = segment
		} else {
			op.Locals = append(op.Locals, segment)
		}
	}
	if s.Kind != provider.AtomicDone {
		return a.o.persist(func() error { return start(a.eps[n], s.Kind, op) })
	}
	at := provider.Atomic{Op: op, Code: s.Code, Type: s.Type}
	var err error
	if s.Compare != nil {
		if at.Compare, _, err = a.part(s.Compare.Buf, s.Compare.Off, s.Compare.N); err != nil {
			return err
		}
	}
	if s.Result != nil {
		if at.Result, _, err = a.part(s.Result.Buf, s.Result.Off, s.Result.N); err != nil {
			return err
		}
	}
	return a.o.persist(func() error { return a.eps[n].Atomic(at) })
}

// persist posts, and where the run wants it posts again what was refused, when it may be tried again.
func (o *opener) persist(post func() error) error {
	err := post()
	for left := 100; o.again && left > 0 && errors.Is(err, provider.ErrAgain); left-- {
		err = post()
	}
	return err
}

// start posts an operation by the kind of its completion.
func start(ep endpoint, k provider.Kind, op provider.Op) error {
	switch k {
	case provider.SendDone:
		return ep.Send(op)
	case provider.RecvDone:
		return ep.Recv(op)
	case provider.TSendDone:
		return ep.SendTagged(op)
	case provider.TRecvDone:
		return ep.RecvTagged(op)
	case provider.ReadDone:
		return ep.Read(op)
	case provider.WriteDone:
		return ep.Write(op)
	}
	return fmt.Errorf("nothing that can be posted ends with %v", k)
}

// addressOf is where b lies, for providers whose peers name memory by its address.
func addressOf(b []byte) uint64 {
	if len(b) == 0 {
		return 0
	}
	return uint64(reflect.ValueOf(b).Pointer())
}
