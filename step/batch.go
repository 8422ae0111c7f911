package step

import (
	"cmp"
	"context"
	"fmt"
	"slices"
)

// How reads are put together.
const (
	mergeGap   = 4 << 10  // small reads this close together become one
	directMin  = 64 << 10 // reads from this size on are worth a transfer of their own
	maxStaging = 64 << 20 // bytes that wait in buffers; more is fetched in several rounds
	maxReads   = 1 << 16  // planned reads that wait
)

// batch collects reads, merges those that are close together, has the source
// fill them, and spreads what came. It works in rounds, so that what it holds
// is bounded however much is read.
type batch struct {
	ctx    context.Context
	src    Source
	reads  []read
	staged uint64 // bytes of buffers that the reads will need
	groups []group
	order  []int32
	buf    []byte   // staging memory, used again in each round
	held   []func() // give back what the source holds
	kept   uint64   // bytes of decompressed blocks that later reads share
	pieces []Piece

	// Memory for one read, which most batches are.
	oneRead  [1]read
	oneGroup [1]group
	oneOrder [1]int32
	onePiece [1]Piece
}

// init makes the lists use the memory that is there.
func (b *batch) init() {
	b.reads, b.groups, b.order, b.pieces = b.oneRead[:0], b.oneGroup[:0], b.oneOrder[:0], b.onePiece[:0]
}

// group is a range that is read in one piece.
type group struct {
	rank   int
	off, n uint64
	first  int32  // the first read in it
	count  int    // reads in it
	closed bool   // one large read straight to where it belongs: nothing joins
	mem    []byte // its bytes, unless lone: part of buf, or of what the source holds
}

// add takes one read, and fetches what has come together if that is much.
func (b *batch) add(r read) error {
	b.reads = append(b.reads, r)
	if !r.direct() || r.n < directMin {
		b.staged += r.n
	}
	if r.op != nil {
		b.staged += r.op.raw
	}
	// Both bounds matter: a million one-byte reads stage little, but cost memory each.
	if b.staged >= maxStaging || len(b.reads) >= maxReads {
		return b.flush()
	}
	return nil
}

// flush fetches everything that waits.
func (b *batch) flush() error {
	if len(b.reads) == 0 {
		return nil
	}
	// Here and not in the source alone: what is in memory already takes time too.
	if err := context.Cause(b.ctx); err != nil {
		return err
	}
	b.merge()
	defer b.giveBack()
	if err := b.get(); err != nil {
		return fmt.Errorf("%s: %w", b.what(), err)
	}
	for i := range b.reads {
		if err := b.deliver(&b.reads[i]); err != nil {
			return err
		}
	}
	clear(b.reads) // they hold destinations and blocks, which the collector may want
	clear(b.pieces)
	clear(b.groups)
	b.reads, b.groups, b.pieces, b.staged = b.reads[:0], b.groups[:0], b.pieces[:0], 0
	return nil
}

// what names the variables being read, for error texts.
func (b *batch) what() string {
	v := b.reads[0].what
	text := fmt.Sprintf("step %d: reading %q", v.step.number, v.def.name)
	for i := range b.reads {
		if b.reads[i].what != v {
			return text + " and others"
		}
	}
	return text
}

// merge makes groups of the reads, in the order of ranks and offsets.
func (b *batch) merge() {
	b.order = b.order[:0]
	for i := range b.reads {
		r := &b.reads[i]
		r.group = -1
		if r.op != nil && r.op.block.data != nil {
			continue // decompressed in an earlier round
		}
		b.order = append(b.order, int32(i))
	}
	byPlace := func(i, j int32) int {
		x, y := &b.reads[i], &b.reads[j]
		return cmp.Or(cmp.Compare(x.rank, y.rank), cmp.Compare(x.off, y.off), cmp.Compare(y.n, x.n))
	}
	// Blocks mostly lie in the order in which they are read, and looking is cheap.
	if !slices.IsSortedFunc(b.order, byPlace) {
		slices.SortFunc(b.order, byPlace)
	}
	for _, i := range b.order {
		r := &b.reads[i]
		large := r.direct() && r.n >= directMin
		if n := len(b.groups); n > 0 && !large && b.groups[n-1].takes(r) {
			g := &b.groups[n-1]
			g.n = max(g.n, r.off+r.n-g.off)
			g.count++
		} else {
			b.groups = append(b.groups, group{rank: r.rank, off: r.off, n: r.n, first: i, count: 1, closed: large})
		}
		r.group = int32(len(b.groups) - 1)
	}
}

// direct reports whether the source may write to where the bytes belong.
func (r *read) direct() bool { return r.w == nil && r.op == nil && !r.staged }

// takes reports whether r, which does not begin before g, joins g.
func (g *group) takes(r *read) bool {
	if g.rank != r.rank || g.closed {
		return false
	}
	end := g.off + g.n
	// Inside the group: blocks that overlap in the data, or one that is read twice.
	if r.off <= end && r.n <= end-r.off {
		return true
	}
	return r.off <= end+mergeGap && r.off+r.n-g.off <= maxChunk
}

// lone reports whether the group is one read that needs no staging.
func (b *batch) lone(g *group) bool { return g.count == 1 && b.reads[g.first].direct() }

// get has the source bring the bytes of all groups.
func (b *batch) get() error {
	if err := b.hold(); err != nil {
		return err
	}
	b.cut()
	if len(b.pieces) == 0 {
		return nil
	}
	return b.src.Read(b.ctx, b.pieces)
}

// hold takes the groups that would be staged from the memory of the source, if
// they are there.
func (b *batch) hold() error {
	src, ok := b.src.(Holder)
	if !ok {
		return nil
	}
	for i := range b.groups {
		g := &b.groups[i]
		if b.lone(g) || g.n == 0 {
			continue
		}
		mem, release, err := src.Held(b.ctx, g.rank, g.off, g.n)
		if err != nil {
			return err
		}
		if mem != nil {
			g.mem, b.held = mem, append(b.held, release)
		}
	}
	return nil
}

// giveBack ends the use of what the source holds.
func (b *batch) giveBack() {
	for _, release := range b.held {
		release()
	}
	clear(b.held)
	b.held = b.held[:0]
}

// cut makes the pieces to ask the source for, and gives each group that needs
// it a place in the buffer.
func (b *batch) cut() {
	total := 0 // bytes of the buffer in this round
	for i := range b.groups {
		if g := &b.groups[i]; g.mem == nil && !b.lone(g) {
			total += int(g.n)
		}
	}
	// The buffer is not cleared: the source fills all of every piece.
	if total > len(b.buf) {
		b.buf = make([]byte, total)
	}
	free := b.buf
	b.pieces = slices.Grow(b.pieces, len(b.groups))
	for i := range b.groups {
		g := &b.groups[i]
		var dst []byte
		switch {
		case g.mem != nil:
			continue
		case b.lone(g):
			dst = b.reads[g.first].dst
		default:
			dst, free = free[:g.n:g.n], free[g.n:]
			g.mem = dst
		}
		if len(dst) > 0 {
			b.pieces = append(b.pieces, Piece{Rank: g.rank, Offset: g.off, Dst: dst})
		}
	}
}

// deliver puts the bytes of one read where they belong.
func (b *batch) deliver(r *read) error {
	var src []byte
	if r.group >= 0 {
		g := &b.groups[r.group]
		if b.lone(g) {
			return nil
		}
		src = g.mem[r.off-g.off:][:r.n:r.n]
	}
	if r.op != nil {
		data, err := r.op.open(src, r, &b.kept)
		if err != nil || data == nil {
			return err
		}
		src = data[r.op.skip:]
	}
	if r.w == nil {
		copy(r.dst, src)
		return nil
	}
	r.w.copy(r.from, r.outer, r.dst, src)
	return nil
}
