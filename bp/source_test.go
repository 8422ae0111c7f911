package bp

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/weft-fabric/weft/internal/wire/bp5"
	"github.com/weft-fabric/weft/step"
)

// Pieces come back right whatever their order, sizes and files: with flushes in
// between, merged and not.
func TestSourceReads(t *testing.T) {
	const seed = 7
	rnd := rand.New(rand.NewPCG(seed, seed))
	file := func() []byte {
		b := make([]byte, 600<<10)
		for i := range b {
			b[i] = byte(rnd.Uint32())
		}
		return b
	}
	m := newMemory(map[string][]byte{"data.0": file(), "data.7": file()})
	files := newSubfiles(m, 1)
	defer files.Close()
	s := &source{path: "mem.bp", files: files, places: []place{
		{subfile: 0, pieces: []bp5.Piece{{Pos: 1000, Size: 500}, {Pos: 200, Size: 300}, {Pos: 4096, Size: bp5.UnknownSize}}},
		{subfile: 7, pieces: []bp5.Piece{{Pos: 64, Size: bp5.UnknownSize}}},
	}}
	logical := [][]byte{
		slices.Concat(m.files["data.0"][1000:1500], m.files["data.0"][200:500], m.files["data.0"][4096:]),
		m.files["data.7"][64:],
	}
	for range 200 {
		var pieces []step.Piece
		for range 1 + rnd.IntN(20) {
			rank := rnd.IntN(2)
			off := rnd.IntN(len(logical[rank]) - 1)
			if rnd.IntN(2) == 0 {
				off %= 2000
			}
			n := 1 + rnd.IntN(min(200<<10, len(logical[rank])-off))
			if rnd.IntN(2) == 0 {
				n = min(n, 700)
			}
			pieces = append(pieces, step.Piece{Rank: rank, Offset: uint64(off), Dst: make([]byte, n)})
		}
		if err := s.Read(t.Context(), pieces); err != nil {
			t.Fatal(err)
		}
		for _, p := range pieces {
			if !bytes.Equal(p.Dst, logical[p.Rank][p.Offset:][:len(p.Dst)]) {
				t.Fatalf("seed %d: rank %d, %d bytes at %d differ", seed, p.Rank, len(p.Dst), p.Offset)
			}
		}
	}
}

func TestSourceRefuses(t *testing.T) {
	m := newMemory(map[string][]byte{"data.0": make([]byte, 10)})
	files := newSubfiles(m, 1)
	defer files.Close()
	s := &source{path: "mem.bp", files: files, places: []place{
		{pieces: []bp5.Piece{{Pos: 0, Size: bp5.UnknownSize}}},
		{pieces: []bp5.Piece{{Pos: 1 << 63, Size: bp5.UnknownSize}}},
		{pieces: []bp5.Piece{{Pos: 5, Size: 5}}},
		{subfile: 3, pieces: []bp5.Piece{{Pos: 0, Size: bp5.UnknownSize}}},
	}}
	for _, c := range []struct {
		rank int
		off  uint64
		want error
	}{
		{0, 3, ErrIncomplete},
		{0, 1 << 63, ErrDamaged},
		{1, 0, ErrDamaged},
		{2, 0, ErrDamaged},
		{2, 5, ErrDamaged},
		{3, 0, ErrIncomplete},
		{4, 0, ErrDamaged},
		{-1, 0, ErrDamaged},
	} {
		err := s.Read(t.Context(), []step.Piece{{Rank: c.rank, Offset: c.off, Dst: make([]byte, 8)}})
		if !errors.Is(err, c.want) {
			t.Errorf("rank %d at %d: %v, want %v", c.rank, c.off, err, c.want)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Read(ctx, []step.Piece{{Dst: make([]byte, 8)}}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

// The number of open files stays bounded, also with many readers at a time, and
// Close leaves none.
func TestSubfilesAreBounded(t *testing.T) {
	m := newMemory(map[string][]byte{})
	for n := range 50 {
		m.files[dataName(uint64(n))] = []byte{byte(n)}
	}
	files := newSubfiles(m, 4)
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			rnd := rand.New(rand.NewPCG(1, uint64(g)))
			for range 300 {
				n := rnd.Uint64N(50)
				h, err := files.acquire(n)
				if err != nil {
					t.Error(err)
					return
				}
				var b [1]byte
				if _, err := h.f.ReadAt(b[:], 0); err != nil || b[0] != byte(n) {
					t.Errorf("file %d: %d %v", n, b[0], err)
				}
				files.release(h)
			}
		})
	}
	wg.Wait()
	if m.most > 8 { // the limit, and what was in use beyond it
		t.Errorf("%d files were open at a time", m.most)
	}
	if err := errors.Join(files.Close(), files.Close()); err != nil || m.openFiles() != 0 {
		t.Errorf("close: %v, %d open", err, m.openFiles())
	}
	if _, err := files.acquire(1); !errors.Is(err, ErrClosed) {
		t.Errorf("after close: %v", err)
	}
}

// Close waits for reads in progress.
func TestSubfilesCloseWaits(t *testing.T) {
	m := newMemory(map[string][]byte{"data.0": {1}})
	files := newSubfiles(m, 1)
	h, err := files.acquire(0)
	if err != nil {
		t.Fatal(err)
	}
	closed := make(chan error)
	go func() { closed <- files.Close() }()
	for ended := false; !ended; {
		_, err := files.acquire(1)
		ended = errors.Is(err, ErrClosed)
	}
	if n := m.openFiles(); n != 1 {
		t.Errorf("%d files open while one is in use", n)
	}
	files.release(h)
	if err := <-closed; err != nil || m.openFiles() != 0 {
		t.Errorf("close: %v, %d open", err, m.openFiles())
	}
}

// Steps and their data may be read by several goroutines at a time.
func TestConcurrentReads(t *testing.T) {
	r := mustOpen(t, fixture(t, "main-shapes-3ranks-2subfiles"), Config{MaxFiles: 1})
	want := make([][]int32, r.NumSteps())
	for n := range want {
		want[n] = ints(t, mustStep(t, r, n), "mb")
	}
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			for i := range 30 {
				n := (g + i) % len(want)
				st, err := r.Step(t.Context(), n)
				if err != nil {
					t.Error(err)
					return
				}
				v, err := step.Lookup[int32](st, "mb")
				if err != nil {
					t.Error(err)
					return
				}
				if got, err := v.Get(t.Context(), nil, nil); err != nil || !slices.Equal(got, want[n]) {
					t.Errorf("step %d: %v %v", n, got, err)
				}
			}
		})
	}
	wg.Wait()
}
