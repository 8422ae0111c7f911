package blosc

import (
	"bytes"
	"encoding/binary"
	"math"
)

// Constants of a chunk's header (C-Blosc2 README_CHUNK_FORMAT).
const (
	chunkHeaderSize = 32
	formatVersion   = 5 // of all releases of Blosc2

	flagMemcpy   = 0x02 // the bytes are stored as they are
	flagExtended = 0x05 // both bits: the header has 32 bytes, not 16
	flagNoSplit  = 0x10 // each block is one stream

	flag2Dict         = 0x01 // streams need a dictionary, which ADIOS2 never makes
	flag2Lazy         = 0x08 // a header without data
	flag2Instrumented = 0x80 // measurements in the place of data

	filterSlots = 6 // filters that one after the other were applied
)

// Values of the special field: what the whole chunk is made of.
const (
	specialNone   = 0 // blocks, as usual
	specialZeros  = 1 // zeros
	specialNaN    = 2 // quiet NaNs, of the type size
	specialValue  = 3 // one value again and again, which follows the header
	specialUninit = 4 // anything: the writer had not set it
)

// chunk is a parsed header and the bytes it belongs to.
//
// wire: version u8 | codec version u8 | flags u8, codec in the upper 3 bits | type size u8 | uncompressed size i32 |
// block size i32 | chunk size i32 | filters 6 × u8 | user codec u8 | codec meta u8 | filter meta 6 × u8 | 0 u8 | flags2 u8
type chunk struct {
	bytes     []byte // the whole chunk
	size      int    // uncompressed
	blockSize int    // uncompressed size of all blocks but the last; at most size
	typeSize  int    // at least 1
	flags     byte
	codec     codec
	special   byte
	filters   [filterSlots]byte
}

// parseChunk parses the chunk at the front of b and checks all that its header says.
func parseChunk(b []byte) (c chunk, err error) {
	if len(b) < 16 {
		return c, bad("%d bytes of 16 of a header", len(b))
	}
	if b[0] != formatVersion || b[2]&flagExtended != flagExtended {
		return c, unsupported("chunk format %d with flags %#02x", b[0], b[2])
	}
	size, blockSize, total := binary.LittleEndian.Uint32(b[4:]), binary.LittleEndian.Uint32(b[8:]), binary.LittleEndian.Uint32(b[12:])
	if total < chunkHeaderSize || uint64(total) > uint64(len(b)) {
		return c, bad("chunk says it has %d bytes, %d are there", total, len(b))
	}
	// The sizes are signed in the original.
	if size > math.MaxInt32 || blockSize > size || blockSize == 0 && size > 0 {
		return c, bad("blocks of %d bytes in a chunk of %d", blockSize, size)
	}
	c = chunk{
		bytes: b[:total], size: int(size), blockSize: int(blockSize), typeSize: int(b[3]), flags: b[2],
		codec: codec(b[2] >> 5), special: b[31] >> 4 & 7, filters: [filterSlots]byte(b[16:]),
	}
	if c.typeSize == 0 {
		return c, bad("type size 0")
	}
	if b[31]&(flag2Dict|flag2Lazy|flag2Instrumented) != 0 {
		return c, unsupported("chunk with a dictionary, without data, or instrumented (flags %#02x)", b[31])
	}
	return c, c.checkFilters(b[24:])
}

// checkFilters refuses what decode does not know. The meta byte of a shuffle replaces the type size in newer releases;
// ADIOS2 cannot set it.
func (c *chunk) checkFilters(meta []byte) error {
	for i, f := range c.filters {
		switch {
		case f > filterTruncate:
			return unsupported("filter %d", f)
		case (f == filterShuffle || f == filterBitShuffle) && meta[i] != 0:
			return unsupported("filter %d with parameter %d", f, meta[i])
		}
	}
	return nil
}

// decode fills dst, which has c.size bytes.
func (c *chunk) decode(dst []byte) error {
	body := c.bytes[chunkHeaderSize:]
	switch {
	case c.special != specialNone:
		return c.decodeSpecial(dst, body)
	case len(dst) == 0:
		return nil
	case c.flags&flagMemcpy != 0:
		if len(body) != len(dst) {
			return bad("%d stored bytes for %d", len(body), len(dst))
		}
		copy(dst, body)
		return nil
	case codecs[c.codec] == nil:
		return unsupported("codec %d", c.codec)
	}
	// The table of block positions must be there before it is used.
	blocks := (len(dst)-1)/c.blockSize + 1
	if blocks > len(body)/4 {
		return bad("%d blocks in %d bytes", blocks, len(body))
	}
	u := newUnfilter(c)
	for i := range blocks {
		at := binary.LittleEndian.Uint32(body[4*i:]) // from the start of the chunk
		if uint64(at) > uint64(len(c.bytes)) {
			return bad("block %d at %d of %d bytes", i, at, len(c.bytes))
		}
		// Positions may repeat or go backwards: the output of each block is its own.
		lo := i * c.blockSize
		hi := min(lo+c.blockSize, len(dst))
		work := u.input(dst[lo:hi])
		if err := c.decodeBlock(work, c.bytes[at:]); err != nil {
			return bad("block %d: %v", i, err)
		}
		u.undo(dst, lo, hi)
	}
	return nil
}

// decodeBlock fills dst from the streams at the front of b. A block is split into one stream for each byte of the type;
// the last block is not if it is shorter than the others.
func (c *chunk) decodeBlock(dst, b []byte) error {
	streams := 1
	if c.flags&flagNoSplit == 0 && len(dst) == c.blockSize {
		streams = c.typeSize
	}
	if len(dst)%streams != 0 {
		return bad("%d bytes do not split into %d streams", len(dst), streams)
	}
	size := len(dst) / streams // each stream makes an equal part
	for i := range streams {
		n, err := c.decodeStream(dst[i*size:(i+1)*size:(i+1)*size], b)
		if err != nil {
			return bad("stream %d: %v", i, err)
		}
		b = b[n:]
	}
	return nil
}

// decodeStream fills dst from the stream at the front of b and returns the number of bytes it takes.
//
// wire: size i32 | bytes; size 0: zeros; size below 0: token u8, whose lowest bit says that all bytes are −size
func (c *chunk) decodeStream(dst, b []byte) (n int, err error) {
	if len(b) < 4 {
		return 0, bad("%d bytes of 4 of a size", len(b))
	}
	size, b := int32(binary.LittleEndian.Uint32(b)), b[4:]
	switch {
	case size == 0:
		clear(dst)
		return 4, nil
	case size < 0:
		if len(b) < 1 || b[0] != 1 || size < -255 {
			return 0, bad("run of size %d", size)
		}
		fill(dst, byte(-size))
		return 5, nil
	case int(size) > len(b):
		return 0, bad("%d bytes of %d", len(b), size)
	case int(size) == len(dst):
		copy(dst, b)
		return 4 + int(size), nil
	}
	return 4 + int(size), c.codec.decode(dst, b[:size])
}

// decodeSpecial fills dst for a chunk without blocks.
func (c *chunk) decodeSpecial(dst, body []byte) error {
	var value []byte
	switch {
	case c.special == specialZeros || c.special == specialUninit:
		clear(dst)
		return nil
	case c.special == specialValue && len(body) >= c.typeSize:
		value = body[:c.typeSize]
	case c.special == specialNaN && c.typeSize == 4:
		value = binary.LittleEndian.AppendUint32(nil, 0x7fc00000)
	case c.special == specialNaN && c.typeSize == 8:
		value = binary.LittleEndian.AppendUint64(nil, 0x7ff8000000000000)
	default:
		return bad("special value %d of type size %d", c.special, c.typeSize)
	}
	if len(dst)%len(value) != 0 {
		return bad("%d bytes are no whole number of values of %d", len(dst), len(value))
	}
	copy(dst, bytes.Repeat(value, len(dst)/len(value)))
	return nil
}

// fill sets all of b to v.
func fill(b []byte, v byte) {
	for i := range b {
		b[i] = v
	}
}
