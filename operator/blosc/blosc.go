// Package blosc registers the decoder of the Blosc operator when it is imported: Blosc2 chunks with the codecs blosclz,
// lz4, zlib and zstd and the filters shuffle, bit shuffle, delta and truncated precision. It is not a compressor, and
// reads neither dictionaries nor the older chunks of Blosc 1.
//
// The decoder may be used concurrently. The layout of chunks is C-Blosc2's README_CHUNK_FORMAT.
package blosc

import (
	"encoding/binary"
	"fmt"

	"github.com/weft-fabric/weft/operator"
)

func init() { operator.Register(decoder{}) }

const (
	prefixSize = operator.FrameSize + 8 + 3 // in front of the chunk count, or of the only chunk of the old form
	headerSize = prefixSize + 8
	version    = 1 // newest layout version that ADIOS2 writes
)

// decoder undoes the blosc operator.
//
// wire: frame | size u64 | version of Blosc 3 × u8 | 0 u32 | chunks n u32 | n chunks, or raw bytes if n is 0
// old form: frame | size u64 | version of Blosc 3 × u8 | one chunk, whose first u32 is not 0 (docs/wire/bp5.md §8)
type decoder struct{}

func (decoder) ID() operator.ID { return operator.Blosc }
func (decoder) Name() string    { return operator.Blosc.String() }

// Decode implements operator.Decoder. Bytes behind the last chunk are ignored.
func (decoder) Decode(dst, block []byte, _ operator.Block) error {
	_, v, err := operator.FrameID(block)
	switch {
	case err != nil:
		return err
	case v > version:
		return unsupported("layout version %d", v)
	case len(block) < headerSize:
		return corrupt("block of %d bytes has no header", len(block))
	}
	if size := binary.LittleEndian.Uint64(block[4:]); size != uint64(len(dst)) {
		return corrupt("block says %d bytes, metadata %d", size, len(dst))
	}
	if binary.LittleEndian.Uint32(block[prefixSize:]) != 0 {
		return decodeChunks(dst, block[prefixSize:], 1)
	}
	// The newer form has its number of chunks behind a zero, where the old form has
	// the first bytes of its only chunk, which are never zero.
	chunks := block[headerSize:]
	if n := binary.LittleEndian.Uint32(block[prefixSize+4:]); n > 0 {
		return decodeChunks(dst, chunks, n)
	}
	if len(chunks) != len(dst) {
		return corrupt("%d raw bytes for %d", len(chunks), len(dst))
	}
	copy(dst, chunks)
	return nil
}

// decodeChunks fills dst from the n chunks at the front of b.
func decodeChunks(dst, b []byte, n uint32) error {
	for i := range n {
		c, err := parseChunk(b)
		if err != nil {
			return fmt.Errorf("operator: blosc: chunk %d: %w", i, err)
		}
		if c.size > len(dst) {
			return corrupt("chunk %d makes %d bytes, %d are left", i, c.size, len(dst))
		}
		if err := c.decode(dst[:c.size:c.size]); err != nil {
			return fmt.Errorf("operator: blosc: chunk %d: %w", i, err)
		}
		// Every chunk takes its header at least, so the loop ends with b.
		dst, b = dst[c.size:], b[len(c.bytes):]
	}
	if len(dst) > 0 {
		return corrupt("%d bytes missing behind chunk %d", len(dst), n)
	}
	return nil
}

// corrupt says that a block contradicts itself or its metadata.
func corrupt(format string, args ...any) error {
	return fmt.Errorf("operator: blosc: "+format+": %w", append(args, operator.ErrCorrupt)...)
}

// bad is corrupt without the package, for what decodeChunks wraps.
func bad(format string, args ...any) error {
	return fmt.Errorf(format+": %w", append(args, operator.ErrCorrupt)...)
}

// unsupported says that a block may be right, but needs something that is not here.
func unsupported(format string, args ...any) error {
	return &operator.UnsupportedError{ID: operator.Blosc, Detail: fmt.Sprintf(format, args...)}
}
