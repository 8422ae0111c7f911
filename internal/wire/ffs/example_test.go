package ffs_test

import (
	"fmt"
	"log"

	"github.com/weft-fabric/weft/internal/wire/ffs"
)

// The reader tells a writer that it is done with a step.
func Example() {
	release, err := ffs.Ordered(ffs.Struct{Name: "ReleaseTimestep", RecordLen: 16, Fields: []ffs.Field{
		{Name: "WSR_Stream", Type: "integer", Size: 8, Offset: 0},
		{Name: "Timestep", Type: "integer", Size: 8, Offset: 8},
	}})
	if err != nil {
		log.Fatal(err)
	}
	b := release.NewRecord()
	b.SetInt(b.Index("WSR_Stream"), 0x1234)
	b.SetInt(b.Index("Timestep"), 7)
	rec, err := b.Append(nil)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(release.ID(), len(release.Body()), len(rec))

	// The writer knows the format by its body only.
	format, _, err := ffs.Parse(release.Body())
	if err != nil {
		log.Fatal(err)
	}
	r, _, err := format.Record(rec)
	if err != nil {
		log.Fatal(err)
	}
	v := r.Top()
	step, err := v.Int(v.Index("Timestep"))
	fmt.Println(v.Name(), step, err)
	// Output:
	// 020000210ee2118818d8303a 132 32
	// ReleaseTimestep 7 <nil>
}

// An array of pointers to structs, counted by another field.
func ExampleBuilder_SetStructs() {
	f, err := ffs.New(
		ffs.Struct{Name: "Cohort", RecordLen: 16, Fields: []ffs.Field{
			{Name: "Size", Type: "integer", Size: 4, Offset: 0},
			{Name: "Ranks", Type: "(*Rank)[Size]", Size: 8, Offset: 8},
		}},
		ffs.Struct{Name: "Rank", RecordLen: 8, Fields: []ffs.Field{
			{Name: "Contact", Type: "string", Size: 8, Offset: 0},
		}})
	if err != nil {
		log.Fatal(err)
	}
	b := f.NewRecord()
	var ranks []*ffs.Builder
	for _, contact := range []string{"here", "there"} {
		rank := b.Child("Rank")
		rank.SetText(0, contact)
		ranks = append(ranks, rank)
	}
	b.SetInt(0, int64(len(ranks)))
	b.SetStructs(1, ranks...)
	rec, err := b.Append(nil)
	if err != nil {
		log.Fatal(err)
	}

	r, _, err := f.Record(rec)
	if err != nil {
		log.Fatal(err)
	}
	list, err := r.Top().Structs(1)
	if err != nil {
		log.Fatal(err)
	}
	for _, rank := range list {
		contact, _, err := rank.Text(0)
		fmt.Println(contact, err)
	}
	// Output:
	// here <nil>
	// there <nil>
}
