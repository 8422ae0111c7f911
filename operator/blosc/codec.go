package blosc

import (
	"bytes"
	"compress/zlib"
	"io"
	"sync"

	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
)

// codec is the compressor of a chunk's streams (C-Blosc2 README_CHUNK_FORMAT, flags).
type codec byte

const (
	codecBloscLZ codec = 0 // Blosc's own
	codecLZ4     codec = 1 // lz4 and lz4hc
	codecZlib    codec = 3 // whole zlib streams, with their checksum
	codecZstd    codec = 4 // whole zstd frames
)

// codecs decode one whole stream into dst and return the number of bytes made; they write nothing outside dst.
var codecs = map[codec]func(dst, src []byte) (int, error){
	codecBloscLZ: decodeBloscLZ,
	codecLZ4:     func(dst, src []byte) (int, error) { return lz4.UncompressBlock(src, dst) },
	codecZlib:    decodeZlib,
	codecZstd:    decodeZstd,
}

// decode fills dst from src.
func (c codec) decode(dst, src []byte) error {
	n, err := codecs[c](dst, src)
	if err == nil && n != len(dst) {
		err = bad("stream makes %d of %d bytes", n, len(dst))
	}
	return err
}

// decodeZlib is slower than the others, since the standard library has no interface for whole buffers, and copies
// through a window.
func decodeZlib(dst, src []byte) (int, error) {
	r, err := zlib.NewReader(bytes.NewReader(src))
	if err != nil {
		return 0, err
	}
	n, err := io.ReadFull(r, dst)
	if err != nil {
		return n, err
	}
	// Only the end of the stream has the checksum.
	switch m, err := r.Read(make([]byte, 1)); {
	case m > 0:
		return n + m, nil
	case err != io.EOF:
		return n, err
	}
	return n, nil
}

// zstdDecoder is shared by all calls: it is made for that, keeps its tables, and starts no goroutine. It writes no
// more than the capacity that it is given.
var zstdDecoder = sync.OnceValues(func() (*zstd.Decoder, error) {
	return zstd.NewReader(nil, zstd.WithDecodeAllCapLimit(true), zstd.WithDecoderLowmem(true))
})

// decodeZstd decodes into dst itself. A frame may announce any size: the limit is the capacity of dst, not what the
// frame says.
func decodeZstd(dst, src []byte) (int, error) {
	d, err := zstdDecoder()
	if err != nil {
		return 0, err
	}
	out, err := d.DecodeAll(src, dst[:0:len(dst)])
	return len(out), err // out is the front of dst: there is no other place it may go
}
