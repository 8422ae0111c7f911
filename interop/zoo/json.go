package zoo

import (
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"strconv"
)

// ExpectJSON returns one step as "weft dump --json" prints it, in the shape
// that a [json.Decoder] with UseNumber gives (dimensions and numbers are
// [json.Number], floats in their shortest form):
//
//	{"step": 0,
//	 "variables": {
//	  "shape/rows": {"type": "double", "kind": "global array", "shape": [2, 3], "start": [0, 0], "count": [2, 3], "data": [...]},
//	  "value/f64": {"type": "double", "kind": "global value", "shape": [], "start": [], "count": [], "data": [1.25]},
//	  "blocks/f64": {"type": "double", "kind": "local array", "blocks": [{"rank": 0, "count": [1], "data": [1.25]}]}},
//	 "attributes": {"attr/f64": {"type": "double", "value": 42.25}, "attrs/one": {"type": "double", "value": [3.5]}}}
//
// Complex numbers are [re, im]; NaN and infinities are the strings "NaN",
// "Inf", "-Inf". Texts of equal numbers may differ: compare with [Check].
func ExpectJSON(step, ranks int, from Source) map[string]any {
	variables := map[string]any{}
	for _, v := range Vars(ranks) {
		if _, _, present := v.Expect(step, ranks); present && (from == Weft || !v.WeftOnly) {
			variables[v.Name] = v.json(step, ranks)
		}
	}
	attributes := map[string]any{}
	for _, a := range AttributesFrom(from, step) {
		attributes[a.Name] = a.json()
	}
	return map[string]any{"step": number64(uint64(step)), "variables": variables, "attributes": attributes}
}

func (v Var) json(step, ranks int) map[string]any {
	out := map[string]any{"type": v.Type, "kind": v.Kind}
	if v.Kind == LocalArray {
		var blocks []any
		for _, b := range v.Blocks(step, ranks) {
			blocks = append(blocks, map[string]any{
				"rank": number64(uint64(b.Rank)), "count": jsonDims(b.Count), "data": jsonList(b.Data),
			})
		}
		out["blocks"] = blocks
		return out
	}
	shape, data, _ := v.Expect(step, ranks)
	out["data"] = jsonList(data)
	out["shape"], out["start"], out["count"] = jsonDims(shape), jsonDims(make([]uint64, len(shape))), jsonDims(shape)
	return out
}

func (a Attr) json() map[string]any {
	list := jsonList(a.Value)
	if a.Single {
		return map[string]any{"type": a.Type, "value": list[0]}
	}
	return map[string]any{"type": a.Type, "value": list}
}

func jsonDims(dims []uint64) []any { return jsonList(dims) }

// jsonList renders a slice of elements.
func jsonList(slice any) []any {
	v := reflect.ValueOf(slice)
	out := make([]any, v.Len())
	for i := range out {
		out[i] = jsonElement(v.Index(i).Interface())
	}
	return out
}

func jsonElement(x any) any {
	switch x := x.(type) {
	case string:
		return x
	case float32:
		return jsonFloat(float64(x), 32)
	case float64:
		return jsonFloat(x, 64)
	case complex64:
		return []any{jsonFloat(float64(real(x)), 32), jsonFloat(float64(imag(x)), 32)}
	case complex128:
		return []any{jsonFloat(real(x), 64), jsonFloat(imag(x), 64)}
	}
	return json.Number(fmt.Sprint(x))
}

func jsonFloat(x float64, bits int) any {
	switch {
	case math.IsNaN(x):
		return "NaN"
	case math.IsInf(x, 1):
		return "Inf"
	case math.IsInf(x, -1):
		return "-Inf"
	}
	return json.Number(strconv.FormatFloat(x, 'g', -1, bits))
}

func number64(n uint64) json.Number { return json.Number(strconv.FormatUint(n, 10)) }
