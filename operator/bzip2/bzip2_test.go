package bzip2

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/weft-fabric/weft/internal/bpfixture"
	"github.com/weft-fabric/weft/operator"
)

// storedBlocks returns the blocks of v2.10.2-bzip2 in the order of data.0, which is that of the Puts: x, x, y, l of each
// of two steps. Each has one batch, and its end follows from the batch's table.
func storedBlocks(t testing.TB) [][]byte {
	t.Helper()
	data := bpfixture.Files(t, "v2.10.2-bzip2")["data.0"]
	var out [][]byte
	for at := 0; at+headerSize+batchSize <= len(data); {
		b := data[at:]
		if binary.LittleEndian.Uint32(b) != 0x0101 {
			at += 4 // padding
			continue
		}
		end := headerSize + batchSize + int(binary.LittleEndian.Uint32(b[headerSize+12:]))
		out = append(out, b[:end:end])
		at += (end + 3) &^ 3
	}
	if len(out) != 8 {
		t.Fatalf("%d blocks, want 8", len(out))
	}
	return out
}

// wantValues returns what the documented formulas of testdata/README.md give for block k of storedBlocks.
func wantValues(k int) []byte {
	var out []byte
	st := float64(k / 4 * 1000)
	switch k % 4 {
	case 0, 1: // x: double
		for i := range 300 {
			v := st + float64(10*(k%4)+i) + 0.25
			out = binary.LittleEndian.AppendUint64(out, math.Float64bits(v))
		}
	case 2: // y: int32
		for i := range 1000 {
			out = binary.LittleEndian.AppendUint32(out, uint32(int(st)+i/10))
		}
	case 3: // l: float
		for i := range 64 {
			out = binary.LittleEndian.AppendUint32(out, math.Float32bits(float32(st)+float32(i)+0.5))
		}
	}
	return out
}

func TestFixtureBlocks(t *testing.T) {
	for k, block := range storedBlocks(t) {
		want := wantValues(k)
		got := make([]byte, len(want))
		if err := operator.Decode(got, block, operator.Block{}); err != nil {
			t.Errorf("block %d: %v", k, err)
		} else if !bytes.Equal(got, want) {
			t.Errorf("block %d: other values", k)
		}
	}
}

func TestTruncated(t *testing.T) {
	block := storedBlocks(t)[3]
	dst := make([]byte, 256)
	for n := range block {
		if err := operator.Decode(dst, block[:n:n], operator.Block{}); !errors.Is(err, operator.ErrCorrupt) {
			t.Fatalf("prefix %d: %v", n, err)
		}
	}
}

// join puts the streams of blocks with one batch together into one block with a batch for each.
func join(blocks ...[]byte) []byte {
	var table, streams []byte
	out, in := 0, headerSize+batchSize*len(blocks)
	for _, b := range blocks {
		size, stream := int(binary.LittleEndian.Uint64(b[4:])), b[headerSize+batchSize:]
		for _, v := range []int{out, size, in + len(streams), len(stream)} {
			table = binary.LittleEndian.AppendUint32(table, uint32(v))
		}
		out, streams = out+size, append(streams, stream...)
	}
	b := operator.AppendFrame(nil, operator.Bzip2, version)
	b = binary.LittleEndian.AppendUint64(b, uint64(out))
	b = binary.LittleEndian.AppendUint64(b, uint64(len(blocks)))
	return append(append(b, table...), streams...)
}

func TestManyBatches(t *testing.T) {
	blocks := storedBlocks(t)
	want := bytes.Join([][]byte{wantValues(0), wantValues(2), wantValues(3)}, nil)
	got := make([]byte, len(want))
	if err := operator.Decode(got, join(blocks[0], blocks[2], blocks[3]), operator.Block{}); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Error("other values")
	}
}

// A block of a few kilobytes could ask for a thousand decompressors.
func TestTinyBatchesAreRefused(t *testing.T) {
	b := storedBlocks(t)[3] // 256 bytes
	for _, tc := range []struct {
		batches int
		ok      bool
	}{{fewBatches, true}, {fewBatches + 1, false}, {1000, false}} {
		err := operator.Decode(make([]byte, 256*tc.batches), join(slices.Repeat([][]byte{b}, tc.batches)...), operator.Block{})
		if (err == nil) != tc.ok || err != nil && !errors.Is(err, operator.ErrCorrupt) {
			t.Errorf("%d batches: %v", tc.batches, err)
		}
	}
}

func TestNoBatches(t *testing.T) {
	if err := operator.Decode(nil, join(), operator.Block{}); err != nil {
		t.Error(err)
	}
}

func TestRefuses(t *testing.T) {
	good := join(storedBlocks(t)[0], storedBlocks(t)[3])
	size := 2400 + 256
	second := headerSize + batchSize
	for _, tc := range []struct {
		name string
		size int
		edit func(b []byte)
	}{
		{"size of dst", size - 1, func([]byte) {}},
		{"inner size", size, func(b []byte) { b[4]++ }},
		{"huge inner size", size, func(b []byte) { b[11] = 0xff }},
		{"more batches", size, func(b []byte) { b[12]++ }},
		{"fewer batches", size, func(b []byte) { b[12]-- }},
		{"huge batch count", size, func(b []byte) { b[19] = 0x10 }},
		{"output position", size, func(b []byte) { b[second]++ }},
		{"output length", size, func(b []byte) { b[second+4]++ }},
		{"shorter output", size, func(b []byte) { b[second+4]-- }},
		{"stream position", size, func(b []byte) { b[second+8]++ }},
		{"stream length", size, func(b []byte) { b[second+12]++ }},
		{"shorter stream", size, func(b []byte) { b[second+12]-- }},
		{"first stream too long", size, func(b []byte) { b[headerSize+15] = 0xff }},
		{"damaged stream", size, func(b []byte) { b[len(b)-1] ^= 0xff; b[len(b)-4] ^= 0xff }},
	} {
		b := bytes.Clone(good)
		tc.edit(b)
		if err := operator.Decode(make([]byte, tc.size), b, operator.Block{}); !errors.Is(err, operator.ErrCorrupt) {
			t.Errorf("%s: %v", tc.name, err)
		}
	}
}

func TestOtherLayoutVersion(t *testing.T) {
	b := bytes.Clone(storedBlocks(t)[3])
	b[1] = 2
	if err := operator.Decode(make([]byte, 256), b, operator.Block{}); !errors.Is(err, operator.ErrUnsupported) {
		t.Error(err)
	}
}

func TestIsRegistered(t *testing.T) {
	if d, ok := operator.Lookup(operator.Bzip2); !ok || d.Name() != "bzip2" {
		t.Errorf("Lookup = %v, %v", d, ok)
	}
}

func FuzzDecode(f *testing.F) {
	for k, b := range storedBlocks(f) {
		f.Add(b, len(wantValues(k)))
	}
	f.Fuzz(func(t *testing.T, block []byte, n int) {
		err := decoder{}.Decode(make([]byte, uint16(n)), block, operator.Block{})
		if err != nil && !errors.Is(err, operator.ErrCorrupt) && !errors.Is(err, operator.ErrUnsupported) {
			t.Fatal(err)
		}
	})
}
