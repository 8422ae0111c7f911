package step_test

import (
	"encoding/binary"
	"testing"

	"github.com/weft-fabric/weft/internal/testutil"
	"github.com/weft-fabric/weft/step"
)

// F54: a block beyond 2 GiB, which 32-bit sizes and single system calls cut. It
// takes 2 GiB of memory for the block and little for what is read of it; an ordinary
// run makes do with 32 MiB.
func TestSoakLargeBlockF54(t *testing.T) {
	size := testutil.Count(t, 32<<20, 2<<30+1<<20)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	e := step.NewEncoder(step.EncoderConfig{})
	small, err := e.Define("small", step.Int32, step.GlobalArray(3))
	must(err)
	d, err := e.Define("large", step.Uint8, step.GlobalArray(uint64(size)))
	must(err)
	var store step.HeapStore
	must(e.Begin(&store))
	must(step.PutSlice(e, small, step.All, []int32{1, 2, 3}))
	mem, err := step.SpanSlice[uint8](e, d, step.All)
	must(err)
	for i := 0; i < size; i += 8 {
		binary.LittleEndian.PutUint64(mem[i:], uint64(i))
	}
	must(step.PutSlice(e, small, step.All, []int32{4, 5, 6})) // behind it
	out, err := e.End()
	must(err)
	dec := step.NewDecoder(step.DecoderConfig{})
	for _, f := range out.Formats {
		must(dec.AddFormat(f.ID, f.Body))
	}
	st, err := dec.Step(0, [][]byte{out.Metadata}, stores{&store}, nil)
	must(err)
	v, err := step.Lookup[uint8](st, "large")
	must(err)
	if b := v.Block(0); b.Size != uint64(size) {
		t.Fatalf("block of %d bytes", b.Size)
	}
	const part = 1 << 20
	half := uint64(size-part) &^ (part - 1) // 2 GiB at full size
	for _, at := range []uint64{0, half - part/2, half, uint64(size - part)} {
		got, err := v.Get(t.Context(), step.Box{Start: []uint64{at}, Count: []uint64{part}}, nil)
		must(err)
		for i := 0; i < part; i += 8 {
			if n := binary.LittleEndian.Uint64(got[i:]); n != at+uint64(i) {
				t.Fatalf("at %d: %d", at+uint64(i), n)
			}
		}
	}
	whole, err := v.Get(t.Context(), step.All, nil)
	must(err)
	for i := 0; i < size; i += 8 {
		if n := binary.LittleEndian.Uint64(whole[i:]); n != uint64(i) {
			t.Fatalf("of the whole at %d: %d", i, n)
		}
	}
	s, err := step.Lookup[int32](st, "small")
	must(err)
	if got, err := s.Get(t.Context(), step.BlockIndex(1), nil); err != nil || got[2] != 6 {
		t.Errorf("behind the large block: %v, %v", got, err)
	}
}
