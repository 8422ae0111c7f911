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
	data []byte // nil: not decompressed yet
}

// decode says that a read is of a whole compressed block.
type decode struct {
	block *unpacked
	index int    // of the block in the layout
	raw   uint64 // bytes of the block without the operator
	skip  uint64 // where the wanted part begins in it
}

// open returns the decompressed block; stored is what the source gave. It
// returns nil if r wants all of the block and has it now.
func (d *decode) open(stored []byte, r *read) (data []byte, err error) {
	if d.block.data == nil {
		whole := r.w == nil && uint64(len(r.dst)) == d.raw
		if whole && d.block.uses == 1 {
			return nil, d.decompress(r.dst, stored, r.what)
		}
		data := make([]byte, d.raw)
		if err := d.decompress(data, stored, r.what); err != nil {
			return nil, err
		}
		d.block.data = data
	}
	data = d.block.data
	if d.block.uses--; d.block.uses == 0 {
		d.block.data = nil
	}
	return data, nil
}

func (d *decode) decompress(dst, stored []byte, r *reading) error {
	info := operator.Block{Count: r.lay.count(d.index), ElemSize: r.v.def.elemSize, Type: uint8(r.v.def.typ)}
	if r.v.step.cfg.ColumnMajor { // operators want the writer's order
		info.Count = slices.Clone(info.Count)
		slices.Reverse(info.Count)
	}
	if err := operator.Decode(dst, stored, info); err != nil {
		return fmt.Errorf("step %d: variable %q: block %d of rank %d: %w", r.v.step.number, r.v.def.name, d.index, r.lay.blocks[d.index].rank, err)
	}
	return nil
}
