package step

import (
	"fmt"
	"slices"

	"github.com/weft-fabric/weft/operator"
)

// unpacked is one compressed block in one Fetch, shared by the reads that need
// it.
type unpacked struct {
	uses int    // reads that still need it
	data []byte // nil: not decompressed yet, or too large to keep
}

// decode says that a read is of a whole compressed block.
type decode struct {
	block *unpacked
	lay   *layout
	index int    // of the block in the layout
	raw   uint64 // bytes of the block without the operator
	skip  uint64 // where the wanted part begins in it
}

// open returns the decompressed block; stored is what the source gave. It
// returns nil if r wants all of the block and has it now. kept counts the bytes
// of all blocks that wait for further reads: what does not fit into maxStaging is
// not kept, and read and decompressed again.
func (d *decode) open(stored []byte, r *read, kept *uint64) (data []byte, err error) {
	u := d.block
	u.uses--
	if data = u.data; data != nil {
		if u.uses == 0 {
			u.data = nil
			*kept -= d.raw
		}
		return data, nil
	}
	keep := u.uses > 0 && d.raw <= maxStaging-*kept
	if whole := r.w == nil && uint64(len(r.dst)) == d.raw; whole && !keep {
		return nil, d.decompress(r.dst, stored, r.what)
	}
	data = make([]byte, d.raw)
	if err := d.decompress(data, stored, r.what); err != nil {
		return nil, err
	}
	if keep {
		u.data = data
		*kept += d.raw
	}
	return data, nil
}

// decompress undoes the operator that the block names. An operator that is
// missing fails this block alone.
func (d *decode) decompress(dst, stored []byte, v *Variable) error {
	info := operator.Block{Count: d.lay.count(d.index), ElemSize: v.def.elemSize, Type: uint8(v.def.typ)}
	if v.step.cfg.ColumnMajor { // operators want the writer's order
		info.Count = slices.Clone(info.Count)
		slices.Reverse(info.Count)
	}
	if err := operator.Decode(dst, stored, info); err != nil {
		return fmt.Errorf("step %d: variable %q: block %d of rank %d: %w", v.step.number, v.def.name, d.index, d.lay.blocks[d.index].rank, err)
	}
	return nil
}
