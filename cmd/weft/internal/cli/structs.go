package cli

import (
	"encoding/binary"
	"math"
	"strconv"

	"github.com/weft-fabric/weft/step"
)

// appendStruct appends one struct element: {"a":1,"b":[1,2]} in JSON and
// {a: 1, b: [1, 2]} for people.
func appendStruct(b []byte, st *step.StructType, raw []byte, s style) []byte {
	sep, colon := ", ", ": "
	if s == jsonStyle {
		sep, colon = ",", ":"
	}
	b = append(b, '{')
	for i, f := range st.Fields {
		if i > 0 {
			b = append(b, sep...)
		}
		if s == jsonStyle {
			b = appendJSONString(b, f.Name)
		} else {
			b = append(b, printable(f.Name)...)
		}
		b = appendField(append(b, colon...), f, raw, s, sep)
	}
	return append(b, '}')
}

func appendField(b []byte, f step.StructField, raw []byte, s style, sep string) []byte {
	if f.Count == 1 {
		return appendScalar(b, f.Type, raw[f.Offset:], s)
	}
	b = append(b, '[')
	for i := range f.Count {
		if i > 0 {
			b = append(b, sep...)
		}
		b = appendScalar(b, f.Type, raw[f.Offset+i*f.Type.Size():], s)
	}
	return append(b, ']')
}

// appendScalar appends the element at the front of raw, which holds it.
func appendScalar(b []byte, t step.Type, raw []byte, s style) []byte {
	le := binary.LittleEndian
	f32 := func(at int) float64 { return float64(math.Float32frombits(le.Uint32(raw[at:]))) }
	f64 := func(at int) float64 { return math.Float64frombits(le.Uint64(raw[at:])) }
	switch t {
	case step.Int8:
		return strconv.AppendInt(b, int64(int8(raw[0])), 10)
	case step.Int16:
		return strconv.AppendInt(b, int64(int16(le.Uint16(raw))), 10)
	case step.Int32:
		return strconv.AppendInt(b, int64(int32(le.Uint32(raw))), 10)
	case step.Int64:
		return strconv.AppendInt(b, int64(le.Uint64(raw)), 10)
	case step.Uint8:
		return strconv.AppendUint(b, uint64(raw[0]), 10)
	case step.Uint16:
		return strconv.AppendUint(b, uint64(le.Uint16(raw)), 10)
	case step.Uint32:
		return strconv.AppendUint(b, uint64(le.Uint32(raw)), 10)
	case step.Uint64:
		return strconv.AppendUint(b, le.Uint64(raw), 10)
	case step.Float32:
		return s.float(b, f32(0), 32)
	case step.Float64:
		return s.float(b, f64(0), 64)
	case step.LongDouble:
		return s.float80(b, step.Float80(raw[:16]))
	case step.Complex64:
		return s.complex(b, complex(f32(0), f32(4)), 32)
	case step.Complex128:
		return s.complex(b, complex(f64(0), f64(8)), 64)
	case step.CharType:
		return s.char(b, step.Char(raw[0]))
	}
	return append(b, "null"...)
}
