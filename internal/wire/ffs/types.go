package ffs

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Kind is what one element of a field is.
type Kind uint8

// The kinds of the type strings of docs/wire/ffs.md §4.
const (
	Integer     Kind = iota + 1 // "integer", signed
	Unsigned                    // "unsigned integer" or "unsigned"
	Float                       // "float" or "double"
	Char                        // "char"
	String                      // "string", NUL-terminated
	Enumeration                 // "enumeration"
	Boolean                     // "boolean"
	Substruct                   // the name of a struct of the same format
)

var kindNames = [...]string{
	Integer: "integer", Unsigned: "unsigned integer", Float: "float", Char: "char",
	String: "string", Enumeration: "enumeration", Boolean: "boolean", Substruct: "struct",
}

// String returns the kind's type string, or "struct".
func (k Kind) String() string {
	if k == 0 || int(k) >= len(kindNames) {
		return "Kind(" + strconv.Itoa(int(k)) + ")"
	}
	return kindNames[k]
}

// baseKinds are the base names of type strings; they are compared without
// regard to case.
var baseKinds = [...]struct {
	name string
	kind Kind
}{
	{"integer", Integer}, {"unsigned integer", Unsigned}, {"unsigned", Unsigned},
	{"float", Float}, {"double", Float}, {"char", Char}, {"string", String},
	{"enumeration", Enumeration}, {"boolean", Boolean},
}

// Dim is one bracket of a type string.
type Dim struct {
	Const int // the number in the bracket; 0 if Field >= 0
	Field int // index of the counting field in the same struct, or -1
}

// Type is a parsed type string.
type Type struct {
	Kind    Kind
	Struct  string // name of the struct when Kind is Substruct
	Pointer bool   // "*T" or "(*T)[n]"
	Dims    []Dim  // in the order of the brackets; none for a plain value
}

// Dynamic reports whether the number of elements is in the record and not in
// the type, that is, whether the field is one slot that points at its elements.
func (t Type) Dynamic() bool {
	for _, d := range t.Dims {
		if d.Field >= 0 {
			return true
		}
	}
	return false
}

// parseType parses a type string. index finds a field of the same struct by
// name and returns -1 if there is none.
func parseType(s string, index func(name string) int) (Type, error) {
	t, brackets, err := parseBase(strings.TrimSpace(s))
	if err != nil {
		return Type{}, err
	}
	t.Dims, err = parseDims(brackets, index)
	if err != nil {
		return Type{}, fmt.Errorf("%w: type %q: %w", ErrFormat, clip(s), err)
	}
	return t, nil
}

// parseBase parses everything before the first bracket: "T", "*T" or "(*T)".
func parseBase(s string) (Type, string, error) {
	var t Type
	var base, rest string
	if inner, ok := strings.CutPrefix(s, "(*"); ok {
		t.Pointer = true
		if base, rest, ok = strings.Cut(inner, ")"); !ok {
			return t, "", fmt.Errorf("%w: type %q: no closing parenthesis", ErrFormat, clip(s))
		}
	} else if inner, ok := strings.CutPrefix(s, "*"); ok {
		t.Pointer, base = true, inner
	} else {
		n := strings.IndexByte(s, '[')
		if n < 0 {
			n = len(s)
		}
		base, rest = s[:n], s[n:]
	}
	base = strings.TrimSpace(base)
	if strings.ContainsAny(base, "*()[]") || base == "" {
		return t, "", fmt.Errorf("%w: type %q is outside the grammar", ErrFormat, clip(s))
	}
	t.Kind = baseKind(base)
	if t.Kind == Substruct {
		t.Struct = base
	} else if t.Pointer {
		return t, "", fmt.Errorf("%w: type %q: only structs can be pointed at", ErrFormat, clip(s))
	}
	return t, strings.TrimSpace(rest), nil
}

// baseKind returns the kind of a base name; a name that is no type is taken
// for that of a struct.
func baseKind(base string) Kind {
	for i := range baseKinds {
		if strings.EqualFold(base, baseKinds[i].name) {
			return baseKinds[i].kind
		}
	}
	return Substruct
}

// maxDims bounds the brackets of a type, as the counts of each are multiplied
// for every struct of a record. ADIOS2 itself has at most 32 dimensions.
const maxDims = 32

// parseDims parses the brackets. BP5 counts old-style array attributes by
// fields that are called after the attribute, so the name in a bracket may hold
// brackets itself: when a name is not known, everything up to the last bracket
// is tried as one name.
func parseDims(s string, index func(name string) int) ([]Dim, error) {
	var dims []Dim
	// From the left, each bracket up to the first that closes.
	for s != "" {
		if len(dims) == maxDims {
			return nil, fmt.Errorf("more than %d dimensions", maxDims)
		}
		if s[0] != '[' {
			return nil, fmt.Errorf("%q where a bracket should be", clip(s))
		}
		end := strings.IndexByte(s, ']')
		if end < 0 {
			return nil, fmt.Errorf("bracket %q does not close", clip(s))
		}
		d, err := parseDim(s[1:end], index)
		if err != nil && s[len(s)-1] == ']' {
			if i := index(s[1 : len(s)-1]); i >= 0 {
				return append(dims, Dim{Field: i}), nil
			}
		}
		if err != nil {
			return nil, err
		}
		dims = append(dims, d)
		s = s[end+1:]
	}
	return dims, nil
}

// parseDim parses what is in one bracket: a number, or the name of the field
// that counts. A number always is one, also if a field has that name.
func parseDim(s string, index func(name string) int) (Dim, error) {
	if s != "" && strings.Trim(s, "0123456789") == "" {
		n, err := strconv.ParseInt(s, 10, 32)
		if err != nil || n == 0 {
			return Dim{}, fmt.Errorf("dimension %q is not in 1..%d", clip(s), math.MaxInt32)
		}
		return Dim{Const: int(n), Field: -1}, nil
	}
	i := index(s)
	if i < 0 {
		return Dim{}, fmt.Errorf("no field %q to count the elements", clip(s))
	}
	return Dim{Field: i}, nil
}

// clip shortens names from outside for error texts: they may be as long as the
// input.
func clip(s string) string {
	const most = 80
	if len(s) <= most {
		return s
	}
	return s[:most] + "..."
}
