package step

// How much is read in one piece. Reading a little more than is needed is
// cheaper than asking twice; reading much more is not.
const (
	maxWaste  = 4        // a strided range may hold this many times the bytes that are needed
	smallSpan = 32 << 10 // ranges up to this size are read whole whatever is needed of them
	directRun = 256 << 10
	maxChunk  = 16 << 20 // strided ranges are cut into chunks of about this size
)

// planner cuts the copy of one box into reads.
type planner struct {
	rank  int
	w     walk
	emit  func(read) error
	saved *walk // w with levels that outlive the plan, made when first needed
}

// read is one contiguous range of a rank's data block and where its bytes go.
type read struct {
	rank   int
	off, n uint64
	dst    []byte    // from the first byte that is written on
	w      *walk     // loops that spread the range over dst; nil: one run
	from   int       // first level of w
	outer  uint64    // iterations of that level
	op     *decode   // the range is a compressed block
	staged bool      // must not be read straight into dst
	group  int32     // used by the batch
	what   *Variable // for error texts
}

// plan emits the reads for the loops from level from on: off is the source
// offset of the first byte, dst begins where it goes.
func (p *planner) plan(from int, off uint64, dst []byte) error {
	w := p.w
	if from == len(w.levels) {
		return p.emit(read{rank: p.rank, off: off, n: w.run, dst: dst[:w.run]})
	}
	l := w.levels[from]
	// Long runs go straight to where they belong; staging would copy them twice.
	if w.run < directRun {
		span := w.span(from)
		if span <= smallSpan || span <= maxChunk && span/maxWaste <= w.need(from) {
			return p.strided(from, l.count, off, dst)
		}
		if inner := w.span(from + 1); l.src/maxWaste <= w.need(from+1) && inner < maxChunk/2 {
			return p.chunks(from, off, dst)
		}
	}
	for i := range l.count {
		if err := p.plan(from+1, off+i*l.src, dst[i*l.dst:]); err != nil {
			return err
		}
	}
	return nil
}

// chunks emits the iterations of level from in groups of about maxChunk bytes.
func (p *planner) chunks(from int, off uint64, dst []byte) error {
	l := p.w.levels[from]
	step := max(1, maxChunk/l.src)
	for i := uint64(0); i < l.count; i += step {
		if err := p.strided(from, min(step, l.count-i), off+i*l.src, dst[i*l.dst:]); err != nil {
			return err
		}
	}
	return nil
}

// strided emits one read that covers the iterations of level from, gaps
// included. The levels of the plan are reused for the next box, so a read
// keeps a copy, one for all reads of a plan.
func (p *planner) strided(from int, outer, off uint64, dst []byte) error {
	if p.saved == nil {
		p.saved = &walk{levels: append([]level(nil), p.w.levels...), run: p.w.run}
	}
	n := p.w.span(from+1) + (outer-1)*p.w.levels[from].src
	return p.emit(read{rank: p.rank, off: off, n: n, dst: dst, w: p.saved, from: from, outer: outer})
}
