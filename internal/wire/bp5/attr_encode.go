package bp5

import (
	"fmt"
	"strings"
	"sync"

	"github.com/weft-fabric/weft/internal/wire/ffs"
)

// arrayCode is added to the type code in the name of a generic attribute when
// the attribute is an array (docs/wire/bp5.md §4.2).
const arrayCode = 18

// Sizes of the structs of the generic format (docs/wire/bp5.md §4.2).
const (
	genericAttrsLen = 4 * slotSize
	genericAttrLen  = 3 * slotSize
)

// elemCountSuffix ends the name of the length field of an old-style array;
// ADIOS2 looks for it without the underscore (docs/wire/bp5.md §4.1).
const elemCountSuffix = "ElemCount"

// GenericAttributesFormat returns the one format of generic attribute records,
// id 0200008d72b6d67f54032261 (docs/wire/bp5.md §1.2).
func GenericAttributesFormat() (*ffs.Format, error) { return genericFormat() }

var genericFormat = sync.OnceValues(func() (*ffs.Format, error) {
	f, err := ffs.New(
		ffs.Struct{Name: genericAttrsName, RecordLen: genericAttrsLen, Align: slotSize, Fields: []ffs.Field{
			{Name: "PrimAttrCount", Type: "integer", Size: slotSize, Offset: 0},
			{Name: "PrimAttrs", Type: primAttrName + "[PrimAttrCount]", Size: genericAttrLen, Offset: slotSize},
			{Name: "StrAttrCount", Type: "integer", Size: slotSize, Offset: 2 * slotSize},
			{Name: "StrAttrs", Type: strAttrName + "[StrAttrCount]", Size: genericAttrLen, Offset: 3 * slotSize},
		}},
		ffs.Struct{Name: strAttrName, RecordLen: genericAttrLen, Align: slotSize, Fields: []ffs.Field{
			{Name: "name", Type: "string", Size: slotSize, Offset: 0},
			{Name: "ElementCount", Type: "integer", Size: slotSize, Offset: slotSize},
			{Name: "Values", Type: "string[ElementCount]", Size: slotSize, Offset: 2 * slotSize},
		}},
		ffs.Struct{Name: primAttrName, RecordLen: genericAttrLen, Align: slotSize, Fields: []ffs.Field{
			{Name: "name", Type: "string", Size: slotSize, Offset: 0},
			{Name: "TotalElementSize", Type: "integer", Size: slotSize, Offset: slotSize},
			{Name: "Values", Type: "char[TotalElementSize]", Size: 1, Offset: 2 * slotSize},
		}},
	)
	if err != nil {
		return nil, fmt.Errorf("bp5: generic attribute format: %w", err)
	}
	return f, nil
})

// Check reports why a has no BP5 form, if it has none. The error wraps
// [ErrEncode].
func (a Attr) Check() error {
	if err := checkName(a.Name); err != nil {
		return fmt.Errorf("attribute: %w", err)
	}
	if a.Type == String {
		return a.checkStrings()
	}
	_, size, _ := scalarType(a.Type)
	switch {
	case size == 0:
		return fmt.Errorf("attribute %q of type %d: %w", a.Name, a.Type, ErrEncode)
	case len(a.Strings) != 0, len(a.Data)%size != 0, !a.Array && len(a.Data) != size:
		return fmt.Errorf("attribute %q of type %d: %d bytes, %d strings: %w", a.Name, a.Type, len(a.Data), len(a.Strings), ErrEncode)
	}
	return nil
}

// checkStrings is Check for strings, which end in NUL in a record.
func (a Attr) checkStrings() error {
	if len(a.Data) != 0 || !a.Array && len(a.Strings) != 1 {
		return fmt.Errorf("string attribute %q: %d bytes, %d strings: %w", a.Name, len(a.Data), len(a.Strings), ErrEncode)
	}
	for i, s := range a.Strings {
		if strings.IndexByte(s, 0) >= 0 {
			return fmt.Errorf("string attribute %q: string %d holds a NUL byte: %w", a.Name, i, ErrEncode)
		}
	}
	return nil
}

// AppendGenericAttributes appends a record of the generic format that holds
// attrs, in this order but numbers first.
//
// wire: record header | PrimAttrs | their names and values | StrAttrs
// | their names and values (docs/wire/bp5.md §4.2)
func AppendGenericAttributes(dst []byte, attrs []Attr) ([]byte, error) {
	f, err := GenericAttributesFormat()
	if err != nil {
		return dst, err
	}
	var prims, strs []Attr
	for _, a := range attrs {
		if err := a.Check(); err != nil {
			return dst, err
		}
		if a.Type == String {
			strs = append(strs, a)
		} else {
			prims = append(prims, a)
		}
	}
	r := newRecord(dst, f.ID(), genericAttrsLen)
	r.genericList(0, prims)
	r.genericList(2*slotSize, strs)
	return r.finish(), nil
}

// genericList writes the count at off, the list, and what its elements need.
func (r *recordWriter) genericList(off int, attrs []Attr) {
	if len(attrs) == 0 {
		return
	}
	// The list itself comes first, then what its elements point to, one by one.
	r.putWord(off, uint64(len(attrs)))
	r.pad()
	r.point(off + slotSize)
	at := len(r.b) - r.base
	r.b = appendZeros(r.b, len(attrs)*genericAttrLen)
	for _, a := range attrs {
		// The type and whether it is an array stand in front of the name.
		code := firstCode + byte(a.Type)
		if a.Array {
			code += arrayCode
		}
		r.text(at, string(code)+a.Name)
		if a.Type == String {
			r.putWord(at+slotSize, uint64(len(a.Strings)))
			r.texts(at+2*slotSize, a.Strings)
		} else {
			r.putWord(at+slotSize, uint64(len(a.Data)))
			r.bytes(at+2*slotSize, a.Data)
		}
		at += genericAttrLen
	}
}

// CheckOldStyle reports why the attribute cannot stand in an old-style record:
// string arrays have no form there, and some names break the field names that
// carry them (docs/wire/bp5.md §4.1, §7). The error wraps [ErrEncode].
func (a Attr) CheckOldStyle() error {
	if err := a.Check(); err != nil {
		return err
	}
	switch {
	case a.Array && a.Type == String:
		return fmt.Errorf("attribute %q: old-style records cannot carry string arrays: %w", a.Name, ErrEncode)
	case a.Array && strings.ContainsAny(a.Name, "[]"):
		return fmt.Errorf("attribute %q: old-style array names cannot hold brackets: %w", a.Name, ErrEncode)
	case strings.HasSuffix(a.Name, elemCountSuffix):
		return fmt.Errorf("attribute %q: old-style names cannot end in %s: %w", a.Name, elemCountSuffix, ErrEncode)
	}
	return nil
}

// AppendOldAttributes appends an old-style record that holds attrs, which must
// be all attributes there are: readers forget the others. Each set of attributes
// has its own format, returned too.
//
// A char array comes back as an array of int8: the format has no code for it.
func AppendOldAttributes(dst []byte, attrs []Attr) ([]byte, *ffs.Format, error) {
	return appendOldAttributes(dst, attrs, naturalOffset)
}

// appendOldAttributes takes the rule for offsets as an argument: the tests
// make ADIOS2's own records with it, gaps and all.
func appendOldAttributes(dst []byte, attrs []Attr, place func(int, *encField) int) ([]byte, *ffs.Format, error) {
	top := ffs.Struct{Name: oldAttrsName, Align: 1}
	subs := map[string]ffs.Struct{}
	add := func(f encField) {
		off := place(top.RecordLen, &f)
		top.Fields = append(top.Fields, ffs.Field{Name: f.name, Type: f.typ, Size: f.size, Offset: off})
		top.RecordLen, top.Align = off+f.width, max(top.Align, f.align)
	}
	for _, a := range attrs {
		if err := a.CheckOldStyle(); err != nil {
			return dst, nil, err
		}
		for _, f := range a.oldFields() {
			add(f)
		}
		if typ, _, _ := scalarType(a.Type); typ == complex4Name || typ == complex8Name {
			subs[typ] = complexStruct(typ)
		}
	}
	f, err := ffs.New(append([]ffs.Struct{top}, descending(subs)...)...)
	if err != nil {
		return dst, nil, fmt.Errorf("bp5: format of %d old-style attributes: %w", len(attrs), err)
	}
	b, err := appendOldRecord(dst, f, top, attrs)
	return b, f, err
}

// oldFields returns the one or two fields of an attribute.
func (a Attr) oldFields() []encField {
	typ, size, align := scalarType(a.Type)
	if !a.Array {
		name := fmt.Sprintf("%s%d_%d_%s", valuePrefix, size, a.Type, a.Name)
		return []encField{{name: name, typ: typ, size: size, width: size, align: align}}
	}
	// The count goes directly in front of its array: readers know the pair by that.
	name := arrayPrefix + a.Name
	count := name + elemCount
	return []encField{
		{name: count, typ: "integer", size: slotSize, width: slotSize, align: slotSize},
		{name: name, typ: typ + "[" + count + "]", size: size, width: slotSize, align: slotSize},
	}
}

// appendOldRecord writes the values into the fields of top. A format without
// strings and arrays has the short header without a length (docs/wire/ffs.md
// §5.1), as ADIOS2 writes it.
func appendOldRecord(dst []byte, f *ffs.Format, top ffs.Struct, attrs []Attr) ([]byte, error) {
	variant := false // whether anything needs a slot
	for _, a := range attrs {
		variant = variant || a.Array || a.Type == String
	}
	r := newFlatRecord(dst, f.ID(), top.RecordLen)
	if variant {
		r = newRecord(dst, f.ID(), top.RecordLen)
		r.pad()
	}
	i := 0
	for _, a := range attrs {
		off := top.Fields[i].Offset
		switch {
		case a.Array:
			_, size, _ := scalarType(a.Type)
			r.putWord(off, uint64(len(a.Data)/size))
			i++
			r.bytes(top.Fields[i].Offset, a.Data)
		case a.Type == String:
			r.text(off, a.Strings[0])
		default:
			copy(r.b[r.base+off:], a.Data)
		}
		i++
	}
	if !variant {
		return r.b, nil
	}
	return r.finish(), nil
}
