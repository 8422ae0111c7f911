package fabrictest

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/weft-fabric/weft/fabric/provider"
)

// flow is a program that an agent runs by itself: many messages, without a request for each.
// Message i towards a peer has Sizes[i % len(Sizes)] bytes of the pattern Seed+i; it carries i as its tag
// and, if the provider can, as its data.
type flow struct {
	Kind   string          // "send", "recv" or "all"; a storm has its own verbs
	Peers  []provider.Peer // to send to, or, in this order, to expect from
	Seeds  []uint64        // "recv" and "all": of each of Peers
	Count  int             // messages for each of Peers
	Sizes  []int
	Seed   uint64 // of what is sent
	Tagged bool
	Data   bool // messages carry data
	Window int  // outstanding receives or sends; 0 means 64

	// Of a storm: memory of the peer, private and arena; 0 is none.
	Key, Arena provider.Key
	Bytes      int // how long both are
}

func (f *flow) size(i int) int { return f.Sizes[i%len(f.Sizes)] }

func (f *flow) largest() int {
	n := 0
	for _, s := range f.Sizes {
		n = max(n, s)
	}
	return n
}

func (f *flow) window() int {
	if f.Window > 0 {
		return f.Window
	}
	return 64
}

func (f *flow) kinds() (send, recv provider.Kind) {
	if f.Tagged {
		return provider.TSendDone, provider.TRecvDone
	}
	return provider.SendDone, provider.RecvDone
}

// flow runs one; out.N is the number of operations.
func (a *agent) flow(f flow, out *reply) error {
	switch f.Kind {
	case "send":
		out.N = f.Count * len(f.Peers)
		return a.sendFlow(f)
	case "recv":
		out.N = f.Count * len(f.Peers)
		return a.recvFlow(f)
	case "all":
		out.N = 2 * f.Count * len(f.Peers)
		return a.allFlow(f)
	}
	return fmt.Errorf("no flow %q", f.Kind)
}

// stormEnd is how a storm is ended, and how it went. A nil one is that of no storm.
type stormEnd struct {
	once sync.Once
	told chan struct{} // closed: stop
	over chan struct{} // closed: went is valid
	went reply
}

func (s *stormEnd) stop() {
	if s != nil {
		s.once.Do(func() { close(s.told) })
	}
}

func (s *stormEnd) wait() {
	if s != nil {
		<-s.over
	}
}

// startStorm lets a storm begin; joinStorm waits for its end.
func (a *agent) startStorm(f flow) error {
	a.storms.stop()
	a.storms.wait()
	end := &stormEnd{told: make(chan struct{}), over: make(chan struct{})}
	s, err := a.storm(f, end)
	if err != nil {
		return err
	}
	a.storms = end
	go func() {
		defer close(end.over)
		err := s.run()
		end.went = reply{Err: pack(err), N: s.posted, Text: s.said}
	}()
	return nil
}

func (a *agent) joinStorm(limit time.Duration, out *reply) error {
	if a.storms == nil {
		return fmt.Errorf("a storm: %w", errNothing)
	}
	end := time.NewTimer(limit)
	defer end.Stop()
	select {
	case <-a.storms.over:
		*out = a.storms.went
		return out.Err.err()
	case <-end.C:
		return fmt.Errorf("the storm still blows after %v", limit)
	}
}

// slots are equal pieces of one buffer; a context below len(free) at the start names one.
type slots struct {
	buf, size int
	free      []int
}

func (a *agent) slots(n, size int) (*slots, error) {
	var r reply
	if err := a.heap(request{N: n * size}, &r); err != nil {
		return nil, err
	}
	s := &slots{buf: r.N, size: size}
	for i := range n {
		s.free = append(s.free, n-1-i)
	}
	return s, nil
}

func (s *slots) take() int {
	n := s.free[len(s.free)-1]
	s.free = s.free[:len(s.free)-1]
	return n
}

func (s *slots) seg(slot, n int) seg { return seg{Buf: s.buf, Off: slot * s.size, N: n} }

// bytes are the first n of a slot.
func (s *slots) bytes(a *agent, slot, n int) []byte {
	return a.bufs[s.buf].b[slot*s.size : slot*s.size+n]
}

// sendOp is message i to a peer, from a slot that it fills.
func (a *agent) sendOp(f *flow, s *slots, slot int, to provider.Peer, i int) opSpec {
	kind, _ := f.kinds()
	fill(s.bytes(a, slot, f.size(i)), f.Seed+uint64(i), 0)
	op := opSpec{Kind: kind, Segs: []seg{s.seg(slot, f.size(i))}, Peer: to, Context: uint64(slot)}
	if f.Tagged {
		op.Tag = uint64(i)
	}
	if f.Data {
		op.Flags |= provider.RemoteData
		op.Data = uint64(i)
	}
	return op
}

// sendFlow sends to every peer in turn and waits for all completions.
func (a *agent) sendFlow(f flow) error {
	s, err := a.slots(f.window(), max(f.largest(), 1))
	if err != nil {
		return err
	}
	open := 0
	finish := func(n int) error {
		list, err := a.col.take(n, a.o.patience)
		for _, c := range list {
			open--
			if c.Err != nil {
				return fmt.Errorf("%v: %w", c.Kind, c.Err)
			}
			s.free = append(s.free, int(c.Context))
		}
		return err
	}
	for i := range f.Count {
		for _, to := range f.Peers {
			if len(s.free) == 0 {
				if err := finish(1); err != nil {
					return err
				}
			}
			if err := a.again(0, a.sendOp(&f, s, s.take(), to, i)); err != nil {
				return fmt.Errorf("message %d: %w", i, err)
			}
			open++
		}
	}
	return finish(open)
}

// recvFlow receives Count messages from every peer, in the order of each.
func (a *agent) recvFlow(f flow) error {
	r, err := a.receiver(&f)
	if err != nil {
		return err
	}
	for r.missing > 0 {
		if err := r.post(); err != nil {
			return err
		}
		list, err := a.col.take(1, a.o.patience)
		if err != nil {
			return fmt.Errorf("%d messages are missing: %w", r.missing, err)
		}
		for _, c := range list {
			if err := r.got(c); err != nil {
				return err
			}
		}
	}
	return nil
}

// receiver is the receiving half of a flow.
type receiver struct {
	a       *agent
	f       *flow
	s       *slots
	next    map[provider.Peer]int
	seed    map[provider.Peer]uint64
	slot    map[int]int                 // of each receive that is posted, by its number
	early   map[int]provider.Completion // of receives before which others are still open
	posted  int
	total   int
	missing int
}

// recvContext tells receives from sends where one queue has both; the rest of a context is the number of the receive.
const recvContext = 1 << 40

func (a *agent) receiver(f *flow) (*receiver, error) {
	total := f.Count * len(f.Peers)
	s, err := a.slots(min(f.window(), max(total, 1)), max(f.largest(), 1))
	if err != nil {
		return nil, err
	}
	r := &receiver{a: a, f: f, s: s, next: map[provider.Peer]int{}, seed: map[provider.Peer]uint64{}, slot: map[int]int{}, early: map[int]provider.Completion{}, total: total, missing: total}
	for i, p := range f.Peers {
		r.seed[p] = f.Seeds[i]
	}
	return r, nil
}

// post keeps as many receives posted as there are slots.
func (r *receiver) post() error {
	_, kind := r.f.kinds()
	for len(r.s.free) > 0 && r.posted < r.total {
		slot := r.s.take()
		op := opSpec{Kind: kind, Segs: []seg{r.s.seg(slot, r.s.size)}, Context: recvContext | uint64(r.posted)}
		if r.f.Tagged {
			op.Ignore = ^uint64(0)
		}
		err := r.a.post(0, op)
		if errors.Is(err, provider.ErrAgain) {
			r.s.free = append(r.s.free, slot)
			return nil
		}
		if err != nil {
			return fmt.Errorf("receive: %w", err)
		}
		r.slot[r.posted] = slot
		r.posted++
	}
	return nil
}

// got takes a completion. Messages match receives in order, but a long one may complete after those behind it: so each is
// checked when all before it are there.
func (r *receiver) got(c provider.Completion) error {
	n := int(c.Context &^ recvContext)
	if _, twice := r.early[n]; twice || n >= r.posted || n < r.total-r.missing {
		return fmt.Errorf("a receive ended twice, or was never posted: %s", show(c))
	}
	r.early[n] = c
	for {
		n := r.total - r.missing
		next, ok := r.early[n]
		if !ok {
			return nil
		}
		delete(r.early, n)
		if err := r.check(next, r.slot[n]); err != nil {
			return err
		}
		delete(r.slot, n)
	}
}

// check checks the message of a receive.
func (r *receiver) check(c provider.Completion, slot int) error {
	if c.Err != nil {
		return fmt.Errorf("receive: %w", c.Err)
	}
	seed, known := r.seed[c.Source]
	if !known {
		return fmt.Errorf("a message from %v, which sends nothing: %s", c.Source, show(c))
	}
	i := r.next[c.Source]
	r.next[c.Source]++
	r.missing--
	if want := r.f.size(i); int(c.Len) != want {
		return fmt.Errorf("message %d of peer %v has %d bytes, not %d: lost, doubled or out of order", i, c.Source, c.Len, want)
	}
	if r.f.Tagged && c.Tag != uint64(i) || r.f.Data && c.Data != uint64(i) {
		return fmt.Errorf("message %d of peer %v came as %s: lost, doubled or out of order", i, c.Source, show(c))
	}
	if at := wrong(r.s.bytes(r.a, slot, int(c.Len)), seed+uint64(i), 0); at >= 0 {
		return fmt.Errorf("message %d of peer %v: byte %d of %d is wrong", i, c.Source, at, c.Len)
	}
	r.s.free = append(r.s.free, slot)
	return nil
}

// allFlow sends to and receives from every peer at the same time: one message after the other.
func (a *agent) allFlow(f flow) error {
	r, err := a.receiver(&f)
	if err != nil {
		return err
	}
	s, err := a.slots(f.Count*len(f.Peers), max(f.largest(), 1))
	if err != nil {
		return err
	}
	if err := r.post(); err != nil {
		return err
	}
	sends := 0
	for i := range f.Count {
		for _, to := range f.Peers {
			if err := a.again(0, a.sendOp(&f, s, s.take(), to, i)); err != nil {
				return fmt.Errorf("message %d: %w", i, err)
			}
			sends++
		}
	}
	for end := time.Now().Add(a.o.patience); r.missing > 0 || sends > 0; {
		list, err := a.col.take(1, time.Until(end))
		if err != nil {
			return fmt.Errorf("%d messages to come, %d to go: %w", r.missing, sends, err)
		}
		c := list[0]
		if c.Context&recvContext == 0 {
			if c.Err != nil {
				return fmt.Errorf("%v: %w", c.Kind, c.Err)
			}
			sends--
			continue
		}
		if err := r.got(c); err != nil {
			return err
		}
		if err := r.post(); err != nil {
			return err
		}
	}
	return nil
}
