package sst

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/weft-fabric/weft/internal/wire/sstmsg"
	"github.com/weft-fabric/weft/sst/internal/cp"
	"github.com/weft-fabric/weft/step"
)

// WriterStep is a step being filled. It belongs to one goroutine at a time.
type WriterStep struct {
	w      *Writer
	number int64
	data   *stepData
	rank   int
	ended  *atomic.Bool // shared by the views of all ranks
}

// stepData is the memory of a step: one block store a rank. It is recycled when
// no reader holds the step and no reply refers to it.
type stepData struct {
	stores []*step.HeapStore
	uses   atomic.Int32 // the step itself, and replies on their way
}

// use adds a use. The caller knows that there is one already.
func (d *stepData) use() { d.uses.Add(1) }

// release takes a use off; the last one recycles the memory. It takes no lock.
func (d *stepData) release() {
	if d.uses.Add(-1) == 0 {
		d.reset()
	}
}

// newStepData takes memory for a step from the pool of ended ones.
func newStepData(pool *step.HeapPool, ranks int) *stepData {
	d := &stepData{}
	d.use()
	for range ranks {
		d.stores = append(d.stores, pool.NewStore())
	}
	return d
}

// size returns the bytes of all ranks.
func (d *stepData) size() uint64 {
	n := uint64(0)
	for _, s := range d.stores {
		n += s.Size()
	}
	return n
}

func (d *stepData) reset() {
	for _, s := range d.stores {
		s.Reset()
	}
}

// BeginStep opens the next step. Only one can be open.
func (w *Writer) BeginStep(ctx context.Context) (*WriterStep, error) {
	if ctx.Err() != nil {
		return nil, w.fail("begin step", context.Cause(ctx))
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.failure != nil:
		return nil, w.fail("begin step", w.failure)
	case w.finished:
		return nil, w.fail("begin step", fmt.Errorf("after Finish: %w", ErrOrder))
	case w.open != nil:
		return nil, w.fail("begin step", fmt.Errorf("step %d is still open: %w", w.open.number, ErrOrder))
	}
	st := &WriterStep{w: w, number: w.machine.NextStep(), data: newStepData(w.pool, w.cfg.Ranks), ended: new(atomic.Bool)}
	for rank, e := range w.encoders {
		if err := e.Begin(st.data.stores[rank]); err != nil {
			for _, begun := range w.encoders[:rank] {
				begun.Abort()
			}
			return nil, w.fail("begin step", err)
		}
	}
	w.open = st
	return st, nil
}

// Number returns the step's number, from 0.
func (st *WriterStep) Number() uint64 { return uint64(st.number) }

// Rank returns a view of the step through which blocks are put as writer rank
// r: below WriterConfig.Ranks. The step itself is rank 0.
func (st *WriterStep) Rank(r int) *WriterStep {
	view := *st
	view.rank = r
	return &view
}

// encoder returns what to put through, if the step is still open.
func (st *WriterStep) encoder(op string) (*step.Encoder, error) {
	if st.ended.Load() {
		return nil, st.w.fail(op, fmt.Errorf("step %d has ended: %w", st.number, ErrOrder))
	}
	if st.rank < 0 || st.rank >= len(st.w.encoders) {
		return nil, st.w.fail(op, fmt.Errorf("rank %d of %d", st.rank, len(st.w.encoders)))
	}
	return st.w.encoders[st.rank], nil
}

// Abort gives the step up: nothing of it is sent, and its number is used again.
func (st *WriterStep) Abort() {
	st.w.mu.Lock()
	defer st.w.mu.Unlock()
	if st.end() {
		for _, e := range st.w.encoders {
			e.Abort()
		}
		st.data.release()
	}
}

// end marks the step ended; it is false the second time. The caller holds w.mu.
func (st *WriterStep) end() bool {
	if st.ended.Swap(true) {
		return false
	}
	st.w.open = nil
	return true
}

// End publishes the step: all of it, at once, to every reader. If the queue is
// full it first waits for room (QueueFullPolicy Block), or drops the step
// (Discard). If ctx ends while it waits, the step is given up.
func (st *WriterStep) End(ctx context.Context) error {
	if _, err := st.encoder("end step"); err != nil {
		return err
	}
	w := st.w
	why := func() (string, []any) {
		return "waiting for room in the queue; a reader is slow, or stuck", append(append([]any{"stream", w.path, "QueueLimit", w.cfg.Params.QueueLimit}, w.laggards()...), until(ctx)...)
	}
	err := w.waitFor(ctx, why, w.machine.Room)
	if err != nil {
		st.Abort()
		return w.fail("end step", err)
	}
	publish, err := st.encode()
	if err != nil {
		st.Abort()
		return w.fail("end step", err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if !st.end() {
		return w.fail("end step", fmt.Errorf("given up by Close: %w", ErrClosed))
	}
	if w.failure != nil {
		return w.fail("end step", w.failure)
	}
	w.steps[st.number] = st.data
	w.written += st.data.size()
	w.handle(publish)
	return nil
}

// encode makes the records of all ranks.
func (st *WriterStep) encode() (cp.Publish, error) {
	var p cp.Publish
	for rank, e := range st.w.encoders {
		out, err := e.End()
		if err != nil {
			return p, fmt.Errorf("rank %d: %w", rank, err)
		}
		for _, f := range out.Formats {
			p.Formats = append(p.Formats, sstmsg.FormatBlock{ID: sstmsg.ByteBlob(f.ID[:]), Body: sstmsg.ByteBlob(f.Body)})
		}
		p.Metadata = append(p.Metadata, sstmsg.Block{Data: sstmsg.ByteBlob(out.Metadata)})
		if rank == 0 {
			p.Attributes = sstmsg.ByteBlob(out.Attributes)
		}
		p.Large = p.Large || out.DataSize > maxPreload
	}
	p.Formats = st.w.newFormats(p.Formats)
	return p, nil
}

// maxPreload is the largest block that is pushed: releases up to 2.10 cannot
// take a record of 2 GiB (docs/wire/cm.md §9).
const maxPreload = 1 << 30

// newFormats leaves out formats that another rank has brought before.
func (w *Writer) newFormats(list []sstmsg.FormatBlock) []sstmsg.FormatBlock {
	return slices.DeleteFunc(list, func(f sstmsg.FormatBlock) bool {
		id := [12]byte(f.ID.Bytes())
		known := w.formats[id]
		w.formats[id] = true
		return known
	})
}
