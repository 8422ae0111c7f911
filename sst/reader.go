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
	"github.com/weft-fabric/weft/sst/cohort"
	"github.com/weft-fabric/weft/sst/internal/carrier"
	"github.com/weft-fabric/weft/sst/internal/cp"
	"github.com/weft-fabric/weft/sst/internal/dp"
	"github.com/weft-fabric/weft/step"
)

// ReaderConfig configures a reader. The zero value works.
type ReaderConfig struct {
	// Session to use; nil opens one that ends with the reader. Ranks that run in one
	// process may share one.
	Session *Session
	// Cohort connects the ranks of the reader; nil means that it has one. Every rank
	// opens, takes each step and closes; rank 0 speaks with the writer.
	Cohort cohort.Cohort
	// Params are the engine parameters, the same on every rank.
	Params Params
	// Observer makes a reader that only looks: it does not count for the writer's
	// rendezvous, holds nobody up, and misses what it is too slow for. Weft writers
	// only.
	Observer bool
	// ReadBatch is the most that Get, Fetch and the like read at a time, in bytes: what one
	// request asks a writer rank for, at most 1 GiB, and what is copied out of a writer's
	// memory before a cancellation is looked at, at most 1 MiB; 0 means these. Less
	// shares a connection more evenly with what else goes over it, and costs messages.
	ReadBatch int
	// CloseTimeout bounds how long Close of rank 0 waits for the other ranks; 0
	// means 60 s.
	CloseTimeout time.Duration
	// FailStale makes Open return [ErrStale] if nobody answers at the address of the
	// contact file, instead of waiting for a new writer: for tools. A missing file is
	// waited for all the same.
	FailStale bool
	// Screen is where rank 0 reads the writer's contact with RegistrationMethod
	// Screen; nil means os.Stdin.
	Screen io.Reader
}

// Reader is one rank of the reading end of a stream.
type Reader struct {
	name    string
	cfg     ReaderConfig
	ranks   cohortLink // guarded by mu, but for the numbers
	session *Session
	own     bool
	planes  []string // data planes that may be used, best first
	plane   *dp.Native
	decoder *step.Decoder // used by BeginStep only
	taking  chan struct{} // holds a token while a BeginStep runs: one at a time
	eager   eager         // used by BeginStep only
	early   [][]byte      // attributes of discarded steps, see absorb; used by BeginStep only
	opened  chan outcome  // gets the result of each attempt to open
	stop    context.CancelCauseFunc

	mu       sync.Mutex
	member   *cp.ReaderMember
	leader   *cp.ReaderLeader // rank 0 only
	inbox    inbox
	here     map[int]bool // at rank 0: other ranks that have neither closed nor died; elsewhere: rank 0 while the stream goes on
	ids      []int64
	changed  signal
	released bool // resources are given back
	aborted  bool // Close or the session has ended us

	response *sstmsg.WriterResponse
	agreed   string               // data plane of the whole reader
	apart    error                // why some memory of the writer cannot be looked at; nil: all can, or none is offered
	trying   int64                // number of the newest try of routes
	routes   *routes              // to the writer's memory, nil if there are none
	alone    bool                 // with ManualProgress: link is near, and the socket of the opening is given up
	near     carrier.Link         // rank 0: link on which messages go that need no socket, nil if there is none
	weft     bool                 // the writer is Weft
	writer   string               // address of writer rank 0
	release  string               // what the handshake told of the writer's software
	far      []carrier.Link       // data links to writer ranks, nil until used
	pushers  map[int]carrier.Link // over which writer ranks push, by rank
	steps    map[int64]*heldStep
	broken   error // why the records of the stream make no sense any more
	counts   readerCounts

	// What only rank 0 has.
	link       carrier.Link         // control link, to writer rank 0
	peers      map[int]carrier.Link // control links to other ranks, Peer pattern only
	old        []carrier.Link       // links of attempts that are over
	conditions []int32
	parting    bool // the session waits for us to leave with care
	opening    bool // the session counts our handshake as pending
	leaving    bool // the leader wants the link dropped
}

// heldStep is a step that the application has.
type heldStep struct {
	step     *step.Step
	retained bool
	source   tellingSource
	metadata [1][]byte // of the common case
}

// Steps iterates over the steps of the stream from the next one on, until the
// writer closes it. Each step ends when the loop body does, unless it was
// retained. An error ends the loop.
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
			if !r.retained(st) {
				if err := st.End(); err != nil && more {
					more = yield(nil, err)
				}
			}
			if !more {
				return
			}
		}
	}
}

// BeginStep waits for the next step. It returns io.EOF, as it is, when the
// writer has closed the stream and every step was taken. The step must be ended
// (step.Step.End) before the next begins, or retained: its end gives it back to
// the writer. In a cohort every rank gets the same steps, each at its own pace; a
// step goes back to the writer when every rank has ended it.
func (r *Reader) BeginStep(ctx context.Context) (*step.Step, error) {
	select {
	case r.taking <- struct{}{}:
		defer func() { <-r.taking }()
	case <-ctx.Done():
		return nil, r.fail("begin step", context.Cause(ctx))
	}
	t, changed := r.take()
	if t.nothing() {
		var err error
		if t, err = r.waitStep(ctx, changed); err != nil {
			return nil, r.fail("begin step", err)
		}
	}
	switch {
	case t.err != nil:
		r.protocolError(t)
		return nil, r.fail("begin step", t.err)
	case t.deliver != nil:
		return r.decode(t.deliver)
	case t.end.Err == nil:
		return nil, io.EOF
	}
	return nil, r.fail("begin step", t.end.Err)
}

// waitStep waits for the next step, or for the end.
func (r *Reader) waitStep(ctx context.Context, changed <-chan struct{}) (t taken, err error) {
	began := time.Now()
	defer func() { r.waited(time.Since(began)) }()
	if r.eager.wait(ctx, r.control(), changed, began) {
		if t, changed = r.take(); !t.nothing() {
			return t, nil
		}
	}
	defer r.session.waits.begin(ctx, func() (string, []any) {
		return "waiting for the next step of the writer", append([]any{"stream", r.name, "writer", r.peer()}, until(ctx)...)
	}).end()
	for t.nothing() {
		if err := r.session.await(ctx, changed); err != nil {
			return t, err
		}
		t, changed = r.take()
	}
	return t, nil
}

// take asks the member for a step, and returns what says that asking again may
// help, if there is none.
func (r *Reader) take() (t taken, changed <-chan struct{}) {
	r.mu.Lock()
	defer r.unlock()
	if r.broken != nil {
		return taken{err: r.broken}, nil
	}
	if t = r.handle(cp.Next{}); t.nothing() {
		t = r.handle(cp.Next{}) // at rank 0 the step may have come because the member has asked
	}
	if t.nothing() {
		changed = r.changed.wait()
	}
	return t, changed
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
func (r *Reader) decode(m *sstmsg.TimestepMetadata) (*step.Step, error) {
	h := &heldStep{source: tellingSource{r.plane.Step(m.Step, m.PreloadMode, m.Native), r, m.Step}}
	metadata := h.metadata[:0]
	for _, b := range m.Metadata {
		metadata = append(metadata, b.Data.Bytes())
	}
	st, err := r.decoder.Step(uint64(m.Step), metadata, &h.source, func() error {
		r.ended(m.Step)
		return nil
	})
	if err != nil {
		r.ended(m.Step)
		return nil, r.fail("begin step", fmt.Errorf("step %d: %w", m.Step, err))
	}
	h.step = st
	r.mu.Lock()
	defer r.mu.Unlock()
	r.steps[m.Step] = h
	return st, nil
}

// Retain keeps a step open while later ones begin: it is read, and ended with
// step.Step.End, as any other. Several can be retained. The writer keeps their
// data, and under a queue limit waits for them. It is safe for concurrent use.
func (r *Reader) Retain(st *step.Step) error {
	r.mu.Lock()
	defer r.unlock()
	n := int64(st.Number())
	h := r.steps[n]
	if h == nil || h.step != st {
		return r.failLocked("retain", fmt.Errorf("step %d is not open here: %w", n, ErrOrder))
	}
	h.retained = true
	r.handle(cp.Retain{Step: n})
	return nil
}

func (r *Reader) retained(st *step.Step) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	h := r.steps[int64(st.Number())]
	return h != nil && h.step == st && h.retained
}

// LockSelections says that from now on this rank reads the same selections in
// each step. When every rank has said so, and the writer has locked its
// definitions, an ADIOS2 writer sends the blocks without being asked (learned
// preload). Other selections can still be read. It cannot be taken back.
func (r *Reader) LockSelections() error {
	r.mu.Lock()
	defer r.unlock()
	if r.aborted {
		return r.failLocked("lock selections", fmt.Errorf("reader was %w: %w", ErrClosed, ErrOrder))
	}
	r.handle(cp.Lock{})
	return nil
}

// tellingSource explains reads that take long.
type tellingSource struct {
	step.Source
	reader *Reader
	number int64
}

// Read fills the pieces.
func (s *tellingSource) Read(ctx context.Context, pieces []step.Piece) error {
	defer s.explain(ctx, "pieces", len(pieces)).end()
	return s.Source.Read(ctx, pieces)
}

// prompt is a source that may have data at hand: then there is no wait to explain.
type prompt interface {
	ViewNow(ctx context.Context, rank int, offset, n uint64) (b []byte, release func(), ok bool)
	HeldNow(ctx context.Context, rank int, offset, n uint64) (b []byte, release func(), ok bool)
}

// View hands out memory where the data plane has it.
func (s *tellingSource) View(ctx context.Context, rank int, offset, n uint64) ([]byte, func(), error) {
	if p, ok := s.Source.(prompt); ok {
		if b, release, ok := p.ViewNow(ctx, rank, offset, n); ok {
			return b, release, nil
		}
	}
	v, ok := s.Source.(step.Viewer)
	if !ok {
		return nil, nil, fmt.Errorf("the data plane brings only copies: %w", step.ErrNoView)
	}
	defer s.explain(ctx, "block of rank", rank).end()
	return v.View(ctx, rank, offset, n)
}

// Held hands out what the data plane holds.
func (s *tellingSource) Held(ctx context.Context, rank int, offset, n uint64) ([]byte, func(), error) {
	if p, ok := s.Source.(prompt); ok {
		if b, release, ok := p.HeldNow(ctx, rank, offset, n); ok {
			return b, release, nil
		}
	}
	h, ok := s.Source.(step.Holder)
	if !ok {
		return nil, nil, nil
	}
	defer s.explain(ctx, "block of rank", rank).end()
	return h.Held(ctx, rank, offset, n)
}

func (s *tellingSource) explain(ctx context.Context, what string, n int) *longWait {
	return s.reader.session.waits.begin(ctx, func() (string, []any) {
		args := []any{"stream", s.reader.name, "step", s.number, what, n, "writer", s.reader.peer()}
		return "waiting for data of the writer", append(args, until(ctx)...)
	})
}

// ended takes in that the program has ended a step. Its views keep it from the writer,
// as if it were retained.
func (r *Reader) ended(number int64) {
	if !r.plane.AfterViews(number, func() { r.endStep(number) }) {
		r.memberEvent(cp.Retain{Step: number})
	}
}

// endStep gives a step back.
func (r *Reader) endStep(number int64) {
	r.mu.Lock()
	defer r.unlock()
	if r.steps[number] != nil {
		delete(r.steps, number)
		r.counts.ended = max(r.counts.ended, number+1)
	}
	r.handle(cp.Release{Step: number})
}

// protocolError ends the stream because of what the writer sent. The other ranks
// find the same.
func (r *Reader) protocolError(t taken) {
	if t.deliver != nil {
		r.endStep(t.deliver.Step)
	}
	r.mu.Lock()
	r.broken = t.err
	links := []carrier.Link{r.near, r.link}
	r.mu.Unlock()
	for _, l := range links {
		if l != nil {
			l.Abort(t.err)
		}
	}
}

// control returns the link on which steps come, nil on ranks that have none.
func (r *Reader) control() poller {
	r.mu.Lock()
	defer r.mu.Unlock()
	if l := r.controlLink(0); l != nil {
		return l
	}
	return nil
}

func (r *Reader) peer() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.peerLocked()
}

// peerLocked is peer for who holds mu.
func (r *Reader) peerLocked() string {
	if r.link != nil {
		return r.link.Info().Peer
	}
	return r.writer
}

func (r *Reader) fail(op string, err error) error {
	return &Error{Op: op, Stream: r.name, Peer: r.peer(), Err: err}
}

// failLocked is fail for who holds mu.
func (r *Reader) failLocked(op string, err error) error {
	return &Error{Op: op, Stream: r.name, Peer: r.peerLocked(), Err: err}
}

// Name returns the stream's name as given to Open.
func (r *Reader) Name() string { return r.name }

// Rank returns the number of this rank in the reader's cohort.
func (r *Reader) Rank() int { return r.ranks.rank }
