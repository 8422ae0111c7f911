package step

// copyValues fills the destination of a reading of values, which are in the
// metadata.
func (r *reading) copyValues() error {
	// No transfer: the metadata is here.
	blocks := r.lay.blocks
	if r.v.def.kind == GlobalValueKind {
		return r.copyValue(0, 0)
	}
	if r.block >= 0 {
		return r.copyValue(r.block, r.memStart[0])
	}
	for b := range blocks {
		rank := uint64(blocks[b].rank)
		if rank < r.start[0] || rank-r.start[0] >= r.count[0] {
			continue
		}
		if err := r.copyValue(b, r.memStart[0]+rank-r.start[0]); err != nil {
			return err
		}
	}
	return nil
}

// copyValue copies the value of block b to element at of the destination.
func (r *reading) copyValue(b int, at uint64) error {
	if r.v.def.typ == String {
		s, err := r.v.text(b)
		if err == nil {
			r.texts[at] = s
		}
		return err
	}
	v, err := r.v.value(b)
	if err == nil {
		copy(r.dst[at*uint64(len(v)):], v)
	}
	return err
}

// value returns the bytes of the value of block b.
func (v *Variable) value(b int) ([]byte, error) {
	rec := v.recs[v.lay.blocks[b].rec]
	return v.step.metas[rec.rank].Value(int(rec.field))
}

// text returns the string of block b.
func (v *Variable) text(b int) (string, error) {
	rec := v.recs[v.lay.blocks[b].rec]
	return v.step.metas[rec.rank].Text(int(rec.field))
}
