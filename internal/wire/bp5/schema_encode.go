package bp5

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/weft-fabric/weft/internal/wire/ffs"
)

// ErrEncode is wrapped by every error of an encoder: what the caller wants to
// write has no BP5 form.
var ErrEncode = errors.New("bp5: cannot be written")

// Names of formats and sub-structs (docs/wire/bp5.md §1.3, §2, §4).
const (
	metaDataName     = "MetaData"          // top struct of a metadata record
	metaArrayName    = "MetaArray"         // begins the names of all array structs
	oldAttrsName     = "Attributes"        // top struct of old-style attributes, by which they are told
	genericAttrsName = "GenericAttributes" // top struct of generic attributes
	primAttrName     = "PrimAttr"          // one generic attribute of numbers
	strAttrName      = "StrAttr"           // one generic attribute of strings
	complex4Name     = "complex4"          // two floats of 4 bytes
	complex8Name     = "complex8"          // two floats of 8 bytes
)

const (
	slotSize     = 8 // a pointer of a 64-bit writer: strings and dynamic arrays
	metaArrayLen = 7 * slotSize
	maxNameLen   = 1 << 16 // ours: format descriptions stay far below their 32-bit offsets
)

// encField is a field of a format that has no offset yet.
type encField struct {
	name  string
	typ   string // FFS type string
	size  int    // FFS element size
	width int    // bytes in the struct
	align int    // natural alignment
}

// naturalOffset packs as a C compiler would. ADIOS2 itself leaves gaps, but
// localizes foreign formats this way, so that every version agrees with these
// offsets (docs/wire/bp5.md §2.5).
func naturalOffset(end int, f *encField) int { return roundUp(end, f.align) }

// ADIOS2's reader up to 2.12.1 casts the fields of a MetaArray to a C struct:
// their order and offsets are fixed (docs/wire/bp5.md §2.3).
func (v VarDesc) metaArrayStruct() ffs.Struct {
	fields := []ffs.Field{
		slotField("Dims", "integer"),
		slotField("BlockCount", "integer"),
		slotField("DBCount", "integer"),
		slotField("Shape", "integer[Dims]"),
		slotField("Count", "integer[DBCount]"),
		slotField("Offset", "integer[DBCount]"),
		slotField("DataBlockLocation", "integer[BlockCount]"),
	}
	if v.Operator {
		fields = append(fields, slotField("DataBlockSize", "integer[BlockCount]"))
	}
	if v.MinMax != 0 {
		fields = append(fields, ffs.Field{Name: "MinMax", Type: "char[" + strconv.Itoa(2*v.MinMax) + "][BlockCount]", Size: 1})
	}
	for i := range fields {
		fields[i].Offset = i * slotSize
	}
	return ffs.Struct{Name: v.metaArrayStructName(), RecordLen: len(fields) * slotSize, Align: slotSize, Fields: fields}
}

// slotField is a field of 8 bytes: a count, or the slot of an array.
func slotField(name, typ string) ffs.Field { return ffs.Field{Name: name, Type: typ, Size: slotSize} }

// metaArrayStructName puts the name together from what the struct holds
// (docs/wire/bp5.md §2.3).
func (v VarDesc) metaArrayStructName() string {
	name := metaArrayName
	if v.Operator {
		name += "Op"
	}
	if v.MinMax != 0 {
		name += "MM" + strconv.Itoa(v.MinMax)
	}
	return name
}

// metaArrayStructLen returns the bytes of that struct.
func (v VarDesc) metaArrayStructLen() int {
	n := metaArrayLen
	if v.Operator {
		n += slotSize
	}
	if v.MinMax != 0 {
		n += slotSize
	}
	return n
}

// FieldName returns the name under which the variable stands in a metadata
// format: kind, element type and name in one text.
//
// wire: BPg_NAME, BPl_NAME (values) | BPG_SIZE_TYPE_NAME (arrays; L and J alike)
// | BPG_SIZE_16_HEXID_NAME (structs) | BPG-LEN-BASE64-SIZE_TYPE_NAME (with an
// expression) (docs/wire/bp5.md §2.1)
func (v VarDesc) FieldName() string {
	var s strings.Builder
	s.WriteString("BP")
	s.WriteByte(byte(v.Kind))
	if v.Expression != "" {
		fmt.Fprintf(&s, "-%d-%s-", len(v.Expression), v.Expression)
	} else {
		s.WriteByte('_')
	}
	if v.Kind.IsArray() {
		fmt.Fprintf(&s, "%d_%d_", v.ElemSize, v.Type)
		if v.Type == Struct {
			fmt.Fprintf(&s, "%x_", v.StructID[:])
		}
	}
	s.WriteString(v.Name)
	return s.String()
}

// Check reports why the variable has no BP5 form, if it has none. The error
// wraps [ErrEncode].
func (v VarDesc) Check() error {
	_, err := v.field()
	return err
}

// field returns the variable's field, or why there is none.
func (v VarDesc) field() (encField, error) {
	if err := checkName(v.Name); err != nil {
		return encField{}, err
	}
	f := encField{name: v.FieldName()}
	if v.Kind.IsArray() {
		return v.arrayField(f)
	}
	if v.Kind != GlobalValue && v.Kind != LocalValue {
		return f, fmt.Errorf("variable %q of kind %q: %w", v.Name, v.Kind, ErrEncode)
	}
	// A value stands in the record as it is: there is no room for any of these.
	if v.Type == Struct || v.Operator || v.MinMax != 0 || v.Expression != "" {
		return f, fmt.Errorf("value %q: structs, operators, statistics and expressions need an array: %w", v.Name, ErrEncode)
	}
	f.typ, f.size, f.align = scalarType(v.Type)
	f.width = f.size
	if f.size == 0 || v.Type != String && v.ElemSize != f.size {
		return f, fmt.Errorf("value %q of type %d with %d bytes: %w", v.Name, v.Type, v.ElemSize, ErrEncode)
	}
	return f, nil
}

// arrayField completes the field of an array, or says why there is none.
func (v VarDesc) arrayField(f encField) (encField, error) {
	_, size, _ := scalarType(v.Type)
	switch {
	case v.Type == String || v.Type == None || v.Type > Struct:
		return f, fmt.Errorf("array %q of type %d: %w", v.Name, v.Type, ErrEncode)
	case v.ElemSize <= 0 || v.Type != Struct && v.ElemSize != size:
		return f, fmt.Errorf("array %q of type %d with %d bytes an element: %w", v.Name, v.Type, v.ElemSize, ErrEncode)
	case v.MinMax != 0 && (v.MinMax != v.ElemSize || StatsSize(v.ElemSize) == 0):
		return f, fmt.Errorf("array %q: %d bytes of statistics for %d bytes an element: %w", v.Name, v.MinMax, v.ElemSize, ErrEncode)
	}
	// The size of the field is that of its struct. ADIOS2 writes 64 bytes for structs
	// of odd sizes; readers take the sub-struct's own (docs/wire/bp5.md §2.3).
	f.typ = v.metaArrayStructName()
	f.size = v.metaArrayStructLen()
	f.width, f.align = f.size, slotSize
	return f, nil
}

// StatsSize returns what VarDesc.MinMax is for elements of the given size when
// statistics are wanted: the size itself, or 0 for sizes that have no MinMax
// struct (docs/wire/bp5.md §2.3).
func StatsSize(elemSize int) int {
	switch elemSize {
	case 1, 2, 4, 8, 16:
		return elemSize
	}
	return 0
}

// scalarType returns how one element is declared in a format; size 0 for types
// that cannot be a single field. A char has no code of its own there: ADIOS2
// declares a 1-byte integer.
func scalarType(t Type) (typ string, size, align int) {
	switch t {
	case Int8, Char:
		return "integer", 1, 1
	case Int16:
		return "integer", 2, 2
	case Int32:
		return "integer", 4, 4
	case Int64:
		return "integer", 8, 8
	case Uint8:
		return "unsigned integer", 1, 1
	case Uint16:
		return "unsigned integer", 2, 2
	case Uint32:
		return "unsigned integer", 4, 4
	case Uint64:
		return "unsigned integer", 8, 8
	case Float:
		return "float", 4, 4
	case Double:
		return "float", 8, 8
	case LongDouble:
		return "float", 16, 16
	case ComplexFloat:
		return complex4Name, 8, 4
	case ComplexDouble:
		return complex8Name, 16, 8
	case String:
		return "string", slotSize, slotSize
	}
	return "", 0, 1
}

// complexStruct returns the sub-struct that stands for a complex number.
func complexStruct(name string) ffs.Struct {
	part := 4 // bytes of the real and of the imaginary part
	if name == complex8Name {
		part = 8
	}
	return ffs.Struct{Name: name, RecordLen: 2 * part, Align: part, Fields: []ffs.Field{
		{Name: "real", Type: "float", Size: part, Offset: 0},
		{Name: "imag", Type: "float", Size: part, Offset: part},
	}}
}

// checkName refuses names that cannot stand in a description: its strings are
// NUL-terminated.
func checkName(name string) error {
	switch {
	case name == "":
		return fmt.Errorf("empty name: %w", ErrEncode)
	case len(name) > maxNameLen:
		return fmt.Errorf("name of %d bytes, limit %d: %w", len(name), maxNameLen, ErrEncode)
	case strings.IndexByte(name, 0) >= 0:
		return fmt.Errorf("name %q holds a NUL byte: %w", name, ErrEncode)
	}
	return nil
}

// roundUp rounds up to any multiple, not only to powers of two.
func roundUp(n, to int) int { return (n + to - 1) / to * to }
