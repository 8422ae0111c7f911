package blosc

import (
	"bytes"
	"math/bits"
	"testing"
)

// shuffle and bitShuffle are written from the definitions, one byte or bit at a time.
func shuffle(src []byte, typeSize int) []byte {
	dst, n := bytes.Clone(src), len(src)/typeSize
	for i := range n {
		for b := range typeSize {
			dst[b*n+i] = src[i*typeSize+b]
		}
	}
	return dst
}

func bitShuffle(src []byte, typeSize int) []byte {
	n := len(src) / typeSize / 8 * 8
	dst := make([]byte, len(src))
	copy(dst[n*typeSize:], src[n*typeSize:])
	for i := range n {
		for bit := range 8 * typeSize {
			v := src[i*typeSize+bit/8] >> (bit % 8) & 1
			at := bit*n + i
			dst[at/8] |= v << (at % 8)
		}
	}
	return dst
}

func TestUnshuffleUndoesShuffle(t *testing.T) {
	for _, typeSize := range []int{1, 2, 3, 4, 7, 8, 16, 255} {
		for _, n := range []int{0, 1, 7, 8, 9, 64, 255, 1000, 2041} {
			want, got := random(n), make([]byte, n)
			unshuffle(got, shuffle(want, typeSize), typeSize)
			if !bytes.Equal(got, want) {
				t.Errorf("shuffle: type %d, %d bytes", typeSize, n)
			}
			clear(got)
			bitUnshuffle(got, bitShuffle(want, typeSize), typeSize)
			if !bytes.Equal(got, want) {
				t.Errorf("bit shuffle: type %d, %d bytes", typeSize, n)
			}
		}
	}
}

func TestTranspose(t *testing.T) {
	for k := range 8 {
		for e := range 8 {
			if got := transpose(1 << (8*k + e)); got != 1<<(8*e+k) {
				t.Errorf("bit %d of byte %d went to bit %d", e, k, bits.TrailingZeros64(got))
			}
		}
	}
}

func TestUndoDelta(t *testing.T) {
	want := random(50)
	first, second := bytes.Clone(want[:30]), bytes.Clone(want[30:])
	for i := 29; i >= 4; i-- {
		first[i] ^= first[i-4]
	}
	for i := range second {
		second[i] ^= want[i]
	}
	dst := make([]byte, 50)
	undoDelta(first, dst, 0, 4)
	copy(dst, first)
	undoDelta(second, dst, 30, 4)
	copy(dst[30:], second)
	if !bytes.Equal(dst, want) {
		t.Errorf("got %x\nwant %x", dst, want)
	}
}

func TestUndoDeltaOfBlockShorterThanType(t *testing.T) {
	b := []byte{1, 2, 3}
	undoDelta(b, nil, 0, 8)
	if !bytes.Equal(b, []byte{1, 2, 3}) {
		t.Errorf("got %x", b)
	}
}
