package sst

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
	"time"

	"github.com/weft-fabric/weft/internal/wire/sstmsg"
	"github.com/weft-fabric/weft/sst/internal/carrier"
	"github.com/weft-fabric/weft/sst/internal/cp"
	"github.com/weft-fabric/weft/step"
)

// WriterConfig configures a writer. The zero value works.
type WriterConfig struct {
	// Session to use; nil opens one that ends with the writer.
	Session *Session
	// Params are the engine parameters.
	Params Params
	// Ranks is the number of writer ranks that this process stands for, all of
	// them; 0 means 1. See [WriterStep.Rank].
	Ranks int
	// ColumnMajor declares that dimensions are column-major, as in Fortran.
	ColumnMajor bool
	// ContactMode is the permission of the contact file; 0 means 0600: whoever can
	// read it can attach.
	ContactMode fs.FileMode
	// CloseTimeout bounds how long Close waits for readers that still hold steps;
	// 0 means 10 minutes.
	CloseTimeout time.Duration
}

const (
	defaultContactMode  fs.FileMode = 0o600
	defaultCloseTimeout             = 10 * time.Minute
	maxRanks                        = 1 << 20
	planeEvpath                     = "evpath"
)

type readerKey = cp.ReaderKey

// Writer is the writing end of a stream.
type Writer struct {
	name    string
	cfg     WriterConfig
	session *Session
	own     bool // the session ends with the writer
	path    string
	contact contactFile

	encoders []*step.Encoder   // one a rank; guarded by the step protocol
	pool     *step.HeapPool    // memory of ended steps
	formats  map[[12]byte]bool // that readers will have got

	mu       sync.Mutex
	machine  *cp.Writer
	readers  map[readerKey]*attached
	steps    map[int64]*stepData // data that readers may still ask for
	nextKey  readerKey
	open     *WriterStep
	finished bool
	written  uint64 // bytes of the steps that were ended
	changed  signal
	failure  error // why nothing more can be written
}

// attached is a reader cohort as its writer's shell knows it.
type attached struct {
	link    carrier.Link
	options sstmsg.Options
	ids     []int64 // identities that we issued for it
	msg     *sstmsg.ReaderRegister
	far     map[int][]farPush    // blocks that wait for a connection, by reader rank
	links   map[int]carrier.Link // to reader ranks that blocks were pushed to
	gone    bool                 // dropped
}

// Create opens a stream for writing under a name, with or without the suffix
// ".sst", and waits for RendezvousReaderCount readers. On error, and if ctx
// ends, no contact file stays.
func Create(ctx context.Context, name string, cfg WriterConfig) (*Writer, error) {
	w, err := newWriter(ctx, name, cfg)
	if err != nil {
		return nil, &Error{Op: "create", Stream: name, Err: err}
	}
	if err := w.rendezvous(ctx); err != nil {
		w.abort(err)
		return nil, &Error{Op: "create", Stream: name, Err: err}
	}
	return w, nil
}

func (cfg WriterConfig) resolve() (WriterConfig, error) {
	var err error
	cfg.Params, err = cfg.Params.resolve(writerSide)
	if err != nil {
		return cfg, err
	}
	if cfg.Ranks < 0 || cfg.Ranks > maxRanks {
		return cfg, fmt.Errorf("%d ranks: must be 1 to %d", cfg.Ranks, maxRanks)
	}
	cfg.Ranks = max(cfg.Ranks, 1)
	if cfg.ContactMode == 0 {
		cfg.ContactMode = defaultContactMode
	}
	if cfg.CloseTimeout == 0 {
		cfg.CloseTimeout = defaultCloseTimeout
	}
	return cfg, nil
}

func newWriter(ctx context.Context, name string, cfg WriterConfig) (*Writer, error) {
	cfg, err := cfg.resolve()
	if err != nil {
		return nil, err
	}
	path, err := streamPath(name)
	if err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, context.Cause(ctx)
	}
	w := &Writer{
		name: name, cfg: cfg, path: path, session: cfg.Session,
		readers: map[readerKey]*attached{}, steps: map[int64]*stepData{},
		pool: step.NewHeapPool(0), formats: map[[12]byte]bool{},
	}
	for range cfg.Ranks {
		w.encoders = append(w.encoders, step.NewEncoder(step.EncoderConfig{
			ColumnMajor: cfg.ColumnMajor, Stats: cfg.Params.StatsLevel > 0,
		}))
	}
	if err := w.attach(ctx); err != nil {
		return nil, err
	}
	return w, nil
}

// attach joins a session, and publishes the contact file last: from then on
// readers may come.
func (w *Writer) attach(ctx context.Context) (err error) {
	w.session, w.own, err = sessionFor(ctx, w.cfg.Session, w.cfg.Params)
	if err != nil {
		return err
	}
	w.machine = cp.NewWriter(w.machineConfig())
	w.contact = contactFile{stream: newID(), contact: w.session.cm.Contact()}
	if err := w.session.addStream(w); err != nil {
		return err
	}
	w.session.mu.Lock()
	w.session.writers[w.contact.stream] = w
	w.session.mu.Unlock()
	if _, err := os.Lstat(w.path); err == nil {
		w.session.log.Warn("replacing a contact file that is there: of a writer that crashed, or of one that readers will not find any more", "path", w.path)
	}
	if err := writeContact(w.path, w.contact, w.cfg.ContactMode); err != nil {
		w.detach()
		return err
	}
	return nil
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

func (w *Writer) machineConfig() cp.WriterConfig {
	p := &w.cfg.Params
	c := cp.WriterConfig{
		Ranks: w.cfg.Ranks, Plane: planeEvpath, QueueLimit: p.QueueLimit, Discard: p.QueueFullPolicy == "Discard",
		Preload: p.SpeculativePreloadMode != "Off", Params: w.wireParams(),
	}
	for rank := range w.cfg.Ranks {
		c.PlaneInfo = append(c.PlaneInfo, fmt.Sprintf("weft evpath rank %d", rank))
	}
	return c
}

// wireParams are our parameters as readers see them. ADIOS2 readers act on the
// marshalling, the array order and the pattern only.
func (w *Writer) wireParams() sstmsg.Params {
	p := &w.cfg.Params
	wire := sstmsg.Params{
		MarshalMethod: sstmsg.MarshalBP5, DataTransport: planeEvpath, WANDataTransport: "sockets", ControlTransport: "sockets",
		ControlModule: "select", OpenTimeoutSecs: int32(defaultOpenTimeout / time.Second), RendezvousReaderCount: int32(p.rendezvous()),
		QueueLimit: int32(p.QueueLimit), IsRowMajor: 1, CPCommPattern: sstmsg.PatternMin, StatsLevel: int32(p.StatsLevel),
		SpecAutoNodeThreshold: defaultThreshold, UseOneTimeAttributes: 1, NetworkInterface: p.NetworkInterface, ControlInterface: p.ControlInterface,
	}
	if p.QueueFullPolicy == "Discard" {
		wire.QueueFullPolicy = 1
	}
	if w.cfg.ColumnMajor {
		wire.IsRowMajor = 0
	}
	return wire
}

// rendezvous waits until enough readers are there.
func (w *Writer) rendezvous(ctx context.Context) error {
	want := w.cfg.Params.rendezvous()
	why := func() (string, []any) {
		return "waiting for readers; set RendezvousReaderCount to 0 to go on without", []any{"stream", w.path, "have", w.active(), "want", want, "until", "they come, or the caller cancels"}
	}
	return w.waitFor(ctx, why, func() bool { return w.machine.Active() >= want })
}

func (w *Writer) active() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.machine.Active()
}

// waitFor waits until ok, asked with the lock held, is true. A wait that is
// long says why.
func (w *Writer) waitFor(ctx context.Context, why func() (string, []any), ok func() bool) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	explained := false
	for {
		switch {
		case w.failure != nil:
			return w.failure
		case ok():
			return nil
		case ctx.Err() != nil:
			return context.Cause(ctx)
		}
		if !explained {
			explained = true
			defer explain(ctx, w.session.log, why)()
		}
		changed := w.changed.wait()
		w.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
		}
		w.mu.Lock()
	}
}

// Name returns the stream's name as given to Create.
func (w *Writer) Name() string { return w.name }

// Finish announces the end of the stream and waits until every reader has
// released its steps, has left, or is lost. The writer serves reads meanwhile.
// If ctx ends first, Finish may be called again; Close gives up.
func (w *Writer) Finish(ctx context.Context) error {
	w.mu.Lock()
	if st := w.open; st != nil {
		w.mu.Unlock()
		return w.fail("finish", fmt.Errorf("step %d is still open: %w", st.number, ErrOrder))
	}
	w.finished = true
	w.handle(cp.Finish{})
	w.mu.Unlock()
	why := func() (string, []any) {
		return "waiting for readers to take the last steps", append(append([]any{"stream", w.path}, w.laggards()...), until(ctx)...)
	}
	err := w.waitFor(ctx, why, w.machine.Drained)
	if err != nil {
		return w.fail("finish", err)
	}
	return nil
}

// laggards describes who holds the oldest step.
func (w *Writer) laggards() []any {
	w.mu.Lock()
	defer w.mu.Unlock()
	args := []any{"steps", w.machine.Held()}
	for _, k := range w.machine.Laggards() {
		if r := w.readers[k]; r != nil {
			args = append(args, "reader", r.link.Info().Remote.String())
		}
	}
	return args
}

// Close ends the stream: it does what Finish does, at most for CloseTimeout,
// then drops readers that are not done and removes the contact file. An open
// step is given up. It is idempotent.
func (w *Writer) Close() error {
	w.mu.Lock()
	w.finished = true // no step begins from here on
	if w.open != nil {
		w.open.end() // and no more: somebody may be putting at this moment
	}
	w.mu.Unlock()
	ctx, cancel := context.WithTimeoutCause(context.Background(), w.cfg.CloseTimeout, fmt.Errorf("readers still hold steps after %v: %w", w.cfg.CloseTimeout, ErrTimeout))
	defer cancel()
	err := w.Finish(ctx)
	for err == nil && !w.seal() {
		err = w.Finish(ctx)
	}
	if errors.Is(err, ErrClosed) {
		err = nil
	}
	w.abort(ErrClosed)
	return err
}

// seal lets no reader in any more, unless one has come since Finish.
func (w *Writer) seal() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.machine.Drained() {
		return false
	}
	if w.failure == nil {
		w.failure = ErrClosed
	}
	return true
}

// abort ends the stream at once. Readers are told that it ends; what they still
// ask for they do not get.
func (w *Writer) abort(err error) {
	w.mu.Lock()
	if w.failure == nil {
		w.failure = err
	}
	w.handle(cp.Finish{})
	for k, r := range w.readers {
		if !w.machine.Reader(k).Active {
			w.sendAway(r, err)
		}
		w.handle(cp.ReaderLost{Reader: k, Err: err})
	}
	w.changed.notify()
	w.mu.Unlock()
	w.detach()
}

// sendAway ends a reader that has yet to activate. An ADIOS2 one expects no word
// before that. The caller holds mu.
func (w *Writer) sendAway(r *attached, err error) {
	if !r.options.Weft {
		r.link.Abort(err)
		return
	}
	w.session.post(r.link, &sstmsg.WriterClose{ReaderID: r.msg.CP[0].ReaderID, FinalStep: w.machine.NextStep() - 1}, r.options, nil)
}

// detach takes the stream out of its session.
func (w *Writer) detach() {
	if err := removeContact(w.path, w.contact); err != nil {
		w.session.log.Warn("the contact file stays", "path", w.path, "error", err)
	}
	w.session.mu.Lock()
	delete(w.session.writers, w.contact.stream)
	w.session.retireLocked(w.contact.stream)
	w.session.mu.Unlock()
	w.session.removeStream(w)
	if w.own {
		w.session.Close()
	}
}

func (w *Writer) fail(op string, err error) error {
	return &Error{Op: op, Stream: w.name, Err: err}
}
