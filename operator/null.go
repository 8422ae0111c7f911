package operator

import (
	"encoding/binary"
	"fmt"
)

const nullVersion = 1 // layout version that ADIOS2 writes

const nullHeader = FrameSize + 8

// null stores a block as it is. ADIOS2 uses it when asked to, and when a compressor would not make a block smaller.
//
// wire: frame | size u64 | bytes
type null struct{}

func (null) ID() ID       { return Null }
func (null) Name() string { return Null.String() }

func (null) Decode(dst, block []byte, _ Block) error {
	if len(block) < nullHeader {
		return fmt.Errorf("operator: null: block of %d bytes has no header: %w", len(block), ErrCorrupt)
	}
	size, raw := binary.LittleEndian.Uint64(block[FrameSize:]), block[nullHeader:]
	if size != uint64(len(dst)) || size != uint64(len(raw)) {
		return fmt.Errorf("operator: null: block says %d bytes, metadata %d, stored are %d: %w", size, len(dst), len(raw), ErrCorrupt)
	}
	copy(dst, raw)
	return nil
}

// AppendNull appends raw to b as a stored block of the operator Null.
func AppendNull(b, raw []byte) []byte {
	b = AppendFrame(b, Null, nullVersion)
	b = binary.LittleEndian.AppendUint64(b, uint64(len(raw)))
	return append(b, raw...)
}
