package blosc

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"testing"

	"github.com/weft-fabric/weft/operator"
)

// header makes a chunk of one block without filters, with LZ4, unsplit, around body.
func header(size, typeSize int, body []byte) []byte {
	b := make([]byte, chunkHeaderSize, chunkHeaderSize+len(body))
	b[0], b[1], b[2], b[3] = formatVersion, 1, flagExtended|flagNoSplit|byte(codecLZ4)<<5, byte(typeSize)
	binary.LittleEndian.PutUint32(b[4:], uint32(size))
	binary.LittleEndian.PutUint32(b[8:], uint32(size))
	binary.LittleEndian.PutUint32(b[12:], uint32(chunkHeaderSize+len(body)))
	return append(b, body...)
}

// stream makes the body of a chunk of one block: its start, and a stream with the given size word and bytes.
func stream(size int32, rest ...byte) []byte {
	b := binary.LittleEndian.AppendUint32(nil, chunkHeaderSize+4)
	b = binary.LittleEndian.AppendUint32(b, uint32(size))
	return append(b, rest...)
}

func decodeChunk(c []byte, n int) ([]byte, error) { return decode(wrap(n, c), n) }

func TestStreams(t *testing.T) {
	for name, tc := range map[string]struct {
		body []byte
		want string
	}{
		"zeros":      {stream(0), "\x00\x00\x00\x00"},
		"run of 7":   {stream(-7, 1), "\x07\x07\x07\x07"},
		"run of 255": {stream(-255, 1), "\xff\xff\xff\xff"},
		"raw":        {stream(4, []byte("abcd")...), "abcd"},
		"lz4":        {stream(5, 0x40, 'a', 'b', 'c', 'd'), "abcd"},
	} {
		got, err := decodeChunk(header(4, 1, tc.body), 4)
		if err != nil || string(got) != tc.want {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}

func TestStreamRefuses(t *testing.T) {
	for name, body := range map[string][]byte{
		"run without token":        stream(-7),
		"run with other token":     stream(-7, 2),
		"run of 256":               stream(-256, 1),
		"run of the smallest size": stream(math.MinInt32, 1),
		"raw cut":                  stream(4, []byte("abc")...),
		"huge":                     stream(math.MaxInt32, []byte("abc")...),
		"lz4 too short":            stream(3, 0x20, 'a', 'b'),
		"lz4 too long":             stream(6, 0x50, 'a', 'b', 'c', 'd', 'e'),
		"no size":                  stream(0)[:6],
		"block outside":            {0xff, 0xff, 0xff, 0x7f, 0, 0, 0, 0},
		"block behind the end":     {41, 0, 0, 0, 0, 0, 0, 0},
		"no blocks":                {},
	} {
		if _, err := decodeChunk(header(4, 1, body), 4); !errors.Is(err, operator.ErrCorrupt) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestHeaderRefuses(t *testing.T) {
	for name, edit := range map[string]func(b []byte){
		"size over limit":     func(b []byte) { b[7] = 0x80 },
		"more than dst":       func(b []byte) { b[4] = 5 },
		"block of 0":          func(b []byte) { b[8] = 0 },
		"block over size":     func(b []byte) { b[8] = 5 },
		"huge block":          func(b []byte) { b[11] = 0xff },
		"type size 0":         func(b []byte) { b[3] = 0 },
		"length below header": func(b []byte) { b[12] = 31 },
		"length over end":     func(b []byte) { b[12]++ },
		"huge length":         func(b []byte) { b[15] = 0xff },
		"too many blocks":     func(b []byte) { b[8] = 1 },
		"unsplittable":        func(b []byte) { b[2] &^= flagNoSplit; b[3] = 3 },
		"stored, other size":  func(b []byte) { b[2] |= flagMemcpy },
	} {
		c := header(4, 1, stream(0))
		edit(c)
		if _, err := decodeChunk(c, 4); !errors.Is(err, operator.ErrCorrupt) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func special(kind byte, size, typeSize int, body ...byte) []byte {
	c := header(size, typeSize, body)
	c[31] = kind << 4
	return c
}

func TestSpecial(t *testing.T) {
	for name, tc := range map[string]struct {
		chunk []byte
		want  []byte
	}{
		"zeros":         {special(specialZeros, 5, 4), make([]byte, 5)},
		"uninitialised": {special(specialUninit, 5, 4), make([]byte, 5)},
		"value":         {special(specialValue, 6, 3, []byte("xyz")...), []byte("xyzxyz")},
		"NaN32":         {special(specialNaN, 8, 4), []byte{0, 0, 0xc0, 0x7f, 0, 0, 0xc0, 0x7f}},
		"NaN64":         {special(specialNaN, 8, 8), []byte{0, 0, 0, 0, 0, 0, 0xf8, 0x7f}},
		"empty":         {header(0, 1, nil), []byte{}},
	} {
		got, err := decodeChunk(tc.chunk, len(tc.want))
		if err != nil || !bytes.Equal(got, tc.want) {
			t.Errorf("%s: %x, %v", name, got, err)
		}
	}
	for name, c := range map[string][]byte{
		"NaN of 2 bytes":     special(specialNaN, 8, 2),
		"value cut":          special(specialValue, 8, 4, []byte("xyz")...),
		"value does not fit": special(specialValue, 8, 3, []byte("xyz")...),
		"unknown":            special(5, 8, 4),
	} {
		if _, err := decodeChunk(c, 8); !errors.Is(err, operator.ErrCorrupt) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// What a header promises must not be allocated: the largest chunk with the smallest body.
func TestPromisesCostNothing(t *testing.T) {
	c := header(math.MaxInt32, 1, stream(0))
	c[21] = filterShuffle
	if _, err := decodeChunk(c, 4); !errors.Is(err, operator.ErrCorrupt) {
		t.Error(err)
	}
}
