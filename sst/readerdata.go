package sst

import (
	"context"
	"errors"
	"fmt"
	"io"
	"syscall"

	"github.com/weft-fabric/weft/internal/sys"
	"github.com/weft-fabric/weft/internal/wire/cm"
	"github.com/weft-fabric/weft/internal/wire/sstmsg"
	"github.com/weft-fabric/weft/sst/internal/carrier"
	"github.com/weft-fabric/weft/sst/internal/cp"
	"github.com/weft-fabric/weft/sst/internal/dp"
)

// This file is a reader rank's way to the data of the writer's ranks.

// sendRequest sends a read request to a writer rank.
func (r *Reader) sendRequest(ctx context.Context, rank int, m *sstmsg.ReadRequest) error {
	l, err := r.rankLink(ctx, rank)
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.member.Phase() == cp.ReaderLeft || r.leader != nil && r.leader.Phase() == cp.Closed {
		return ErrClosed // real writers must not be asked anything after ReaderClose
	}
	if err := r.session.send(l, m, sstmsg.Options{}, nil); err != nil {
		return &dp.UnreachableError{Err: err}
	}
	return nil
}

// pushed takes a block that comes by itself. A writer that pushes without end for
// steps that it does not announce is given up, by this rank; the others find the same.
func (r *Reader) pushed(over carrier.Link, m *sstmsg.Preload, free func()) error {
	r.notePusher(over, m.WriterRank)
	err := r.plane.Push(m, free)
	if err == nil {
		return nil
	}
	err = fmt.Errorf("%w: %w", ErrProtocol, err)
	r.mu.Lock()
	r.broken = err
	r.plane.Fail(r.failLocked("read", err))
	r.changed.notify()
	l := r.link
	r.mu.Unlock()
	if l != nil {
		l.Abort(err)
	}
	return err
}

// notePusher remembers over which link a writer rank pushes. There are at most as
// many as ranks.
func (r *Reader) notePusher(l carrier.Link, rank int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.response != nil && rank >= 0 && rank < int64(len(r.far)) {
		r.pushers[int(rank)] = l
	}
}

// watchRank is the plane's Watcher. Where a rank pushes from it need not listen: that
// we cannot connect to it means something only if its host says that nobody is there.
func (r *Reader) watchRank(ctx context.Context, rank int) error {
	r.mu.Lock()
	l := r.pushers[rank]
	r.mu.Unlock()
	if l == nil {
		var err error
		l, err = r.rankLink(ctx, rank)
		switch {
		case err == nil:
		case errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, carrier.ErrWrongPeer):
			return err
		default:
			<-ctx.Done()
			return nil
		}
	}
	select {
	case <-l.Done():
		return fmt.Errorf("the connection to it is lost: %w", io.ErrUnexpectedEOF)
	case <-ctx.Done():
		return nil
	}
}

// maxEarly is how much a writer may push for steps that it has not announced: half
// of the memory that there is. 0 if that is not known.
func maxEarly() uint64 {
	n, err := sys.MemoryLimit()
	if err != nil {
		return 0
	}
	return n / 2
}

// rankLink returns the link to a writer rank, and makes it at first use.
func (r *Reader) rankLink(ctx context.Context, rank int) (carrier.Link, error) {
	r.mu.Lock()
	l := r.far[rank]
	if rank == 0 && r.link != nil {
		l = r.link
	}
	contact := r.response.CP[rank].Contact
	r.mu.Unlock()
	if l != nil {
		return l, nil
	}
	if r.session.cfg.ManualProgress {
		return nil, &dp.UnreachableError{Err: fmt.Errorf("what it had no shared memory for comes over a socket, and a session with ManualProgress has none: %w", ErrPlane)}
	}
	c, err := cm.ParseContact(contact)
	if err != nil {
		return nil, fmt.Errorf("its contact: %w", err)
	}
	l, err = r.session.dial(ctx, c, r)
	switch {
	case err != nil && ctx.Err() != nil:
		return nil, err
	case err != nil:
		return nil, &dp.UnreachableError{Err: err}
	}
	return r.keepLink(rank, l)
}

// keepLink makes l the link to a writer rank, unless there is one by now.
func (r *Reader) keepLink(rank int, l carrier.Link) (carrier.Link, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.released:
		r.session.unuse(l, r)
		return nil, ErrClosed
	case r.far[rank] != nil: // another Get was faster
		r.session.unuse(l, r)
	case l == r.link: // all ranks are in one process
		r.session.unuse(l, r)
		return l, nil
	default:
		r.far[rank] = l
	}
	return r.far[rank], nil
}

// linkLost tells the leader, or fails the requests to a far rank.
func (r *Reader) linkLost(l carrier.Link, err error) {
	r.mu.Lock()
	r.forgetNear(l)
	control := r.controls(l)
	beside := r.near != nil && l != r.near && !isDone(r.near.Done())
	r.mu.Unlock()
	if control {
		afterNear(beside, func() { r.lostControl(l, err) })
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for rank, f := range r.far {
		if f == l {
			r.far[rank] = nil
			r.session.unuse(l, r)
			r.plane.FailRank(rank, orGone(err))
		}
	}
}

// controls reports whether a link is one on which we talk with the leader of the writer,
// or with ranks that talk as it does. The caller holds mu.
func (r *Reader) controls(l carrier.Link) bool {
	if l == r.link || l == r.near {
		return true
	}
	for _, p := range r.peers {
		if l == p {
			return true
		}
	}
	return false
}

// lostControl gives the writer up, unless we have gone to another since.
func (r *Reader) lostControl(l carrier.Link, err error) {
	r.mu.Lock()
	control := r.controls(l)
	r.mu.Unlock()
	if control {
		r.lost(err)
	}
}

func orGone(err error) error {
	if err == nil {
		return io.ErrUnexpectedEOF
	}
	return err
}

// lost gives the control link up for dead.
func (r *Reader) lost(err error) {
	r.mu.Lock()
	if r.leader == nil {
		r.mu.Unlock()
		return
	}
	wasOpening := r.opening
	r.lead(cp.WriterLost{Err: err})
	over := !r.leader.Opening() // else we look for another writer
	r.unlock()
	if wasOpening && over {
		r.giveBack(err)
	}
}
