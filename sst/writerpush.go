package sst

import (
	"context"
	"fmt"

	"github.com/weft-fabric/weft/internal/wire/cm"
	"github.com/weft-fabric/weft/internal/wire/sstmsg"
	"github.com/weft-fabric/weft/sst/internal/carrier"
	"github.com/weft-fabric/weft/sst/internal/cp"
)

// push sends our data blocks of a step to every rank of a reader without being
// asked (speculative preload). Rank 0 has a link to the reader's rank 0; all else
// is dialled. The caller holds w.mu.
func (w *Writer) push(key readerKey, number int64) {
	r, d := w.readers[key], w.steps[number]
	if r == nil || d == nil {
		return
	}
	d.pushed = true
	for rank, peer := range r.ranks {
		for i := range d.stores {
			m := d.preload(number, i, w.base+i, peer.ReaderID)
			p := d.useFor(key)
			for _, part := range m.Data {
				r.served += uint64(len(part))
			}
			if rank == 0 && r.link != nil {
				w.noteReply(number, r, r.link)
				push, err := record(m, r.options, p.done)
				if err == nil {
					push.Lasting = !d.arena // see taint
					r.pushes = append(r.pushes, push)
				}
				give(r.link, err)
				continue
			}
			w.pushFar(key, r, rank, farPush{m, p.done})
		}
	}
}

// farPush is a block on its way to a reader rank that has a connection of its own.
type farPush struct {
	msg  *sstmsg.Preload
	done func(error)
}

// pushFar queues a block for a far rank: one goroutine a rank sends them, so that
// steps go out in order. The caller holds w.mu.
func (w *Writer) pushFar(key readerKey, r *attached, rank int, p farPush) {
	if r.far == nil {
		r.far, r.dials = map[int][]farPush{}, make(chan struct{}, maxDials)
	}
	queue, busy := r.far[rank]
	if !busy && !w.session.background(func(ctx context.Context) { w.sendFar(ctx, key, r, rank) }) {
		p.done(ErrClosed) // the session has ended, and all its readers with it
		return
	}
	r.far[rank] = append(queue, p) // sendFar looks when we have given mu up
}

// sendFar sends what is queued for a far rank, and ends when there is no more. A
// rank that cannot be reached would wait for ever, so its cohort is dropped.
func (w *Writer) sendFar(ctx context.Context, key readerKey, r *attached, rank int) {
	l, err := w.rankLink(ctx, r, rank)
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, p := range r.far[rank] {
		if err != nil {
			p.done(err)
			continue
		}
		w.noteReply(p.msg.Step, r, l)
		err = w.session.send(l, p.msg, r.options, p.done)
	}
	delete(r.far, rank)
	if err != nil {
		w.pushBroke(key, rank, err)
	}
}

// maxDials is how many ranks of one reader are dialled at a time. A registration
// can name very many, and none of them needs to answer.
const maxDials = 32

// rankLink returns the link to a reader rank, and makes it at first use. There
// is one caller at a time for each rank.
func (w *Writer) rankLink(ctx context.Context, r *attached, rank int) (carrier.Link, error) {
	if l, err := w.knownLink(r, rank); l != nil || err != nil {
		return l, err
	}
	select {
	case r.dials <- struct{}{}:
		defer func() { <-r.dials }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if _, err := w.knownLink(r, rank); err != nil { // another rank could not be reached
		return nil, err
	}
	c, err := cm.ParseContact(r.ranks[rank].Contact)
	if err != nil {
		return nil, err
	}
	l, err := w.session.dial(ctx, c, w)
	if err != nil {
		return nil, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if r.gone {
		w.session.unuse(l, w)
		return nil, ErrReaderFailed
	}
	if r.links == nil {
		r.links = map[int]carrier.Link{}
	}
	r.links[rank] = l
	return l, nil
}

// knownLink returns the link to a reader rank, nil if there is none yet.
func (w *Writer) knownLink(r *attached, rank int) (carrier.Link, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if r.gone {
		return nil, ErrReaderFailed
	}
	return r.links[rank], nil
}

// pushBroke has a reader dropped that waits for a block in vain.
func (w *Writer) pushBroke(key readerKey, rank int, err error) {
	if w.readers[key] == nil {
		return
	}
	err = fmt.Errorf("preload to reader rank %d: %w", rank, err)
	w.tellMember(cp.PushBroke{PushFailed: &cp.PushFailed{Reader: key, Cause: cp.NewFault(err)}})
}
