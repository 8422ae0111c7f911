package dp

import (
	"bytes"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/weft-fabric/weft/internal/wire/sstmsg"
	"github.com/weft-fabric/weft/step"
)

// someExtents are two that touch, a hole from 96 to 128, and one more.
var someExtents = []Extent{{0, 64, 1, 16}, {64, 32, 2, 0}, {128, 64, 3, 8}}

// places are ranges of a block that lies in someExtents.
var places = map[string]struct {
	rank      int
	offset, n uint64
	view      bool // of the writer's memory
	noView    bool
	views     int   // that a Read needs
	asked     int64 // bytes that a Read asks for
}{
	"all of an extent":         {0, 0, 64, true, false, 1, 0},
	"inside":                   {0, 8, 16, true, false, 1, 0},
	"the last byte":            {0, 63, 1, true, false, 1, 0},
	"the next one":             {0, 64, 32, true, false, 1, 0},
	"across two":               {0, 60, 8, false, true, 2, 0},
	"in the hole":              {0, 100, 8, false, false, 0, 8},
	"all of the hole":          {0, 96, 32, false, false, 0, 32},
	"into the hole":            {0, 90, 16, false, true, 1, 10},
	"out of the hole":          {0, 120, 16, false, true, 1, 8},
	"over the hole":            {0, 90, 40, false, true, 2, 32},
	"everything":               {0, 0, 200, false, true, 3, 40},
	"behind the last":          {0, 192, 8, false, false, 0, 8},
	"no route":                 {1, 0, 16, false, false, 0, 16},
	"a route, but no extents":  {2, 0, 16, false, false, 0, 16},
	"nothing":                  {0, 8, 0, false, false, 0, 0},
	"nothing between extents":  {0, 64, 0, false, false, 0, 0},
	"nothing behind the block": {0, 1 << 63, 0, false, false, 0, 0},
}

func placesPlane(t *testing.T) (*fakes, step.Source) {
	f := newFakes(t, 5, someExtents, nil, []Extent{})
	return f, f.Step(5, ModeRequest, f.extents)
}

func TestNativeView(t *testing.T) {
	for name, c := range places {
		t.Run(name, func(t *testing.T) {
			f, s := placesPlane(t)
			b, release, err := s.(step.Viewer).View(t.Context(), c.rank, c.offset, c.n)
			if c.noView {
				if !errors.Is(err, step.ErrNoView) || !strings.Contains(err.Error(), "step 5") || b != nil || release != nil {
					t.Fatalf("%d bytes, %v", len(b), err)
				}
				f.routes[0].wantViews(t, "refused", 0, 0)
				return
			}
			if err != nil || c.n > 0 && !bytes.Equal(b, blockOf(5, c.rank, int(c.offset+c.n))[c.offset:]) || len(b) != int(c.n) || cap(b) != len(b) {
				t.Fatalf("% x of %d, %v", b, cap(b), err)
			}
			if own := c.view && f.routes[0].lends(b); own != c.view {
				t.Error("it is a copy")
			}
			if n := f.asked()[c.rank]; c.view && n != 0 || !c.view && n != int64(c.n) {
				t.Errorf("%d bytes were asked for", n)
			}
			release()
			stats := f.Stats()[0]
			if want := (RankStats{Views: 1, Viewed: c.n}); c.view && stats != want {
				t.Errorf("%+v", stats)
			}
		})
	}
}

func TestNativeHeld(t *testing.T) {
	for name, c := range places {
		if c.n == 0 {
			continue
		}
		t.Run(name, func(t *testing.T) {
			f, s := placesPlane(t)
			b, release, err := s.(step.Holder).Held(t.Context(), c.rank, c.offset, c.n)
			if (b != nil) != c.view || (release != nil) != c.view || err != nil {
				t.Fatalf("% x, %v", b, err)
			}
			if c.view {
				if !bytes.Equal(b, blockOf(5, c.rank, int(c.offset+c.n))[c.offset:]) || !f.routes[0].lends(b) {
					t.Errorf("% x", b)
				}
				release()
				if stats := f.Stats()[0]; stats != (RankStats{Copied: c.n}) {
					t.Errorf("%+v", stats)
				}
			}
			if n := len(f.sent); n != 0 {
				t.Errorf("%d requests", n)
			}
		})
	}
}

func TestNativeRead(t *testing.T) {
	for name, c := range places {
		if c.n == 0 {
			continue
		}
		t.Run(name, func(t *testing.T) {
			f, s := placesPlane(t)
			pieces := []step.Piece{piece(c.rank, c.offset, int(c.n))}
			if err := s.Read(t.Context(), pieces); err != nil {
				t.Fatal(err)
			}
			check(t, 5, pieces)
			f.routes[0].wantViews(t, "read", c.views, 0)
			if n := f.asked()[c.rank]; n != c.asked {
				t.Errorf("%d bytes were asked for", n)
			}
			if n := f.Stats()[c.rank].Copied; n != c.n-uint64(c.asked) {
				t.Errorf("%d bytes were copied", n)
			}
		})
	}
}

// TestNativeReadMixed reads of ranks with and without a route at once.
func TestNativeReadMixed(t *testing.T) {
	f := newFakes(t, 7, []Extent{{0, 4096, 1, 0}}, nil, []Extent{{0, 100, 4, 4}, {150, 100, 5, 0}})
	pieces := []step.Piece{piece(0, 0, 100), piece(0, 2000, 7), piece(1, 0, 50), piece(1, 60, 50), piece(2, 90, 100), piece(2, 200, 8)}
	if err := f.Step(7, ModeRequest, f.extents).Read(t.Context(), pieces); err != nil {
		t.Fatal(err)
	}
	check(t, 7, pieces)
	if n := f.asked(); n[0] != 0 || n[1] != 100 || n[2] != 50 {
		t.Errorf("asked for %v", n)
	}
	f.routes[0].wantViews(t, "rank 0", 1, 0)
	f.routes[2].wantViews(t, "rank 2", 2, 0)
	stats := f.Stats()
	if stats[0].Copied != 107 || stats[1].Copied != 0 || stats[1].Requests != 2 || stats[2].Copied != 58 {
		t.Errorf("%+v", stats)
	}
}

// TestNativeReadAny reads anything from anywhere, pieces that overlap in the block too,
// with some memory that cannot be seen.
func TestNativeReadAny(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		f := newFakes(t, 3, drawExtents(rt), nil, drawExtents(rt))
		blind := rapid.Uint64Range(0, 8).Draw(rt, "memory that cannot be seen")
		for _, r := range f.routes {
			r.err = notSeen(blind)
		}
		var pieces []step.Piece
		for range rapid.IntRange(1, 12).Draw(rt, "pieces") {
			pieces = append(pieces, piece(rapid.IntRange(0, 2).Draw(rt, "rank"), rapid.Uint64Range(0, 150).Draw(rt, "offset"), rapid.IntRange(1, 100).Draw(rt, "bytes")))
		}
		sortPieces(pieces)
		if err := f.Step(3, ModeRequest, f.extents).Read(t.Context(), pieces); err != nil {
			rt.Fatal(err)
		}
		for _, p := range pieces {
			if want := blockOf(3, p.Rank, int(p.Offset)+len(p.Dst))[p.Offset:]; !bytes.Equal(p.Dst, want) {
				rt.Fatalf("rank %d offset %d: got % x, want % x", p.Rank, p.Offset, p.Dst, want)
			}
		}
		for rank, r := range f.routes {
			if r.out != 0 || r.made > len(r.memory) {
				rt.Fatalf("rank %d: %d views of %d extents, %d are out", rank, r.made, len(r.memory), r.out)
			}
		}
	})
}

// TestNativeOneView takes one view for many small blocks of an extent.
func TestNativeOneView(t *testing.T) {
	f := newFakes(t, 1, []Extent{{0, 160000, 1, 0}}, []Extent{{0, 1, 1, 0}})
	var pieces []step.Piece
	for i := range 10000 {
		pieces = append(pieces, piece(0, uint64(i)*16, 9))
	}
	if err := f.Step(1, ModeRequest, f.extents).Read(t.Context(), pieces); err != nil {
		t.Fatal(err)
	}
	for _, p := range pieces {
		if p.Dst[0] != byte(31+p.Offset) || p.Dst[8] != byte(31+p.Offset+8) {
			t.Fatalf("offset %d: % x", p.Offset, p.Dst)
		}
	}
	f.routes[0].wantViews(t, "all", 1, 0)
	f.routes[1].wantViews(t, "nothing of it", 0, 0)
}

// TestNativeCopyShared has several goroutines copy, large pieces and small ones.
func TestNativeCopyShared(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(4))
	const n = splitFrom + share/2
	f := newFakes(t, 5, []Extent{{0, n, 1, 8}, {n, n, 2, 0}})
	var pieces []step.Piece
	all := make([]byte, 2*n)
	for at := 0; at < len(all); {
		size := min([]int{3*share + 5, 100, 1, share, 2 * share}[len(pieces)%5], len(all)-at)
		pieces = append(pieces, step.Piece{Offset: uint64(at), Dst: all[at:][:size]})
		at += size
	}
	if err := f.Step(5, ModeRequest, f.extents).Read(t.Context(), pieces); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(all, blockOf(5, 0, len(all))) {
		t.Error("the copy is another")
	}
	f.routes[0].wantViews(t, "both", 2, 0)
	if n := f.Stats()[0].Copied; n != uint64(len(all)) {
		t.Errorf("%d bytes were copied", n)
	}
}

// TestNativeWithout: without routes or extents all goes by messages.
func TestNativeWithout(t *testing.T) {
	for name, c := range map[string]struct {
		lists   [][]Extent
		extents []sstmsg.Block
	}{
		"no routes":           {nil, []sstmsg.Block{{Data: sstmsg.ByteBlob(twoExtentsWire)}}},
		"no extents":          {[][]Extent{someExtents}, nil},
		"extents of no route": {[][]Extent{nil, someExtents}, []sstmsg.Block{{Data: sstmsg.ByteBlob(twoExtentsWire)}, {}}},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFakes(t, 5, c.lists...)
			s := f.Step(5, ModeRequest, c.extents)
			pieces := []step.Piece{piece(0, 8, 16), piece(1, 0, 8)}
			if err := s.Read(t.Context(), pieces); err != nil {
				t.Fatal(err)
			}
			check(t, 5, pieces)
			called := false
			f.AfterViews(5, func() { called = true })
			if !called {
				t.Error("the step is in use by nobody")
			}
		})
	}
}

// TestNativeBadList is about one rank only.
func TestNativeBadList(t *testing.T) {
	f := newFakes(t, 5, someExtents, someExtents, []Extent{})
	f.extents[1].Data = sstmsg.ByteBlob(f.extents[1].Data.Bytes()[:40])
	s := f.Step(5, ModeRequest, f.extents)
	good := []step.Piece{piece(0, 8, 16), piece(2, 0, 8)}
	if err := s.Read(t.Context(), good); err != nil {
		t.Fatal(err)
	}
	check(t, 5, good)
	for what, read := range reads(t, 1) {
		if err := read(s); !errors.Is(err, ErrExtents) || !strings.Contains(err.Error(), "step 5") || !strings.Contains(err.Error(), "rank 1") || !strings.Contains(err.Error(), "byte 32") {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// reads are the ways to 16 bytes at 8 of a rank's block, which give back what they got.
func reads(t *testing.T, rank int) map[string]func(step.Source) error {
	lent := func(b []byte, release func(), err error) error {
		if err == nil && b == nil {
			return errors.New("nothing")
		}
		if err == nil {
			defer release()
			if want := blockOf(5, rank, 24)[8:]; !bytes.Equal(b, want) {
				return fmt.Errorf("% x, want % x", b, want)
			}
		}
		return err
	}
	return map[string]func(step.Source) error{
		"Read": func(s step.Source) error {
			p := []step.Piece{piece(rank, 8, 16)}
			err := s.Read(t.Context(), p)
			if err == nil {
				check(t, 5, p)
			}
			return err
		},
		"View": func(s step.Source) error { return lent(s.(step.Viewer).View(t.Context(), rank, 8, 16)) },
		"Held": func(s step.Source) error { return lent(s.(step.Holder).Held(t.Context(), rank, 8, 16)) },
	}
}

func TestNativeNoSuchRank(t *testing.T) {
	f, s := placesPlane(t)
	for _, rank := range []int{-1, 3} {
		for what, read := range reads(t, rank) {
			if err := read(s); !errors.Is(err, errRank) {
				t.Errorf("%s of rank %d: %v", what, rank, err)
			}
		}
	}
	// Pieces of other ranks are not written to afterwards, whatever comes first.
	pieces := []step.Piece{piece(0, 0, 64), piece(3, 0, 8)}
	if err := s.Read(t.Context(), pieces); !errors.Is(err, errRank) {
		t.Error(err)
	}
	clear(pieces[0].Dst)
	if n := len(f.sent); n != 0 {
		t.Errorf("%d requests", n)
	}
}

func sortPieces(pieces []step.Piece) {
	slices.SortStableFunc(pieces, func(x, y step.Piece) int {
		if x.Rank != y.Rank {
			return x.Rank - y.Rank
		}
		return int(x.Offset) - int(y.Offset)
	})
}
