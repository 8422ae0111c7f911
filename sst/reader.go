package sst

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"sync"
	"time"

	"github.com/weft-fabric/weft/internal/wire/sstmsg"
	"github.com/weft-fabric/weft/sst/internal/carrier"
	"github.com/weft-fabric/weft/sst/internal/cp"
	"github.com/weft-fabric/weft/sst/internal/dp"
	"github.com/weft-fabric/weft/step"
)

// ReaderConfig configures a reader. The zero value works.
type ReaderConfig struct {
	// Session to use; nil opens one that ends with the reader.
	Session *Session
	// Params are the engine parameters.
	Params Params
}

// Reader is the reading end of a stream.
type Reader struct {
	name    string
	cfg     ReaderConfig
	session *Session
	own     bool
	decoder *step.Decoder // used by BeginStep only
	taking  chan struct{} // holds a token while a BeginStep runs: one at a time
	early   [][]byte      // attributes of discarded steps, see absorb; used by BeginStep only

	mu         sync.Mutex
	machine    *cp.Reader
	link       carrier.Link         // control link, to writer rank 0
	peers      map[int]carrier.Link // control links to other ranks, Peer pattern only
	far        []carrier.Link       // data links to other ranks, nil until used
	response   *sstmsg.WriterResponse
	plane      *dp.Evpath
	ids        []int64
	conditions [2]int32
	opened     chan error // gets the result of Open once
	changed    signal
	parting    bool // the session waits for us to leave with care
	opening    bool // the session counts our handshake as pending
	leaving    bool // the machine wants the link dropped
	released   bool // resources are given back
}

// Steps iterates over the steps of the stream from the next one on, until the
// writer closes it. Each step ends when the loop body does. An error ends the
// loop.
func (r *Reader) Steps(ctx context.Context) iter.Seq2[*step.Step, error] {
	return func(yield func(*step.Step, error) bool) {
		for {
			st, err := r.BeginStep(ctx)
			if errors.Is(err, io.EOF) {
				return
			}
			if err != nil {
				yield(nil, err)
				return
			}
			more := yield(st, nil)
			if err := st.End(); err != nil && more {
				more = yield(nil, err)
			}
			if !more {
				return
			}
		}
	}
}

// BeginStep waits for the next step. It returns io.EOF, as it is, when the
// writer has closed the stream and every step was taken. The step must be ended
// (step.Step.End) before the next begins: that gives it back to the writer.
func (r *Reader) BeginStep(ctx context.Context) (*step.Step, error) {
	select {
	case r.taking <- struct{}{}:
		defer func() { <-r.taking }()
	case <-ctx.Done():
		return nil, r.fail("begin step", context.Cause(ctx))
	}
	why := func() (string, []any) {
		return "waiting for the next step of the writer", append([]any{"stream", r.name, "writer", r.peer()}, until(ctx)...)
	}
	for waiting := false; ; waiting = true {
		t, err := r.take()
		if err != nil {
			if t.deliver != nil {
				r.endStep(*t.deliver)
			}
			r.protocolError(err)
			return nil, r.fail("begin step", err)
		}
		switch {
		case t.deliver != nil:
			return r.decode(*t.deliver)
		case t.end != nil && t.end.Err == nil:
			return nil, io.EOF
		case t.end != nil:
			return nil, r.fail("begin step", t.end.Err)
		}
		if !waiting {
			defer explain(ctx, r.session.log, why)()
		}
		select {
		case <-t.changed:
		case <-ctx.Done():
			return nil, r.fail("begin step", context.Cause(ctx))
		}
	}
}

// taken is what one Next brought.
type taken struct {
	deliver *cp.Deliver
	end     *cp.EndOfStream
	changed <-chan struct{}
}

// take asks the machine for a step. What it brings is absorbed before the
// memory of skipped steps goes back.
func (r *Reader) take() (t taken, err error) {
	r.mu.Lock()
	actions := r.handle(cp.Next{})
	t.changed = r.changed.wait()
	r.mu.Unlock()
	for _, a := range actions {
		switch a := a.(type) {
		case cp.Absorb:
			if err == nil {
				err = r.absorb(a.Step)
			}
		case cp.Recycle:
			a.Free()
		case cp.Deliver:
			t.deliver = &a
		case cp.EndOfStream:
			t.end = &a
		}
	}
	return t, err
}

// absorb takes formats and attributes in, also of steps that are not delivered.
// The attributes of a discarded step may be of formats that come only with the
// next whole step (docs/wire/sst.md §7.3), so they wait for it.
func (r *Reader) absorb(m *sstmsg.TimestepMetadata) error {
	d, whole := r.decoder, m.Metadata != nil
	for _, f := range m.Formats {
		id := f.ID.Bytes()
		if len(id) != len([12]byte{}) {
			return fmt.Errorf("step %d: format ID of %d bytes: %w", m.Step, len(id), ErrProtocol)
		}
		if err := d.AddFormat([12]byte(id), bytes.Clone(f.Body.Bytes())); err != nil {
			return fmt.Errorf("step %d: %w: %w", m.Step, ErrProtocol, err)
		}
	}
	for _, a := range m.Attributes {
		if a.Data.Len() > 0 {
			r.early = append(r.early, bytes.Clone(a.Data.Bytes()))
		}
	}
	for whole && len(r.early) > 0 {
		if err := d.AddAttributes(r.early[0]); err != nil {
			return fmt.Errorf("step %d: attributes up to there: %w: %w", m.Step, ErrProtocol, err)
		}
		r.early = r.early[1:]
	}
	return nil
}

// decode makes the step that the application sees.
func (r *Reader) decode(a cp.Deliver) (*step.Step, error) {
	m := a.Step
	metadata := make([][]byte, len(m.Metadata))
	for i, b := range m.Metadata {
		metadata[i] = b.Data.Bytes()
	}
	src := &tellingSource{r.plane.Step(m.Step, m.PreloadMode == preloadSpeculative), r, m.Step}
	st, err := r.decoder.Step(uint64(m.Step), metadata, src, func() error {
		r.endStep(a)
		return nil
	})
	if err != nil {
		r.endStep(a)
		return nil, r.fail("begin step", fmt.Errorf("step %d: %w", m.Step, err))
	}
	return st, nil
}

// tellingSource explains reads that take long.
type tellingSource struct {
	step.Source
	reader *Reader
	number int64
}

// Read fills the pieces.
func (s *tellingSource) Read(ctx context.Context, pieces []step.Piece) error {
	defer s.explain(ctx, "pieces", len(pieces))()
	return s.Source.Read(ctx, pieces)
}

// View hands out memory where the data plane has it.
func (s *tellingSource) View(ctx context.Context, rank int, offset, n uint64) ([]byte, func(), error) {
	v, ok := s.Source.(step.Viewer)
	if !ok {
		return nil, nil, fmt.Errorf("the data plane brings only copies: %w", step.ErrNoView)
	}
	defer s.explain(ctx, "block of rank", rank)()
	return v.View(ctx, rank, offset, n)
}

func (s *tellingSource) explain(ctx context.Context, what string, n int) func() bool {
	return explain(ctx, s.reader.session.log, func() (string, []any) {
		args := []any{"stream", s.reader.name, "step", s.number, what, n, "writer", s.reader.peer()}
		return "waiting for data of the writer", append(args, until(ctx)...)
	})
}

// preloadSpeculative is the preload mode in which blocks come by themselves. In
// learned mode, 2, the first step is still asked for; we never lock our
// definitions, so it does not occur (docs/wire/sst.md §8.3).
const preloadSpeculative = 1

func (r *Reader) endStep(a cp.Deliver) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.handle(cp.Release{Step: a.Step.Step})
	if a.Free != nil {
		a.Free()
	}
}

// Close leaves the stream; the writer goes on. An open step ends, and reads that
// are under way fail. An ADIOS2 writer hears of it at a moment that it survives,
// within 200 ms: a session of the reader's own is waited for, a shared one does
// it in the background. It is idempotent.
func (r *Reader) Close() error {
	r.abort(ErrClosed)
	r.dropOwnSession()
	return nil
}

// abort leaves the stream without waiting.
func (r *Reader) abort(err error) {
	r.mu.Lock()
	plane := r.plane
	r.mu.Unlock()
	why := fmt.Errorf("reader of %s: %w", r.name, err)
	if plane != nil {
		plane.Fail(why) // first, so that reads under way say why they end
	}
	r.event(cp.Leave{Err: err})
	if plane != nil {
		plane.Close(why)
	}
	r.giveBack(err)
}

// dropOwnSession ends a session that nobody else uses, and waits for that.
func (r *Reader) dropOwnSession() {
	if r.own {
		r.session.Close()
	}
}

// event handles an event that may end the reader. The caller does not hold mu.
func (r *Reader) event(e cp.ReaderEvent) {
	r.mu.Lock()
	r.handle(e)
	leaving, why := r.leaving, r.machine.Failure()
	r.mu.Unlock()
	if why == nil {
		why = ErrClosed
	}
	if leaving {
		r.giveBack(why)
	}
}

// giveBack releases what the reader holds, once, unless a handshake goes on
// without its caller. It does not wait, and may run in a callback.
func (r *Reader) giveBack(err error) {
	r.mu.Lock()
	if r.released || r.machine.Pending() {
		r.mu.Unlock()
		return
	}
	r.released = true
	links := append([]carrier.Link{r.link}, r.far...)
	for _, l := range r.peers {
		links = append(links, l)
	}
	r.mu.Unlock()
	if r.plane != nil {
		r.plane.Close(fmt.Errorf("reader of %s: %w", r.name, err))
	}
	s := r.session
	s.retire(r.ids...)
	for _, l := range links {
		if l != nil {
			s.unuse(l)
		}
	}
	s.removeStream(r)
	if r.own {
		go s.Close() // not here: in a callback it would wait for itself
	}
}

// receive takes a message of the writer.
func (r *Reader) receive(m sstmsg.Message, free func()) {
	r.event(cp.FromWriter{Msg: m, Free: free})
}

// linkLost tells the machine, or the requests to a far rank.
func (r *Reader) linkLost(l carrier.Link, err error) {
	r.mu.Lock()
	control := l == r.link
	for _, p := range r.peers {
		control = control || l == p
	}
	r.mu.Unlock()
	if control {
		r.lost(err)
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for rank, f := range r.far {
		if f == l && r.plane != nil {
			r.far[rank] = nil
			r.session.unuse(l)
			r.plane.FailRank(rank, fmt.Errorf("%w: %w", ErrWriterFailed, orGone(err)))
		}
	}
}

func orGone(err error) error {
	if err == nil {
		return io.ErrUnexpectedEOF
	}
	return err
}

// lost gives the control link up for dead. Steps that are complete here stay
// readable.
func (r *Reader) lost(err error) {
	r.mu.Lock()
	wasOpening := r.opening
	r.handle(cp.WriterLost{Err: err})
	plane := r.plane
	r.mu.Unlock()
	if plane != nil {
		plane.Fail(r.fail("read", fmt.Errorf("%w: %w", ErrWriterFailed, orGone(err))))
	}
	if wasOpening {
		r.giveBack(err)
	}
}

// protocolError ends the stream because of what the writer sent.
func (r *Reader) protocolError(err error) {
	r.mu.Lock()
	l := r.link
	r.mu.Unlock()
	if l != nil {
		l.Abort(err)
	}
}

// handle feeds the machine, carries out what concerns the links, and returns
// all actions. The caller holds mu.
func (r *Reader) handle(e cp.ReaderEvent) []cp.ReaderAction {
	actions := r.machine.Handle(e)
	_, isNext := e.(cp.Next)
	for _, a := range actions {
		switch a := a.(type) {
		case cp.SendToWriter:
			if l := r.controlLink(a.Rank); l != nil {
				r.session.post(l, a.Msg, r.options(a.Msg), nil)
			}
		case cp.Opened:
			r.opened <- r.accepted(a.Response)
		case cp.OpenFailed:
			r.opened <- a.Err
		case cp.Recycle:
			if !isNext { // take recycles after it has absorbed
				a.Free()
			}
		case cp.Forget:
			r.plane.Forget(a.Step)
		case cp.Wake:
			r.changed.notify()
		case cp.Part:
			r.parting = true
			r.session.pending.Add(1)
			time.AfterFunc(partingTime, func() { r.event(cp.Settled{}) })
		case cp.DropLink:
			r.leaving = true
		}
	}
	if r.parting && r.machine.Phase() != cp.Parting {
		r.parting = false
		r.session.pending.Done()
	}
	if r.opening && !r.machine.Opening() {
		r.opening = false
		r.session.endOpening(r)
	}
	return actions
}

// partingTime is how long nothing must have come from an ADIOS2 writer before we
// leave it, unless a whole step comes first.
const partingTime = 200 * time.Millisecond

// controlLink returns the link to what a writer rank listens on. The caller holds mu.
func (r *Reader) controlLink(rank int) carrier.Link {
	if rank == 0 {
		return r.link
	}
	return r.peers[rank]
}

// peerSetup takes in the link that a writer rank has made (Peer pattern).
func (r *Reader) peerSetup(l carrier.Link, m *sstmsg.PeerSetup, free func()) {
	rank := int(m.WriterRank)
	r.mu.Lock()
	if rank > 0 && rank <= maxRanks && !r.released && r.peers[rank] == nil {
		if r.peers == nil {
			r.peers = map[int]carrier.Link{}
		}
		r.peers[rank] = l
		r.session.use(l)
	}
	r.mu.Unlock()
	r.receive(m, free)
}

// options chooses the variant of a message: the extra field of DPQuery goes to
// Weft writers only, all else is alike for every writer.
func (r *Reader) options(m sstmsg.Message) sstmsg.Options {
	q, ok := m.(*sstmsg.DPQuery)
	return sstmsg.Options{Release: sstmsg.ReleaseMain, Weft: ok && q.Weft != 0}
}

func (r *Reader) peer() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.link == nil {
		return ""
	}
	return r.link.Info().Remote.String()
}

func (r *Reader) fail(op string, err error) error {
	return &Error{Op: op, Stream: r.name, Peer: r.peer(), Err: err}
}

// Name returns the stream's name as given to Open.
func (r *Reader) Name() string { return r.name }
