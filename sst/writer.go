package sst

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"sync"
	"time"

	"github.com/weft-fabric/weft/sst/cohort"
	"github.com/weft-fabric/weft/sst/internal/carrier"
	"github.com/weft-fabric/weft/sst/internal/cp"
	"github.com/weft-fabric/weft/step"
)

// WriterConfig configures a writer. The zero value works.
type WriterConfig struct {
	// Session to use; nil opens one that ends with the writer. Ranks that run in one
	// process may share one.
	Session *Session
	// Cohort connects this process with the others that write the stream; nil
	// means that there are none. It belongs to the caller and must outlive the
	// writer.
	Cohort cohort.Cohort
	// Params are the engine parameters, the same on every rank of the cohort.
	Params Params
	// Ranks is the number of writer ranks that this process stands for; 0 means 1,
	// [NoRanks] none. The ranks of a cohort's processes are numbered one after the
	// other. See [WriterStep.Rank].
	Ranks int
	// ColumnMajor declares that dimensions are column-major, as in Fortran.
	ColumnMajor bool
	// ContactMode is the permission of the contact file; 0 means 0600: whoever can
	// read it can attach.
	ContactMode fs.FileMode
	// Screen is where RegistrationMethod Screen prints; nil means standard output.
	Screen io.Writer
	// CloseTimeout bounds how long Close waits for readers that still hold steps,
	// and for the other ranks; 0 means 10 minutes.
	CloseTimeout time.Duration
	// OnLag is told of a reader that is more than LagNotice steps behind, once
	// until it has caught up to half of that; on rank 0 only. It is called on a
	// goroutine of its own, one call at a time, and may ask for Info, but must not
	// close the writer.
	OnLag func(AttachedReader)
}

// NoRanks is a [WriterConfig.Ranks] of none at all: the process takes part in each
// step and puts nothing. Not for rank 0 of a cohort.
const NoRanks = -1

const (
	defaultContactMode  fs.FileMode = 0o600
	defaultCloseTimeout             = 10 * time.Minute
	maxRanks                        = 1 << 20
)

type readerKey = cp.ReaderKey

// Writer is the writing end of a stream, or one process's share of it.
type Writer struct {
	name    string
	cfg     WriterConfig
	session *Session
	own     bool        // the session ends with the writer
	path    string      // of the contact file; rank 0 touches it
	contact contactFile // of rank 0
	warn    uint64      // bytes of waiting steps at which to warn
	closing sync.Once
	lagging sync.Mutex // held while OnLag runs

	// Guarded by the step protocol.
	encoders []*step.Encoder   // one a rank
	formats  map[[12]byte]bool // that a rank of this process has brought
	unsent   *share            // of a step that could not be encoded
	memory   stepMemory
	planes   []string  // data planes that are served, best first
	near     *near     // nil without the native plane
	noArena  sync.Once // it was said that memory cannot be shared

	mu        sync.Mutex
	ranks     cohortLink       // the numbers never change
	leader    *cp.WriterLeader // rank 0 only
	member    *cp.WriterMember // nil until the cohort was joined
	work      []event          // for the machines, in order
	working   bool             // somebody carries it out
	states    []rankState      // rank 0: what the ranks have done
	base      int              // first writer rank of this process
	total     int              // writer ranks of the stream
	published bool             // rank 0: readers may come
	publish   bool             // rank 0: the contact file is to be written
	early     []registration   // of readers that came while it was, or while another on their link leaves
	readers   map[readerKey]*attached
	steps     map[int64]*stepData      // data that readers may still ask for
	replied   map[int64][]carrier.Link // by step in memory: where answers went
	unread    []unsentStep             // given back by all readers, and not sent
	watching  bool                     // somebody waits for the end of these
	crammed   bool                     // they leave no room for the step that ends
	nextKey   readerKey
	open      *openStep // being filled
	ending    *openStep // waits for its verdict
	begun     int64     // steps
	finished  bool      // no step begins any more
	leaving   bool      // the others were told of that
	ended     bool      // nothing is served any more
	changed   signal
	eager     eager // of the program's waits
	failure   error // why nothing more can be written
	written   writtenCount
}

// Create opens a stream for writing under a name, with or without the suffix
// ".sst", and waits for RendezvousReaderCount readers. On error, and if ctx
// ends, no contact file stays.
//
// In a cohort every rank calls it, with the same name. It returns on all ranks
// when the readers are there, or fails on all of them, with the same error as
// far as errors.Is can tell.
func Create(ctx context.Context, name string, cfg WriterConfig) (*Writer, error) {
	w := &Writer{
		name: name, cfg: cfg, readers: map[readerKey]*attached{}, steps: map[int64]*stepData{}, replied: map[int64][]carrier.Link{},
		formats: map[[12]byte]bool{}, nextKey: 1,
	}
	w.memory.heap, w.memory.sent, w.memory.went = step.NewLendingPool(0), make(chan struct{}, 1), make(chan struct{}, 1)
	if w.cfg.Cohort == nil {
		w.cfg.Cohort = cohort.Solo()
	}
	w.ranks = cohortLink{rank: w.cfg.Cohort.Rank(), size: w.cfg.Cohort.Size(), undelivered: w.rankLost}
	// What is wrong here is told to the other ranks, so it must not keep us from
	// joining them.
	err := w.prepare(ctx)
	err = w.join(err)
	if err == nil {
		w.sayConflicts()
		err = w.start(ctx)
	}
	if err != nil {
		w.mu.Lock()
		w.end(err)
		w.mu.Unlock()
		w.ranks.flush(&w.mu)
		w.detach()
		return nil, &Error{Op: "create", Stream: name, Err: err}
	}
	return w, nil
}

func (cfg WriterConfig) resolve() (WriterConfig, error) {
	var err error
	cfg.Params, err = cfg.Params.resolve(WriterSide)
	if err != nil {
		return cfg, err
	}
	switch {
	case cfg.Ranks < NoRanks || cfg.Ranks > maxRanks:
		return cfg, fmt.Errorf("%w: %d ranks: must be 1 to %d, or NoRanks", ErrParam, cfg.Ranks, maxRanks)
	case cfg.Ranks == NoRanks && cfg.Cohort.Rank() == 0:
		return cfg, fmt.Errorf("%w: NoRanks at rank 0, which speaks with the readers", ErrParam)
	case cfg.Ranks == NoRanks:
		cfg.Ranks = 0 // from here on it is the number
	case cfg.Ranks == 0:
		cfg.Ranks = 1
	}
	if cfg.ContactMode == 0 {
		cfg.ContactMode = defaultContactMode
	}
	if cfg.CloseTimeout == 0 {
		cfg.CloseTimeout = defaultCloseTimeout
	}
	return cfg, nil
}

// prepare does what concerns this process alone.
func (w *Writer) prepare(ctx context.Context) (err error) {
	if w.cfg, err = w.cfg.resolve(); err != nil {
		return err
	}
	if w.path, err = streamPath(w.name); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	w.memory.ranks = w.cfg.Ranks
	for range w.cfg.Ranks {
		w.encoders = append(w.encoders, step.NewEncoder(step.EncoderConfig{
			ColumnMajor: w.cfg.ColumnMajor, Stats: w.cfg.Params.StatsLevel > 0,
		}))
	}
	if w.session, w.own, err = sessionFor(ctx, w.cfg.Session, w.cfg.Params); err != nil {
		return err
	}
	if err := w.session.manualWrites(); err != nil {
		return err
	}
	w.eager.most, w.eager.peers = w.session.spin(), w.ranks.size // the other ranks, and a reader
	if err := w.openArena(ctx); err != nil {
		return err
	}
	return w.session.addStream(w)
}

// sessionFor returns the session to use, and whether the stream owns it.
func sessionFor(ctx context.Context, given *Session, p Params) (*Session, bool, error) {
	iface := p.ControlInterface
	if iface == "" {
		iface = p.NetworkInterface
	}
	if given == nil {
		s, err := NewSession(ctx, SessionConfig{NetworkInterface: iface})
		return s, true, err
	}
	if iface != "" && iface != given.cfg.NetworkInterface {
		return nil, false, fmt.Errorf("%w: NetworkInterface=%q: a shared session publishes one address; set it in SessionConfig", ErrParam, iface)
	}
	return given, false, nil
}

// waitFor waits until ok is true. A wait that is long says why. The caller holds
// mu, which is free while it waits and while why is asked.
func (w *Writer) waitFor(ctx context.Context, why func() (string, []any), ok func() bool) error {
	var wait *longWait
	for first := true; ; first = false {
		switch {
		case w.failure != nil:
			return w.failure
		case ok():
			return nil
		case ctx.Err() != nil:
			return context.Cause(ctx)
		}
		changed := w.changed.wait()
		if first {
			began := time.Now()
			defer func() { w.eager.end(time.Since(began)) }()
			if w.waitEagerly(ctx, changed, began) {
				continue
			}
		}
		if wait == nil {
			wait = w.session.waits.begin(ctx, why)
			defer wait.end()
		}
		w.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
		}
		w.mu.Lock()
	}
}

// waitEagerly waits a moment for a message of the reader, if there is only one. The
// caller holds mu, which is free meanwhile.
func (w *Writer) waitEagerly(ctx context.Context, changed <-chan struct{}, began time.Time) bool {
	var l poller
	for _, r := range w.readers {
		if len(w.readers) == 1 && r.link != nil {
			l = r.out()
		}
	}
	w.mu.Unlock()
	defer w.mu.Lock()
	return w.eager.wait(ctx, l, changed, began)
}

// Name returns the stream's name as given to Create.
func (w *Writer) Name() string { return w.name }

// Finish announces the end of the stream and waits until every reader has
// released its steps, has left, or is lost. The writer serves reads meanwhile.
// If ctx ends first, Finish may be called again; Close gives up.
//
// In a cohort every rank calls it, or Close; the end is announced when all have.
func (w *Writer) Finish(ctx context.Context) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if st := cmp.Or(w.open, w.ending); st != nil && !st.left && w.failure == nil {
		return w.fail("finish", fmt.Errorf("step %d is still open: %w", st.number, ErrOrder))
	}
	if err := w.finish(ctx); err != nil {
		return w.fail("finish", err)
	}
	return nil
}

// finish is Finish for who holds mu.
func (w *Writer) finish(ctx context.Context) error {
	w.finished = true
	if w.failure == nil && !w.leaving {
		w.leaving = true
		w.tellMember(cp.MemberFinish{})
	}
	why := func() (string, []any) {
		return "waiting for readers to take the last steps", append(append([]any{"stream", w.path}, w.holdups(rankUnfinished)...), until(ctx)...)
	}
	return w.waitFor(ctx, why, func() bool { return w.member.Phase() == cp.WriterDrained })
}

// Close ends the stream: it does what Finish does, at most for CloseTimeout,
// then drops readers that are not done and removes the contact file. An open
// step is given up. It is idempotent.
//
// The other ranks of a cohort must close, too. If this rank gives up waiting,
// the stream ends for all of them.
func (w *Writer) Close() error {
	var err error
	w.closing.Do(func() { err = w.close() })
	return err
}

func (w *Writer) close() error {
	ctx, cancel := context.WithTimeoutCause(context.Background(), w.cfg.CloseTimeout, fmt.Errorf("readers still hold steps, or other ranks are not done, after %v: %w", w.cfg.CloseTimeout, ErrTimeout))
	defer cancel()
	w.mu.Lock()
	w.giveUpStep(fmt.Errorf("given up by Close: %w", ErrClosed))
	err := w.finish(ctx)
	w.mu.Unlock()
	w.abort(cmp.Or(err, ErrClosed))
	if err == nil || errors.Is(err, ErrClosed) {
		return nil
	}
	return w.fail("close", err)
}

// Abort ends the stream before its time, at once: what the readers have got is
// not all there was to be. Weft readers get [ErrWriterFailed] with the text of
// cause; those of ADIOS2 lose their connection, which they do not take for a normal
// end. So do the other ranks of a cohort, with [ErrAborted], and every later call
// of this one. Nothing is left to Close, which returns nil.
func (w *Writer) Abort(cause error) {
	w.closing.Do(func() {
		text := "no cause given"
		if cause != nil {
			text = cause.Error() // the text alone: a cause that is ErrClosed must not pass for a normal end
		}
		w.abort(fmt.Errorf("%w: %s", ErrAborted, text))
	})
}

// abort ends the stream at once. Readers are told that it ends; what they still
// ask for they do not get. The other ranks of a cohort hear of it.
func (w *Writer) abort(err error) {
	w.mu.Lock()
	w.end(err)
	w.mu.Unlock()
	w.detach()
}

// end is the part of abort for who holds mu.
func (w *Writer) end(err error) {
	if w.ended {
		return
	}
	w.giveUpStep(err)
	w.ended = true
	drained := w.member != nil && w.member.Phase() == cp.WriterDrained
	told := w.failure != nil // by whoever it came from, or by us
	if w.failure == nil {
		w.failure = err
	}
	switch {
	case w.leader != nil:
		w.tellLeader(cp.EndStream{Err: err})
	case w.member != nil && !drained && !told:
		w.ranks.sayFailed(err)
	}
	for _, r := range w.early {
		w.turnAway(r.link, r.msg)
	}
	w.early = nil
	for key := range w.readers {
		w.forget(key)
	}
	for number, d := range w.steps {
		delete(w.steps, number)
		d.release()
	}
	w.sweepUnread(true)
	w.changed.notify()
}

// detach takes the stream out of its session and of its cohort.
func (w *Writer) detach() {
	w.unpublish()
	w.mu.Lock()
	w.ranks.leave()
	w.mu.Unlock()
	w.memory.close()
	if w.session == nil {
		return
	}
	w.session.removeStream(w)
	if w.own {
		w.session.Close()
	}
}

func (w *Writer) fail(op string, err error) error {
	return &Error{Op: op, Stream: w.name, Err: err}
}
