package dp

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/weft-fabric/weft/internal/wire/sstmsg"
	"github.com/weft-fabric/weft/step"
)

// Errors of the evpath plane.
var (
	errRank  = errors.New("no such writer rank")
	errReply = errors.New("reply does not match its request")
	errEmpty = errors.New("the writer does not hold the step any more")
	errPush  = errors.New("preloaded block too short")
	errOver  = errors.New("step is over")
)

// Modes of preload, as a step's metadata names them (docs/wire/sst.md §8.3).
const (
	ModeRequest     = 0 // the writer sends what it is asked for
	ModeSpeculative = 1 // the writer pushes every block to every reader rank
	ModeLearned     = 2 // the writer pushes what a rank read in the first step of that mode
)

// Sender sends a request to a writer rank, connecting to it at first use. It
// must not wait for the answer.
type Sender func(ctx context.Context, rank int, m *sstmsg.ReadRequest) error

// EvpathConfig is what a plane needs to know of the two sides.
type EvpathConfig struct {
	ReaderID int64 // our data-plane identity
	Rank     int   // ours in the reader cohort
	Send     Sender
	// Patience is how long a read waits for a block that the writer should push by
	// what it has learned, before it asks for it; 0 means 2 s.
	Patience time.Duration
	// Watch, which may be nil, looks after a writer rank that does not push what a read
	// has waited for since Doubt; 0 means 1 s.
	Watch Watcher
	Doubt time.Duration
	// Memory, which may be nil, gives n bytes for a view, and takes them back.
	Memory func(n int) (b []byte, free func())
	// MaxView bounds the memory of a view, in bytes; 0 means 4 GiB.
	MaxView uint64
	// MaxEarly bounds what is kept of blocks that were pushed for steps that were not
	// announced (Announce), in bytes; 0 means 4 GiB.
	MaxEarly uint64
	// Batch is the most that is read at a time, in bytes: by one request, of at most
	// 1 GiB, and by a goroutine that copies, of at most 1 MiB. 0 means these.
	Batch int
	// Await waits until done is closed, and returns the context's error if that ends before.
	// nil does just that; one that takes in what comes is for programs that have
	// nobody else for it.
	Await func(ctx context.Context, done <-chan struct{}) error
	// Lost is what it means that a writer rank cannot be reached, or serves us no
	// more, if nobody says why.
	Lost error
	// Gone, if it is not nil, is what it means instead that a writer rank does not hold a
	// step any more.
	Gone error
	// Grace is how long a read that has failed so waits for somebody to say why
	// (Fail); 0 means 500 ms.
	Grace time.Duration
}

const (
	defaultPatience = 2 * time.Second
	defaultMaxView  = step.DefaultMaxAlloc
	defaultGrace    = 500 * time.Millisecond
)

// await is the default of EvpathConfig.Await.
func await(ctx context.Context, done <-chan struct{}) error {
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Evpath is the reading side of the evpath plane for one reader rank.
type Evpath struct {
	cfg EvpathConfig

	mu        sync.Mutex
	writers   []int64              // identity of each writer rank towards us; guarded by mu
	next      int32                // number of the next request
	pending   map[int32]*request   // guarded by mu
	preloads  map[block]*preloaded // guarded by mu
	open      map[int64]bool       // steps that were begun and are not over; guarded by mu
	forgot    int64                // steps up to here are over, but for the open ones; guarded by mu
	dropped   []span               // steps that never begin, rising; guarded by mu
	announced int64                // newest step whose metadata came; guarded by mu
	early     earlyBlocks          // guarded by mu
	learned   learning             // guarded by mu
	stats     map[int]*RankStats   // by writer rank; guarded by mu
	failure   error                // why nothing works any more; guarded by mu
	failed    chan struct{}        // closed when failure is set
	vain      map[int]bool         // writer ranks whose loss nobody has explained; guarded by mu
}

// NewEvpath returns the plane of a reader rank.
func NewEvpath(cfg EvpathConfig) *Evpath {
	if cfg.Patience == 0 {
		cfg.Patience = defaultPatience
	}
	if cfg.MaxView == 0 {
		cfg.MaxView = defaultMaxView
	}
	if cfg.MaxEarly == 0 {
		cfg.MaxEarly = defaultMaxEarly
	}
	if cfg.Memory == nil {
		cfg.Memory = func(n int) ([]byte, func()) { return make([]byte, n), func() {} }
	}
	if cfg.Doubt == 0 {
		cfg.Doubt = defaultDoubt
	}
	if cfg.Await == nil {
		cfg.Await = await
	}
	if cfg.Batch == 0 {
		cfg.Batch = maxRequest
	}
	if cfg.Grace == 0 {
		cfg.Grace = defaultGrace
	}
	return &Evpath{
		failed: make(chan struct{}), vain: map[int]bool{},
		cfg: cfg, pending: map[int32]*request{}, preloads: map[block]*preloaded{}, open: map[int64]bool{},
		stats: map[int]*RankStats{}, forgot: -1, announced: -1, early: earlyBlocks{cost: map[int64]uint64{}}, learned: learning{first: -1, asked: map[int]bool{}},
	}
}

// Attach tells the plane the writer ranks' identities. Blocks may have been
// pushed before; those of ranks that there are not go back.
func (e *Evpath) Attach(writerIDs []int64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.writers = writerIDs
	for b, p := range e.preloads {
		if b.rank >= len(writerIDs) {
			e.end(b, p)
		}
	}
}

func (e *Evpath) ranks() []int64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.writers
}

// Step begins a step and returns the source of its data, in the mode that the
// step's metadata names. Steps begin in rising order; several can be open.
func (e *Evpath) Step(number int64, mode int32) step.Source { return e.begin(number, mode) }

func (e *Evpath) begin(number int64, mode int32) *evpathStep {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.saw(number, mode)
	e.announce(number)
	if !e.over(number) {
		e.open[number] = true
	}
	return &evpathStep{plane: e, number: number, mode: mode}
}

type evpathStep struct {
	plane  *Evpath
	number int64
	mode   int32
}

// Read fills the pieces. It returns when all are filled, one failed, or ctx is
// over; then nothing writes to them any more.
func (s *evpathStep) Read(ctx context.Context, pieces []step.Piece) error {
	ranks := s.plane.ranks()
	for _, p := range pieces {
		if p.Rank < 0 || p.Rank >= len(ranks) {
			return fmt.Errorf("step %d: rank %d of %d: %w", s.number, p.Rank, len(ranks), errRank)
		}
	}
	switch s.mode {
	case ModeSpeculative:
		return s.plane.readPreloaded(ctx, s.number, pieces)
	case ModeLearned:
		return s.plane.readLearned(ctx, s.number, pieces)
	}
	return s.plane.request(ctx, s.number, pieces)
}

// View hands out a part of a block that was pushed: this process's own copy of the
// record it came in. What was not pushed is asked for, and comes into memory of the
// view's own.
func (s *evpathStep) View(ctx context.Context, rank int, offset, n uint64) ([]byte, func(), error) {
	b, release, err := s.Held(ctx, rank, offset, n)
	if b != nil || err != nil {
		return b, release, err
	}
	return s.ask(ctx, rank, offset, n)
}

// Held hands out a part of a block that was pushed, or is bound to be; nil if it
// has to be asked for.
func (s *evpathStep) Held(ctx context.Context, rank int, offset, n uint64) ([]byte, func(), error) {
	if rank < 0 || rank >= len(s.plane.ranks()) {
		return nil, nil, fmt.Errorf("step %d: rank %d: %w", s.number, rank, errRank)
	}
	p, err := s.block(ctx, rank)
	if err != nil {
		return nil, nil, s.plane.explained(ctx, err)
	}
	if p == nil {
		return nil, nil, nil
	}
	b, err := p.part(s.number, rank, offset, n)
	if err != nil {
		s.plane.unuse(p)
		return nil, nil, err
	}
	return b, func() { s.plane.unuse(p) }, nil
}

// block returns a whole block that was pushed, in use until unuse, or nil if it
// has to be asked for.
func (s *evpathStep) block(ctx context.Context, rank int) (*preloaded, error) {
	switch s.mode {
	case ModeSpeculative:
		return s.plane.await(ctx, block{s.number, rank})
	case ModeLearned:
		return s.plane.expected(ctx, block{s.number, rank})
	}
	return nil, nil
}

// ask reads a part of a block into memory made for it. How much that is only the
// writer has said.
func (s *evpathStep) ask(ctx context.Context, rank int, offset, n uint64) ([]byte, func(), error) {
	if n > s.plane.cfg.MaxView {
		return nil, nil, fmt.Errorf("step %d: %d bytes would be asked for, at most %d can be: %w", s.number, n, s.plane.cfg.MaxView, step.ErrNoView)
	}
	b, free := s.plane.cfg.Memory(int(n))
	if err := s.Read(ctx, []step.Piece{{Rank: rank, Offset: offset, Dst: b}}); err != nil {
		free()
		return nil, nil, err
	}
	return b, free, nil
}

// FailRank fails the requests to one writer rank, because the connection to it
// was lost, as err says. The error of a read names step and rank.
func (e *Evpath) FailRank(rank int, err error) {
	e.mu.Lock()
	var hit []*request
	for id, r := range e.pending {
		if r.rank == rank {
			hit = append(hit, r)
			delete(e.pending, id)
		}
	}
	e.mu.Unlock()
	for _, r := range hit {
		r.batch.finish(&lostRank{r.step, rank, err})
	}
}

// Fail ends the plane: everything pending and everything to come fails with
// err. Blocks that were preloaded stay readable.
func (e *Evpath) Fail(err error) {
	e.mu.Lock()
	if e.failure != nil {
		e.mu.Unlock()
		return
	}
	e.failure = err
	close(e.failed)
	var hit []*request
	for id, r := range e.pending {
		hit = append(hit, r)
		delete(e.pending, id)
	}
	for _, p := range e.preloads {
		p.wake()
	}
	e.mu.Unlock()
	for _, r := range hit {
		r.batch.finish(r.failed(err))
	}
}

// Close fails the plane and gives all memory back.
func (e *Evpath) Close(err error) {
	e.Fail(err)
	e.mu.Lock()
	clear(e.open)
	e.mu.Unlock()
	e.Forget(1<<63 - 1)
}
