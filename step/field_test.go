package step

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weft-fabric/weft/internal/wire/bp5"
	"github.com/weft-fabric/weft/operator"
)

// The tests in this file are named after what users of such programs ran into.

type dims = []uint64

// F72: blocks of no elements are legal from any rank in any step.
func TestF72ZeroSizeBlocks(t *testing.T) {
	s := newSynth(t, DecoderConfig{})
	const n = 1000
	for number := range uint64(8) {
		var ranks [][]put
		want := seq[float64](int(number), n)
		for r := range uint64(4) {
			b := blockOf[float64](dims{0}, dims{0})
			if r == number%4 {
				b = blockOf(dims{0}, dims{n}, want...)
			}
			ranks = append(ranks, []put{array[float64]("x", dims{n}, b)})
		}
		x := lookup[float64](t, s.step(number, ranks...), "x")
		for half := range uint64(2) {
			got, err := x.Get(t.Context(), Box{dims{half * n / 2}, dims{n / 2}}, nil)
			if err != nil || !slices.Equal(got, want[half*n/2:][:n/2]) {
				t.Errorf("step %d half %d: %v, %v...", number, half, err, got[:3])
			}
		}
	}
	empty := []put{array[float64]("x", dims{0}, blockOf[float64](dims{0}, dims{0}))}
	x := lookup[float64](t, s.step(9, empty, empty, empty), "x")
	if got, err := x.Get(t.Context(), All, nil); err != nil || len(got) != 0 {
		t.Errorf("all ranks empty: %v, %v", got, err)
	}
	if len(x.Blocks()) != 3 || s.data.calls != 0 {
		t.Errorf("%d blocks, %d reads", len(x.Blocks()), s.data.calls)
	}
	if _, _, ok := x.Bounds(); ok {
		t.Error("bounds of nothing")
	}
}

// F73: a selection of no elements succeeds at once and moves nothing.
func TestF73ZeroSizedReads(t *testing.T) {
	for _, null := range []bool{false, true} {
		s := newSynth(t, DecoderConfig{})
		b := blockOf(dims{0}, dims{3}, 1.0, 2, 3)
		p := array[float64]("x", dims{3}, b)
		if null {
			p = array[float64]("x", dims{3}, b.null())
			p.desc.Operator = true
		}
		st := s.step(0, []put{p, local[int32]("l", blockOf[int32](nil, dims{0}))})
		x := lookup[float64](t, st, "x")
		for _, start := range []uint64{0, 1, 3} {
			missing := ptr(uint64(77))
			sel := Selection{Box: Box{dims{start}, dims{0}}, Missing: missing}
			if got, err := x.Get(t.Context(), sel, nil); err != nil || len(got) != 0 || *missing != 0 {
				t.Errorf("start %d: %v, %v, %d missing", start, got, err, *missing)
			}
			if err := x.Read(t.Context(), sel, nil); err != nil {
				t.Error(err)
			}
			if err := st.Fetch(t.Context(), x.Into(sel, nil)); err != nil {
				t.Error(err)
			}
			if v, err := x.View(t.Context(), sel); err != nil || len(v.Data()) != 0 {
				t.Errorf("view: %v", err)
			} else {
				v.Release()
			}
		}
		if got, err := lookup[int32](t, st, "l").Get(t.Context(), BlockIndex(0), nil); err != nil || len(got) != 0 {
			t.Errorf("empty block: %v, %v", got, err)
		}
		if s.data.calls != 0 {
			t.Errorf("%d reads", s.data.calls)
		}
		if _, err := x.Get(t.Context(), Box{dims{4}, dims{0}}, nil); !errors.Is(err, ErrSelection) {
			t.Errorf("beyond the edge: %v", err)
		}
	}
}

// F74: block numbers have no holes, whichever ranks put the variable.
func TestF74BlockNumbersAreDense(t *testing.T) {
	s := newSynth(t, DecoderConfig{})
	for number, pattern := range [][]int{{0, 1, 2}, {0, 2}, {1}, {}, {0, 0, 2}} {
		ranks := [][]put{{}, {}, {}}
		var want []int
		for k, r := range pattern {
			b := blockOf(nil, dims{2}, int32(100*r+k), int32(7))
			if len(ranks[r]) == 0 {
				ranks[r] = []put{local[int32]("l")}
			}
			ranks[r][0].blocks = append(ranks[r][0].blocks, b)
			want = append(want, 100*r+k)
		}
		st := s.step(uint64(number), ranks...)
		if len(pattern) == 0 {
			if _, err := Lookup[int32](st, "l"); !errors.Is(err, ErrNoVariable) {
				t.Errorf("step %d: %v", number, err)
			}
			continue
		}
		l := lookup[int32](t, st, "l")
		if l.NumBlocks() != len(pattern) {
			t.Fatalf("step %d: %d blocks", number, l.NumBlocks())
		}
		for i, b := range l.Blocks() {
			got, err := l.Get(t.Context(), BlockIndex(i), nil)
			if err != nil || !slices.Equal(got, []int32{int32(want[i]), 7}) || b.Index != i || b.Rank != pattern[i] {
				t.Errorf("step %d block %d: %v, %v, %+v", number, i, got, err, b)
			}
		}
		for _, i := range []int{-1, len(pattern)} {
			if _, err := l.Get(t.Context(), BlockIndex(i), nil); !errors.Is(err, ErrSelection) {
				t.Errorf("step %d block %d: %v", number, i, err)
			}
		}
		if _, err := l.Get(t.Context(), All, nil); !errors.Is(err, ErrSelection) {
			t.Errorf("all of a local array: %v", err)
		}
	}
}

// F77: attribute arrays may be empty, whatever their type.
func TestF77EmptyAttributeArrays(t *testing.T) {
	var attrs []bp5.Attr
	for typ := Int8; typ <= CharType; typ++ {
		attrs = append(attrs, bp5.Attr{Name: typ.String(), Type: bp5.Type(typ), Array: true})
	}
	rec, err := bp5.AppendGenericAttributes(nil, attrs)
	if err != nil {
		t.Fatal(err)
	}
	f, err := bp5.GenericAttributesFormat()
	if err != nil {
		t.Fatal(err)
	}
	s := newSynth(t, DecoderConfig{})
	if err := s.dec.AddFormat(f.ID(), f.Body()); err != nil {
		t.Fatal(err)
	}
	if err := s.dec.AddAttributes(rec); err != nil {
		t.Fatal(err)
	}
	st := s.step(0)
	for typ := Int8; typ <= CharType; typ++ {
		a, ok := st.Attribute(typ.String())
		if !ok || a.Type() != typ || a.Len() != 0 || !a.IsArray() {
			t.Errorf("%v: %v, %+v", typ, ok, a)
		}
	}
	if a, _ := st.Attribute("string"); a.Value().([]string) == nil {
		t.Error("empty string array is nil")
	}
}

// F80: a value has its declared type, whichever ranks put it, and another type
// is an error.
func TestF80ValuesOfSomeRanks(t *testing.T) {
	s := newSynth(t, DecoderConfig{})
	puts := func(k int) []put {
		return []put{
			value("d", bp5.GlobalValue, 0.5+float64(k)), value("i8", bp5.GlobalValue, int8(-k)),
			value("u64", bp5.GlobalValue, uint64(1)<<63+uint64(k)), value("s", bp5.GlobalValue, strings.Repeat("é", k)),
			value("c", bp5.GlobalValue, complex(float32(k), -1)),
		}
	}
	for number, who := range [][]int{{0}, {3}, {1, 2}, {2}, {0, 1, 2, 3}} {
		ranks := [][]put{{}, {}, {}, {}}
		for _, r := range who {
			ranks[r] = puts(r)
		}
		st := s.step(uint64(number), ranks...)
		k := who[0]
		check(t, st, "d", 0.5+float64(k))
		check(t, st, "i8", int8(-k))
		check(t, st, "u64", uint64(1)<<63+uint64(k))
		check(t, st, "s", strings.Repeat("é", k))
		check(t, st, "c", complex(float32(k), -1))
		_, err := Lookup[float32](st, "d")
		if !errors.Is(err, ErrType) || !strings.Contains(err.Error(), "double") || !strings.Contains(err.Error(), "float") {
			t.Errorf("double as float: %v", err)
		}
		if d := lookup[float64](t, st, "d"); !slices.Equal(d.Ranks(), who) || d.Shape() != nil || d.Dims() != 0 {
			t.Errorf("ranks %v, want %v", d.Ranks(), who)
		}
	}
}

func check[T Element](t *testing.T, st *Step, name string, want T) {
	t.Helper()
	got, err := lookup[T](t, st, name).Value(t.Context())
	if err != nil || any(got) != any(want) {
		t.Errorf("%s = %v, %v, want %v", name, got, err, want)
	}
}

// F81: arrays of a column-major writer appear with their dimensions reversed,
// in shape, blocks and selections.
func TestF81ColumnMajorWriter(t *testing.T) {
	// A Fortran array (4,5) on 2x2 ranks, element (i,j) = 10i+j, i fastest.
	s := newSynth(t, DecoderConfig{ColumnMajor: true})
	var ranks [][]put
	for r := range uint64(4) {
		i0, ni, j0, nj := 2*(r%2), uint64(2), 2*(r/2), 2+r/2
		var elems []int32
		for j := j0; j < j0+nj; j++ {
			for i := i0; i < i0+ni; i++ {
				elems = append(elems, int32(10*i+j))
			}
		}
		joined := put{desc: arrayDesc[int32]("j", bp5.JoinedArray), shape: dims{2, JoinedDim}}
		joined.blocks = []synthBlock{blockOf[int32](nil, dims{2, nj}, elems...)}
		ranks = append(ranks, []put{
			array[int32]("a", dims{4, 5}, blockOf(dims{i0, j0}, dims{ni, nj}, elems...)),
			local[int32]("l", blockOf[int32](nil, dims{ni, nj}, elems...)), joined,
		})
	}
	st := s.step(0, ranks...)
	a := lookup[int32](t, st, "a")
	if !slices.Equal(a.Shape(), dims{5, 4}) {
		t.Fatalf("shape %v", a.Shape())
	}
	var want []int32
	for j := range int32(5) {
		for i := range int32(4) {
			want = append(want, 10*i+j)
		}
	}
	got, err := a.Get(t.Context(), All, nil)
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("all: %v, %v", got, err)
	}
	got, err = a.Get(t.Context(), Box{dims{1, 1}, dims{3, 2}}, nil)
	if err != nil || !slices.Equal(got, []int32{11, 21, 12, 22, 13, 23}) {
		t.Errorf("part: %v, %v", got, err)
	}
	if b := a.Block(3); !b.Box.Equal(Box{dims{2, 2}, dims{3, 2}}) {
		t.Errorf("block 3: %v", b.Box)
	}
	if b := lookup[int32](t, st, "l").Block(3); !slices.Equal(b.Box.Count, dims{3, 2}) || b.Box.Start != nil {
		t.Errorf("local block 3: %v", b.Box)
	}
	j := lookup[int32](t, st, "j")
	if !slices.Equal(j.Shape(), dims{10, 2}) || !slices.Equal(j.DeclaredShape().Dims, dims{JoinedDim, 2}) {
		t.Errorf("joined: %v, declared %v", j.Shape(), j.DeclaredShape().Dims)
	}
	if got, err := j.Get(t.Context(), Box{dims{1, 0}, dims{2, 2}}, nil); err != nil || !slices.Equal(got, []int32{1, 11, 20, 30}) {
		t.Errorf("joined: %v, %v", got, err)
	}
}

// F82: a selection outside the shape is an error before anything moves; what
// nobody wrote stays as it was and is counted.
func TestF82OutsideAndMissing(t *testing.T) {
	s := newSynth(t, DecoderConfig{})
	st := s.step(0,
		[]put{array[int32]("x", dims{10}, blockOf(dims{0}, dims{5}, seq[int32](0, 5)...))},
		[]put{array[int32]("x", dims{10}, blockOf(dims{7}, dims{3}, seq[int32](7, 3)...))})
	x := lookup[int32](t, st, "x")
	for _, b := range []Box{{dims{8}, dims{5}}, {dims{12}, dims{1}}, {dims{12}, dims{0}}, {dims{0, 0}, dims{1, 1}}, {nil, dims{11}}, {dims{1}, dims{^uint64(0)}}, {dims{1, 2}, dims{1}}} {
		if _, err := x.Get(t.Context(), b, nil); !errors.Is(err, ErrSelection) {
			t.Errorf("%v: %v", b, err)
		}
	}
	if s.data.calls != 0 {
		t.Errorf("%d reads for bad selections", s.data.calls)
	}
	var missing uint64
	dst := slices.Repeat([]int32{-7}, 10)
	if _, err := x.Get(t.Context(), Selection{Missing: &missing}, dst); err != nil || missing != 2 {
		t.Errorf("%v, %d missing", err, missing)
	}
	if diff := cmp.Diff([]int32{0, 1, 2, 3, 4, -7, -7, 7, 8, 9}, dst); diff != "" {
		t.Error(diff)
	}
}

// F82: overlapping blocks are counted once, and the later one wins.
func TestF82OverlappingBlocks(t *testing.T) {
	for _, op := range []bool{false, true} {
		wrap := func(b synthBlock) synthBlock {
			if op {
				return b.null()
			}
			return b
		}
		p := array[int32]("x", dims{4, 4},
			wrap(blockOf(dims{0, 0}, dims{4, 2}, slices.Repeat([]int32{1}, 8)...)),
			wrap(blockOf(dims{1, 1}, dims{2, 2}, slices.Repeat([]int32{2}, 4)...)),
			wrap(blockOf(dims{2, 0}, dims{1, 3}, slices.Repeat([]int32{3}, 3)...)))
		p.desc.Operator = op
		s := newSynth(t, DecoderConfig{})
		x := lookup[int32](t, s.step(0, []put{p}), "x")
		var missing uint64
		got, err := x.Get(t.Context(), Selection{Missing: &missing}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]int32{1, 1, 0, 0, 1, 2, 2, 0, 3, 3, 3, 0, 1, 1, 0, 0}, got); diff != "" {
			t.Error(diff)
		}
		if missing != 6 {
			t.Errorf("%d missing, want 6", missing)
		}
	}
}

// F83: calls out of order are errors, and End twice is none.
func TestF83AfterEnd(t *testing.T) {
	s := newSynth(t, DecoderConfig{})
	metas, data := s.records([][]put{{array[int32]("x", dims{2}, blockOf[int32](dims{0}, dims{2}, 1, 2)), value("v", bp5.GlobalValue, 1.5)}})
	ends := 0
	failed := errors.New("end failed")
	st, err := s.dec.Step(0, metas, &viewSource{memSource: &memSource{data: data}}, func() error { ends++; return failed })
	if err != nil {
		t.Fatal(err)
	}
	x, v := lookup[int32](t, st, "x"), lookup[float64](t, st, "v")
	get := x.Into(All, make([]int32, 2))
	for range 3 {
		if err := st.End(); err != failed {
			t.Errorf("End: %v", err)
		}
	}
	if ends != 1 {
		t.Errorf("end was called %d times", ends)
	}
	_, errGet := x.Get(t.Context(), All, nil)
	_, errValue := v.Value(t.Context())
	_, errView := x.View(t.Context(), All)
	_, errAny := x.Any(t.Context(), All)
	_, errRaw := x.ReadBlockRaw(t.Context(), 0)
	for i, err := range []error{errGet, errValue, errView, errAny, errRaw, st.Fetch(t.Context(), get), st.Fetch(t.Context())} {
		if !errors.Is(err, ErrStepEnded) {
			t.Errorf("call %d after End: %v", i, err)
		}
	}
	if !slices.Equal(x.Shape(), dims{2}) {
		t.Error("the shape is gone")
	}
}

// F85: a destination that is too short is an error with both lengths, and
// nothing is written.
func TestF85ShortDestination(t *testing.T) {
	s := newSynth(t, DecoderConfig{})
	st := s.step(0, []put{array[float64]("x", dims{1000}, blockOf(dims{0}, dims{1000}, seq[float64](1, 1000)...))})
	x := lookup[float64](t, st, "x")
	mem := slices.Repeat([]float64{-1}, 1000)
	get := x.Into(All, mem[:999])
	for i, err := range []error{get.Err(), st.Fetch(t.Context(), x.Into(All, mem), get), x.Read(t.Context(), All, make([]byte, 7999))} {
		if !errors.Is(err, ErrShortBuffer) || !strings.Contains(err.Error(), "1000") && !strings.Contains(err.Error(), "8000") {
			t.Errorf("call %d: %v", i, err)
		}
	}
	if _, err := x.Get(t.Context(), All, mem[:999]); !errors.Is(err, ErrShortBuffer) {
		t.Error(err)
	}
	if _, err := x.Get(t.Context(), All, []float64{}); !errors.Is(err, ErrShortBuffer) {
		t.Error(err)
	}
	if s.data.calls != 0 || slices.Max(mem) != -1 {
		t.Error("something was written")
	}
	long := slices.Repeat([]float64{-1}, 1001)
	if got, err := x.Get(t.Context(), All, long); err != nil || len(got) != 1000 || long[999] != 1000 || long[1000] != -1 {
		t.Errorf("longer destination: %d, %v", len(got), err)
	}
}

// F87: an operator that is not known makes its variable unreadable, no other.
func TestF87UnknownOperator(t *testing.T) {
	s := newSynth(t, DecoderConfig{})
	bad := array[float64]("bad", dims{2}, synthBlock{dims{0}, dims{2}, []byte{6, 2, 0, 0, 1, 2, 3, 4}})
	bad.desc.Operator = true
	good := array[float64]("good", dims{2}, blockOf(dims{0}, dims{2}, 1.5, 2.5).null())
	good.desc.Operator = true
	st := s.step(0, []put{bad, good, array[float64]("plain", dims{1}, blockOf(dims{0}, dims{1}, 4.5))})
	if _, err := lookup[float64](t, st, "bad").Get(t.Context(), All, nil); !errors.Is(err, operator.ErrUnsupported) || !strings.Contains(err.Error(), `"bad"`) {
		t.Errorf("unknown operator: %v", err)
	}
	if raw, err := lookup[float64](t, st, "bad").ReadBlockRaw(t.Context(), 0); err != nil || raw[0] != 6 {
		t.Errorf("raw: %v, %v", raw, err)
	}
	for name, want := range map[string][]float64{"good": {1.5, 2.5}, "plain": {4.5}} {
		if got, err := lookup[float64](t, st, name).Get(t.Context(), All, nil); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
	if !lookup[float64](t, st, "bad").OperatorPresent() || lookup[float64](t, st, "plain").OperatorPresent() {
		t.Error("OperatorPresent")
	}
}

// F88: a variable exists only in the steps in which it was put, whoever read it
// before.
func TestF88OnlyWhatThisStepHas(t *testing.T) {
	s := newSynth(t, DecoderConfig{})
	a := func(n int32) put { return array[int32]("a", dims{1}, blockOf(dims{0}, dims{1}, n)) }
	b := array[int32]("b", dims{1}, blockOf[int32](dims{0}, dims{1}, 9))
	// One format with both variables, as a real writer has after its first step.
	enc := bp5.NewMetadataEncoder()
	for _, p := range []put{a(0), b} {
		if _, err := enc.Add(p.desc); err != nil {
			t.Fatal(err)
		}
	}
	f, err := enc.Format()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.dec.AddFormat(f.ID(), f.Body()); err != nil {
		t.Fatal(err)
	}
	for number := range uint64(6) {
		enc.Begin()
		m, data := a(0).blocksAt(int32(number))
		if err := enc.SetArray(0, m); err != nil {
			t.Fatal(err)
		}
		if number%2 == 0 {
			if err := enc.SetArray(1, m); err != nil {
				t.Fatal(err)
			}
		}
		rec, err := enc.Append(nil, uint64(len(data)))
		if err != nil {
			t.Fatal(err)
		}
		st, err := s.dec.Step(number, [][]byte{rec}, &memSource{data: [][]byte{data}}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := st.Variable("b"); ok != (number%2 == 0) || len(st.Variables()) != 2-int(number%2) {
			t.Errorf("step %d: b is there: %v", number, ok)
		}
		if got, err := lookup[int32](t, st, "a").Value(context.Background()); err != nil || got != int32(number) {
			t.Errorf("step %d: a = %d, %v", number, got, err)
		}
	}
}

// blocksAt lays out one block with one element.
func (p put) blocksAt(n int32) (*bp5.ArrayMeta, []byte) {
	p.blocks = []synthBlock{blockOf(dims{0}, dims{1}, n)}
	return p.layOut(nil)
}
