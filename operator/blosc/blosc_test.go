package blosc

import (
	"bytes"
	"encoding/binary"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/weft-fabric/weft/operator"
)

// Every chunk of the real library, in a block of its own, gives the data that was compressed.
func TestFixtures(t *testing.T) {
	all := fixtures(t)
	if len(all) < 100 {
		t.Fatalf("only %d fixtures", len(all))
	}
	for _, f := range all {
		got, err := decode(wrap(len(f.want), f.chunk), len(f.want))
		if err != nil {
			t.Errorf("%s: %v", f.name, err)
		} else if !bytes.Equal(got, f.want) {
			t.Errorf("%s: other bytes, first at %d", f.name, mismatch(got, f.want))
		}
	}
}

func mismatch(a, b []byte) int {
	for i := range a {
		if a[i] != b[i] {
			return i
		}
	}
	return len(a)
}

// A block may be of any number of chunks, whatever each is made of.
func TestManyChunks(t *testing.T) {
	var chunks [][]byte
	var want []byte
	for _, f := range fixtures(t) {
		chunks, want = append(chunks, f.chunk), append(want, f.want...)
	}
	got, err := decode(wrap(len(want), chunks...), len(want))
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("err = %v, first difference at %d of %d", err, mismatch(got, want), len(want))
	}
}

func TestRawBytes(t *testing.T) {
	got, err := decode(append(wrap(3), "abc"...), 3)
	if err != nil || string(got) != "abc" {
		t.Errorf("%q, %v", got, err)
	}
	if _, err := decode(wrap(0), 0); err != nil {
		t.Errorf("empty block: %v", err)
	}
}

// The old form has the chunk where the new one has 0 and the number of chunks.
func TestOldForm(t *testing.T) {
	f := find(t, "zstd-shuffle-8-1024-ramp-5000-auto-5")
	block := wrap(len(f.want))[:prefixSize]
	got, err := decode(append(block, f.chunk...), len(f.want))
	if err != nil || !bytes.Equal(got, f.want) {
		t.Errorf("err = %v", err)
	}
}

func TestBytesBehindTheLastChunkAreIgnored(t *testing.T) {
	f := find(t, "lz4-shuffle-8-1024-ramp-5000-auto-5")
	got, err := decode(append(wrap(len(f.want), f.chunk), "padding"...), len(f.want))
	if err != nil || !bytes.Equal(got, f.want) {
		t.Errorf("err = %v", err)
	}
}

// Every prefix is refused, also when the chunk's own length is put right, which lets the damage get further in.
func TestTruncated(t *testing.T) {
	for _, f := range fixtures(t) {
		step := 1 + len(f.chunk)/3000*10 // not every prefix of the few large ones: minutes under the race detector
		block := wrap(len(f.want), f.chunk)
		for n := 0; n < len(block); n += step {
			if _, err := decode(block[:n:n], len(f.want)); !errors.Is(err, operator.ErrCorrupt) {
				t.Fatalf("%s: prefix %d: %v", f.name, n, err)
			}
		}
		if f.chunk[31]>>4&7 == specialZeros {
			continue // has no bytes to lose
		}
		for n := chunkHeaderSize; n < len(f.chunk); n += step {
			b := bytes.Clone(f.chunk[:n])
			binary.LittleEndian.PutUint32(b[12:], uint32(n))
			if _, err := decode(wrap(len(f.want), b), len(f.want)); !errors.Is(err, operator.ErrCorrupt) {
				t.Fatalf("%s: chunk cut to %d: %v", f.name, n, err)
			}
		}
	}
}

func TestRefusesBlocks(t *testing.T) {
	f := find(t, "lz4-shuffle-8-1024-ramp-5000-auto-5")
	n := len(f.want)
	size := wrap(n, f.chunk)
	size[4]++
	huge := wrap(n, f.chunk)
	huge[11] = 0xff
	for _, tc := range []struct {
		name  string
		block []byte
		size  int
	}{
		{"inner size", size, n},
		{"huge inner size", huge, n},
		{"size of dst", wrap(n, f.chunk), n + 1},
		{"chunk missing", wrap(2*n, f.chunk), 2 * n},
		{"chunk too many", wrap(n, f.chunk, f.chunk), n},
		{"more chunks than bytes", wrap(n, f.chunk, nil, nil), n},
		{"too few raw bytes", append(wrap(4), "abc"...), 4},
		{"too many raw bytes", append(wrap(2), "abc"...), 2},
	} {
		if _, err := decode(tc.block, tc.size); !errors.Is(err, operator.ErrCorrupt) {
			t.Errorf("%s: %v", tc.name, err)
		}
	}
}

func TestUnsupported(t *testing.T) {
	const name = "lz4-shuffle-8-1024-ramp-5000-auto-5"
	n := len(find(t, name).want)
	for _, tc := range []struct {
		name string
		at   int
		v    byte
	}{
		{"chunk format", 0, 4},
		{"flags", 2, 0x21}, // header of 16 bytes
		{"filter 33", 21, 33},
		{"parameter 4", 29, 4},
		{"dictionary", 31, flag2Dict},
		{"codec 6", 2, 6<<5 | flagExtended},
		{"codec 2", 2, 2<<5 | flagExtended},
	} {
		f := find(t, name)
		f.chunk[tc.at] = tc.v
		_, err := decode(wrap(n, f.chunk), n)
		if !errors.Is(err, operator.ErrUnsupported) || !strings.Contains(err.Error(), tc.name) {
			t.Errorf("%s: %v", tc.name, err)
		}
	}
	block := wrap(n, find(t, name).chunk)
	block[1] = version + 1
	if _, err := decode(block, n); !errors.Is(err, operator.ErrUnsupported) {
		t.Errorf("layout version: %v", err)
	}
}

func TestConcurrentUse(t *testing.T) {
	f := find(t, "zstd-bitshuffle-8-1024-ramp-5000-auto-5")
	block := wrap(len(f.want), f.chunk)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 20 {
				if got, err := decode(block, len(f.want)); err != nil || !bytes.Equal(got, f.want) {
					t.Errorf("err = %v", err)
				}
			}
		})
	}
	wg.Wait()
}

func TestIsRegistered(t *testing.T) {
	if d, ok := operator.Lookup(operator.Blosc); !ok || d.Name() != "blosc" {
		t.Errorf("Lookup = %v, %v", d, ok)
	}
}

func FuzzDecode(f *testing.F) {
	for _, x := range fixtures(f) {
		if len(x.chunk) < 1500 {
			f.Add(wrap(len(x.want), x.chunk), len(x.want))
		}
	}
	f.Fuzz(func(t *testing.T, block []byte, n int) {
		err := decoder{}.Decode(make([]byte, uint16(n)), block, operator.Block{})
		if err != nil && !errors.Is(err, operator.ErrCorrupt) && !errors.Is(err, operator.ErrUnsupported) {
			t.Fatal(err)
		}
	})
}

func BenchmarkDecode(b *testing.B) {
	for _, name := range []string{"lz4-shuffle-8-1024-ramp-5000-auto-5", "lz4-bitshuffle-8-1024-ramp-5000-auto-5", "blosclz-none-1-65536-far-30000-auto-5"} {
		f := find(b, name)
		block := wrap(len(f.want), f.chunk)
		dst := make([]byte, len(f.want))
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(dst)))
			b.ReportAllocs()
			for b.Loop() {
				if err := operator.Decode(dst, block, operator.Block{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
