package step

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/weft-fabric/weft/internal/testutil"
	"github.com/weft-fabric/weft/internal/wire/bp5"
)

// nasty are numbers at which sums, products and conversions break.
var nasty = []uint64{
	0, 1, 2, 31, 32, 33, 1 << 10, 1<<31 - 1, 1 << 31, 1 << 32, 1 << 40, 1<<47 + 1,
	math.MaxInt64 - 1, math.MaxInt64, 1 << 63, 1<<63 + 1, math.MaxUint64 - 15, JoinedDim, math.MaxUint64,
}

// pickNasty returns one of the numbers, or one near to what is right.
func pickNasty(r *rand.Rand, right uint64) uint64 {
	switch r.IntN(3) {
	case 0:
		return right + uint64(r.IntN(5)) - 2
	case 1:
		return right << r.IntN(64)
	}
	return nasty[r.IntN(len(nasty))]
}

// sometimes returns what is right, and sometimes what is not.
func sometimes(r *rand.Rand, right uint64) uint64 {
	if r.IntN(24) == 0 {
		return pickNasty(r, right)
	}
	return right
}

// hostileArray is an array record that is right in its form and wild in its numbers.
func hostileArray(r *rand.Rand, kind bp5.Kind, dims int, op bool) *bp5.ArrayMeta {
	m := &bp5.ArrayMeta{Dims: dims, Blocks: r.IntN(5)}
	wild := func(n int, right uint64) []uint64 {
		list := make([]uint64, n)
		for i := range list {
			list[i] = sometimes(r, right)
		}
		return list
	}
	if kind != bp5.LocalArray {
		m.Shape = wild(m.Dims, 4)
	}
	if kind == bp5.JoinedArray && r.IntN(8) > 0 {
		m.Shape[r.IntN(m.Dims)] = bp5.JoinedDim
	}
	m.Count = wild(m.Dims*m.Blocks, 2)
	if kind == bp5.GlobalArray && r.IntN(8) > 0 {
		m.Offset = wild(m.Dims*m.Blocks, 1)
	}
	m.Location = wild(m.Blocks, 8)
	if op {
		m.StoredSize = wild(m.Blocks, 28)
	}
	return m
}

// hostileSelection is one that a careless program could make from numbers that it was given.
func hostileSelection(r *rand.Rand, v *Variable) Selection {
	var s Selection
	shape := v.Shape()
	if shape == nil || r.IntN(4) == 0 {
		i := int(sometimes(r, 0))
		s.Block, shape = &i, v.Block(i).Box.Count
	}
	n := len(shape)
	if r.IntN(8) == 0 {
		n = r.IntN(4)
	}
	for d := range n {
		right := uint64(1)
		if d < len(shape) {
			right = shape[d] / 2
		}
		s.Box.Start = append(s.Box.Start, sometimes(r, right))
		s.Box.Count = append(s.Box.Count, sometimes(r, right))
	}
	if r.IntN(4) == 0 {
		s.Box.Start = nil
	}
	if r.IntN(3) == 0 {
		s.Memory = &Memory{}
		for range n {
			s.Memory.Shape = append(s.Memory.Shape, sometimes(r, 8))
			s.Memory.Start = append(s.Memory.Start, sometimes(r, 1))
		}
	}
	s.Missing = new(uint64)
	return s
}

// Records of the right form with any numbers in them: nothing panics, and nothing allocates more
// than MaxAlloc for each result.
func TestSoakHostileArrays(t *testing.T) {
	r := testutil.Rand(t)
	kinds := []bp5.Kind{bp5.GlobalArray, bp5.LocalArray, bp5.JoinedArray}
	read := 0
	for round := range testutil.Count(t, 1500, 100_000) {
		cfg := DecoderConfig{ColumnMajor: r.IntN(2) == 0, MaxAlloc: 1 << 20}
		s := newSynth(t, cfg)
		kind, op := kinds[r.IntN(3)], r.IntN(3) == 0
		metas, dataSize := make([][]byte, 1+r.IntN(3)), uint64(1<<12)
		if r.IntN(4) == 0 {
			dataSize = pickNasty(r, dataSize)
		}
		dims := 1 + r.IntN(4)
		if r.IntN(16) == 0 {
			dims = 31 + r.IntN(3)
		}
		for rank := range metas {
			d := arrayDesc[float64]("x", kind)
			d.Operator = op
			metas[rank] = s.hostileRecord(d, hostileArray(r, kind, dims, op), dataSize)
		}
		st, err := s.dec.Step(uint64(round), metas, boundedSource{1 << 12}, nil)
		if err != nil {
			t.Fatal(err) // the form is right
		}
		for range 4 {
			x := st.Variables()[0]
			if _, err := x.Any(t.Context(), hostileSelection(r, x)); err == nil {
				read++
			}
		}
		exercise(st)
	}
	if read == 0 {
		t.Error("nothing could be read: the damage is of one sort only")
	}
}

// hostileRecord encodes one array without asking whether it makes sense.
func (s *synth) hostileRecord(d bp5.VarDesc, m *bp5.ArrayMeta, dataSize uint64) []byte {
	s.t.Helper()
	enc := bp5.NewMetadataEncoder()
	i, err := enc.Add(d)
	if err != nil {
		s.t.Fatal(err)
	}
	enc.Begin()
	if err := enc.SetArray(i, m); err != nil {
		s.t.Fatal(err)
	}
	rec, err := enc.Append(nil, dataSize)
	if err != nil {
		s.t.Fatal(err)
	}
	f, err := enc.Format()
	if err != nil {
		s.t.Fatal(err)
	}
	if err := s.dec.AddFormat(f.ID(), f.Body()); err != nil {
		s.t.Fatal(err)
	}
	return rec
}

// Real records whose 8-byte words are replaced by numbers that break arithmetic: all there is in a
// record but strings and values is such words.
func TestSoakHostileWords(t *testing.T) {
	r := testutil.Rand(t)
	taken := 0
	for _, name := range []string{"main-shapes-3ranks", "v2.10.2-types", "main-nullop", "main-struct", "v2.10.2-shapes-columnmajor"} {
		d := openDataset(t, name)
		for range testutil.Count(t, 150, 20_000) {
			dec := NewDecoder(DecoderConfig{ColumnMajor: d.header.ColumnMajor, MaxAlloc: 1 << 20})
			for _, f := range d.formats {
				must(t, dec.AddFormat(f.ID, f.Description))
			}
			fs := d.steps[r.IntN(len(d.steps))]
			recs := slices.Clone(fs.meta)
			for i := range recs {
				recs[i] = slices.Clone(recs[i])
				for range 1 + r.IntN(3) {
					at := 24 + 8*r.IntN((len(recs[i])-24)/8) // behind the header
					binary.LittleEndian.PutUint64(recs[i][at:], pickNasty(r, binary.LittleEndian.Uint64(recs[i][at:])))
				}
			}
			if st, err := dec.Step(0, recs, boundedSource{1 << 16}, nil); err == nil {
				taken++
				exercise(st)
			}
		}
	}
	if taken == 0 {
		t.Error("all refused: the damage is of one sort only")
	}
}
