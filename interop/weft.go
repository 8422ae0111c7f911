package interop

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"

	"github.com/weft-fabric/weft/internal/shmem"
	"github.com/weft-fabric/weft/interop/zoo"
	"github.com/weft-fabric/weft/sst"
	"github.com/weft-fabric/weft/step"
)

// ZooWriter puts the zoo into a Weft stream.
type ZooWriter struct {
	W     *sst.Writer
	Ranks int // of the whole stream
	// First and Own are the ranks that W stands for; Own 0 means all.
	First, Own int
	// AsADIOS2 leaves out what ADIOS2's own readers cannot read.
	AsADIOS2 bool
	// Skip, if set, says which variables are left out.
	Skip func(zoo.Var) bool
	// NoAttributes leaves out all attributes.
	NoAttributes bool

	defs map[string]*sst.Definition
}

// Write puts steps 0 to n-1.
func (z *ZooWriter) Write(ctx context.Context, n int) error {
	for number := range n {
		if err := z.Step(ctx, number); err != nil {
			return fmt.Errorf("step %d: %w", number, err)
		}
	}
	return nil
}

// Step puts one step.
func (z *ZooWriter) Step(ctx context.Context, number int) error {
	if err := z.setAttributes(number); err != nil {
		return err
	}
	st, err := z.W.BeginStep(ctx)
	if err != nil {
		return err
	}
	for _, v := range zoo.Vars(z.Ranks) {
		if z.Skip != nil && z.Skip(v) {
			continue
		}
		if err := z.put(st, v, number); err != nil {
			return fmt.Errorf("%s: %w", v.Name, err)
		}
	}
	return st.End(ctx)
}

func (z *ZooWriter) setAttributes(number int) error {
	if z.NoAttributes {
		return nil
	}
	for _, a := range zoo.Attributes(number) {
		if err := z.W.SetAttribute(attributeDef(a)); err != nil {
			return err
		}
	}
	return nil
}

func (z *ZooWriter) put(st *sst.WriterStep, v zoo.Var, number int) error {
	blocks := slices.DeleteFunc(v.Blocks(number, z.Ranks), func(b zoo.Block) bool { return !z.owns(b.Rank) })
	if len(blocks) == 0 {
		return nil
	}
	d, err := z.definition(v, number, len(blocks[0].Count))
	if err != nil {
		return err
	}
	for _, b := range blocks {
		if err := putBlock(st.Rank(b.Rank-z.First), d, b); err != nil {
			return err
		}
	}
	return nil
}

func (z *ZooWriter) owns(rank int) bool {
	return z.Own == 0 || rank >= z.First && rank < z.First+z.Own
}

func putBlock(st *sst.WriterStep, d *sst.Definition, b zoo.Block) error {
	if texts, ok := b.Data.([]string); ok {
		return st.PutText(d, texts[0])
	}
	return st.PutBytes(d, step.Box{Start: b.Start, Count: b.Count}, nativeBytes(d.Type(), b.Data))
}

func (z *ZooWriter) definition(v zoo.Var, number, dims int) (*sst.Definition, error) {
	shape := shapeOf(v, v.Shape(number, z.Ranks), dims)
	if d := z.defs[v.Name]; d != nil {
		if v.Kind == zoo.GlobalArray {
			return d, d.SetShape(shape.Dims...)
		}
		return d, nil
	}
	t, err := step.ParseType(v.Type)
	if err != nil {
		return nil, err
	}
	d, err := z.W.DefineUntyped(v.Name, t, nil, shape)
	if err != nil {
		return nil, err
	}
	if z.defs == nil {
		z.defs = map[string]*sst.Definition{}
	}
	z.defs[v.Name] = d
	return d, nil
}

func shapeOf(v zoo.Var, dims []uint64, n int) step.Shape {
	switch v.Kind {
	case zoo.GlobalValue:
		return step.GlobalValue()
	case zoo.LocalValue:
		return step.LocalValue()
	case zoo.LocalArray:
		return step.LocalArray(n)
	case zoo.JoinedArray:
		return step.JoinedArray(dims...)
	}
	return step.GlobalArray(dims...)
}

// attributeDef makes a Weft attribute of one of the table.
func attributeDef(a zoo.Attr) step.AttributeDef {
	if texts, ok := a.Value.([]string); ok {
		if a.Single {
			return step.NewAttribute(a.Name, texts[0])
		}
		return step.NewAttributeArray(a.Name, texts)
	}
	t, err := step.ParseType(a.Type)
	if err != nil {
		panic(err) // the table is ours
	}
	return step.RawAttribute(a.Name, t, !a.Single, nativeBytes(t, a.Value))
}

// nativeBytes returns the elements of a table's slice as a writer's memory
// holds them.
func nativeBytes(t step.Type, data any) []byte {
	switch s := data.(type) {
	case []int8:
		return shmem.Bytes(s)
	case []int16:
		return shmem.Bytes(s)
	case []int32:
		return shmem.Bytes(s)
	case []int64:
		return shmem.Bytes(s)
	case []uint8:
		return shmem.Bytes(s)
	case []uint16:
		return shmem.Bytes(s)
	case []uint32:
		return shmem.Bytes(s)
	case []uint64:
		return shmem.Bytes(s)
	case []float32:
		return shmem.Bytes(s)
	case []float64:
		if t == step.LongDouble {
			return shmem.Bytes(float80s(s))
		}
		return shmem.Bytes(s)
	case []complex64:
		return shmem.Bytes(s)
	case []complex128:
		return shmem.Bytes(s)
	}
	panic(fmt.Sprintf("zoo: data of type %T", data)) // the table is ours
}

func float80s(in []float64) []step.Float80 {
	out := make([]step.Float80, len(in))
	for i, v := range in {
		out[i] = step.NewFloat80(v)
	}
	return out
}

// StepJSON reads everything of a step, and returns it as a decoder of JSON
// (with UseNumber) would return the line of weft dump --json.
func StepJSON(ctx context.Context, st *step.Step) (map[string]any, error) {
	variables := map[string]any{}
	for _, v := range st.Variables() {
		j, err := variableJSON(ctx, v)
		if err != nil {
			return nil, fmt.Errorf("step %d: %s: %w", st.Number(), v.Name(), err)
		}
		variables[v.Name()] = j
	}
	attributes := map[string]any{}
	for _, a := range st.Attributes() {
		attributes[a.Name()] = map[string]any{"type": a.Type().String(), "value": elementsJSON(a.Value())}
	}
	number := json.Number(strconv.FormatUint(st.Number(), 10))
	return map[string]any{"step": number, "variables": variables, "attributes": attributes}, nil
}

func variableJSON(ctx context.Context, v *step.Variable) (map[string]any, error) {
	j := map[string]any{"type": v.Type().String(), "kind": v.Kind().String()}
	if v.Kind() == step.LocalArrayKind {
		blocks := []any{}
		for _, b := range v.Blocks() {
			data, err := v.Any(ctx, step.BlockIndex(b.Index))
			if err != nil {
				return nil, err
			}
			blocks = append(blocks, map[string]any{
				"rank": json.Number(strconv.Itoa(b.Rank)), "count": elementsJSON(b.Box.Count), "data": elementsJSON(data),
			})
		}
		j["blocks"] = blocks
		return j, nil
	}
	data, err := v.Any(ctx, step.All)
	if err != nil {
		return nil, err
	}
	j["data"] = elementsJSON(data)
	j["shape"], j["start"], j["count"] = elementsJSON(v.Shape()), elementsJSON(make([]uint64, len(v.Shape()))), elementsJSON(v.Shape())
	return j, nil
}

// elementsJSON renders a slice element by element, or a single element.
func elementsJSON(data any) any {
	v := reflect.ValueOf(data)
	if f, ok := data.(step.Float80); ok {
		return floatJSON(f.Float64(), 64)
	}
	switch {
	case v.Kind() == reflect.Slice:
		list := make([]any, v.Len())
		for i := range list {
			list[i] = elementsJSON(v.Index(i).Interface())
		}
		return list
	case v.Kind() == reflect.String:
		return v.String()
	case v.CanInt():
		return json.Number(strconv.FormatInt(v.Int(), 10))
	case v.Type() == reflect.TypeFor[step.Char]():
		return json.Number(strconv.Itoa(int(int8(v.Uint()))))
	case v.CanUint():
		return json.Number(strconv.FormatUint(v.Uint(), 10))
	case v.CanFloat():
		return floatJSON(v.Float(), v.Type().Bits())
	case v.CanComplex():
		c, bits := v.Complex(), v.Type().Bits()/2
		return []any{floatJSON(real(c), bits), floatJSON(imag(c), bits)}
	}
	panic(fmt.Sprintf("element of type %T", data)) // step.Any returns no other
}

func floatJSON(f float64, bits int) any {
	switch s := strconv.FormatFloat(f, 'g', -1, bits); s {
	case "NaN", "-Inf":
		return s
	case "+Inf":
		return "Inf"
	default:
		return json.Number(s)
	}
}
