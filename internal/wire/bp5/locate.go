package bp5

import (
	"fmt"
	"math"
)

// AppendRanges appends to dst the ranges of a writer's subfile that hold the n bytes that its metadata record puts at loc.
// pieces are those of the writer in StepIndex.Pieces. Locations count through all flushed pieces as if they were one
// (docs/wire/bp5.md §3.1). A block never crosses a flush, but a read of several blocks may, and gives several ranges.
//
// Positions that no file can have are ErrBadFile. The data in them need not be there: the last piece has no known end.
func AppendRanges(dst, pieces []Piece, loc, n uint64) ([]Piece, error) {
	at, left := loc, n // at is the distance from the start of the piece
	for _, p := range pieces {
		if p.Size != UnknownSize && at >= p.Size {
			at -= p.Size
			continue
		}
		take := min(left, p.Size-at)
		if !inFile(p.Pos, at, take) {
			break
		}
		dst = append(dst, Piece{Pos: p.Pos + at, Size: take})
		if at, left = 0, left-take; left == 0 {
			return dst, nil
		}
	}
	return dst, fmt.Errorf("bp5: %d bytes at %d of a writer's data are outside any file: %w", n, loc, ErrBadFile)
}

// inFile reports whether the sum of the numbers is a file position.
func inFile(v ...uint64) bool {
	sum := uint64(0)
	for _, x := range v {
		if x > math.MaxInt64-sum {
			return false
		}
		sum += x
	}
	return true
}
