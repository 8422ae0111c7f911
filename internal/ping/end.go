package ping

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/weft-fabric/weft/fabric"
	"github.com/weft-fabric/weft/memmon"
)

// Contexts of control messages; those of data are numbers of transfers.
const (
	controlContext = 1<<63 + iota
	helloContext   // of the receive that others say hello to
	busyContext    // of what they are answered
)

// end is one side: a domain with one endpoint and one queue. It is used by one goroutine.
type end struct {
	config Config
	info   fabric.Info
	domain *fabric.Domain
	cq     *fabric.CompletionQueue
	ep     *fabric.Endpoint
	peer   fabric.Peer // 0: not known yet

	address fabric.Address // of the peer

	batch [32]fabric.Completion
	polls uint // that found nothing
	run   *run // takes the completions of data; nil: there are none

	heard   [controlMax]byte
	said    int         // bytes of a control message in heard, -1: none
	speaker fabric.Peer // whose it is
	telling int         // control messages that are on their way out: more than one after a say that was interrupted
	met     bool        // the other side has answered
	awaits  bool        // a receive of the peer's next control message is posted, which its death ends

	door    [controlMax]byte // for a hello while one is served already
	visitor fabric.Peer      // is being told that it is not served; 0: nobody
	watch   *watch
}

// open makes the side.
func open(ctx context.Context, c Config, caps fabric.Caps) (*end, error) {
	infos, err := fabric.Discover(ctx, fabric.Hints{Provider: c.Provider, Caps: caps})
	if err != nil {
		return nil, err
	}
	e := &end{config: c, info: infos[0], said: -1}
	if e.domain, err = openDomain(e.info, c); err != nil {
		return nil, err
	}
	if e.cq, err = e.domain.OpenCompletionQueue(fabric.CQConfig{}); err == nil {
		e.ep, err = e.domain.OpenEndpoint(fabric.EndpointConfig{Name: c.Name, Send: e.cq, Recv: e.cq})
		err = asSetting(err)
	}
	if err != nil {
		return nil, errors.Join(err, e.domain.Close())
	}
	e.watch = newWatch(c.Logger)
	return e, nil
}

// openDomain makes the domain of a side.
func openDomain(info fabric.Info, c Config) (*fabric.Domain, error) {
	d := fabric.DomainConfig{Progress: c.Progress, Options: c.Options}
	if c.Wait == Sleep {
		d.Spin = -1
	}
	domain, err := fabric.OpenDomain(info, d)
	return domain, asSetting(err)
}

// Check says what is wrong with the settings of a side, without an other side: its provider is opened and closed.
func Check(ctx context.Context, c Config) error {
	infos, err := fabric.Discover(ctx, fabric.Hints{Provider: c.Provider})
	if err != nil {
		return err
	}
	d, err := openDomain(infos[0], c)
	if err != nil {
		return err
	}
	return d.Close()
}

func (e *end) close() error {
	e.watch.close()
	return e.domain.Close()
}

// progress waits for completions, or for room, and takes what has come.
func (e *end) progress(ctx context.Context) error {
	n, err := e.read(ctx)
	if err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return err
	}
	for i := range n {
		// All are taken: the last word of a peer may stand behind the error that its death is.
		if first := e.take(&e.batch[i]); err == nil {
			err = first
		}
	}
	return err
}

// lastWords bounds how long a side that ends tells why, and how long the other one looks for that.
const lastWords = 200 * time.Millisecond

// reason puts what the peer said at last in the place of an error that it is gone.
func (e *end) reason(ctx context.Context, err error) error {
	if !errors.Is(err, fabric.ErrPeerGone) {
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastWords)
	defer cancel()
	const most = 3 // one that nobody has looked at may stand in front of the last word
	for range most {
		e.drain(ctx)
		if e.said < 0 {
			break
		}
		if _, last := parseControl(e.heard[:e.said]); errors.Is(last, errNo) {
			return last
		}
		// A receive from the peer alone would be refused: it is gone. What it had sent is still there for others.
		e.said = -1
		if e.ep.RecvTagged(fabric.Op{Tag: controlTag, Local: fabric.Bytes(e.heard[:]), Context: controlContext}) != nil {
			break
		}
		e.awaits = true
	}
	return err
}

// drain takes what is there. As long as a control message is awaited, it may be on its way still, when a post has found out first that the peer is gone.
func (e *end) drain(ctx context.Context) {
	for range 100 { // lest somebody sends without end
		var n int // what went wrong is known
		if e.awaits {
			n, _ = e.cq.Wait(ctx, e.batch[:])
		} else {
			n, _ = e.cq.Read(e.batch[:])
		}
		for i := range n {
			_ = e.take(&e.batch[i])
		}
		if n == 0 {
			return
		}
	}
}

// read waits in the way that was asked for. Spinning, it may find nothing.
func (e *end) read(ctx context.Context) (int, error) {
	if e.config.Wait != Spin {
		return e.cq.Wait(ctx, e.batch[:])
	}
	n, err := e.cq.Read(e.batch[:])
	if n > 0 || err != nil {
		return n, err
	}
	const look = 4096 // a poll takes some 10 ns; other goroutines get their turn by Read
	if e.polls++; e.polls%look == 0 {
		return 0, ctx.Err()
	}
	return 0, nil
}

// take notes a completion.
func (e *end) take(c *fabric.Completion) error {
	switch {
	case c.Context == controlContext && c.Kind == fabric.TRecvDone:
		e.awaits = false
	case c.Context == controlContext:
		e.telling--
	}
	switch {
	case c.Context == helloContext && c.Kind == fabric.TRecvDone:
		return e.refuse(c)
	case c.Context == busyContext:
		e.dismiss() // whether it has got the answer or not
	case c.Context == controlContext && e.peer == 0 && errors.Is(c.Err, fabric.ErrTruncated):
		e.said, e.speaker = 0, 0 // no hello is that long
	case c.Err != nil && c.Context == controlContext:
		return e.talk(c.Err)
	case c.Err != nil:
		return c.Err
	case c.Context == controlContext && c.Kind == fabric.TRecvDone:
		e.said, e.speaker = int(c.Len), c.Source
	case c.Context == controlContext:
	case e.run != nil:
		return e.run.take(c)
	}
	return nil
}

// talk gives an error of a control message the name of what it was for: that it is a tagged one is nobody's business who measures
// something else.
func (e *end) talk(err error) error {
	op, ok := err.(*fabric.OpError) //nolint:errorlint // one that is wrapped says more than that
	if !ok {
		return err
	}
	named := *op
	named.Op = "connect"
	if e.met {
		named.Op = "control message"
	}
	return &named
}

// post posts, and reads completions as long as there is no room.
func (e *end) post(ctx context.Context, call func(fabric.Op) error, op fabric.Op) error {
	for {
		err := call(op)
		if err == nil || !errors.Is(err, fabric.ErrAgain) {
			return err
		}
		if err := e.progress(ctx); err != nil {
			return err
		}
	}
}

// from makes a receive one of the peer alone, so that its death ends it.
func (e *end) from(op fabric.Op) fabric.Op {
	if e.peer != 0 && e.info.Caps.Has(fabric.DirectedRecv) {
		op.Peer = e.peer
		op.Flags |= fabric.Directed
	}
	return op
}

// listen posts the receive of the next control message; of a side that knows nobody yet, it is a hello.
func (e *end) listen(ctx context.Context) error {
	e.said = -1
	op := fabric.Op{Tag: controlTag, Local: fabric.Bytes(e.heard[:]), Context: controlContext}
	if e.peer == 0 {
		op.Tag = helloTag
	}
	op = e.from(op)
	err := e.post(ctx, e.ep.RecvTagged, op)
	e.awaits = err == nil && op.Flags.Has(fabric.Directed)
	return e.talk(err)
}

// attend posts the receive of a hello of others than the one that is served. It is never waited for.
func (e *end) attend(ctx context.Context) error {
	return e.post(ctx, e.ep.RecvTagged, fabric.Op{Tag: helloTag, Local: fabric.Bytes(e.door[:]), Context: helloContext})
}

// refuse answers such a hello, and is there for the next one. Where there is no room now, the other one gets no answer.
func (e *end) refuse(c *fabric.Completion) error {
	if c.Err != nil && !errors.Is(c.Err, fabric.ErrTruncated) {
		return nil // the end is being closed
	}
	if _, err := parseControl(e.door[:min(c.Len, controlMax)], hello); err == nil && c.Err == nil {
		e.answer(c.Source, errBusy)
	}
	err := e.ep.RecvTagged(fabric.Op{Tag: helloTag, Local: fabric.Bytes(e.door[:]), Context: helloContext})
	if errors.Is(err, fabric.ErrAgain) {
		return nil
	}
	return err
}

// answer tells one who said hello why it is not served, without waiting. It goes to whoever spoke, whatever address it gave, and to one at
// a time: an answer that nobody takes must not use up what the one who is served needs.
func (e *end) answer(p fabric.Peer, why error) {
	if p == 0 || p == e.peer || e.visitor != 0 {
		return
	}
	b, err := json.Marshal(control{Verb: welcome, Error: why.Error()})
	if err != nil {
		return
	}
	op := fabric.Op{Tag: controlTag, Local: fabric.Bytes(b), Peer: p, Flags: fabric.DeliveryComplete, Context: busyContext}
	if e.ep.SendTagged(op) == nil { // else it may have left
		e.visitor = p
	}
}

// dismiss forgets who was answered, unless it has been taken for the peer since.
func (e *end) dismiss() {
	if e.visitor != e.peer {
		_ = e.domain.Remove(e.visitor) // it may have left
	}
	e.visitor = 0
}

// say sends a control message, and returns when it is out.
func (e *end) say(ctx context.Context, c control) error {
	b, err := json.Marshal(c)
	if err != nil {
		return err
	}
	op := fabric.Op{Tag: controlTag, Local: fabric.Bytes(b), Peer: e.peer, Context: controlContext}
	if c.Verb == hello {
		op.Tag = helloTag
	}
	if err := e.post(ctx, e.ep.SendTagged, op); err != nil {
		return e.talk(err)
	}
	e.telling++
	for e.telling > 0 {
		if err := e.progress(ctx); err != nil {
			return err
		}
	}
	return nil
}

// lastWord tells the other side why this one ends. Whoever was stopped has no time to lose for it.
func (e *end) lastWord(ctx context.Context, v verb, why error) {
	if e.peer == 0 || OfOther(why) {
		return
	}
	if ctx.Err() != nil {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(context.WithoutCancel(ctx), lastWords)
		defer cancel()
	}
	_ = e.say(ctx, control{Verb: v, Error: why.Error()}) // the first error counts
}

// hear waits for a control message, one of those that are wanted. What the other side does until then is in doing.
func (e *end) hear(ctx context.Context, want ...verb) (control, error) {
	e.watch.moved()
	for {
		for e.said < 0 {
			if err := e.progress(ctx); err != nil {
				return control{}, err
			}
		}
		c, err := parseControl(e.heard[:e.said], want...)
		if err == nil && e.peer == 0 {
			err = e.meet(ctx, c)
		}
		if e.peer == 0 { // anybody may say anything to one who listens
			if !errors.Is(err, errNo) {
				e.answer(e.speaker, err)
			}
			if err = e.listen(ctx); err == nil {
				continue
			}
		}
		if err != nil {
			return control{}, err
		}
		e.met = true
		return c, e.listen(ctx)
	}
}

// meet takes the one that has said hello for the peer, unless it cannot be found.
func (e *end) meet(ctx context.Context, c control) (err error) {
	p := e.speaker
	if p == 0 { // the provider does not say whose it is
		if p, err = e.domain.Insert(c.Address); err != nil {
			return err
		}
	}
	if e.address, err = e.domain.Address(p); err != nil {
		return err
	}
	e.peer = p
	if c.Pin != e.config.Pin {
		return fmt.Errorf("%w: %s for the one that connects, %s for the one that listens", errPin, c.Pin.word(), e.config.Pin.word())
	}
	return e.attend(ctx)
}

// memory is that of one direction: a slot for each operation that is outstanding.
type memory struct {
	whole *fabric.Memory
	slots []fabric.Segment
}

// newMemory gets it from an arena where the provider has one.
func (e *end) newMemory(ctx context.Context, n, size int, a fabric.Access) (*memory, error) {
	m := &memory{slots: make([]fabric.Segment, n)}
	var err error
	if bytes := max(n*size, 1); e.info.Caps.Has(fabric.Arena) {
		m.whole, err = e.domain.Alloc(bytes, a)
	} else {
		m.whole, err = e.domain.Register(memmon.HeapBytes(make([]byte, bytes)), a)
	}
	if err != nil {
		return nil, fmt.Errorf("%d times %d bytes: %w", n, size, err)
	}
	for s := range m.slots {
		m.slots[s] = m.whole.Slice(s*size, size)
	}
	b := m.whole.Bytes()
	err = e.pieces(ctx, len(b), func(from, to int) { // its pages are there then, with bytes that are wrong
		if from == 0 {
			spoil(b[:to])
		} else {
			copy(b[from:to], b)
		}
	})
	if err != nil {
		return nil, errors.Join(err, m.close())
	}
	return m, nil
}

// fill writes what is to be sent. Slot s gets the number s.
func (e *end) fill(ctx context.Context, m *memory) error {
	for s := range m.slots {
		b, first := m.slots[s].Bytes, m.slots[0].Bytes
		err := e.pieces(ctx, len(b), func(from, to int) {
			if s == 0 {
				fillFrom(b[from:to], from)
			} else {
				copy(b[from:to], first[from:to])
			}
		})
		if err != nil {
			return err
		}
	}
	for s := range m.slots {
		stamp(m.slots[s].Bytes, uint64(s))
	}
	return nil
}

// close gives it back; of nil it does nothing.
func (m *memory) close() error {
	if m == nil {
		return nil
	}
	return m.whole.Close()
}

// key of nil is none.
func (m *memory) key() fabric.Key {
	if m == nil {
		return 0
	}
	return m.whole.Key()
}
