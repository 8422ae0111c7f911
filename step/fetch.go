package step

import (
	"context"
	"fmt"
	"slices"
)

// Get is one read that was prepared with [Var.Into] or [Variable.IntoBytes],
// for [Step.Fetch]. The destination belongs to it until Fetch returns.
type Get struct {
	r   *reading // nil: it is a strip
	s   strip
	dst []byte // of the strip
	err error
}

// variable returns what is read, nil for the zero Get.
func (g *Get) variable() *Variable {
	if g.r != nil {
		return g.r.v
	}
	return g.s.v
}

// Err returns what is wrong with the request, known before any transfer.
func (g Get) Err() error { return g.err }

// Fetch reads everything that gets ask for in one batch: what lies close
// together is transferred together, whichever variable it belongs to. If any
// request is wrong, nothing is transferred. After an error of the transfer the
// contents of the destinations are undefined.
//
// It is safe for concurrent use.
func (s *Step) Fetch(ctx context.Context, gets ...Get) error {
	if err := s.enter(); err != nil {
		return err
	}
	defer s.leave()
	readings := 0
	for i := range gets {
		g := &gets[i]
		switch v := g.variable(); {
		case g.err != nil:
			return g.err
		case v == nil:
			return fmt.Errorf("step %d: Fetch of a zero Get: %w", s.number, ErrSelection)
		case v.step != s:
			return fmt.Errorf("step %d: Get of %q was made with step %d: %w", s.number, v.def.name, v.step.number, ErrSelection)
		}
		if g.r != nil {
			readings++
		}
	}
	if readings > 0 { // only now: what is wrong with a request shows before any work is done
		if err := settle(ctx, gets); err != nil {
			return err
		}
	}
	copied, err := s.copyHeld(ctx, gets)
	if err != nil || copied == len(gets) && readings == 0 {
		return err
	}
	if err := s.transfer(ctx, gets, copied); err != nil {
		return err
	}
	for i := range gets {
		if r := gets[i].r; r != nil && r.missingOut != nil {
			*r.missingOut = r.missing
		}
	}
	return nil
}

// settle finds out how the parts of all readings cover their selections.
func settle(ctx context.Context, gets []Get) error {
	for i := range gets {
		if r := gets[i].r; r != nil {
			if err := r.settle(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

// transfer does the reading for checked requests, but for the strips among the first copied.
func (s *Step) transfer(ctx context.Context, gets []Get, copied int) error {
	f := fetch{batch: batch{ctx: ctx, src: s.src}}
	if f.src == nil {
		f.src = noSource{}
	}
	f.init()
	f.plan.emit = f.emit
	if len(gets) > 1 { // one reading never needs a block twice
		f.share(gets)
		f.room(gets)
	}
	for i := range gets {
		g := &gets[i]
		var err error
		switch {
		case g.r != nil:
			err = f.add(g.r)
		case i >= copied:
			err = f.batch.add(read{rank: g.s.rank, off: g.s.off, n: uint64(len(g.dst)), dst: g.dst, what: g.s.v})
		}
		if err != nil {
			return err
		}
	}
	return f.flush()
}

// noSource stands for the source of a step that was made without one.
type noSource struct{}

// Read fails: there is nothing to read from.
func (noSource) Read(context.Context, []Piece) error {
	return fmt.Errorf("the step was made without a source of data: %w", ErrNotStored)
}

// fetch plans readings into a batch.
type fetch struct {
	batch
	shared map[blockKey]*unpacked // compressed blocks, if several readings may want one
	plan   planner
	levels [MaxDims]level
	now    *reading // being planned
}

type blockKey struct {
	lay   *layout
	block int
}

// share counts how many readings need each compressed block.
func (f *fetch) share(gets []Get) {
	for i := range gets {
		r := gets[i].r
		if r == nil { // of no compressed block
			continue
		}
		for _, p := range r.parts {
			if !r.lay.blocks[p.block].op {
				continue
			}
			if f.shared == nil {
				f.shared = make(map[blockKey]*unpacked)
			}
			key := blockKey{r.lay, p.block}
			if f.shared[key] == nil {
				f.shared[key] = &unpacked{}
			}
			f.shared[key].uses++
		}
	}
}

// room makes room for a read of each part, which is what most need.
func (f *fetch) room(gets []Get) {
	n := 0
	for i := range gets {
		if r := gets[i].r; r != nil {
			n += len(r.parts)
		} else {
			n++
		}
	}
	if n = min(n, maxReads); n > cap(f.reads) {
		f.reads = make([]read, 0, n)
	}
}

// add plans one reading.
func (f *fetch) add(r *reading) error {
	if r.elements == 0 {
		return nil
	}
	if r.v.def.kind.IsValue() {
		return r.copyValues()
	}
	f.now = r
	for i := range r.parts {
		if err := f.addPart(r, &r.parts[i]); err != nil {
			return err
		}
	}
	return nil
}

// addPart plans the reads of one block's share of a reading.
func (f *fetch) addPart(r *reading, p *overlap) error {
	var inBlock, inDst, count [MaxDims]uint64
	dims := len(r.count)
	for d := range dims {
		count[d] = p.hi[d] - p.lo[d]
		inDst[d] = r.memStart[d] + p.lo[d]
		inBlock[d] = r.start[d] + p.lo[d]
		if r.block < 0 {
			inBlock[d] -= r.lay.start(p.block)[d]
		}
	}
	blk := &r.lay.blocks[p.block]
	elem, shape := uint64(r.v.def.elemSize), r.lay.count(p.block)
	w := newWalk(&f.levels, count[:dims], shape, r.memShape, elem)
	dst := r.dst[linear(inDst[:dims], r.memShape, elem):]
	skip := linear(inBlock[:dims], shape, elem)
	if blk.op {
		return f.addCompressed(r, p.block, w, skip, dst)
	}
	f.plan.rank, f.plan.w, f.plan.saved = int(blk.rank), w, nil
	return f.plan.plan(0, blk.loc+skip, dst)
}

// emit takes a read from the planner. A long run that must be staged is cut, so
// that the buffer stays small.
func (f *fetch) emit(rd read) error {
	rd.what, rd.staged = f.now.v, f.now.staged
	for rd.staged && rd.w == nil && rd.n > maxChunk {
		head := rd
		head.n, head.dst = maxChunk, rd.dst[:maxChunk]
		if err := f.batch.add(head); err != nil {
			return err
		}
		rd.off, rd.n, rd.dst = rd.off+maxChunk, rd.n-maxChunk, rd.dst[maxChunk:]
	}
	return f.batch.add(rd)
}

// addCompressed plans the read of a whole compressed block.
func (f *fetch) addCompressed(r *reading, b int, w walk, skip uint64, dst []byte) error {
	blk := &r.lay.blocks[b]
	rd := read{rank: int(blk.rank), off: blk.loc, n: blk.size, staged: r.staged, what: r.v}
	rd.op = &decode{block: f.shared[blockKey{r.lay, b}], lay: r.lay, index: b, raw: r.lay.rawSize(b, r.v.def.elemSize), skip: skip}
	if rd.op.block == nil {
		rd.op.block = &unpacked{uses: 1}
	}
	if len(w.levels) == 0 {
		rd.dst = dst[:w.run]
	} else {
		rd.dst, rd.outer = dst, w.levels[0].count
		rd.w = &walk{levels: slices.Clone(w.levels), run: w.run}
	}
	return f.batch.add(rd)
}
