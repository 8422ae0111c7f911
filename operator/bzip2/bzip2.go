// Package bzip2 registers the decoder of the bzip2 operator when it is imported. It is not a compressor. The decoder has
// no state and may be used concurrently.
package bzip2

import (
	"bytes"
	"compress/bzip2"
	"encoding/binary"
	"fmt"
	"io"

	"github.com/weft-fabric/weft/operator"
)

func init() { operator.Register(decoder{}) }

const (
	headerSize = operator.FrameSize + 16 // frame, size, number of batches
	batchSize  = 16                      // one entry of the table
	version    = 1                       // layout version that ADIOS2 writes

	// Each batch costs a decompressor of nearly 4 MB. Those of ADIOS2 have 2147381248 bytes of output (docs/wire/bp5.md §8);
	// a block made of tiny ones would keep a reader busy for hours, so besides a few there may be one for each MiB.
	fewBatches = 16
	leastBatch = 1 << 20
)

// decoder undoes the bzip2 operator. The block is cut into batches below 2 GiB, each a bzip2 stream of its own.
//
// wire: frame | size u64 | batches n u64 | n × (output position u32, output length u32, position in the block u32,
// stream length u32) | streams (docs/wire/bp5.md §8)
type decoder struct{}

func (decoder) ID() operator.ID { return operator.Bzip2 }
func (decoder) Name() string    { return operator.Bzip2.String() }

// Decode implements operator.Decoder.
func (decoder) Decode(dst, block []byte, _ operator.Block) error {
	_, v, err := operator.FrameID(block)
	switch {
	case err != nil:
		return err
	case v != version:
		return &operator.UnsupportedError{ID: operator.Bzip2, Detail: fmt.Sprintf("layout version %d", v)}
	case len(block) < headerSize:
		return corrupt("block of %d bytes has no header", len(block))
	}
	size, n := binary.LittleEndian.Uint64(block[4:]), binary.LittleEndian.Uint64(block[12:])
	if size != uint64(len(dst)) {
		return corrupt("block says %d bytes, metadata %d", size, len(dst))
	}
	// Divided, not multiplied: n is any 64 bits.
	if n > uint64(len(block)-headerSize)/batchSize {
		return corrupt("%d batches in a block of %d bytes", n, len(block))
	}
	if n > fewBatches+size/leastBatch {
		return corrupt("%d batches for %d bytes", n, size)
	}
	return decodeBatches(dst, block, int(n))
}

// decodeBatches decodes n batches, whose table is whole. Positions are taken from the running sums, since the 32-bit ones
// in the table wrap in a block beyond 4 GiB; the table must agree with the sums.
func decodeBatches(dst, block []byte, n int) error {
	out, in := 0, headerSize+batchSize*n // the streams follow the table
	for i := range n {
		e := block[headerSize+batchSize*i:]
		outPos, outLen := binary.LittleEndian.Uint32(e), binary.LittleEndian.Uint32(e[4:])
		inPos, inLen := binary.LittleEndian.Uint32(e[8:]), binary.LittleEndian.Uint32(e[12:])
		if outPos != uint32(out) || uint64(outLen) > uint64(len(dst)-out) {
			return corrupt("batch %d: output %d+%d, at %d of %d", i, outPos, outLen, out, len(dst))
		}
		if inPos != uint32(in) || uint64(inLen) > uint64(len(block)-in) {
			return corrupt("batch %d: stream %d+%d, at %d of %d", i, inPos, inLen, in, len(block))
		}
		if err := decodeStream(dst[out:out+int(outLen)], block[in:in+int(inLen)]); err != nil {
			return corrupt("batch %d: %v", i, err)
		}
		out, in = out+int(outLen), in+int(inLen)
	}
	// No byte of dst may stay as it was.
	if out != len(dst) {
		return corrupt("batches make %d of %d bytes", out, len(dst))
	}
	return nil
}

// decodeStream fills dst and reads to the end of the stream, where its checksum is.
func decodeStream(dst, stream []byte) error {
	// What comes out is bounded by dst, whatever the stream could make.
	r := bzip2.NewReader(bytes.NewReader(stream))
	if _, err := io.ReadFull(r, dst); err != nil {
		return err
	}
	switch n, err := r.Read(make([]byte, 1)); {
	case n > 0:
		return fmt.Errorf("stream is longer than its %d bytes of output", len(dst))
	case err != io.EOF:
		return err
	}
	return nil
}

// corrupt says that a block contradicts itself or its metadata.
func corrupt(format string, args ...any) error {
	return fmt.Errorf("operator: bzip2: "+format+": %w", append(args, operator.ErrCorrupt)...)
}
