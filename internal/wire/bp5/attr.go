package bp5

import (
	"fmt"
	"strings"

	"github.com/weft-fabric/weft/internal/wire/ffs"
)

// Parts of the encodings (docs/wire/bp5.md §4).
const (
	elemCount   = "_" + elemCountSuffix // old: end of the name of the field that counts an array
	arrayPrefix = "BPG_"                // old: start of the names of both fields of an array
	valuePrefix = "BPg_"                // old: start of the name of a single attribute's field
	firstCode   = '0'                   // generic: the name begins with this plus the type code
)

// ParseAttributes reads the attribute record at the front of rec, which is of format f. Both encodings are understood.
// With replaceAll the record has all attributes that exist, without it those that were added or changed. The bytes of
// the attributes are those of rec.
func ParseAttributes(f *ffs.Format, rec []byte) (attrs []Attr, replaceAll bool, err error) {
	r, _, err := f.Record(rec)
	if err != nil {
		return nil, false, fmt.Errorf("bp5: attribute record: %w", err)
	}
	switch f.Name() {
	case oldAttrsName:
		attrs, err = parseOldAttrs(r.Top())
		return attrs, true, err
	case genericAttrsName:
		attrs, err = parseGenericAttrs(r.Top())
		return attrs, false, err
	}
	return nil, false, fmt.Errorf("bp5: attribute record of format %q: %w", clip(f.Name()), ErrBadRecord)
}

// parseOldAttrs reads one field for each single attribute and two for each array.
//
// wire: BPg_SIZE_TYPE_NAME | BPG_NAME_ElemCount integer, BPG_NAME TYPE[BPG_NAME_ElemCount] (docs/wire/bp5.md §4.1)
func parseOldAttrs(v ffs.View) ([]Attr, error) {
	attrs := make([]Attr, 0, v.NumFields())
	for i := 0; i < v.NumFields(); i++ {
		var a Attr
		var err error
		// Names are split by their ends: an attribute may be called anything in between.
		name := v.Field(i).Name
		base, counts := strings.CutSuffix(name, elemCount)
		switch {
		case counts && strings.HasPrefix(name, arrayPrefix) && v.Field(i+1).Name == base:
			i++ // the second field of the pair has the elements
			a, err = oldArrayAttr(v, i)
		case strings.HasPrefix(name, valuePrefix):
			a, err = oldSingleAttr(v, i)
		default:
			err = fmt.Errorf("no attribute's field: %w", ErrBadRecord)
		}
		if err != nil {
			return nil, fmt.Errorf("bp5: attribute record, field %q: %w", clip(name), err)
		}
		attrs = append(attrs, a)
	}
	return attrs, nil
}

// oldSingleAttr reads a field BPg_SIZE_TYPE_NAME. The type code in the name counts, not the field's own type: only the
// code tells char from int8. Strings are told by the field, which has a slot.
func oldSingleAttr(v ffs.View, i int) (a Attr, err error) {
	size, rest, ok1 := strings.Cut(v.Field(i).Name[len(valuePrefix):], "_")
	code, name, ok2 := strings.Cut(rest, "_")
	if _, err := parseDecimal(size, maxElemSize); !ok1 || !ok2 || err != nil {
		return a, fmt.Errorf("no element size and type: %w", ErrBadRecord)
	}
	t, err := parseDecimal(code, 255)
	if err != nil {
		return a, fmt.Errorf("type code %q: %w", clip(code), ErrBadRecord)
	}
	a = Attr{Name: name, Type: Type(t)}
	if v.Type(i).Kind == ffs.String {
		s, _, err := v.Text(i)
		a.Type, a.Strings = String, []string{s}
		return a, err
	}
	if a.Data, err = v.Raw(i); err != nil {
		return a, err
	}
	return a, a.check(len(a.Data) / max(a.Type.Size(), 1))
}

// oldArrayAttr reads the second field of an array, whose name has no type code: the type is what the field says, and
// char arrays come out as int8 (docs/wire/bp5.md §4.1).
func oldArrayAttr(v ffs.View, i int) (a Attr, err error) {
	a = Attr{Name: v.Field(i).Name[len(arrayPrefix):], Array: true}
	t, _ := valueType(v.Type(i), v.Field(i).Size)
	if a.Type = t; t == String {
		a.Strings, err = v.Texts(i)
		return a, err
	}
	if a.Data, err = v.Raw(i); err != nil {
		return a, err
	}
	return a, a.check(-1)
}

// parseGenericAttrs reads the two lists of the generic encoding.
//
// wire: PrimAttrCount | PrimAttrs {name, TotalElementSize, Values char[]} | StrAttrCount | StrAttrs {name, ElementCount,
// Values string[]} (docs/wire/bp5.md §4.2)
func parseGenericAttrs(v ffs.View) ([]Attr, error) {
	prims, err := v.Structs(v.Index("PrimAttrs"))
	if err != nil {
		return nil, fmt.Errorf("bp5: attribute record: %w", err)
	}
	strs, err := v.Structs(v.Index("StrAttrs"))
	if err != nil {
		return nil, fmt.Errorf("bp5: attribute record: %w", err)
	}
	attrs := make([]Attr, 0, len(prims)+len(strs))
	// One damaged attribute spoils the record: half a list would look like a whole one.
	for _, p := range append(prims, strs...) {
		a, err := genericAttr(p)
		if err != nil {
			return nil, fmt.Errorf("bp5: attribute record: attribute %q: %w", clip(a.Name), err)
		}
		attrs = append(attrs, a)
	}
	return attrs, nil
}

// genericAttr reads one PrimAttr or StrAttr. Its name begins with a type code (docs/wire/bp5.md §4.2). On an error the
// attribute has its name, if that was understood, for the error's text.
func genericAttr(v ffs.View) (a Attr, err error) {
	name, _, err := v.Text(v.Index("name"))
	if err != nil {
		return a, err
	}
	if name == "" || name[0] < firstCode {
		a.Name = name
		return a, fmt.Errorf("no type code in front of the name: %w", ErrBadRecord)
	}
	// Codes above arrayCode are arrays; arrayCode itself is no type.
	code := name[0] - firstCode
	a.Name, a.Array = name[1:], code > arrayCode
	if a.Array {
		code -= arrayCode
	}
	a.Type = Type(code)
	// Which of the two lists it stood in shows in the type of its values.
	values := v.Index("Values")
	if v.Type(values).Kind == ffs.String {
		if a.Strings, err = v.Texts(values); err != nil {
			return a, err
		}
		if a.Type != String || !a.Array && len(a.Strings) != 1 {
			return a, fmt.Errorf("%d strings under type code %d: %w", len(a.Strings), name[0]-firstCode, ErrBadRecord)
		}
		return a, nil
	}
	if a.Data, err = v.Raw(values); err != nil {
		return a, err
	}
	if a.Array {
		return a, a.check(-1)
	}
	return a, a.check(1)
}

// check compares the number of bytes with the type; elements is the number of elements if it is known, else negative.
// A type that BP5 does not know is passed on.
func (a *Attr) check(elements int) error {
	size := a.Type.Size()
	switch {
	case a.Type == String:
		return fmt.Errorf("numbers under the type of strings: %w", ErrBadRecord)
	case size == 0:
		return nil
	case len(a.Data)%size != 0 || elements >= 0 && len(a.Data) != elements*size || !a.Array && len(a.Data) != size:
		return fmt.Errorf("%d bytes of elements of %d: %w", len(a.Data), size, ErrBadRecord)
	}
	return nil
}
