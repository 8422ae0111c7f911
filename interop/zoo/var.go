package zoo

import (
	"fmt"
	"reflect"
	"slices"
)

// Kinds of variables, in ADIOS2's words.
const (
	GlobalValue = "global value"
	LocalValue  = "local value"
	GlobalArray = "global array"
	LocalArray  = "local array"
	JoinedArray = "joined array"
)

// JoinedDim stands for the joined dimension in the shape of a joined array.
const JoinedDim = ^uint64(1)

// Var is one variable of the table.
type Var struct {
	Name string
	Type string // ADIOS2's name as a reader sees it, for example "double", "int8_t", "float complex"
	Kind string // one of the constants above

	// WeftOnly marks what ADIOS2's Python interface cannot write: arrays of
	// int8_t, which it turns into char.
	WeftOnly bool
	// WeftReads marks what a reader of ADIOS2 2.10.2 must not read: global
	// values that are put by another rank in each step. It takes them from the
	// first rank that ever put them, written or not: zero, or a crash for a
	// string. Never set for one rank.
	WeftReads bool

	layout   layout
	constant any // the data of every block, instead of the formula
}

// Block is one Put.
type Block struct {
	Rank  int
	Index int // number in the formula; not always the order of the Puts
	// Start is nil for values, local and joined arrays; Count is nil for values.
	Start, Count []uint64
	// Data is a slice with one Go element for each element, row-major: int8 for
	// "int8_t" and "char", float64 for "long double", string for "string", and
	// the obvious types for the others. It is nil in what [layout] makes.
	Data any
}

// layout gives shape and blocks, in rank order and in the order of the Puts, of
// one step. No blocks: the variable is not in the step.
type layout func(step, ranks int) (shape []uint64, blocks []Block)

// Vars returns all variables in the order of the Puts, as written by a cohort
// of that many ranks.
func Vars(ranks int) []Var {
	vars := table()
	for i := range vars {
		vars[i].WeftReads = vars[i].WeftReads && ranks > 1
	}
	return vars
}

// Lookup returns the variable of that name.
func Lookup(name string) (Var, bool) {
	vars := table()
	i := slices.IndexFunc(vars, func(v Var) bool { return v.Name == name })
	if i < 0 {
		return Var{}, false
	}
	return vars[i], true
}

// Shape returns the dimensions that a writer declares in a step: nil for values
// and local arrays, [JoinedDim] in one dimension of a joined array.
func (v Var) Shape(step, ranks int) []uint64 {
	shape, _ := v.layout(step, ranks)
	return shape
}

// Blocks returns all Puts of a step with their data, in rank order; empty if
// the variable is not in the step.
func (v Var) Blocks(step, ranks int) []Block {
	_, blocks := v.layout(step, ranks)
	for i := range blocks {
		blocks[i].Data = v.data(step, blocks[i])
	}
	return blocks
}

// RankBlocks returns the Puts of one rank.
func (v Var) RankBlocks(step, ranks, rank int) []Block {
	return slices.DeleteFunc(v.Blocks(step, ranks), func(b Block) bool { return b.Rank != rank })
}

// Expect returns what a reader sees as the whole: a global value as one
// element with nil shape, a local value as an array with one element for each
// rank, arrays row-major with zeros where nobody wrote. Local arrays have no
// whole: data is nil, see [Var.Blocks].
func (v Var) Expect(step, ranks int) (shape []uint64, data any, present bool) {
	shape, _ = v.layout(step, ranks)
	blocks := v.Blocks(step, ranks)
	if len(blocks) == 0 {
		return nil, nil, false
	}
	switch v.Kind {
	case GlobalValue:
		return nil, blocks[0].Data, true
	case LocalArray:
		return nil, nil, true
	case LocalValue:
		shape, blocks = joinValues(blocks)
	case JoinedArray:
		shape, blocks = join(shape, blocks)
	}
	return shape, assemble(v.Type, shape, blocks), true
}

// Expect is [Var.Expect] for the variable of that name.
func Expect(name string, step, ranks int) (shape []uint64, data any, present bool) {
	v, ok := Lookup(name)
	if !ok {
		panic(fmt.Sprintf("zoo: no variable %q", name))
	}
	return v.Expect(step, ranks)
}

func (v Var) data(step int, b Block) any {
	if v.constant != nil {
		return v.constant
	}
	rank := b.Rank
	if v.Kind == GlobalValue {
		rank = 0 // all ranks put the same
	}
	return values(v.Type, number(step, rank, b.Index), product(b.Count))
}

// join lays blocks end to end along the joined dimension.
func join(shape []uint64, blocks []Block) ([]uint64, []Block) {
	shape, blocks = slices.Clone(shape), slices.Clone(blocks)
	dim := slices.Index(shape, JoinedDim)
	var at uint64
	for i := range blocks {
		blocks[i].Start = make([]uint64, len(shape))
		blocks[i].Start[dim] = at
		at += blocks[i].Count[dim]
	}
	shape[dim] = at
	return shape, blocks
}

// joinValues makes an array of the local values of all ranks.
func joinValues(blocks []Block) ([]uint64, []Block) {
	blocks = slices.Clone(blocks)
	for i := range blocks {
		blocks[i].Start, blocks[i].Count = []uint64{uint64(i)}, []uint64{1}
	}
	return []uint64{uint64(len(blocks))}, blocks
}

// assemble copies the blocks into one array.
func assemble(typ string, shape []uint64, blocks []Block) any {
	total := product(shape)
	out := reflect.MakeSlice(reflect.TypeOf(values(typ, 0, 0)), total, total)
	for _, b := range blocks {
		if product(b.Count) == 0 {
			continue
		}
		src, row := reflect.ValueOf(b.Data), int(b.Count[len(b.Count)-1])
		for at := 0; at < src.Len(); at += row {
			to := offset(at, shape, b)
			reflect.Copy(out.Slice(to, to+row), src.Slice(at, at+row))
		}
	}
	return out.Interface()
}

// offset says where element i of a block lies in the array.
func offset(i int, shape []uint64, b Block) int {
	to, stride := 0, 1
	for d := len(shape) - 1; d >= 0; d-- {
		n := int(b.Count[d])
		to += (int(b.Start[d]) + i%n) * stride
		i /= n
		stride *= int(shape[d])
	}
	return to
}

func product(dims []uint64) int {
	n := 1
	for _, d := range dims {
		n *= int(d)
	}
	return n
}
