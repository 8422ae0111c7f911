package step

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/weft-fabric/weft/internal/shmem"
	"github.com/weft-fabric/weft/internal/wire/bp5"
)

func asBytes[T any](s []T) []byte { return shmem.Bytes(s) }

// patternSource has data without end: byte i of a rank is a function of i.
type patternSource struct {
	bytes  uint64
	pieces int
	calls  int
	most   int // bytes of staging in one call, if no piece is direct
}

// pattern repeats after a prime number of bytes, so that no stride hides a mistake.
var pattern = func() []byte {
	p := make([]byte, 65521)
	for i := range p {
		p[i] = byte(uint64(i+1) * 0x9e3779b97f4a7c15 >> 56)
	}
	return p
}()

func patternAt(off uint64) byte { return pattern[off%uint64(len(pattern))] }

func (p *patternSource) Read(_ context.Context, pieces []Piece) error {
	p.calls++
	n := 0
	for _, q := range pieces {
		for at := 0; at < len(q.Dst); {
			at += copy(q.Dst[at:], pattern[(q.Offset+uint64(at))%uint64(len(pattern)):])
		}
		n += len(q.Dst)
	}
	p.bytes += uint64(n)
	p.pieces += len(pieces)
	p.most = max(p.most, n)
	return nil
}

// huge is a step with one array of one block, at loc in a rank's data.
func huge(t *testing.T, loc uint64, elem int, shape ...uint64) (*Variable, *patternSource) {
	t.Helper()
	kind := map[int]Type{1: Uint8, 8: Float64}[elem]
	p := put{desc: bp5.VarDesc{Name: "x", Kind: bp5.GlobalArray, Type: bp5.Type(kind), ElemSize: elem}}
	p.meta = &bp5.ArrayMeta{Dims: len(shape), Blocks: 1, Shape: shape, Count: shape, Offset: make([]uint64, len(shape)), Location: []uint64{loc}}
	s := newSynth(t, DecoderConfig{})
	metas, _ := s.records([][]put{{p}})
	src := &patternSource{}
	st, err := s.dec.Step(0, metas, src, nil)
	if err != nil {
		t.Fatal(err)
	}
	v, ok := st.Variable("x")
	if !ok || v.Err() != nil {
		t.Fatal(v.Err())
	}
	return v, src
}

// checkPattern compares what was read of box with the source's pattern: all of
// it, or every 1009th element if it is much.
func checkPattern(t *testing.T, v *Variable, loc uint64, box Box, got []byte) {
	t.Helper()
	elem, stride := v.ElemSize(), 1
	if len(got) > 1<<20 {
		stride = 1009
	}
	shape := v.Shape()
	for e := 0; e < len(got)/elem; e += stride {
		rest, off, row := uint64(e), loc, uint64(elem) // row: bytes of one step in dimension d
		for d := len(shape) - 1; d >= 0; d-- {
			off += (box.Start[d] + rest%box.Count[d]) * row
			rest, row = rest/box.Count[d], row*shape[d]
		}
		for k := range elem {
			if got[e*elem+k] != patternAt(off+uint64(k)) {
				t.Fatalf("byte %d of element %d of %v is wrong", k, e, box)
			}
		}
	}
}

func TestReadsAreCut(t *testing.T) {
	const gib = 1 << 30
	for _, tc := range []struct {
		name      string
		loc       uint64
		elem      int
		shape     []uint64
		box       Box
		mostBytes uint64
		mostReads int
	}{
		{"whole rows beyond 4 GiB", 5 * gib, 8, []uint64{1 << 20, 1 << 12}, Box{[]uint64{1 << 19, 0}, []uint64{3, 1 << 12}}, 3 << 15, 1},
		{"most of each row", 1 << 40, 8, []uint64{1000, 1000}, Box{[]uint64{10, 10}, []uint64{900, 900}}, 8 * 900 * 1000, 1},
		{"short rows far apart", 0, 8, []uint64{100, 1 << 20}, Box{[]uint64{3, 77}, []uint64{90, 5}}, 90 * 40, 90},
		{"a column", 0, 8, []uint64{16, 1 << 22}, Box{[]uint64{0, 1<<22 - 1}, []uint64{16, 1}}, 16 * 8, 16},
		{"a column of short rows", 64, 1, []uint64{100, 16}, Box{[]uint64{0, 3}, []uint64{100, 1}}, 1600, 1},
		{"long rows go straight", 0, 1, []uint64{8, 1 << 21}, Box{[]uint64{0, 5}, []uint64{8, 1 << 20}}, 8 << 20, 8},
		{"planes of a cube", 7 * gib, 8, []uint64{2000, 2000, 2000}, Box{[]uint64{1000, 500, 500}, []uint64{4, 10, 10}}, 4 * 10 * 80 * 210, 40},
		{"chunks", 1, 1, []uint64{1 << 14, 1 << 13}, Box{[]uint64{0, 1}, []uint64{1 << 13, 1 << 12}}, 1 << 26, 5},
	} {
		t.Run(tc.name, func(t *testing.T) {
			v, src := huge(t, tc.loc, tc.elem, tc.shape...)
			n, err := tc.box.Elements()
			if err != nil {
				t.Fatal(err)
			}
			got := make([]byte, n*tc.elem)
			if err := v.Read(t.Context(), tc.box, got); err != nil {
				t.Fatal(err)
			}
			checkPattern(t, v, tc.loc, tc.box, got)
			if src.bytes > tc.mostBytes || src.pieces > tc.mostReads {
				t.Errorf("%d bytes in %d reads, want at most %d in %d", src.bytes, src.pieces, tc.mostBytes, tc.mostReads)
			}
		})
	}
}

// Much staging is fetched in several rounds.
func TestStagingIsBounded(t *testing.T) {
	v, src := huge(t, 0, 1, 1<<15, 1<<13)
	box := Box{[]uint64{0, 1}, []uint64{1 << 15, 1 << 12}} // 128 MiB wanted of 256 MiB
	got := make([]byte, 1<<27)
	if err := v.Read(t.Context(), box, got); err != nil {
		t.Fatal(err)
	}
	if src.calls < 4 || src.most > maxStaging+maxChunk {
		t.Errorf("%d calls, %d bytes in one", src.calls, src.most)
	}
	for _, row := range []uint64{0, 1, 16383, 1<<15 - 1} {
		for _, col := range []uint64{0, 4095} {
			if got[row<<12+col] != patternAt(row<<13+1+col) {
				t.Fatalf("row %d column %d is wrong", row, col)
			}
		}
	}
}

// Small variables that lie close together are transferred together.
func TestFetchMergesVariables(t *testing.T) {
	s := newSynth(t, DecoderConfig{})
	var puts []put
	for k := range 1000 {
		puts = append(puts, array[int32](string(rune('a'+k%26))+string(rune('0'+k/26)), []uint64{4}, blockOf([]uint64{0}, []uint64{4}, seq[int32](k, 4)...)))
	}
	st := s.step(0, puts)
	var gets []Get
	var results [][]int32
	for _, v := range st.Variables() {
		x, err := As[int32](v)
		if err != nil {
			t.Fatal(err)
		}
		results = append(results, make([]int32, 4))
		gets = append(gets, x.Into(All, results[len(results)-1]))
	}
	if err := st.Fetch(t.Context(), gets...); err != nil {
		t.Fatal(err)
	}
	if s.data.calls != 1 || len(s.data.pieces) != 1 || s.data.bytes() > 16*1000 {
		t.Errorf("%d calls, %d pieces, %d bytes", s.data.calls, len(s.data.pieces), s.data.bytes())
	}
	for i, v := range st.Variables() {
		if want, _ := As[int32](v); !slices.Equal(results[i], first(want.Get(t.Context(), All, nil))) {
			t.Errorf("%s: %v", v.Name(), results[i])
		}
	}
}

func first[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// A compressed block that several requests need is read and decompressed once.
func TestFetchSharesCompressedBlocks(t *testing.T) {
	s := newSynth(t, DecoderConfig{})
	p := array[int32]("x", []uint64{100}, blockOf([]uint64{0}, []uint64{100}, seq[int32](0, 100)...).null())
	p.desc.Operator = true
	st := s.step(0, []put{p})
	x := lookup[int32](t, st, "x")
	a, b, c := make([]int32, 10), make([]int32, 100), make([]int32, 1)
	err := st.Fetch(t.Context(), x.Into(Box{[]uint64{5}, []uint64{10}}, a), x.Into(All, b), x.Into(Box{[]uint64{99}, []uint64{1}}, c))
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(a, seq[int32](5, 10)) || !slices.Equal(b, seq[int32](0, 100)) || c[0] != 99 {
		t.Errorf("%v %v %v", a, b, c)
	}
	if len(s.data.pieces) != 1 {
		t.Errorf("%d pieces", len(s.data.pieces))
	}
}

// One wrong request stops all of them before anything is transferred.
func TestFetchChecksEverythingFirst(t *testing.T) {
	s := newSynth(t, DecoderConfig{})
	st := s.step(0, []put{array[int32]("x", []uint64{2}, blockOf[int32]([]uint64{0}, []uint64{2}, 1, 2))})
	other := s.step(1, []put{array[int32]("x", []uint64{2}, blockOf[int32]([]uint64{0}, []uint64{2}, 1, 2))})
	x, y := lookup[int32](t, st, "x"), lookup[int32](t, other, "x")
	dst := make([]int32, 2)
	for i, bad := range []Get{{}, x.Into(Box{[]uint64{1}, []uint64{2}}, dst), y.Into(All, dst), x.Into(All, nil)} {
		if err := st.Fetch(t.Context(), x.Into(All, dst), bad); err == nil {
			t.Errorf("request %d was accepted", i)
		}
	}
	if s.data.calls != 0 || dst[0] != 0 {
		t.Error("something was transferred")
	}
}

func TestFetchReportsTheSource(t *testing.T) {
	s := newSynth(t, DecoderConfig{})
	metas, _ := s.records([][]put{{array[int32]("x", []uint64{2}, blockOf[int32]([]uint64{0}, []uint64{2}, 1, 2))}})
	broken := errors.New("broken")
	st, err := s.dec.Step(3, metas, errSource{broken}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := lookup[int32](t, st, "x").Get(t.Context(), All, nil); !errors.Is(err, broken) {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := lookup[int32](t, st, "x").Get(ctx, All, nil); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if st, err = s.dec.Step(4, metas, nil, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := lookup[int32](t, st, "x").Get(t.Context(), All, nil); err == nil {
		t.Error("read without a source")
	}
}

type errSource struct{ err error }

func (e errSource) Read(context.Context, []Piece) error { return e.err }

// The loops of walk copy what the plainest copy does.
func TestWalkAgainstPlainCopy(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 3))
	for range 3000 {
		n := r.IntN(5)
		count, src, dst := make([]uint64, n), make([]uint64, n), make([]uint64, n)
		srcAt, dstAt := make([]uint64, n), make([]uint64, n)
		for d := range n {
			count[d] = 1 + r.Uint64N(4)
			if r.IntN(2) == 0 {
				srcAt[d] = r.Uint64N(3)
			}
			if r.IntN(2) == 0 {
				dstAt[d] = r.Uint64N(3)
			}
			src[d], dst[d] = srcAt[d]+count[d]+srcAt[d]/2, dstAt[d]+count[d]+dstAt[d]/2
		}
		elem := 1 + r.IntN(3)
		in, err1 := Elements(src)
		out, err2 := Elements(dst)
		if err1 != nil || err2 != nil {
			t.Fatal(err1, err2)
		}
		data := make([]byte, in*elem)
		for i := range data {
			data[i] = byte(i + 1)
		}
		got, want := fill(out*elem), fill(out*elem)
		var levels [MaxDims]level
		w := newWalk(&levels, count, src, dst, uint64(elem))
		w.copy(0, w.outer(0), got[linear(dstAt, dst, uint64(elem)):], data[linear(srcAt, src, uint64(elem)):])
		copyBox(want, dst, dstAt, data, src, srcAt, count, elem)
		if !bytes.Equal(got, want) {
			t.Fatalf("count %v from %v at %v to %v at %v, %d bytes", count, src, srcAt, dst, dstAt, elem)
		}
	}
}
