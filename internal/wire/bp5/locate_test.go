package bp5

import (
	"encoding/binary"
	"errors"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weft-fabric/weft/internal/bpfixture"
)

// The blocks of x in the flush datasets are where AppendRanges says, with their documented values.
func TestFlushedBlocksAreFound(t *testing.T) {
	for name, writers := range map[string]int{"main-flush-3ranks": 3, "v2.10.2-flush": 1} {
		t.Run(name, func(t *testing.T) {
			files := bpfixture.Files(t, name)
			steps, _ := parseIndex(t, files["md.idx"])
			padded := steps[0].Pieces[0][0].Size // a flush of one block: 12 bytes and the padding of this release
			for st, s := range steps {
				if len(s.Pieces) != writers || s.Flushes != 2-st {
					t.Fatalf("step %d: %+v", st, s)
				}
				for w := range writers {
					for b := range 3 {
						loc := uint64(b) * padded
						if b > s.Flushes {
							loc = uint64(s.Flushes)*padded + 12*uint64(b-s.Flushes) // not flushed: packed
						}
						checkBlock(t, s, files["data.0"], w, loc, uint32(1000*st+100*w+10*b))
					}
				}
			}
		})
	}
}

// checkBlock expects three int32 counting from first.
func checkBlock(t *testing.T, s indexedStep, data []byte, w int, loc uint64, first uint32) {
	t.Helper()
	at, err := AppendRanges(nil, s.Pieces[w], loc, 12)
	if err != nil || len(at) != 1 || at[0].Size != 12 {
		t.Errorf("ranges %v, error %v", at, err)
		return
	}
	pos := at[0].Pos
	for i := range uint32(3) {
		if got := binary.LittleEndian.Uint32(data[pos+4*uint64(i):]); got != first+i {
			t.Errorf("writer %d, location %d: element %d at %d is %d, want %d", w, loc, i, pos, got, first+i)
		}
	}
}

func TestAppendRanges(t *testing.T) {
	pieces := []Piece{{1000, 16}, {2000, 32}, {3000, UnknownSize}}
	for _, tc := range []struct {
		loc, n uint64
		want   []Piece
	}{
		{0, 16, []Piece{{1000, 16}}},
		{15, 1, []Piece{{1015, 1}}},
		{0, 0, []Piece{{1000, 0}}},
		{16, 0, []Piece{{2000, 0}}},
		{16, 32, []Piece{{2000, 32}}},
		{47, 1, []Piece{{2031, 1}}},
		{48, 0, []Piece{{3000, 0}}},
		{48, 1 << 40, []Piece{{3000, 1 << 40}}},
		{1048, 8, []Piece{{4000, 8}}},
		// Over one flush, over two.
		{15, 2, []Piece{{1015, 1}, {2000, 1}}},
		{8, 100, []Piece{{1008, 8}, {2000, 32}, {3000, 60}}},
	} {
		got, err := AppendRanges([]Piece{{1, 2}}, pieces, tc.loc, tc.n)
		if err != nil {
			t.Errorf("%d at %d: %v", tc.n, tc.loc, err)
		}
		if diff := cmp.Diff(append([]Piece{{1, 2}}, tc.want...), got); diff != "" {
			t.Errorf("%d at %d: (-want +got)\n%s", tc.n, tc.loc, diff)
		}
	}
	// Pieces of no bytes: a writer that had nothing to flush.
	got, err := AppendRanges(nil, []Piece{{5, 0}, {7, 0}, {9, UnknownSize}}, 0, 4)
	if diff := cmp.Diff([]Piece{{9, 4}}, got); diff != "" || err != nil {
		t.Errorf("%v %s", err, diff)
	}
}

func TestAppendRangesRefuses(t *testing.T) {
	pieces := []Piece{{1000, 16}, {math.MaxInt64 - 10, UnknownSize}}
	for _, tc := range []struct{ loc, n uint64 }{
		{8, math.MaxUint64},     // length that wraps
		{16, 11},                // past any file
		{27, 0},                 // position past any file
		{0, 16 + 11},            // past any file behind a flush
		{math.MaxUint64, 0},     // "no data" marker
		{math.MaxUint64 - 1, 8}, // position that wraps
	} {
		if at, err := AppendRanges(nil, pieces, tc.loc, tc.n); !errors.Is(err, ErrBadFile) {
			t.Errorf("%d at %d: %v, %v", tc.n, tc.loc, at, err)
		}
	}
	if _, err := AppendRanges(nil, nil, 0, 1); !errors.Is(err, ErrBadFile) {
		t.Errorf("no pieces: %v", err)
	}
}

// checkRanges expects an error, or ranges of n bytes in all that a file can have.
func checkRanges(t *testing.T, pieces []Piece, loc, n uint64) {
	t.Helper()
	at, err := AppendRanges(nil, pieces, loc, n)
	if err != nil {
		return
	}
	sum := uint64(0)
	for _, p := range at {
		sum += p.Size
		if p.Pos > math.MaxInt64-p.Size {
			t.Fatalf("%d bytes at %d end at %d", p.Size, p.Pos, p.Pos+p.Size)
		}
	}
	if sum != n {
		t.Fatalf("%d bytes of %d", sum, n)
	}
}
