package dp

import (
	"context"
	"errors"
	"fmt"
	"sync"

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

// maxRequest is the most that one request asks for: releases up to 2.10 cannot
// send a record of 2 GiB (docs/wire/cm.md §9).
const maxRequest = 1 << 30

// Sender sends a request to a writer rank, connecting to it at first use. It
// must not wait for the answer.
type Sender func(ctx context.Context, rank int, m *sstmsg.ReadRequest) error

// EvpathConfig is what a plane needs to know of the two sides.
type EvpathConfig struct {
	ReaderID int64 // our data-plane identity
	Send     Sender
}

// Evpath is the reading side of the evpath plane for one reader.
type Evpath struct {
	cfg EvpathConfig

	mu       sync.Mutex
	writers  []int64              // identity of each writer rank towards us; guarded by mu
	next     int32                // number of the next request
	pending  map[int32]*request   // guarded by mu
	preloads map[block]*preloaded // guarded by mu
	forgot   int64                // steps up to here are over; guarded by mu
	failure  error                // why nothing works any more; guarded by mu
}

// block names the data block of a writer rank in a step.
type block struct {
	step int64
	rank int
}

// preloaded is a block that was pushed, or is awaited.
type preloaded struct {
	data  []byte
	free  func()
	here  bool
	over  bool // its step is over: free it after the last use
	users int
	awake bool
	ready chan struct{} // closed when here, when the step is over, or when the plane fails
}

// wake lets everybody who waits for the block look again. The caller holds the
// plane's lock.
func (p *preloaded) wake() {
	if !p.awake {
		p.awake = true
		close(p.ready)
	}
}

// drop gives the memory back if nobody uses it. The caller holds the plane's lock.
func (p *preloaded) drop() {
	if p.here && p.over && p.users == 0 && p.free != nil {
		p.free()
		p.free, p.data = nil, nil
	}
}

// request is one outstanding ReadRequest.
type request struct {
	rank  int
	dst   []byte
	batch *batch
}

// batch is one call of Read. Its lock guards the destination memory: once the
// batch is over nothing is written there any more.
type batch struct {
	mu   sync.Mutex
	left int
	err  error
	over bool
	done chan struct{}
}

// NewEvpath returns the plane of a reader.
func NewEvpath(cfg EvpathConfig) *Evpath {
	return &Evpath{cfg: cfg, pending: map[int32]*request{}, preloads: map[block]*preloaded{}, forgot: -1}
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

// end takes the entry of a block out. The caller holds mu.
func (e *Evpath) end(b block, p *preloaded) {
	p.over = true
	p.wake()
	p.drop()
	delete(e.preloads, b)
}

func (e *Evpath) ranks() []int64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.writers
}

// Step returns the source of one step's data. Preloaded says that the writer
// pushes the blocks.
func (e *Evpath) Step(number int64, preloaded bool) step.Source {
	return &evpathStep{plane: e, number: number, preloaded: preloaded}
}

type evpathStep struct {
	plane     *Evpath
	number    int64
	preloaded bool
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
	if s.preloaded {
		return s.plane.readPreloaded(ctx, s.number, pieces)
	}
	return s.plane.request(ctx, s.number, pieces)
}

// View hands out a part of a block that was pushed. The memory is this process's
// own copy of the record it came in.
func (s *evpathStep) View(ctx context.Context, rank int, offset, n uint64) ([]byte, func(), error) {
	if !s.preloaded {
		return nil, nil, fmt.Errorf("step %d: the writer sends only what is asked for: %w", s.number, step.ErrNoView)
	}
	if rank < 0 || rank >= len(s.plane.ranks()) {
		return nil, nil, fmt.Errorf("step %d: rank %d: %w", s.number, rank, errRank)
	}
	p, err := s.plane.await(ctx, block{s.number, rank})
	if err != nil {
		return nil, nil, err
	}
	b, err := p.part(s.number, rank, offset, n)
	if err != nil {
		s.plane.unuse(p)
		return nil, nil, err
	}
	return b, func() { s.plane.unuse(p) }, nil
}

// part returns n bytes of the block at offset.
func (p *preloaded) part(number int64, rank int, offset, n uint64) ([]byte, error) {
	if size := uint64(len(p.data)); offset > size || n > size-offset {
		return nil, fmt.Errorf("step %d: %d bytes at %d of writer rank %d's block of %d: %w", number, n, offset, rank, size, errPush)
	}
	return p.data[offset : offset+n : offset+n], nil
}

func (e *Evpath) request(ctx context.Context, number int64, pieces []step.Piece) error {
	b := &batch{done: make(chan struct{}), left: 1} // the 1 is ours, until all are sent
	sent, err := e.sendAll(ctx, b, number, pieces)
	if err != nil {
		b.finish(err)
	}
	b.complete(nil)
	select {
	case <-b.done:
	case <-ctx.Done():
		b.finish(context.Cause(ctx))
	}
	e.forget(sent)
	return b.err
}

func (e *Evpath) sendAll(ctx context.Context, b *batch, number int64, pieces []step.Piece) ([]int32, error) {
	var sent []int32
	ranks := e.ranks()
	for _, p := range pieces {
		for off, dst := p.Offset, p.Dst; len(dst) > 0; {
			n := min(len(dst), maxRequest)
			id, err := e.add(&request{rank: p.Rank, dst: dst[:n], batch: b})
			if err != nil {
				return sent, err
			}
			sent = append(sent, id)
			err = e.cfg.Send(ctx, p.Rank, &sstmsg.ReadRequest{
				Step: number, Offset: int64(off), Length: int64(n),
				WriterID: ranks[p.Rank], ReaderID: e.cfg.ReaderID, Condition: id,
			})
			if err != nil {
				return sent, fmt.Errorf("step %d: read from writer rank %d: %w", number, p.Rank, err)
			}
			off += uint64(n)
			dst = dst[n:]
		}
	}
	return sent, nil
}

// add registers a request and its share in its batch.
func (e *Evpath) add(r *request) (int32, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.failure != nil {
		return 0, e.failure
	}
	for {
		e.next++
		if e.next <= 0 {
			e.next = 1
		}
		if _, busy := e.pending[e.next]; !busy {
			break
		}
	}
	e.pending[e.next] = r
	r.batch.mu.Lock()
	r.batch.left++
	r.batch.mu.Unlock()
	return e.next, nil
}

func (e *Evpath) forget(ids []int32) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, id := range ids {
		delete(e.pending, id)
	}
}

func (e *Evpath) take(id int32) *request {
	e.mu.Lock()
	defer e.mu.Unlock()
	r := e.pending[id]
	delete(e.pending, id)
	return r
}

// Reply brings an answer. Answers to requests that were given up are dropped.
func (e *Evpath) Reply(m *sstmsg.ReadReply) {
	r := e.take(m.Condition)
	if r == nil {
		return
	}
	if m.Data.Len() == 0 { // nobody asks for nothing: this is how Weft says no
		r.batch.finish(fmt.Errorf("step %d: writer rank %d: %w", m.Step, r.rank, errEmpty))
		return
	}
	if m.Data.Len() != len(r.dst) {
		r.batch.finish(fmt.Errorf("step %d: writer rank %d sent %d bytes for a request of %d: %w", m.Step, r.rank, m.Data.Len(), len(r.dst), errReply))
		return
	}
	r.batch.fill(r.dst, m.Data)
}

// fill copies data to dst unless the batch is over.
func (b *batch) fill(dst []byte, data sstmsg.Blob) {
	b.mu.Lock()
	if !b.over {
		for _, p := range data {
			dst = dst[copy(dst, p):]
		}
	}
	b.mu.Unlock()
	b.complete(nil)
}

// complete takes one share off the batch; the last one ends it.
func (b *batch) complete(err error) {
	b.mu.Lock()
	b.left--
	last := b.left == 0
	b.mu.Unlock()
	if last {
		b.finish(err)
	}
}

// finish ends the batch; the first error stays.
func (b *batch) finish(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.over {
		b.over, b.err = true, err
		close(b.done)
	}
}

// Push brings a preloaded block. The plane owns the memory until the step is
// over, and then calls free. Repeats and steps that are over are dropped.
func (e *Evpath) Push(m *sstmsg.Preload, free func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	attached := e.writers != nil
	if m.WriterRank < 0 || m.WriterRank > maxRank || attached && m.WriterRank >= int64(len(e.writers)) || m.Step <= e.forgot || e.failure != nil {
		free()
		return
	}
	p := e.awaited(block{m.Step, int(m.WriterRank)})
	if p.here {
		free()
		return
	}
	p.data, p.free, p.here = m.Data.Bytes(), free, true
	p.wake()
}

// maxRank bounds the ranks that are believed before Attach.
const maxRank = 1<<31 - 1

// awaited returns the entry of a block of a step that is not over. The caller
// holds mu.
func (e *Evpath) awaited(b block) *preloaded {
	p := e.preloads[b]
	if p == nil {
		p = &preloaded{ready: make(chan struct{})}
		e.preloads[b] = p
	}
	return p
}

func (e *Evpath) readPreloaded(ctx context.Context, number int64, pieces []step.Piece) error {
	for _, p := range pieces {
		b, err := e.await(ctx, block{number, p.Rank})
		if err != nil {
			return err
		}
		data, err := b.part(number, p.Rank, p.Offset, uint64(len(p.Dst)))
		copy(p.Dst, data)
		e.unuse(b)
		if err != nil {
			return err
		}
	}
	return nil
}

// await returns the block once it is here, in use until unuse.
func (e *Evpath) await(ctx context.Context, b block) (*preloaded, error) {
	p, err := e.expect(b)
	if err != nil {
		return nil, err
	}
	select {
	case <-p.ready:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case p.here && !p.over:
		p.users++
		return p, nil
	case e.failure != nil:
		return nil, e.failure
	}
	return nil, fmt.Errorf("step %d: %w", b.step, errOver)
}

// expect returns the entry of a block that is here, or can still come.
func (e *Evpath) expect(b block) (*preloaded, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	p, known := e.preloads[b]
	switch {
	case known && p.here:
		return p, nil
	case e.failure != nil:
		return nil, e.failure
	case b.step <= e.forgot:
		return nil, fmt.Errorf("step %d: %w", b.step, errOver)
	}
	return e.awaited(b), nil
}

func (e *Evpath) unuse(p *preloaded) {
	e.mu.Lock()
	defer e.mu.Unlock()
	p.users--
	p.drop()
}

// Forget ends a step: what was preloaded for it, and for those before it, is
// given back.
func (e *Evpath) Forget(number int64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.forgot = max(e.forgot, number)
	for b, p := range e.preloads {
		if b.step <= number {
			e.end(b, p)
		}
	}
}

// FailRank fails the requests to one writer rank, because the connection to it
// was lost. The error names the rank.
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
		r.batch.finish(fmt.Errorf("writer rank %d: %w", rank, err))
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
		r.batch.finish(err)
	}
}

// Close fails the plane and gives all memory back.
func (e *Evpath) Close(err error) {
	e.Fail(err)
	e.Forget(1<<63 - 1)
}
