package bp5_test

import (
	"fmt"

	"github.com/weft-fabric/weft/internal/wire/bp5"
)

// A writer rank's record of one step, and what a reader finds in it.
func Example() {
	enc := bp5.NewMetadataEncoder()
	x, err := enc.Add(bp5.VarDesc{Name: "x", Kind: bp5.GlobalArray, Type: bp5.Double, ElemSize: 8})
	if err != nil {
		panic(err)
	}
	enc.Begin()
	err = enc.SetArray(x, &bp5.ArrayMeta{
		Dims: 1, Blocks: 2, Shape: []uint64{6},
		Count: []uint64{2, 4}, Offset: []uint64{0, 2}, Location: []uint64{0, 16},
	})
	if err != nil {
		panic(err)
	}
	rec, err := enc.Append(nil, 48)
	if err != nil {
		panic(err)
	}

	// The format travels once, in front of the first record that needs it.
	f, err := enc.Format()
	if err != nil {
		panic(err)
	}
	schema, err := bp5.ParseSchema(f)
	if err != nil {
		panic(err)
	}
	m, err := schema.Metadata(rec)
	if err != nil {
		panic(err)
	}
	for i := m.Next(0); i >= 0; i = m.Next(i + 1) {
		a, err := m.Array(i)
		if err != nil {
			panic(err)
		}
		fmt.Println(m.Var(i).Name, a.Shape, a.Count, a.Location)
	}
	// Output: x [6] [2 4] [0 16]
}

// The index of a folder with one step of two writers, and where their data is.
func ExampleAppendRanges() {
	idx := bp5.WriterMap{Subfiles: 1, Subfile: []uint64{0, 0}}.Append(nil)
	idx = bp5.StepIndex{MetaLen: 200, Flushes: 1, Pieces: [][]bp5.Piece{
		{{Pos: 0, Size: 64}, {Pos: 128}},
		{{Pos: 64, Size: 64}, {Pos: 192}},
	}}.Append(idx)

	_, n, err := bp5.ParseIndexRecord(idx, 0)
	if err != nil {
		panic(err)
	}
	rec, _, err := bp5.ParseIndexRecord(idx[n:], 2)
	if err != nil {
		panic(err)
	}
	step := rec.(bp5.StepIndex)
	// The second writer's bytes 48 to 80: some were flushed early.
	at, err := bp5.AppendRanges(nil, step.Pieces[1], 48, 32)
	fmt.Println(at, err)
	// Output: [{112 16} {192 16}] <nil>
}
