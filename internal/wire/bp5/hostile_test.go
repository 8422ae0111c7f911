package bp5

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"

	"github.com/weft-fabric/weft/internal/bpfixture"
	"github.com/weft-fabric/weft/internal/testutil"
	"github.com/weft-fabric/weft/internal/wire/ffs"
)

// wild returns a number at which sums and products break, or one near right.
func wild(r *rand.Rand, right uint64) uint64 {
	list := []uint64{0, 1, 2, 32, 33, 1 << 10, 1<<10 + 1, 1<<31 - 1, 1 << 31, 1 << 32, 1 << 60, 1 << 61, math.MaxInt64, 1 << 63, JoinedDim, NoData}
	switch r.IntN(3) {
	case 0:
		return right + uint64(r.IntN(5)) - 2
	case 1:
		return right << r.IntN(64)
	}
	return list[r.IntN(len(list))]
}

// allocated returns the bytes that f allocates.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// Real records with numbers in them that break arithmetic: they are refused, or
// can be asked for everything, for memory in proportion to their length.
func TestSoakHostileRecords(t *testing.T) {
	r := testutil.Rand(t)
	refused, taken := 0, 0
	for _, name := range bpfixture.Names() {
		steps, formats := realSteps(t, name)
		for range testutil.Count(t, 40, 5000) {
			st := steps[r.IntN(len(steps))]
			for _, rec := range slices.Concat(st.meta, st.attrs) {
				if len(rec) < 32 {
					continue
				}
				rec = slices.Clone(rec)
				for range 1 + r.IntN(3) {
					at := 24 + 8*r.IntN((len(rec)-24)/8)
					binary.LittleEndian.PutUint64(rec[at:], wild(r, binary.LittleEndian.Uint64(rec[at:])))
				}
				ok := false
				if n := allocated(func() { ok = use(formats, rec) }); n > uint64(64*len(rec)+1<<16) {
					t.Errorf("%s: %d bytes allocated for a record of %d", name, n, len(rec))
				}
				if ok {
					taken++
				} else {
					refused++
				}
			}
		}
	}
	if refused == 0 || taken == 0 {
		t.Errorf("%d refused, %d taken: the damage is of one sort only", refused, taken)
	}
}

// use reads everything there is in a record; ok is false if it is refused.
func use(formats map[ffs.ID]*ffs.Format, rec []byte) (ok bool) {
	id, _ := ffs.RecordID(rec)
	f := formats[id]
	if f.Name() != metaDataName {
		_, _, err := ParseAttributes(f, rec)
		return err == nil
	}
	s, err := ParseSchema(f)
	if err != nil {
		return false
	}
	m, err := s.Metadata(rec)
	if err != nil {
		return false
	}
	touch(m)
	return true
}

// The numbers of a MetaArray struct at their extremes, one and two at a time.
func TestHostileCounts(t *testing.T) {
	enc := newEncoder(t, VarDesc{Name: "x", Kind: GlobalArray, Type: Double, ElemSize: 8, Operator: true, MinMax: 8})
	a := &ArrayMeta{Dims: 2, Blocks: 2, Shape: []uint64{4, 4}, Count: []uint64{2, 4, 2, 4}, Offset: []uint64{0, 0, 2, 0}, Location: []uint64{0, 64}, StoredSize: []uint64{64, 64}, MinMax: make([]byte, 32)}
	if err := enc.SetArray(0, a); err != nil {
		t.Fatal(err)
	}
	good, s := encoded(t, enc, 128)
	extremes := []uint64{0, 1, 3, 4, 8, 1 << 10, 1<<10 + 1, 1 << 31, 1 << 32, 1 << 60, 1 << 61, 1 << 62, math.MaxInt64, 1 << 63, math.MaxUint64}
	const base = 24 + leadingLen // Dims, BlockCount, DBCount and six slots
	refused := 0
	for i := range 9 {
		for k := range i + 1 {
			for _, x := range extremes {
				for _, y := range extremes {
					rec := slices.Clone(good)
					binary.LittleEndian.PutUint64(rec[base+8*i:], x)
					binary.LittleEndian.PutUint64(rec[base+8*k:], y)
					m, err := s.Metadata(rec)
					if err == nil {
						_, err = m.Array(0)
					}
					if err == nil {
						touch(m) // panics if lengths and counts do not agree
						continue
					}
					refused++
					if !errors.Is(err, ErrBadRecord) && !errors.Is(err, ffs.ErrRecord) {
						t.Fatalf("fields %d and %d set to %d and %d: %v", i, k, x, y, err)
					}
				}
			}
		}
	}
	if refused == 0 {
		t.Error("nothing was refused")
	}
}

// Attributes in any number cost memory in proportion to their bytes.
func TestAttributeFlood(t *testing.T) {
	const n = 20_000
	var attrs []Attr
	for i := range n {
		attrs = append(attrs, Attr{Name: fmt.Sprint("a", i), Type: Int8, Data: []byte{1}})
	}
	attrs = append(attrs, Attr{Name: "texts", Type: String, Array: true, Strings: make([]string, n)})
	generic, err := GenericAttributesFormat()
	if err != nil {
		t.Fatal(err)
	}
	rec, err := AppendGenericAttributes(nil, attrs)
	if err != nil {
		t.Fatal(err)
	}
	old, f, err := AppendOldAttributes(nil, attrs[:n])
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name   string
		format *ffs.Format
		rec    []byte
		input  int
		want   int
	}{
		{"generic", generic, rec, len(rec), n + 1},
		{"old", f, old, len(old) + len(f.Body()), n},
	} {
		var got []Attr
		used := allocated(func() {
			if got, _, err = ParseAttributes(tc.format, tc.rec); err != nil {
				t.Fatal(err)
			}
		})
		if len(got) != tc.want || used > uint64(12*tc.input) {
			t.Errorf("%s: %d attributes, %d bytes allocated for %d", tc.name, len(got), used, tc.input)
		}
	}
}

// One string, or one block list, that very many fields point at: the record is
// refused before anything is copied.
func TestSharedTargetsAreRefused(t *testing.T) {
	const n, long = 1000, 10_000
	attrs := []Attr{{Name: "a", Type: String, Array: true, Strings: make([]string, n)}}
	attrs[0].Strings[0] = string(slices.Repeat([]byte{'x'}, long))
	rec, err := AppendGenericAttributes(nil, attrs)
	if err != nil {
		t.Fatal(err)
	}
	f, err := GenericAttributesFormat()
	if err != nil {
		t.Fatal(err)
	}
	// The array of slots begins at the multiple of 8 behind the name.
	at := len(rec) - long - n - 8*n
	target := binary.LittleEndian.Uint64(rec[at:])
	for i := range n {
		binary.LittleEndian.PutUint64(rec[at+8*i:], target)
	}
	used := allocated(func() { _, _, err = ParseAttributes(f, rec) })
	if !errors.Is(err, ffs.ErrRecord) || used > 1<<16 {
		t.Errorf("%v, %d bytes allocated", err, used)
	}
}

// A format of very many variables is parsed in time and memory in proportion.
func TestSchemaFlood(t *testing.T) {
	const n = 20_000
	enc := NewMetadataEncoder()
	for i := range n {
		if _, err := enc.Add(VarDesc{Name: fmt.Sprint("v", i), Kind: GlobalArray, Type: Double, ElemSize: 8, MinMax: 8}); err != nil {
			t.Fatal(err)
		}
	}
	enc.Begin()
	f, err := enc.Format()
	if err != nil {
		t.Fatal(err)
	}
	used := allocated(func() {
		s, err := ParseSchema(f)
		if err != nil || len(s.Vars()) != n {
			t.Errorf("%v", err)
		}
	})
	if used > uint64(8*len(f.Body())) {
		t.Errorf("%d bytes allocated for a format of %d", used, len(f.Body()))
	}
}
