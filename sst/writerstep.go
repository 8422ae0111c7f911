package sst

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/weft-fabric/weft/internal/wire/sstmsg"
	"github.com/weft-fabric/weft/sst/internal/cp"
	"github.com/weft-fabric/weft/step"
)

// WriterStep is a step being filled. It belongs to one goroutine at a time.
type WriterStep struct {
	*openStep
	rank int // of this process, that is put as
}

// openStep is what the views of a step share.
type openStep struct {
	w       *Writer
	number  int64
	try     int64 // counts the steps begun here, from 1
	data    *stepData
	ended   atomic.Bool
	verdict cp.Verdict // guarded by w.mu, as is settled
	settled bool       // the verdict is in
	left    bool       // End gave up waiting for it; guarded by w.mu
	view    WriterStep // as the first rank
	filling filling
}

// BeginStep opens the next step. Only one can be open. It waits while the queue
// is full if BlockAt says so. In a cohort every rank calls it.
func (w *Writer) BeginStep(ctx context.Context) (*WriterStep, error) {
	if ctx.Err() != nil {
		return nil, w.fail("begin step", context.Cause(ctx))
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	err := w.mayBegin()
	if err == nil && !w.member.CanBegin() {
		err = w.waitToBegin(ctx)
	}
	if err != nil {
		return nil, w.fail("begin step", err)
	}
	st := &openStep{w: w, number: w.member.NextStep(), data: w.memory.get(w.servesNative())}
	st.data.out, st.data.pushed = time.Time{}, false
	for rank, e := range w.encoders {
		if err := e.Begin(st.data.stores[rank]); err != nil {
			for _, begun := range w.encoders[:rank] {
				begun.Abort()
			}
			st.data.release()
			return nil, w.fail("begin step", err)
		}
	}
	st.filling.data = st.data
	w.begun++
	st.try = w.begun
	w.open = st
	w.tellMember(cp.BeginTry{})
	st.view.openStep = st
	return &st.view, nil
}

// waitToBegin waits for the verdict on the step before, and with BlockAt
// "BeginStep" for room. The caller holds mu.
func (w *Writer) waitToBegin(ctx context.Context) error {
	why := func() (string, []any) {
		text := "waiting for room in the queue before the step begins; a reader is slow, or stuck"
		return text, append(append(w.queueArgs(), w.holdups(rankBehind(w.tries()))...), until(ctx)...)
	}
	if err := w.waitFor(ctx, why, w.member.CanBegin); err != nil {
		return err
	}
	return w.mayBegin() // something may have happened meanwhile
}

// mayBegin reports why no step can begin, if none can for reasons of our own.
func (w *Writer) mayBegin() error {
	switch {
	case w.failure != nil:
		return w.failure
	case w.finished:
		return fmt.Errorf("after Finish: %w", ErrOrder)
	case w.open != nil:
		return fmt.Errorf("step %d is still open: %w", w.open.number, ErrOrder)
	case w.ending != nil && !w.ending.left: // else BeginStep waits for the verdict
		return fmt.Errorf("step %d is just ending: %w", w.ending.number, ErrOrder)
	}
	return nil
}

// tries counts the steps that were begun here.
func (w *Writer) tries() int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.begun
}

// Number returns the step's number, from 0.
func (st *WriterStep) Number() uint64 { return uint64(st.number) }

// Rank returns a view of the step through which blocks are put as the r-th writer
// rank of this process: below WriterConfig.Ranks. The step itself is its first.
func (st *WriterStep) Rank(r int) *WriterStep { return &WriterStep{st.openStep, r} }

// Abort gives the step up: nothing of it is sent, and its number is used again. In
// a cohort that holds for all ranks.
func (st *WriterStep) Abort() {
	st.w.mu.Lock()
	defer st.w.mu.Unlock()
	st.abort(errGivenUp)
	st.filling.letGo(true)
}

var errGivenUp = errors.New("given up by Abort")

// encoder returns what to put through, if the step is still open. The caller has
// entered it.
func (st *WriterStep) encoder(op string) (*step.Encoder, error) {
	if st.ended.Load() {
		st.filling.spans = false // the program hears of it
		return nil, st.w.fail(op, st.hasEnded())
	}
	if st.rank < 0 || st.rank >= len(st.w.encoders) {
		return nil, st.w.fail(op, fmt.Errorf("rank %d of %d", st.rank, len(st.w.encoders)))
	}
	return st.w.encoders[st.rank], nil
}

// abort is Abort for who holds w.mu.
func (st *openStep) abort(cause error) {
	if !st.end() {
		return
	}
	for _, e := range st.w.encoders {
		e.Abort()
	}
	st.data.release()
	st.w.tellMember(cp.AbortTry{Err: cause})
}

// end marks the step ended; it is false the second time. The caller holds w.mu.
func (st *openStep) end() bool {
	if st.ended.Swap(true) {
		return false
	}
	st.w.open = nil
	return true
}

// giveUpStep ends a step that is being filled, or that waits for the others. The
// caller holds mu. Somebody may be putting at this moment, so the encoders are not
// touched, and the memory of an open step stays for as long as it may be.
func (w *Writer) giveUpStep(cause error) {
	w.finished = true // and none follows
	st := w.open
	open := st != nil && st.end()
	if open {
		st.filling.giveUp(st)
	}
	if (open || w.ending != nil) && w.failure == nil {
		w.tellMember(cp.AbortTry{Err: cause})
	}
}

// End publishes the step: all of it, at once, to every reader, when every rank of
// the cohort has ended it. If the queue is full it waits for room
// (QueueFullPolicy Block), or the step is dropped (Discard).
//
// If ctx ends meanwhile, or another rank gives the step up, the step is given up
// on all ranks: the error wraps [ErrStepAborted] and the cause. If ctx ends while
// rank 0 does not answer, its process is stopped, say, nobody can tell whether the
// step is out: the error says so, and the next BeginStep waits for the answer.
func (st *WriterStep) End(ctx context.Context) error {
	w := st.w
	defer st.filling.letGo(true) // if it was given up
	if st.ended.Load() {
		return w.fail("end step", st.hasEnded())
	}
	w.mu.Lock()
	err := st.early()
	w.mu.Unlock()
	if err != nil {
		return w.fail("end step", err)
	}
	st.filling.enter()
	share, err := st.encode()
	st.filling.leave()
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case err != nil:
		st.abort(err)
	case !st.end():
		err = fmt.Errorf("given up by Close: %w", ErrClosed)
	case w.failure != nil:
		st.data.release()
		err = w.failure
	default:
		err = st.contribute(ctx, share)
	}
	if err != nil {
		return w.fail("end step", err)
	}
	if w.seesOut(st.openStep) {
		st.data.use()
		st.data.out = time.Now()
		expected := w.expects(st.data)
		w.mu.Unlock()
		st.data.seeOut(expected)
		w.mu.Lock()
	}
	return nil
}

func (st *openStep) hasEnded() error { return fmt.Errorf("step %d has ended: %w", st.number, ErrOrder) }

// early gives the step up before anything is made of it, if another rank has
// done so. The caller holds w.mu.
func (st *openStep) early() error {
	if st.ended.Load() || st.w.failure != nil {
		return nil // that comes out further down
	}
	v, ok := st.w.member.LastVerdict()
	if !ok {
		return nil
	}
	st.abort(v.Cause.Err())
	return st.aborted(v.Cause.Err())
}

func (st *openStep) aborted(cause error) error {
	switch {
	case cause == nil:
		return fmt.Errorf("step %d: %w", st.number, ErrStepAborted)
	case errors.Is(cause, ErrStepAborted): // it says so itself
		return fmt.Errorf("step %d: %w", st.number, cause)
	}
	return fmt.Errorf("step %d: %w: %w", st.number, ErrStepAborted, cause)
}

// contribute hands the share of this process in, and waits for the verdict. The
// caller holds w.mu.
func (st *openStep) contribute(ctx context.Context, share *cp.Contribute) error {
	w := st.w
	w.steps[st.number] = st.data // before anybody hears of the step
	w.ending = st
	w.chaseUnread()
	share.Full = w.crowded()
	w.crammed = share.Full
	w.tellMember(cp.EndTry{Contribute: share})
	if !st.settled {
		if err := st.await(ctx); err != nil {
			return err
		}
	}
	if st.verdict.Outcome == cp.Aborted {
		return st.aborted(st.verdict.Cause.Err())
	}
	return nil
}

// verdictGrace is how long End waits for the verdict on a step that it has given
// up. It comes at once, unless rank 0 is stuck.
const verdictGrace = 500 * time.Millisecond

var errNoVerdict = errors.New("rank 0 does not answer: whether the step is out is not known yet")

// await waits for the verdict. If ctx ends it gives the step up, and then the
// verdict comes soon: it may still be that the step is out.
func (st *openStep) await(ctx context.Context) error {
	w := st.w
	why := func() (string, []any) {
		text := "waiting for room in the queue, or for other ranks to end the step; a reader is slow, or a rank is stuck"
		return text, append(append(w.queueArgs(), w.holdups(rankBehind(st.try))...), until(ctx)...)
	}
	settled := func() bool { return st.settled }
	err := w.waitFor(ctx, why, settled)
	if err == nil || w.failure != nil {
		return err
	}
	w.tellMember(cp.AbortTry{Err: err})
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), verdictGrace)
	defer cancel()
	failed := w.waitFor(grace, why, settled)
	switch {
	case w.failure != nil:
		return failed
	case failed != nil:
		st.left = true
		return fmt.Errorf("step %d: %w: %w", st.number, errNoVerdict, err)
	}
	if st.verdict.Outcome == cp.Aborted {
		return st.aborted(err)
	}
	return nil
}

// queueArgs describes the queue's limits in a log line.
func (w *Writer) queueArgs() []any {
	p := &w.cfg.Params
	args := []any{"stream", w.path}
	if p.QueueLimit > 0 {
		args = append(args, "QueueLimit", p.QueueLimit)
	}
	if p.QueueLimitBytes > 0 {
		args = append(args, "QueueLimitBytes", p.QueueLimitBytes)
	}
	return args
}

// encode makes the records of the ranks of this process. What ranks say only once
// must not get lost if a later one fails: it goes with the next step.
func (st *openStep) encode() (*cp.Contribute, error) {
	w, c := st.w, st.w.unsent
	w.unsent = nil
	if c == nil {
		c = newShare(len(w.encoders))
	}
	c.Metadata, c.Bytes, c.Native = c.Metadata[:0], c.Bytes[:0], c.Native[:0]
	for rank, e := range w.encoders {
		out, err := e.End()
		if err != nil {
			w.unsent = c
			return nil, fmt.Errorf("rank %d: %w", rank, err)
		}
		for _, f := range out.Formats {
			if w.newFormat(f.ID) {
				c.Formats = append(c.Formats, sstmsg.FormatBlock{ID: sstmsg.ByteBlob(f.ID[:]), Body: sstmsg.ByteBlob(f.Body)})
			}
		}
		c.Metadata = append(c.Metadata, c.block(2*rank, out.Metadata))
		if st.data.arena {
			c.Native = append(c.Native, c.block(2*rank+1, appendShared(c.room(rank), st.data.stores[rank])))
		}
		if len(out.Attributes) > 0 {
			c.Attributes[rank] = sstmsg.ByteBlob(out.Attributes)
		}
		c.Bytes = append(c.Bytes, out.DataSize)
	}
	w.memory.expect(c.Bytes)
	return &c.Contribute, nil
}

// newFormat reports whether no rank of this process has brought the format before.
func (w *Writer) newFormat(id [12]byte) bool {
	if len(w.encoders) == 1 {
		return true // an encoder does not repeat itself
	}
	known := w.formats[id]
	w.formats[id] = true
	return !known
}

// maxPreload is the largest block that is pushed: releases up to 2.10 cannot
// take a record of 2 GiB (docs/wire/cm.md §9).
const maxPreload = 1 << 30
