package dp

import (
	"cmp"
	"context"
	"runtime"
	"slices"
	"sync"

	"github.com/weft-fabric/weft/step"
)

// share is the most that a goroutine copies at a time. A copy that runs can neither be
// cancelled nor be preempted, so it is short: 70 us where memory is fast.
const share = 1 << 20

// splitFrom is the least that several goroutines copy together. The others are there
// soon only where cores are free. This is for where they are not: two cores, and 14
// processes that wanted them. Copies by turns with GOMAXPROCS 1 and 2 (9600 of the
// smallest, 64 and 18 of the largest); the median is better from here on:
//
//	MiB      one: median, mean     two: median, mean
//	  2       162 us,  281 us       209 us,  313 us
//	  4       357 us,  1.8 ms       395 us,  1.2 ms
//	  8       4.8 ms, 15.6 ms       4.0 ms,  6.5 ms
//	 16      10.7 ms, 23.8 ms      10.3 ms, 13.2 ms
//	 64        45 ms,   78 ms        37 ms,   56 ms
const splitFrom = 8 << 20

// Read fills the pieces: from the writer's memory what lies there, and by messages, in
// the meantime, the rest. It returns when all are filled, one failed, or ctx is over;
// then nothing writes to them any more.
func (s *nativeStep) Read(ctx context.Context, pieces []step.Piece) error {
	c := &copying{share: min(share, s.plane.cfg.Batch)}
	rest, err := s.plan(c, pieces)
	if err != nil {
		return err
	}
	defer c.close()
	if rest, err = s.lendAll(ctx, c, rest); err != nil {
		return err
	}
	switch {
	case len(rest) == 0:
		err = c.run(ctx)
	case len(c.runs) == 0:
		return s.evpathStep.Read(ctx, rest)
	default:
		err = s.both(ctx, c, rest)
	}
	if err == nil {
		c.count(s.seen)
	}
	return err
}

// both copies while the rest is asked for. The first error ends both.
func (s *nativeStep) both(ctx context.Context, c *copying, rest []step.Piece) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	asked := make(chan error, 1)
	go func() {
		err := s.evpathStep.Read(ctx, rest)
		if err != nil {
			cancel(err)
		}
		asked <- err
	}()
	copied := c.run(ctx)
	if copied != nil {
		cancel(copied)
	}
	if err := <-asked; err != nil || copied != nil {
		return context.Cause(ctx)
	}
	return nil
}

// plan finds out what is copied from which extent. It returns what lies in none, or is
// not to be reached.
func (s *nativeStep) plan(c *copying, pieces []step.Piece) (rest []step.Piece, err error) {
	c.runs = make([]run, 0, len(pieces))
	for _, p := range pieces {
		l := s.located(p.Rank)
		switch {
		case l == nil:
			rest = append(rest, p)
		case l.err != nil:
			return nil, s.failed(p.Rank, l.err)
		default:
			rest = c.add(l.extents, p, rest)
		}
	}
	return rest, nil
}

// lendAll has the routes lend what is copied. What they cannot goes to the rest.
func (s *nativeStep) lendAll(ctx context.Context, c *copying, rest []step.Piece) ([]step.Piece, error) {
	all := true
	for i := range c.lent {
		g := &c.lent[i]
		u := &until{Context: ctx, plane: s.plane}
		mem, release, err := s.lend(u, g.rank, &s.ranks[g.rank].extents[g.extent], g.from, g.to-g.from)
		if err != nil {
			return nil, err
		}
		g.mem, g.release = mem, release
		all = all && mem != nil
	}
	if all {
		return rest, nil
	}
	c.runs = slices.DeleteFunc(c.runs, func(r run) bool {
		g := &c.lent[r.lent]
		if g.mem == nil {
			rest = append(rest, step.Piece{Rank: g.rank, Offset: r.off, Dst: r.dst})
		}
		return g.mem == nil
	})
	slices.SortFunc(rest, func(x, y step.Piece) int {
		return cmp.Or(cmp.Compare(x.Rank, y.Rank), cmp.Compare(x.Offset, y.Offset))
	})
	return rest, nil
}

// copying is the part of a Read that is copied out of the writers' memory.
type copying struct {
	lent  []lent // by rank and extent, rising
	runs  []run
	share int // bytes that a goroutine copies at a time

	mu sync.Mutex
	at int // the first run that nobody has taken; guarded by mu, as is where that begins
}

// lent is the part of an extent that a Read needs, from its first to its last byte: one
// view, however many pieces lie in it.
type lent struct {
	rank, extent int
	from, to     uint64 // in the block
	bytes        uint64 // to be copied
	mem          []byte
	release      func()
}

// run is one copy out of what is lent.
type run struct {
	lent int
	off  uint64 // in the block
	dst  []byte
}

// add plans a piece, and appends to rest what of it lies in no extent. Pieces come
// sorted.
func (c *copying) add(extents []Extent, p step.Piece, rest []step.Piece) []step.Piece {
	i := behind(extents, p.Offset)
	for off, dst := p.Offset, p.Dst; len(dst) > 0; {
		n := uint64(len(dst))
		switch {
		case i == len(extents):
			rest = append(rest, step.Piece{Rank: p.Rank, Offset: off, Dst: dst})
		case off < extents[i].Offset:
			n = min(n, extents[i].Offset-off)
			rest = append(rest, step.Piece{Rank: p.Rank, Offset: off, Dst: dst[:n:n]})
		default:
			n = min(n, extents[i].end()-off)
			c.runs = append(c.runs, run{c.need(p.Rank, i, off, n), off, dst[:n:n]})
			i++
		}
		off, dst = off+n, dst[n:]
	}
	return rest
}

// need returns the index of the loan that a range of an extent will be part of.
func (c *copying) need(rank, extent int, off, n uint64) int {
	// A piece needs extents in a row, and no piece begins before an earlier one. So if
	// this is not a new one, all between it and the newest are there.
	i := len(c.lent)
	if i > 0 && c.lent[i-1].rank == rank && c.lent[i-1].extent >= extent {
		i -= 1 + c.lent[i-1].extent - extent
	} else {
		c.lent = append(c.lent, lent{rank: rank, extent: extent, from: off, to: off})
	}
	g := &c.lent[i]
	g.from, g.to, g.bytes = min(g.from, off), max(g.to, off+n), g.bytes+n
	return i
}

// run makes the copies, in several goroutines if there is enough to do for them, which
// have ended when it returns.
func (c *copying) run(ctx context.Context) error {
	total := uint64(0)
	for i := range c.lent {
		total += c.lent[i].bytes
	}
	var helpers sync.WaitGroup
	if total >= splitFrom {
		for range int(min(uint64(runtime.GOMAXPROCS(0)), total/share)) - 1 {
			helpers.Go(func() { c.work(ctx) })
		}
	}
	c.work(ctx)
	helpers.Wait()
	if c.at < len(c.runs) {
		return context.Cause(ctx)
	}
	return nil
}

// work makes copies until nothing is left to take, or ctx is over.
func (c *copying) work(ctx context.Context) {
	var cut [1]run
	for ctx.Err() == nil {
		runs := c.next(&cut)
		if len(runs) == 0 {
			return
		}
		for i := range runs {
			r := &runs[i]
			g := &c.lent[r.lent]
			copy(r.dst, g.mem[r.off-g.from:][:len(r.dst)])
		}
	}
}

// next takes about a share: several runs, or a piece of one, which it puts into cut.
func (c *copying) next(cut *[1]run) []run {
	c.mu.Lock()
	defer c.mu.Unlock()
	first := c.at
	for n := 0; c.at < len(c.runs); c.at++ {
		r := &c.runs[c.at]
		if len(r.dst) > c.share && c.at == first {
			cut[0] = run{r.lent, r.off, r.dst[:c.share]}
			r.off, r.dst = r.off+uint64(c.share), r.dst[c.share:]
			return cut[:]
		}
		if n += len(r.dst); n > c.share && c.at > first {
			break
		}
	}
	return c.runs[first:c.at]
}

// count adds what was copied to the counts.
func (c *copying) count(seen []rankViews) {
	for i := range c.lent {
		if g := &c.lent[i]; g.mem != nil {
			seen[g.rank].copied.Add(g.bytes)
		}
	}
}

// close gives back what was lent.
func (c *copying) close() {
	for i := range c.lent {
		if g := &c.lent[i]; g.mem != nil {
			g.release()
		}
	}
}
