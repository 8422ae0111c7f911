package bp5

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"github.com/weft-fabric/weft/internal/wire/ffs"
)

// NewStructFormat returns the format that describes the elements of a struct
// variable, members at their own offsets. VarDesc.StructID is
// its id, and the format travels as any other (docs/wire/bp5.md §2.1). The error
// wraps [ErrEncode] or an error of package ffs, which refuses overlaps.
func NewStructFormat(def StructDef) (*ffs.Format, error) {
	if err := checkName(def.Name); err != nil {
		return nil, fmt.Errorf("struct: %w", err)
	}
	top := ffs.Struct{Name: def.Name, RecordLen: def.Size, Align: 1}
	subs := map[string]ffs.Struct{}
	for _, m := range def.Fields {
		f, align, err := m.field()
		if err != nil {
			return nil, fmt.Errorf("struct %q: %w", def.Name, err)
		}
		if m.Type == ComplexFloat || m.Type == ComplexDouble {
			typ, _, _ := scalarType(m.Type)
			subs[typ] = complexStruct(typ)
		}
		top.Fields = append(top.Fields, f)
		top.Align = max(top.Align, align)
	}
	slices.SortStableFunc(top.Fields, func(a, b ffs.Field) int { return cmp.Compare(a.Offset, b.Offset) })
	f, err := ffs.New(append([]ffs.Struct{top}, descending(subs)...)...)
	if err != nil {
		return nil, fmt.Errorf("bp5: struct %q: %w", def.Name, err)
	}
	return f, nil
}

// field returns the member's field and its alignment. Arrays of constant size
// stand in place; strings would need a slot, and struct elements have none
// (docs/wire/bp5.md §1.3).
func (m StructMember) field() (ffs.Field, int, error) {
	typ, size, align := scalarType(m.Type)
	if err := checkName(m.Name); err != nil {
		return ffs.Field{}, 0, err
	}
	if size == 0 || m.Type == String || m.Count < 1 {
		return ffs.Field{}, 0, fmt.Errorf("member %q of type %d, %d elements: %w", m.Name, m.Type, m.Count, ErrEncode)
	}
	if m.Count > 1 {
		typ += "[" + strconv.Itoa(m.Count) + "]"
	}
	return ffs.Field{Name: m.Name, Type: typ, Size: size, Offset: m.Offset}, align, nil
}
