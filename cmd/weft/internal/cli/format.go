package cli

import (
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/weft-fabric/weft/step"
)

// style is a way to write elements.
type style int

const (
	textStyle  style = iota // for people, floats exact
	shortStyle              // for people, six digits as bpls
	jsonStyle               // for programs, see docs/cli.md
)

// appender returns the function that appends an element of type T. The type is
// looked at once, not for every element.
func appender[T step.Element](s style) func([]byte, T) []byte {
	var f any
	var zero T
	switch any(zero).(type) {
	case int8:
		f = appendInt[int8]
	case int16:
		f = appendInt[int16]
	case int32:
		f = appendInt[int32]
	case int64:
		f = appendInt[int64]
	case uint8:
		f = appendUint[uint8]
	case uint16:
		f = appendUint[uint16]
	case uint32:
		f = appendUint[uint32]
	case uint64:
		f = appendUint[uint64]
	case float32:
		f = func(b []byte, v float32) []byte { return s.float(b, float64(v), 32) }
	case float64:
		f = func(b []byte, v float64) []byte { return s.float(b, v, 64) }
	case complex64:
		f = func(b []byte, v complex64) []byte { return s.complex(b, complex128(v), 32) }
	case complex128:
		f = func(b []byte, v complex128) []byte { return s.complex(b, v, 64) }
	case step.Float80:
		f = s.float80
	case step.Char:
		f = s.char
	case string:
		f = s.string
	}
	return f.(func([]byte, T) []byte)
}

func appendInt[T int8 | int16 | int32 | int64](b []byte, v T) []byte {
	return strconv.AppendInt(b, int64(v), 10)
}

func appendUint[T uint8 | uint16 | uint32 | uint64](b []byte, v T) []byte {
	return strconv.AppendUint(b, uint64(v), 10)
}

// bplsDigits is the precision of C++ streams, which bpls prints with.
const bplsDigits = 6

func (s style) float(b []byte, v float64, bits int) []byte {
	if s == jsonStyle {
		if text := nonFinite(v); text != "" {
			return append(append(append(b, '"'), text...), '"')
		}
	}
	if s == shortStyle {
		return appendG(b, v)
	}
	return strconv.AppendFloat(b, v, 'g', -1, bits)
}

// appendG is C's %g: strconv keeps trailing zeros of a given precision.
func appendG(b []byte, v float64) []byte {
	text := strconv.FormatFloat(v, 'g', bplsDigits, 64)
	mantissa, exp, has := strings.Cut(text, "e")
	if strings.Contains(mantissa, ".") {
		mantissa = strings.TrimRight(strings.TrimRight(mantissa, "0"), ".")
	}
	b = append(b, mantissa...)
	if has {
		b = append(append(b, 'e'), exp...)
	}
	return b
}

// nonFinite is the name of a number that JSON does not have.
func nonFinite(v float64) string {
	switch {
	case math.IsNaN(v):
		return "NaN"
	case math.IsInf(v, 1):
		return "Inf"
	case math.IsInf(v, -1):
		return "-Inf"
	}
	return ""
}

func (s style) complex(b []byte, v complex128, bits int) []byte {
	if s == jsonStyle {
		b = s.float(append(b, '['), real(v), bits)
		return append(s.float(append(b, ','), imag(v), bits), ']')
	}
	b = s.float(append(b, '('), real(v), bits) // as bpls writes it
	return append(s.float(append(b, ",i"...), imag(v), bits), ')')
}

// float80 writes a long double with all its digits.
func (s style) float80(b []byte, v step.Float80) []byte {
	exact, finite := v.Big()
	if !finite || s == shortStyle {
		return s.float(b, v.Float64(), 64)
	}
	return exact.Append(b, 'g', -1)
}

func (s style) char(b []byte, v step.Char) []byte {
	if s == jsonStyle {
		return strconv.AppendInt(b, int64(int8(v)), 10)
	}
	if v >= ' ' && v < 0x7f {
		return append(b, byte(v))
	}
	return append(append(b, '\\'), strconv.FormatUint(uint64(v), 8)...)
}

func (s style) string(b []byte, v string) []byte {
	if s == jsonStyle {
		return appendJSONString(b, v)
	}
	return append(append(append(b, '"'), printable(v)...), '"')
}

// appendJSONString appends a string as JSON has it. Bytes that are not UTF-8
// become U+FFFD: JSON has no way to write them.
func appendJSONString(b []byte, s string) []byte {
	const hex = "0123456789abcdef"
	b = append(b, '"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b = append(b, '\\', byte(r))
		case r == '\n':
			b = append(b, `\n`...)
		case r == '\t':
			b = append(b, `\t`...)
		case r < ' ' || r >= 0x7f && r < 0xa0: // some terminals act on the latter, too
			b = append(b, `\u00`...)
			b = append(b, hex[r>>4], hex[r&15])
		default:
			b = utf8.AppendRune(b, r)
		}
	}
	return append(b, '"')
}

// appendAny appends a single value or the elements of a slice, separated by
// sep, of the Go types that step.Attribute.Value and Variable.Any return.
func appendAny(b []byte, v any, s style, sep string) []byte {
	switch v := v.(type) {
	case int8:
		return appendInt(b, v)
	case int16:
		return appendInt(b, v)
	case int32:
		return appendInt(b, v)
	case int64:
		return appendInt(b, v)
	case uint8:
		return appendUint(b, v)
	case uint16:
		return appendUint(b, v)
	case uint32:
		return appendUint(b, v)
	case uint64:
		return appendUint(b, v)
	case float32:
		return s.float(b, float64(v), 32)
	case float64:
		return s.float(b, v, 64)
	case complex64:
		return s.complex(b, complex128(v), 32)
	case complex128:
		return s.complex(b, v, 64)
	case step.Float80:
		return s.float80(b, v)
	case step.Char:
		return s.char(b, v)
	case string:
		return s.string(b, v)
	}
	return appendSlice(b, v, s, sep)
}

func appendSlice(b []byte, v any, s style, sep string) []byte {
	switch v := v.(type) {
	case []int8:
		return join(b, v, s, sep)
	case []int16:
		return join(b, v, s, sep)
	case []int32:
		return join(b, v, s, sep)
	case []int64:
		return join(b, v, s, sep)
	case []uint8:
		return join(b, v, s, sep)
	case []uint16:
		return join(b, v, s, sep)
	case []uint32:
		return join(b, v, s, sep)
	case []uint64:
		return join(b, v, s, sep)
	case []float32:
		return join(b, v, s, sep)
	case []float64:
		return join(b, v, s, sep)
	case []complex64:
		return join(b, v, s, sep)
	case []complex128:
		return join(b, v, s, sep)
	case []step.Float80:
		return join(b, v, s, sep)
	case []step.Char:
		return join(b, v, s, sep)
	case []string:
		return join(b, v, s, sep)
	}
	return b
}

// join appends elements with sep between them.
func join[T step.Element](b []byte, list []T, s style, sep string) []byte {
	put := appender[T](s)
	for i, v := range list {
		if i > 0 {
			b = append(b, sep...)
		}
		b = put(b, v)
	}
	return b
}
