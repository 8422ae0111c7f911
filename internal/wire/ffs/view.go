package ffs

import (
	"encoding/binary"
	"fmt"
	"math"
)

// View is one struct of a record. It is a small value and points into the bytes
// of the record; fields are asked for by index. The zero View is a NULL struct.
// An index that does not exist, or a method that does not fit the field's type,
// is ErrKind.
type View struct {
	body []byte  // the record after its header; offsets count from its start
	l    *layout // nil for NULL
	at   int     // the struct is body[at : at+l.size]
}

// IsNil reports whether the struct is a NULL pointer.
func (v View) IsNil() bool { return v.l == nil }

// Name returns the name of the struct, "" for NULL.
func (v View) Name() string {
	if v.l == nil {
		return ""
	}
	return v.l.desc.Name
}

// NumFields returns the number of fields, 0 for NULL.
func (v View) NumFields() int {
	if v.l == nil {
		return 0
	}
	return len(v.l.fields)
}

// Index returns the index of the field of that name, -1 if there is none.
func (v View) Index(name string) int {
	if v.l == nil {
		return -1
	}
	return v.l.find(name)
}

// Field returns the description of field i, the zero Field if there is none.
func (v View) Field(i int) Field {
	if i < 0 || i >= v.NumFields() {
		return Field{}
	}
	return v.l.desc.Fields[i]
}

// Type returns the parsed type of field i, the zero Type if there is none.
func (v View) Type(i int) Type {
	if i < 0 || i >= v.NumFields() {
		return Type{}
	}
	return v.l.types[i]
}

// field returns field i, or an error if there is none.
func (v View) field(i int) (*field, error) {
	if v.l == nil {
		return nil, ErrNil
	}
	if i < 0 || i >= len(v.l.fields) {
		return nil, fmt.Errorf("%w: no field %d in struct %q of %d fields", ErrKind, i, clip(v.l.desc.Name), len(v.l.fields))
	}
	return &v.l.fields[i], nil
}

// kindErr says that field i is not what the caller wants.
func (l *layout) kindErr(i int, want string) error {
	return l.fieldErr(i, fmt.Errorf("%w: %q is not %s", ErrKind, clip(l.desc.Fields[i].Type), want))
}

// Int returns a plain integer, unsigned integer, enumeration, boolean or char
// of 1, 2, 4 or 8 bytes. Unsigned integers and booleans are zero-extended, the
// others sign-extended; an unsigned integer of 2^63 and above comes out
// negative, with the same bits.
func (v View) Int(i int) (int64, error) {
	f, err := v.field(i)
	if err != nil {
		return 0, err
	}
	if !f.integer() {
		return 0, v.l.kindErr(i, "a plain integer")
	}
	return v.number(f), nil
}

// integer reports whether Int and SetInt work on the field.
func (f *field) integer() bool {
	return f.elem == atom && f.plain && f.kind != Float && intSize(f.size)
}

// Float returns a plain float of 4 or 8 bytes.
func (v View) Float(i int) (float64, error) {
	f, err := v.field(i)
	if err != nil {
		return 0, err
	}
	if !f.float() {
		return 0, v.l.kindErr(i, "a plain float of 4 or 8 bytes")
	}
	b := v.body[v.at+f.offset:]
	if f.size == 4 {
		return float64(math.Float32frombits(binary.LittleEndian.Uint32(b))), nil
	}
	return math.Float64frombits(binary.LittleEndian.Uint64(b)), nil
}

// float reports whether Float and SetFloat work on the field.
func (f *field) float() bool {
	return f.elem == atom && f.plain && f.kind == Float && (f.size == 4 || f.size == 8)
}

// Raw returns the bytes of numbers, chars or structs that hold no offsets: a
// field in place with its constant dimensions, or the whole body of a dynamic
// array, nil if that is NULL. The bytes are those of the record, not a copy.
func (v View) Raw(i int) ([]byte, error) {
	f, err := v.field(i)
	if err != nil {
		return nil, err
	}
	if !f.flat() {
		return nil, v.l.kindErr(i, "flat")
	}
	at, n, err := v.elements(f)
	if err != nil {
		return nil, v.l.fieldErr(i, err)
	}
	if f.dynamic && at == 0 {
		return nil, nil
	}
	end := at + n*f.size
	// In place, the last struct of a row may end before its declared size.
	if !f.dynamic {
		end = at + f.span()
	}
	return v.body[at:end:end], nil
}

// Count returns the number of elements of an array, all dimensions multiplied;
// 0 if it is dynamic and NULL, 1 if the field is no array.
func (v View) Count(i int) (int, error) {
	f, err := v.field(i)
	if err != nil {
		return 0, err
	}
	_, n, err := v.elements(f)
	if err != nil {
		return 0, v.l.fieldErr(i, err)
	}
	return n, nil
}

// Text returns a string; ok is false if it is NULL.
func (v View) Text(i int) (s string, ok bool, err error) {
	f, err := v.field(i)
	if err != nil {
		return "", false, err
	}
	if f.elem != text || !f.plain {
		return "", false, v.l.kindErr(i, "a plain string")
	}
	b, err := cstring(v.body, v.at+f.offset)
	if err != nil {
		return "", false, v.l.fieldErr(i, err)
	}
	return string(b), b != nil, nil
}

// Texts returns an array of strings, nil if it is NULL. A NULL in the array
// comes out as the empty string.
func (v View) Texts(i int) ([]string, error) {
	f, err := v.field(i)
	if err != nil {
		return nil, err
	}
	if f.elem != text || f.plain {
		return nil, v.l.kindErr(i, "an array of strings")
	}
	at, n, err := v.elements(f)
	if err != nil || n == 0 {
		return nil, v.wrap(i, err)
	}
	// The check of the record bounds what all strings take together.
	list := make([]string, n)
	for k := range list {
		b, err := cstring(v.body, at+k*slotSize)
		if err != nil {
			return nil, v.l.fieldErr(i, err)
		}
		list[k] = string(b)
	}
	return list, nil
}

// wrap adds the field to an error, if there is one.
func (v View) wrap(i int, err error) error {
	if err == nil {
		return nil
	}
	return v.l.fieldErr(i, err)
}

// Structs returns the structs of a field of type S, *S, S[n] or (*S)[n]; NULL
// pointers give NULL views, a NULL array gives none.
func (v View) Structs(i int) ([]View, error) {
	f, at, n, err := v.structs(i)
	if err != nil || n == 0 {
		return nil, err
	}
	list := make([]View, n)
	for k := range list {
		if list[k], err = v.element(f, at, k); err != nil {
			return nil, v.l.fieldErr(i, err)
		}
	}
	return list, nil
}

// Struct returns the struct of a field of type S or *S, without allocating.
func (v View) Struct(i int) (View, error) {
	f, at, _, err := v.structs(i)
	if err != nil {
		return View{}, err
	}
	if !f.plain {
		return View{}, v.l.kindErr(i, "a single struct")
	}
	sub, err := v.element(f, at, 0)
	return sub, v.wrap(i, err)
}

// At returns element k of what Structs returns, in constant time and without
// allocating.
func (v View) At(i, k int) (View, error) {
	f, at, n, err := v.structs(i)
	if err != nil {
		return View{}, err
	}
	if k < 0 || k >= n {
		return View{}, v.l.fieldErr(i, fmt.Errorf("%w: no element %d of %d", ErrKind, k, n))
	}
	sub, err := v.element(f, at, k)
	return sub, v.wrap(i, err)
}

// structs finds the elements of a field that leads to structs.
func (v View) structs(i int) (f *field, at, n int, err error) {
	if f, err = v.field(i); err != nil {
		return nil, 0, 0, err
	}
	if f.sub == nil {
		return nil, 0, 0, v.l.kindErr(i, "a struct")
	}
	at, n, err = v.elements(f)
	return f, at, n, v.wrap(i, err)
}

// element returns one struct of a row at the given offset.
func (v View) element(f *field, at, k int) (View, error) {
	at += k * f.size // no overflow: elements has put all of the row into the body
	if f.elem == structure {
		return View{v.body, f.sub, at}, nil
	}
	to, err := target(v.body, at, f.sub.size)
	if to == 0 || err != nil {
		return View{}, err
	}
	return View{v.body, f.sub, to}, nil
}
