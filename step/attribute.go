package step

import (
	"fmt"

	"github.com/weft-fabric/weft/internal/shmem"
	"github.com/weft-fabric/weft/internal/wire/bp5"
)

// Attribute is a named value, or an array of values, that belongs to the whole
// stream or file. It is immutable.
type Attribute struct{ wire bp5.Attr }

// Name returns the attribute's name.
func (a *Attribute) Name() string { return a.wire.Name }

// Type returns the element type.
func (a *Attribute) Type() Type { return Type(a.wire.Type) }

// IsArray reports whether the attribute is an array; one of one element is one.
func (a *Attribute) IsArray() bool { return a.wire.Array }

// Len returns the number of elements, 0 if the type is not known.
func (a *Attribute) Len() int {
	if a.Type() == String {
		return len(a.wire.Strings)
	}
	if size := a.Type().Size(); size > 0 {
		return len(a.wire.Data) / size
	}
	return 0
}

// Bytes returns the elements in native bytes, nil for strings. Read only.
func (a *Attribute) Bytes() []byte { return a.wire.Data }

// Strings returns the elements of a string attribute, nil for others. Read
// only.
func (a *Attribute) Strings() []string { return a.wire.Strings }

// Value returns the attribute as a value of its Go type: float64, []float64,
// string, []string and so on; the raw []byte if the type is not known.
func (a *Attribute) Value() any {
	if a.wire.Array {
		return a.slice()
	}
	if a.Type() == String {
		return a.wire.Strings[0]
	}
	if v := scalar(a.Type(), a.wire.Data); v != nil {
		return v
	}
	return a.wire.Data
}

// slice returns the elements as a slice of their Go type, the raw bytes if
// that is not known.
func (a *Attribute) slice() any {
	switch a.Type() {
	case Int8:
		return sliceOf[int8](a)
	case Int16:
		return sliceOf[int16](a)
	case Int32:
		return sliceOf[int32](a)
	case Int64:
		return sliceOf[int64](a)
	case Uint8:
		return sliceOf[uint8](a)
	case Uint16:
		return sliceOf[uint16](a)
	case Uint32:
		return sliceOf[uint32](a)
	case Uint64:
		return sliceOf[uint64](a)
	case Float32:
		return sliceOf[float32](a)
	case Float64:
		return sliceOf[float64](a)
	case LongDouble:
		return sliceOf[Float80](a)
	case Complex64:
		return sliceOf[complex64](a)
	case Complex128:
		return sliceOf[complex128](a)
	case String:
		return sliceOf[string](a)
	case CharType:
		return sliceOf[Char](a)
	}
	return a.wire.Data
}

// sliceOf copies the elements.
func sliceOf[T Element](a *Attribute) []T {
	// A copy: the attribute's bytes lie anywhere in a record, and are everybody's.
	list := make([]T, a.Len())
	if s, ok := any(list).([]string); ok {
		copy(s, a.wire.Strings)
		return list
	}
	copy(shmem.Bytes(list), a.wire.Data)
	return list
}

// AttributeValue returns the value of an attribute that has just one element.
// It fails with [ErrType] if that is not a T.
func AttributeValue[T Element](a *Attribute) (T, error) {
	var zero T
	list, err := AttributeSlice[T](a)
	if err != nil {
		return zero, err
	}
	if len(list) != 1 {
		return zero, fmt.Errorf("step: attribute %q has %d elements, not one: %w", a.Name(), len(list), ErrType)
	}
	return list[0], nil
}

// AttributeSlice returns a copy of the elements of an attribute, one of a
// single value. It fails with [ErrType] if they are not T's.
func AttributeSlice[T Element](a *Attribute) ([]T, error) {
	if want := TypeOf[T](); a.Type() != want {
		return nil, fmt.Errorf("step: attribute %q is %v, not %v: %w", a.Name(), a.Type(), want, ErrType)
	}
	return sliceOf[T](a), nil
}

// LookupAttribute returns the attribute of that name, or an error that wraps
// [ErrNoAttribute].
func LookupAttribute(s *Step, name string) (*Attribute, error) {
	if a, ok := s.Attribute(name); ok {
		return a, nil
	}
	all := s.Attributes()
	help := hint(name, len(all), func(i int) string { return all[i].Name() })
	return nil, fmt.Errorf("step %d: attribute %q%s: %w", s.number, name, help, ErrNoAttribute)
}
