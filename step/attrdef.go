package step

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/weft-fabric/weft/internal/shmem"
	"github.com/weft-fabric/weft/internal/wire/bp5"
)

// AttributeDef is an attribute on the writing side: a name and one value, or an
// array of values, of any element type but Struct. It is immutable; make it with
// [NewAttribute], [NewAttributeArray] or [RawAttribute]. An attribute of a
// variable is named "variable/attribute" by custom.
type AttributeDef struct{ wire bp5.Attr }

// NewAttribute returns an attribute of one value. Names and strings hold no NUL
// bytes; [Encoder.SetAttribute] checks that.
func NewAttribute[T Element](name string, v T) AttributeDef {
	return newAttribute(name, []T{v}, false)
}

// NewAttributeArray returns an attribute that is an array, of one element too,
// and of none. vs is copied.
func NewAttributeArray[T Element](name string, vs []T) AttributeDef {
	return newAttribute(name, vs, true)
}

// newAttribute copies the values: an AttributeDef outlives the call it was
// made for, because every record repeats all attributes.
func newAttribute[T Element](name string, vs []T, array bool) AttributeDef {
	a := bp5.Attr{Name: name, Type: bp5.Type(TypeOf[T]()), Array: array}
	if s, ok := any(vs).([]string); ok {
		a.Strings = slices.Clone(s)
	} else {
		a.Data = bytes.Clone(shmem.Bytes(vs))
	}
	return AttributeDef{a}
}

// RawAttribute returns an attribute of a type that is known only at run time:
// data holds its elements in native bytes, one if array is false. It is not for
// strings. data is copied; [Encoder.SetAttribute] checks its length.
func RawAttribute(name string, t Type, array bool, data []byte) AttributeDef {
	return AttributeDef{bp5.Attr{Name: name, Type: bp5.Type(t), Array: array, Data: bytes.Clone(data)}}
}

// Name returns the attribute's name.
func (a AttributeDef) Name() string { return a.wire.Name }

// Type returns the element type.
func (a AttributeDef) Type() Type { return Type(a.wire.Type) }

// IsArray reports whether the attribute is an array.
func (a AttributeDef) IsArray() bool { return a.wire.Array }

// attributeSet is what one encoder knows of attributes: the values to send, and
// the record that readers have.
type attributeSet struct {
	old     bool // the old style
	list    []bp5.Attr
	index   map[string]int
	changed bool
	record  []byte
}

// newAttributeSet returns an empty set that writes the old or the generic
// style.
func newAttributeSet(old bool) attributeSet {
	return attributeSet{old: old, index: map[string]int{}}
}

// set adds or changes an attribute.
func (s *attributeSet) set(a AttributeDef) error {
	if err := s.check(a.wire); err != nil {
		return fmt.Errorf("attribute %q: %w: %w", a.wire.Name, err, ErrDefinition)
	}
	i, known := s.index[a.wire.Name]
	if !known {
		s.index[a.wire.Name] = len(s.list)
		s.list = append(s.list, a.wire)
		s.changed = true
		return nil
	}
	was := s.list[i]
	if was.Type != a.wire.Type || was.Array != a.wire.Array {
		return fmt.Errorf("attribute %q: %s after %s: %w: %w", a.wire.Name, describe(a.wire), describe(was), ErrType, ErrDefinition)
	}
	if !bytes.Equal(was.Data, a.wire.Data) || !slices.Equal(was.Strings, a.wire.Strings) {
		s.list[i], s.changed = a.wire, true
	}
	return nil
}

// check reports what the set's style cannot express.
func (s *attributeSet) check(a bp5.Attr) error {
	if s.old {
		return a.CheckOldStyle()
	}
	return a.Check()
}

// describe names the type of an attribute in errors.
func describe(a bp5.Attr) string {
	if a.Array {
		return "array of " + Type(a.Type).String()
	}
	return Type(a.Type).String()
}

// output returns the record of all attributes and its format, nil if readers
// have it already.
func (s *attributeSet) output() ([]byte, *FormatBlock, error) {
	if !s.changed {
		return nil, nil, nil
	}
	b, f, err := s.encode()
	if err != nil {
		return nil, nil, err
	}
	s.record, s.changed = b, false
	return b, f, nil
}

// encode makes the record of all attributes, not of those that changed:
// ADIOS2's SST readers forget what is not in the newest one (docs/wire/bp5.md
// §4.3).
func (s *attributeSet) encode() ([]byte, *FormatBlock, error) {
	if s.old {
		b, f, err := bp5.AppendOldAttributes(nil, s.list)
		if err != nil {
			return nil, nil, err
		}
		return b, &FormatBlock{ID: f.ID(), Body: f.Body()}, nil
	}
	f, err := bp5.GenericAttributesFormat()
	if err != nil {
		return nil, nil, err
	}
	b, err := bp5.AppendGenericAttributes(nil, s.list)
	return b, &FormatBlock{ID: f.ID(), Body: f.Body()}, err
}
