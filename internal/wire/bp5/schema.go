package bp5

import (
	"errors"
	"fmt"
	"strings"

	"github.com/weft-fabric/weft/internal/wire/ffs"
)

// What can be wrong with records and their formats. Wrapped with the place and the reason; test with errors.Is. What FFS
// finds wrong is passed on with its own errors.
var (
	// ErrBadRecord says that a metadata or attribute record, or its format, breaks the rules of BP5.
	ErrBadRecord = errors.New("damaged BP5 record")
	// ErrOldMetadata says that a record is of ADIOS2 2.8, which had another layout under the same version number.
	ErrOldMetadata = errors.New("BP5 metadata of ADIOS2 2.8 is not supported; rewrite the data with 2.9 or later")
)

// Names of the leading fields of metadata records (docs/wire/bp5.md §2).
const (
	fieldBitCount = "BitFieldCount"
	fieldBits     = "BitField"
	fieldDataSize = "DataBlockSize"
)

const (
	integerSize = 8 // every number in array metadata
	extrema     = 2 // MinMax is char[2N]: minimum and maximum
)

// Schema is the format of metadata records: which variables they can hold. Schemas are immutable.
type Schema struct {
	format *ffs.Format
	vars   []VarDesc
	arrays []*arrayFields // by variable, nil for values
}

// arrayFields has the indices of the fields of one MetaArray struct, -1 for those it does not have.
type arrayFields struct {
	dims, blocks, entries   int // Dims, BlockCount, DBCount
	shape, count, offset    int // Shape, Count, Offset
	location, stored, stats int // DataBlockLocation, DataBlockSize, MinMax
	statsSize               int // bytes of one extremum
}

// ParseSchema reads the variable list off the format of a metadata record. Errors are ErrBadRecord and ErrOldMetadata.
func ParseSchema(f *ffs.Format) (*Schema, error) {
	if f.Name() != metaDataName {
		return nil, fmt.Errorf("bp5: format %v is %q, want %q: %w", f.ID(), clip(f.Name()), metaDataName, ErrBadRecord)
	}
	top, types := &f.Structs()[0], f.Types(0)
	if err := checkLeading(top, types); err != nil {
		return nil, fmt.Errorf("bp5: format %v: %w", f.ID(), err)
	}
	n := len(top.Fields) - leadingFields
	s := &Schema{format: f, vars: make([]VarDesc, n), arrays: make([]*arrayFields, n)}
	structs := make(map[string]*arrayFields) // thousands of arrays share a few structs
	for i := range s.vars {
		if err := s.parseVar(i, &top.Fields[leadingFields+i], types[leadingFields+i], structs); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// Vars returns the variables in the order of the format: index i is that of Metadata's methods. Read only.
func (s *Schema) Vars() []VarDesc { return s.vars }

// checkLeading makes sure that the three fields in front are what every reader takes them for without looking: bit i
// belongs to the field i places behind them (docs/wire/bp5.md §2).
func checkLeading(top *ffs.Struct, types []ffs.Type) error {
	if len(top.Fields) < leadingFields {
		return fmt.Errorf("%d fields, at least %d needed: %w", len(top.Fields), leadingFields, ErrBadRecord)
	}
	for i, name := range [leadingFields]string{fieldBitCount, fieldBits, fieldDataSize} {
		f, t := &top.Fields[i], types[i]
		if f.Name != name || f.Size != integerSize || !isInteger(t) || t.Dynamic() != (name == fieldBits) || len(t.Dims) > 1 {
			return fmt.Errorf("field %d is %q of type %q and size %d, want %q: %w", i, clip(f.Name), clip(f.Type), f.Size, name, ErrBadRecord)
		}
	}
	return nil
}

// isInteger accepts both signs: whether a count is sensible is checked when it is read.
func isInteger(t ffs.Type) bool { return t.Kind == ffs.Integer || t.Kind == ffs.Unsigned }

// parseVar fills variable i. structs caches what is known of the format's structs.
func (s *Schema) parseVar(i int, f *ffs.Field, t ffs.Type, structs map[string]*arrayFields) error {
	d, err := ParseFieldName(f.Name)
	if err != nil {
		return err
	}
	if !d.Kind.IsArray() {
		if !t.Pointer && len(t.Dims) == 0 { // anything else stays None: listed, but not readable
			d.Type, d.ElemSize = valueType(t, f.Size)
		}
		s.vars[i] = d
		return nil
	}
	if !strings.HasPrefix(t.Struct, metaArrayName) {
		if !strings.HasPrefix(f.Type, "M") {
			return fmt.Errorf("bp5: array %q has a field of type %q: %w", clip(d.Name), clip(f.Type), ErrOldMetadata)
		}
		return fmt.Errorf("bp5: array %q has a field of type %q: %w", clip(d.Name), clip(f.Type), ErrBadRecord)
	}
	if t.Pointer || len(t.Dims) != 0 {
		return fmt.Errorf("bp5: array %q has a field of type %q: %w", clip(d.Name), clip(f.Type), ErrBadRecord)
	}
	a := structs[t.Struct]
	if a == nil {
		if a, err = findArrayFields(s.format, t.Struct); err != nil {
			return fmt.Errorf("bp5: array %q: %w", clip(d.Name), err)
		}
		structs[t.Struct] = a
	}
	d.Operator, d.MinMax = a.stored >= 0, a.statsSize
	s.vars[i], s.arrays[i] = d, a
	return nil
}

// findArrayFields finds the fields of the MetaArray struct of that name. Fields it does not know are ignored; a field
// that is there must be of the right type (docs/wire/bp5.md §2.3).
func findArrayFields(f *ffs.Format, name string) (*arrayFields, error) {
	k := 0
	for k < len(f.Structs()) && f.Structs()[k].Name != name {
		k++
	}
	if k == len(f.Structs()) { // the format was checked: cannot be
		return nil, fmt.Errorf("no struct %q: %w", clip(name), ErrBadRecord)
	}
	st, types := &f.Structs()[k], f.Types(k)
	find := func(name string, dims int) int {
		for i := range st.Fields {
			if st.Fields[i].Name == name && st.Fields[i].Size == integerSize && isInteger(types[i]) &&
				!types[i].Pointer && len(types[i].Dims) == dims && types[i].Dynamic() == (dims == 1) {
				return i
			}
		}
		return -1
	}
	a := &arrayFields{
		dims: find("Dims", 0), blocks: find("BlockCount", 0), entries: find("DBCount", 0),
		shape: find("Shape", 1), count: find("Count", 1), offset: find("Offset", 1),
		location: find("DataBlockLocation", 1), stored: find("DataBlockSize", 1), stats: -1,
	}
	for _, i := range []int{a.dims, a.blocks, a.entries, a.shape, a.count, a.offset, a.location} {
		if i < 0 {
			return nil, fmt.Errorf("struct %q lacks a field of array metadata: %w", clip(name), ErrBadRecord)
		}
	}
	a.findStats(st, types)
	return a, nil
}

// findStats looks for MinMax, char[2N][BlockCount].
func (a *arrayFields) findStats(st *ffs.Struct, types []ffs.Type) {
	for i := range st.Fields {
		t := types[i]
		if st.Fields[i].Name == "MinMax" && t.Kind == ffs.Char && st.Fields[i].Size == 1 && len(t.Dims) == 2 &&
			t.Dims[0].Field < 0 && t.Dims[0].Const%extrema == 0 && t.Dims[1].Field >= 0 {
			a.stats, a.statsSize = i, t.Dims[0].Const/extrema
			return
		}
	}
}
