// Package png registers the decoder of the PNG operator when it is imported. It is not an encoder. The decoder has no
// state and may be used concurrently.
package png

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"image"
	"image/png"

	"github.com/weft-fabric/weft/operator"
)

func init() { operator.Register(decoder{}) }

const (
	headerSize = operator.FrameSize + 8 + 3 // frame, length, version of libpng
	version    = 1                          // layout version that ADIOS2 writes
)

// decoder undoes the PNG operator. The block is an image of {height, width, bytes per pixel} elements of one byte, or
// of {height, width} elements of one pixel each. The image must have 8 bits in a channel: with 16, ADIOS2 itself does not
// get back what it stored.
//
// wire: frame | length of the whole block u64 | version of libpng 3 × u8 | PNG file (docs/wire/bp5.md §8)
type decoder struct{}

func (decoder) ID() operator.ID { return operator.PNG }
func (decoder) Name() string    { return operator.PNG.String() }

// Decode implements operator.Decoder.
func (decoder) Decode(dst, block []byte, info operator.Block) error {
	_, v, err := operator.FrameID(block)
	switch {
	case err != nil:
		return err
	case v != version:
		return unsupported("layout version %d", v)
	case len(block) < headerSize:
		return corrupt("block of %d bytes has no header", len(block))
	}
	// The only operator that counts the stored bytes, header included.
	if n := binary.LittleEndian.Uint64(block[4:]); n != uint64(len(block)) {
		return corrupt("block says it has %d bytes, metadata %d", n, len(block))
	}
	// The header of the image is enough to know what decoding it would take.
	file := block[headerSize:]
	channels, err := checkHeader(dst, file, info)
	if err != nil {
		return err
	}
	img, err := png.Decode(bytes.NewReader(file))
	if err != nil {
		return corrupt("%v", err)
	}
	return copyPixels(dst, img, channels)
}

// Positions in a PNG file, behind the signature and the head of the first chunk (PNG specification, IHDR).
const (
	bitDepthAt  = 24
	colorTypeAt = 25
)

// channelsOf gives the number of channels by the PNG colour type.
var channelsOf = map[byte]int{0: 1, 2: 3, 4: 2, 6: 4} // grey, RGB, grey and alpha, RGBA

// checkHeader compares what the image will give with dst before any pixel is decoded, and returns the number of its
// channels, which are the bytes of a pixel.
func checkHeader(dst, file []byte, info operator.Block) (channels int, err error) {
	cfg, err := png.DecodeConfig(bytes.NewReader(file))
	if err != nil {
		return 0, corrupt("%v", err)
	}
	channels, ok := channelsOf[file[colorTypeAt]]
	if depth := file[bitDepthAt]; !ok || depth != 8 {
		return 0, unsupported("image of colour type %d with %d bits", file[colorTypeAt], depth)
	}
	if want := uint64(cfg.Width) * uint64(cfg.Height) * uint64(channels); want != uint64(len(dst)) { // sides are below 2^31
		return 0, corrupt("image of %d × %d pixels of %d bytes, metadata says %d bytes", cfg.Height, cfg.Width, channels, len(dst))
	}
	if c := info.Count; len(c) >= 2 && (c[0] != uint64(cfg.Height) || c[1] != uint64(cfg.Width)) {
		return 0, corrupt("image of height %d and width %d, metadata says %d", cfg.Height, cfg.Width, c)
	}
	return channels, nil
}

// copyPixels copies the channels that were stored. The standard library widens all but plain grey to four: grey with
// alpha comes as red = green = blue with alpha. Neither of its two types is premultiplied here: what has no alpha is opaque.
func copyPixels(dst []byte, img image.Image, channels int) error {
	offset := [4]int{0, 1, 2, 3} // where the channels are in a pixel of four
	if channels == 2 {
		offset[1] = 3
	}
	var pix []byte // four bytes a pixel, rows without gaps
	switch m := img.(type) {
	case *image.Gray:
		copy(dst, m.Pix)
		return nil
	case *image.RGBA:
		pix = m.Pix
	case *image.NRGBA:
		pix = m.Pix
	default:
		return unsupported("image of type %T", img)
	}
	for i, j := 0, 0; i < len(dst); i, j = i+channels, j+4 {
		for c := range channels {
			dst[i+c] = pix[j+offset[c]]
		}
	}
	return nil
}

// corrupt says that a block contradicts itself or its metadata.
func corrupt(format string, args ...any) error {
	return fmt.Errorf("operator: png: "+format+": %w", append(args, operator.ErrCorrupt)...)
}

// unsupported says that an image may be right, but is of a sort that is not read here.
func unsupported(format string, args ...any) error {
	return &operator.UnsupportedError{ID: operator.PNG, Detail: fmt.Sprintf(format, args...)}
}
