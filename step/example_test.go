package step_test

import (
	"context"
	"fmt"
	"log"

	"github.com/weft-fabric/weft/step"
)

// Reading a step, wherever it comes from: a stream or a file.
func Example() {
	st := exampleStep()
	defer st.End()
	ctx := context.Background()

	t, err := step.Lookup[float64](st, "T")
	if err != nil {
		log.Fatal(err)
	}
	row, err := t.Get(ctx, step.Box{Start: []uint64{1, 0}, Count: []uint64{1, 3}}, nil)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(t.Shape(), row)

	// With a border of ghost cells around it, and what is missing counted.
	var missing uint64
	ghost := make([]float64, 4*5)
	_, err = t.Get(ctx, step.Selection{Memory: &step.Memory{Shape: []uint64{4, 5}, Start: []uint64{1, 1}}, Missing: &missing}, ghost)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(ghost[5:10], missing)

	_, err = step.Lookup[float32](st, "T")
	fmt.Println(err)
	// Output:
	// [2 3] [3 4 5]
	// [0 0 1 2 0] 0
	// step 7: variable "T" is double, not float: wrong element type
}

// Writing a step: computing into the step's own memory saves a copy.
func ExampleEncoder() {
	enc := step.NewEncoder(step.EncoderConfig{Stats: true})
	pool := step.NewHeapPool(1 << 30) // what all steps in flight may hold
	t, err := enc.Define("T", step.Float64, step.GlobalArray(4))
	succeed(err)
	succeed(enc.SetAttribute(step.NewAttribute("T/unit", "K")))

	store := pool.NewStore() // one for each step that readers may still need
	succeed(enc.Begin(store))
	mem, err := step.SpanSlice[float64](enc, t, step.All)
	succeed(err)
	for i := range mem {
		mem[i] = 273.15 + float64(i)
	}
	out, err := enc.End()
	succeed(err)
	fmt.Println(len(out.Formats), "formats,", out.DataSize, "bytes of data")

	// The next step of the same variables needs no new format.
	store.Reset()
	succeed(enc.Begin(store))
	succeed(step.PutSlice(enc, t, step.All, make([]float64, 4)))
	out, err = enc.End()
	succeed(err)
	fmt.Println(len(out.Formats), "formats,", out.DataSize, "bytes of data")
	// Output:
	// 2 formats, 32 bytes of data
	// 0 formats, 32 bytes of data
}

// exampleStep makes a step with a 2x3 array of 0 to 5 in it.
func exampleStep() *step.Step {
	enc := step.NewEncoder(step.EncoderConfig{})
	store := step.NewHeapPool(0).NewStore()
	d, err := enc.Define("T", step.Float64, step.GlobalArray(2, 3))
	succeed(err)
	succeed(enc.Begin(store))
	succeed(step.PutSlice(enc, d, step.All, []float64{0, 1, 2, 3, 4, 5}))
	out, err := enc.End()
	succeed(err)
	dec := step.NewDecoder(step.DecoderConfig{})
	for _, f := range out.Formats {
		succeed(dec.AddFormat(f.ID, f.Body))
	}
	st, err := dec.Step(7, [][]byte{out.Metadata}, oneRank{store}, nil)
	succeed(err)
	return st
}

func succeed(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

// oneRank is the source of a step of one writer, in this process.
type oneRank struct{ store *step.HeapStore }

func (o oneRank) Read(_ context.Context, pieces []step.Piece) error {
	for _, p := range pieces {
		parts, err := o.store.Slices(p.Offset, uint64(len(p.Dst)))
		if err != nil {
			return err
		}
		for dst := p.Dst; len(parts) > 0; parts = parts[1:] {
			dst = dst[copy(dst, parts[0]):]
		}
	}
	return nil
}
