package zoo

import (
	"math"
	"slices"
	"strings"
)

// Source says who wrote what is read, because ADIOS2 loses some attributes and
// its Python interface cannot write all variables.
type Source int

// Sources.
const (
	Weft         Source = iota // everything in the table, exactly
	ADIOS2File                 // a BP5 file of ADIOS2: nothing lost, no WeftOnly lines
	ADIOS2Stream               // an SST stream of ADIOS2: lost attributes besides (docs/wire/bp5.md §4.1)
)

// Attr is one attribute.
type Attr struct {
	Name   string
	Type   string // ADIOS2's name
	Single bool   // a single value, not an array of one
	// Value is a slice of Go elements as in [Block]; one element if Single.
	Value any
	// WeftOnly: ADIOS2's Python interface cannot write it.
	WeftOnly bool
}

// Attributes returns all attributes that exist in a step, sorted by name, as
// their writer defines them. "changed/" ones change in step 2, "late/" ones
// come in step 1.
func Attributes(step int) []Attr {
	var out []Attr
	single := func(name, typ string, value any) {
		out = append(out, Attr{Name: name, Type: typ, Single: true, Value: value})
	}
	array := func(name, typ string, value any) { out = append(out, Attr{Name: name, Type: typ, Value: value}) }
	for _, t := range types {
		single("attr/"+t.short, t.name, values(t.name, 42, 1))
		array("attrs/"+t.short, t.name, values(t.name, 40, 3))
	}
	single("attr/str", "string", []string{"hello é"})
	single("attr/empty", "string", []string{""})
	array("attrs/str", "string", []string{"one", "", "three é"})
	array("attrs/str1", "string", []string{"only"})
	array("attrs/one", "double", []float64{3.5})
	array("attrs/none", "double", []float64{})
	array("attrs/nostr", "string", []string{})
	single("array/f64/units", "string", []string{"m/s"})
	array("shape/rows/origin", "double", []float64{0.5, -1.5})
	array("special/attr", "double", []float64{math.NaN(), math.Inf(1), math.Inf(-1)})
	number, text := int32(1), "before"
	if step >= 2 {
		number, text = 2, "after"
	}
	single("changed/i32", "int32_t", []int32{number})
	single("changed/str", "string", []string{text})
	if step >= 1 {
		single("late/i32", "int32_t", []int32{1})
		single("late/str", "string", []string{"late"})
	}
	for i := range out {
		out[i].WeftOnly = out[i].Type == "int8_t"
	}
	slices.SortFunc(out, func(a, b Attr) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// AttributesFrom returns what arrives of [Attributes] from a writer. What an
// SST stream of ADIOS2 does to them: complex ones are not sent, a string array
// becomes one empty string, an array of char becomes one of int8_t.
func AttributesFrom(from Source, step int) []Attr {
	out := Attributes(step)
	if from == Weft {
		return out
	}
	out = slices.DeleteFunc(out, func(a Attr) bool { return a.WeftOnly })
	if from == ADIOS2File {
		return out
	}
	out = slices.DeleteFunc(out, func(a Attr) bool { return a.Type == "float complex" || a.Type == "double complex" })
	for i, a := range out {
		switch {
		case a.Single:
		case a.Type == "string":
			out[i] = Attr{Name: a.Name, Type: "string", Single: true, Value: []string{""}}
		case a.Type == "char":
			out[i].Type = "int8_t"
		}
	}
	return out
}
