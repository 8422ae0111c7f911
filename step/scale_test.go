package step

import (
	"encoding/binary"
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/weft-fabric/weft/internal/testutil"
	"github.com/weft-fabric/weft/internal/wire/bp5"
	"github.com/weft-fabric/weft/internal/wire/ffs"
)

// allocated returns the bytes that f allocates.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// within fails if got is more than factor times of.
func within(t *testing.T, what string, got uint64, factor, of int) {
	t.Helper()
	t.Logf("%s: %d bytes for %d, %.1f times as much", what, got, of, float64(got)/float64(of))
	if got > uint64(factor)*uint64(of) {
		t.Errorf("%s: %d bytes are more than %d times %d", what, got, factor, of)
	}
}

// bytesFormat is a metadata format of n variables of one byte each: as many
// variables as a format and a record of their lengths can hold.
func bytesFormat(t testing.TB, n int, name func(i int) string) *ffs.Format {
	t.Helper()
	top := ffs.Struct{Name: "MetaData", RecordLen: 24 + n, Fields: []ffs.Field{
		{Name: "BitFieldCount", Type: "integer", Size: 8},
		{Name: "BitField", Type: "integer[BitFieldCount]", Size: 8, Offset: 8},
		{Name: "DataBlockSize", Type: "integer", Size: 8, Offset: 16},
	}}
	for i := range n {
		top.Fields = append(top.Fields, ffs.Field{Name: name(i), Type: "integer", Size: 1, Offset: 24 + i})
	}
	f, err := ffs.New(top)
	must(t, err)
	return f
}

// bytesRecord is a record of bytesFormat with all n bits set.
func bytesRecord(f *ffs.Format, n int) []byte {
	id, bits := f.ID(), 24+(24+n+7)/8*8
	rec := make([]byte, bits)
	copy(rec, id[:])
	binary.LittleEndian.PutUint64(rec[24:], uint64((n+63)/64))
	binary.LittleEndian.PutUint64(rec[32:], uint64(bits-24))
	for i := 0; i < n; i += 64 {
		w := ^uint64(0)
		if n-i < 64 {
			w = 1<<(n-i) - 1
		}
		rec = binary.LittleEndian.AppendUint64(rec, w)
	}
	binary.LittleEndian.PutUint64(rec[12:], uint64(len(rec)-24))
	return rec
}

// A format and a step cost memory in proportion to their bytes, also where a
// variable is as small as it can be.
func TestSoakVariableFlood(t *testing.T) {
	for _, n := range []int{1000, testutil.Count(t, 30_000, 100_000)} {
		f := bytesFormat(t, n, func(i int) string { return fmt.Sprintf("BPg_%d", i) })
		rec := bytesRecord(f, n)
		dec := NewDecoder(DecoderConfig{})
		var st *Step
		makeStep := func() {
			var err error
			st, err = dec.Step(0, [][]byte{rec}, nil, nil)
			must(t, err)
		}
		within(t, "format", allocated(func() { must(t, dec.AddFormat(f.ID(), f.Body())) }), 24, len(f.Body()))
		within(t, "first step", allocated(makeStep), 40, len(f.Body())+len(rec))
		within(t, "next step", allocated(makeStep), 200, len(rec)) // one byte each: the Variables outweigh them
		if len(st.Variables()) != n {
			t.Fatalf("%d variables of %d", len(st.Variables()), n)
		}
		// A name that none has is compared with all of them.
		start := time.Now()
		if _, err := Lookup[int8](st, "variable"); err == nil {
			t.Error("found")
		}
		if d := time.Since(start); d > 10*time.Second {
			t.Errorf("a failed Lookup among %d variables took %v", n, d)
		}
	}
}

// All names equal: the first would hide the others, so the variable is refused.
func TestOneNameManyTimes(t *testing.T) {
	const n = 2000
	f := bytesFormat(t, n, func(i int) string { return fmt.Sprintf("BPg_%d", i) })
	// New refuses equal names; a peer may send them.
	body := slices.Clone(f.Body())
	for i := range n {
		at := 8 + 28 + 16*(3+i) // outer header, struct header, leading fields
		copy(body[at:at+4], body[8+28+16*3:])
	}
	body = append([]byte(nil), body...)
	id := ffs.IDOf(body)
	rec := bytesRecord(f, n)
	copy(rec, id[:])
	dec := NewDecoder(DecoderConfig{})
	must(t, dec.AddFormat(id, body))
	st, err := dec.Step(0, [][]byte{rec}, nil, nil)
	must(t, err)
	if vars := st.Variables(); len(vars) != 1 || vars[0].Err() == nil {
		t.Errorf("%d variables, error %v", len(vars), vars[0].Err())
	}
}

// A stream whose every step has a new variable: the price of a step must not be
// that of all variables so far.
func TestSoakNewNameInEachStep(t *testing.T) {
	steps := testutil.Count(t, 4000, 40_000)
	dec := NewDecoder(DecoderConfig{})
	start := time.Now()
	var last *Step
	for i := range steps {
		f := bytesFormat(t, 2, func(k int) string { return fmt.Sprintf("BPg_%d/%d", steps-i, 2-k) })
		must(t, dec.AddFormat(f.ID(), f.Body()))
		var err error
		last, err = dec.Step(uint64(i), [][]byte{bytesRecord(f, 2)}, nil, nil)
		must(t, err)
		if v := last.Variables(); v[0].Name() > v[1].Name() {
			t.Fatalf("step %d: %q before %q", i, v[0].Name(), v[1].Name())
		}
	}
	if d := time.Since(start); d > time.Minute {
		t.Errorf("%d steps took %v", steps, d)
	}
}

// Very many blocks: the memory is that of the record, and of the list that is
// asked for.
func TestSoakBlockFlood(t *testing.T) {
	n := testutil.Count(t, 100_000, 1_000_000)
	s := newSynth(t, DecoderConfig{})
	m := &bp5.ArrayMeta{Dims: 1, Blocks: n, Shape: dims{uint64(n)}, Count: make([]uint64, n), Offset: make([]uint64, n), Location: make([]uint64, n)}
	for i := range n {
		m.Count[i], m.Offset[i], m.Location[i] = 1, uint64(i), uint64(n-1-i)
	}
	rec := s.hostileRecord(arrayDesc[uint8]("x", bp5.GlobalArray), m, uint64(n))
	data := make([]byte, n)
	for i := range data {
		data[n-1-i] = byte(i)
	}
	st, err := s.dec.Step(0, [][]byte{rec}, &memSource{data: [][]byte{data}}, nil)
	must(t, err)
	x := lookup[uint8](t, st, "x")
	within(t, "layout", allocated(func() { must(t, x.Err()) }), 8, len(rec))
	var got []uint8
	within(t, "reading all", allocated(func() {
		if got, err = x.Get(t.Context(), nil, nil); err != nil {
			t.Fatal(err)
		}
	}), 40, len(rec)) // the buffers of a round, which few blocks do not outweigh
	for i := range got {
		if got[i] != byte(i) {
			t.Fatalf("element %d is %d", i, got[i])
		}
	}
	within(t, "reading one", allocated(func() { _, err = x.Get(t.Context(), Box{dims{5}, dims{1}}, nil) }), 1, len(rec)/1000)
	must(t, err)
	within(t, "list of blocks", allocated(func() { x.Blocks() }), 12, len(rec))
}

// Whole arrays put over each other many times: only the last is moved.
func TestHiddenBlocksAreNotRead(t *testing.T) {
	const n, size = 500, 1 << 16
	s := newSynth(t, DecoderConfig{})
	var blocks []synthBlock
	for i := range n {
		b := synthBlock{start: dims{0}, count: dims{size}, data: make([]byte, size)}
		b.data[0], b.data[size-1] = byte(i), byte(i)
		if i%2 == 1 {
			b = synthBlock{start: dims{uint64(i)}, count: dims{1}, data: []byte{byte(i)}} // partly hidden
		}
		blocks = append(blocks, b)
	}
	st := s.step(0, []put{array[uint8]("x", dims{size}, blocks...)})
	var missing uint64
	got, err := lookup[uint8](t, st, "x").Get(t.Context(), Selection{Missing: &missing}, nil)
	must(t, err)
	last := byte((n - 2) % 256)
	if got[0] != last || got[size-1] != last || got[n-1] != byte((n-1)%256) || missing != 0 {
		t.Errorf("%d, %d, %d, %d missing", got[0], got[size-1], got[n-1], missing)
	}
	if moved := s.data.bytes(); moved > 2*size {
		t.Errorf("%d bytes read for %d", moved, size)
	}
}

// Parts that overlap are staged, however long they are, in pieces.
func TestOverlapIsStagedInPieces(t *testing.T) {
	const size = 2*maxChunk + 100
	s := newSynth(t, DecoderConfig{})
	m := &bp5.ArrayMeta{Dims: 1, Blocks: 2, Shape: dims{size + 50}, Count: dims{size, size}, Offset: dims{0, 50}, Location: dims{0, 16}}
	rec := s.hostileRecord(arrayDesc[uint8]("x", bp5.GlobalArray), m, size+16)
	src := &patternSource{}
	st, err := s.dec.Step(0, [][]byte{rec}, src, nil)
	must(t, err)
	dst := make([]byte, size+50)
	must(t, lookup[uint8](t, st, "x").Read(t.Context(), nil, dst))
	for i := 0; i < len(dst); i += 1 + i/1000 { // the front, and samples behind it
		want := patternAt(uint64(i))
		if i >= 50 {
			want = patternAt(uint64(i - 50 + 16))
		}
		if dst[i] != want {
			t.Fatalf("byte %d", i)
		}
	}
}

// Compressed blocks that several reads share are kept only while there is room:
// what a Fetch holds does not grow with what it reads.
func TestSharedCompressedBlocksAreBounded(t *testing.T) {
	const size, n = 1 << 20, 72 // more than may be kept
	s := newSynth(t, DecoderConfig{})
	// All blocks lie in the same place: little data, and as much work.
	data := synthBlock{data: make([]byte, size)}
	data.data[7], data.data[8] = 1, 2
	data = data.null()
	m := &bp5.ArrayMeta{Dims: 2, Blocks: n, Shape: dims{n, size}, Location: make(dims, n)}
	for i := range n {
		m.Count, m.Offset = append(m.Count, 1, size), append(m.Offset, uint64(i), 0)
		m.StoredSize = append(m.StoredSize, uint64(len(data.data)))
	}
	desc := arrayDesc[uint8]("x", bp5.GlobalArray)
	desc.Operator = true
	s.data = &memSource{data: [][]byte{data.data}}
	st, err := s.dec.Step(0, [][]byte{s.hostileRecord(desc, m, uint64(len(data.data)))}, s.data, nil)
	must(t, err)
	x := lookup[uint8](t, st, "x")
	a, b := make([]uint8, n), make([]uint8, n)
	// Two columns of all blocks: each block is needed twice, n blocks apart.
	gets := []Get{x.Into(Box{dims{0, 7}, dims{n, 1}}, a), x.Into(Box{dims{0, 8}, dims{n, 1}}, b)}
	var f fetch
	f.batch = batch{ctx: t.Context(), src: s.data}
	f.share(gets)
	for _, g := range gets {
		must(t, g.r.settle(t.Context()))
		must(t, f.add(g.r))
		if f.kept > maxStaging {
			t.Fatalf("%d bytes kept", f.kept)
		}
	}
	must(t, f.flush())
	if f.kept != 0 {
		t.Errorf("%d bytes kept at the end", f.kept)
	}
	for i := range n {
		if a[i] != 1 || b[i] != 2 {
			t.Fatalf("block %d: %d, %d", i, a[i], b[i])
		}
	}
}
