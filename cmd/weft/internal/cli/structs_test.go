package cli

import (
	"encoding/binary"
	"math"
	"testing"

	"github.com/weft-fabric/weft/step"
)

// Each type of a member is read with its own width and sign.
func TestAppendScalar(t *testing.T) {
	le := binary.LittleEndian
	minus := []byte{0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}
	pair32 := le.AppendUint32(le.AppendUint32(nil, math.Float32bits(1.5)), math.Float32bits(-2))
	pair64 := le.AppendUint64(le.AppendUint64(nil, math.Float64bits(1.5)), math.Float64bits(-2))
	one80 := append(le.AppendUint16(le.AppendUint64(nil, 1<<63), 0x3fff), make([]byte, 6)...)
	for _, c := range []struct {
		typ  step.Type
		raw  []byte
		want string
	}{
		{step.Int8, minus, "-2"},
		{step.Int16, minus, "-2"},
		{step.Int32, minus, "-2"},
		{step.Int64, minus, "-2"},
		{step.Uint8, minus, "254"},
		{step.Uint16, minus, "65534"},
		{step.Uint32, minus, "4294967294"},
		{step.Uint64, minus, "18446744073709551614"},
		{step.Float32, pair32, "1.5"},
		{step.Float64, pair64, "1.5"},
		{step.LongDouble, one80, "1"},
		{step.Complex64, pair32, "[1.5,-2]"},
		{step.Complex128, pair64, "[1.5,-2]"},
		{step.String, nil, "null"},
	} {
		if got := string(appendScalar(nil, c.typ, c.raw, jsonStyle)); got != c.want {
			t.Errorf("%v: %s, want %s", c.typ, got, c.want)
		}
	}
}
