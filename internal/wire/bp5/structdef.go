package bp5

import (
	"fmt"

	"github.com/weft-fabric/weft/internal/wire/ffs"
)

// StructDef describes the elements of a variable of type Struct. It is a format of its own, named in the variable's field
// name by its id (docs/wire/bp5.md §2.1).
type StructDef struct {
	Name   string
	Size   int // bytes of one element
	Fields []StructMember
}

// StructMember is one member of a StructDef.
type StructMember struct {
	Name   string
	Type   Type // None for a type that BP5 does not know
	Offset int
	Count  int // elements of a fixed array, 1 for a single value
}

// ParseStruct reads the description of struct elements off their format.
func ParseStruct(f *ffs.Format) (StructDef, error) {
	top, types := &f.Structs()[0], f.Types(0)
	d := StructDef{Name: top.Name, Size: top.RecordLen, Fields: make([]StructMember, len(top.Fields))}
	for i := range top.Fields {
		field, t := &top.Fields[i], types[i]
		// Elements are copied as plain bytes: an offset in one would point nowhere.
		if t.Pointer || t.Dynamic() || t.Kind == ffs.String {
			return StructDef{}, fmt.Errorf("bp5: struct %q: member %q of type %q is not stored in place: %w", clip(d.Name), clip(field.Name), clip(field.Type), ErrBadRecord)
		}
		m := StructMember{Name: field.Name, Offset: field.Offset, Count: 1}
		m.Type, _ = valueType(t, field.Size)
		for _, dim := range t.Dims {
			m.Count *= dim.Const // the format was checked: the product fits the record
		}
		d.Fields[i] = m
	}
	return d, nil
}
