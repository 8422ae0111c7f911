package bp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"

	"github.com/weft-fabric/weft/internal/wire/bp5"
	"github.com/weft-fabric/weft/step"
)

const (
	// Small extents that lie close together are read in one call and copied:
	// a call costs about as much as copying mergeGap bytes.
	mergeGap   = 4 << 10
	mergeSmall = 64 << 10
	mergeSpan  = 1 << 20
)

// place says where the data of one writer of one step is.
type place struct {
	subfile uint64
	pieces  []bp5.Piece
}

// source is the step.Source of one step: it reads the data files.
type source struct {
	path   string
	files  *subfiles
	places []place // by rank
}

// extent is a range of one data file.
type extent struct {
	subfile uint64 // number of the data file
	pos     int64  // in it
	dst     []byte // where the bytes go, and how many
}

// Read implements step.Source.
func (s *source) Read(ctx context.Context, pieces []step.Piece) error {
	extents := make([]extent, 0, len(pieces))
	var ranges []bp5.Piece
	for _, p := range pieces {
		var err error
		if ranges, err = s.locate(ranges[:0], p); err != nil {
			return fmt.Errorf("bp: %s: %w", s.path, err)
		}
		dst := p.Dst
		for _, r := range ranges {
			extents = append(extents, extent{subfile: s.places[p.Rank].subfile, pos: int64(r.Pos), dst: dst[:r.Size]})
			dst = dst[r.Size:]
		}
	}
	// By place in the files: neighbours can be read together, and disks like it.
	slices.SortStableFunc(extents, func(a, b extent) int {
		return cmp.Or(cmp.Compare(a.subfile, b.subfile), cmp.Compare(a.pos, b.pos))
	})
	for len(extents) > 0 {
		n := 1
		for n < len(extents) && extents[n].subfile == extents[0].subfile {
			n++
		}
		if err := s.readFile(ctx, extents[:n]); err != nil {
			return err
		}
		extents = extents[n:]
	}
	return nil
}

// locate appends the ranges of the writer's data file that hold one piece.
func (s *source) locate(to []bp5.Piece, p step.Piece) ([]bp5.Piece, error) {
	if p.Rank < 0 || p.Rank >= len(s.places) {
		return nil, fmt.Errorf("writer %d of %d: %w", p.Rank, len(s.places), ErrDamaged)
	}
	to, err := bp5.AppendRanges(to, s.places[p.Rank].pieces, p.Offset, uint64(len(p.Dst)))
	if err != nil {
		return nil, fmt.Errorf("writer %d: %w", p.Rank, err)
	}
	return to, nil
}

// readFile reads sorted extents of one data file.
func (s *source) readFile(ctx context.Context, extents []extent) error {
	h, err := s.files.acquire(extents[0].subfile)
	if err != nil {
		return s.fail(extents[0], err)
	}
	defer s.files.release(h)
	var bounce []byte
	for len(extents) > 0 {
		// Between calls: one call to the file system cannot be ended.
		if err := context.Cause(ctx); err != nil {
			return err
		}
		n, span := group(extents)
		if n == 1 {
			err = readFull(h.f, extents[0].dst, extents[0].pos)
		} else {
			if int64(len(bounce)) < span { // of the size that is needed: most reads are small
				bounce = make([]byte, min(2*span, mergeSpan))
			}
			err = readGroup(h.f, extents[:n], bounce[:span])
		}
		if err != nil {
			return s.fail(extents[0], err)
		}
		extents = extents[n:]
	}
	return nil
}

// group returns how many of the extents are read in one call, and the bytes
// from the first to the last.
func group(extents []extent) (n int, span int64) {
	first := extents[0]
	span = int64(len(first.dst))
	for n = 1; n < len(extents); n++ {
		e := extents[n]
		gap := e.pos - first.pos - span
		grown := max(span, e.pos-first.pos+int64(len(e.dst)))
		if len(e.dst) > mergeSmall || len(first.dst) > mergeSmall || gap > mergeGap || grown > mergeSpan {
			break
		}
		span = grown
	}
	return n, span
}

// readGroup reads several extents in one call, and the gaps between them, and
// copies.
func readGroup(f io.ReaderAt, extents []extent, bounce []byte) error {
	if err := readFull(f, bounce, extents[0].pos); err != nil {
		return err
	}
	for _, e := range extents {
		copy(e.dst, bounce[e.pos-extents[0].pos:])
	}
	return nil
}

// fail names the data file, and tells a file that ends too early from one
// that cannot be read.
func (s *source) fail(e extent, err error) error {
	if errors.Is(err, io.ErrUnexpectedEOF) {
		err = fmt.Errorf("%w: %w", ErrIncomplete, err)
	}
	return fmt.Errorf("bp: %s: %w", path.Join(s.path, dataName(e.subfile)), err)
}
