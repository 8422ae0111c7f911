package dp

import (
	"context"
	"fmt"
	"sync"

	"github.com/weft-fabric/weft/internal/wire/sstmsg"
	"github.com/weft-fabric/weft/sst/internal/carrier"
	"github.com/weft-fabric/weft/step"
)

// maxRequest is the most that one request asks for: releases up to 2.10 cannot
// send a record of 2 GiB (docs/wire/cm.md §9).
const maxRequest = 1 << 30

// request is one outstanding ReadRequest.
type request struct {
	step  int64
	rank  int
	dst   []byte
	batch *batch
	place *carrier.Placement // of dst, once its answer is coming in; guarded by the batch's mu
}

// failed says what an error of the whole plane meant to this request.
func (r *request) failed(err error) error {
	return fmt.Errorf("step %d: read from writer rank %d: %w", r.step, r.rank, err)
}

// batch is one call of Read. Its lock guards the destination memory: once the
// batch is over nothing is written there any more. What the carrier writes by
// itself is guarded by placements, which the end of the batch revokes.
type batch struct {
	mu   sync.Mutex
	left int
	err  error
	over bool
	done chan struct{}

	places []*carrier.Placement // revoked if the batch fails
}

func (e *Evpath) request(ctx context.Context, number int64, pieces []step.Piece) error {
	b := &batch{done: make(chan struct{}), left: 1} // the 1 is ours, until all are sent
	sent, err := e.sendAll(ctx, b, number, pieces)
	if err != nil {
		b.finish(err)
	}
	b.complete(nil)
	if err := e.cfg.Await(ctx, b.done); err != nil {
		b.finish(err)
	}
	e.forget(sent)
	return e.explained(ctx, b.err)
}

func (e *Evpath) sendAll(ctx context.Context, b *batch, number int64, pieces []step.Piece) ([]int32, error) {
	var sent []int32
	ranks := e.ranks()
	for _, p := range pieces {
		for off, dst := p.Offset, p.Dst; len(dst) > 0; {
			n := min(len(dst), maxRequest, e.cfg.Batch)
			id, err := e.add(&request{step: number, rank: p.Rank, dst: dst[:n], batch: b})
			if err != nil {
				return sent, err
			}
			sent = append(sent, id)
			err = e.cfg.Send(ctx, p.Rank, &sstmsg.ReadRequest{
				Step: number, Offset: int64(off), Length: int64(n),
				WriterID: ranks[p.Rank], ReaderID: e.cfg.ReaderID, Rank: int32(e.cfg.Rank), Condition: id,
			})
			if err != nil {
				return sent, sendFailed(number, p.Rank, err)
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
		return 0, r.failed(e.failure)
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
	s := e.statsOf(r.rank)
	s.Requests++
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

func (e *Evpath) take(m *sstmsg.ReadReply) *request {
	e.mu.Lock()
	defer e.mu.Unlock()
	r := e.pending[m.Condition]
	if r != nil {
		delete(e.pending, m.Condition)
		e.statsOf(r.rank).Replied += uint64(m.Data.Len())
	}
	return r
}

// Place returns the memory that the answer m, which is still coming in, is for:
// its data begin at offset, and end the record of total bytes. It returns nil for
// answers that nobody waits for, or that do not fit; Reply deals with those.
func (e *Evpath) Place(m *sstmsg.ReadReply, offset, total int) *carrier.Placement {
	e.mu.Lock()
	r := e.pending[m.Condition]
	e.mu.Unlock()
	if r == nil || total-offset != len(r.dst) {
		return nil
	}
	b := r.batch
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.over || r.place != nil {
		return nil
	}
	r.place = carrier.Place(r.dst, offset)
	b.places = append(b.places, r.place)
	return r.place
}

// Reply brings an answer; its data are where they belong already if placed, which
// Place has returned, is not nil. Answers to requests that were given up are
// dropped.
func (e *Evpath) Reply(m *sstmsg.ReadReply, placed *carrier.Placement) {
	r := e.take(m)
	if r == nil {
		return
	}
	switch n := m.Data.Len(); {
	case n == 0: // nobody asks for nothing: this is how Weft says no
		r.batch.finish(&lostRank{r.step, r.rank, errEmpty})
	case n != len(r.dst):
		r.batch.finish(fmt.Errorf("step %d: writer rank %d sent %d bytes for a request of %d: %w", m.Step, r.rank, n, len(r.dst), errReply))
	default:
		r.fill(m, placed)
	}
}

// fill takes data of the right length, unless the batch is over. While another
// answer is being read to where they belong, there must be no second one.
func (r *request) fill(m *sstmsg.ReadReply, placed *carrier.Placement) {
	b := r.batch
	b.mu.Lock()
	twice := r.place != placed
	if !b.over && !twice && placed == nil {
		dst := r.dst
		for _, p := range m.Data {
			dst = dst[copy(dst, p):]
		}
	}
	b.mu.Unlock()
	if twice {
		b.finish(fmt.Errorf("step %d: writer rank %d answers twice: %w", m.Step, r.rank, errReply))
		return
	}
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

// finish ends the batch; the first error stays. When it returns nobody writes to
// the destinations any more: after an error what is coming in is turned away.
func (b *batch) finish(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.over {
		return
	}
	b.over, b.err = true, err
	if err != nil {
		for _, p := range b.places {
			p.Revoke()
		}
	}
	close(b.done)
}
