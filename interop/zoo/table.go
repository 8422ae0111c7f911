package zoo

import "math"

// types lists the element types of arrays with the short names that variables
// and attributes are called by.
var types = []struct{ short, name string }{
	{"char", "char"},
	{"i8", "int8_t"},
	{"i16", "int16_t"},
	{"i32", "int32_t"},
	{"i64", "int64_t"},
	{"u8", "uint8_t"},
	{"u16", "uint16_t"},
	{"u32", "uint32_t"},
	{"u64", "uint64_t"},
	{"f32", "float"},
	{"f64", "double"},
	{"ld", "long double"},
	{"c64", "float complex"},
	{"c128", "double complex"},
}

// valueTypes are the types of single values: a single char comes back as
// int8_t (docs/wire/bp5.md §2.2), so it has no line of its own.
var valueTypes = types[1:]

func special64() []float64 {
	return []float64{
		math.NaN(), math.Inf(1), math.Inf(-1), math.Copysign(0, -1),
		math.SmallestNonzeroFloat64, math.MaxFloat64, 0.1, -1e-9,
	}
}

func special32() []float32 {
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	return []float32{
		nan, inf, -inf, float32(math.Copysign(0, -1)),
		math.SmallestNonzeroFloat32, math.MaxFloat32, 0.1, -1e-9,
	}
}

func table() []Var {
	var vars []Var
	add := func(name, typ, kind string, l layout) *Var {
		vars = append(vars, Var{Name: name, Type: typ, Kind: kind, layout: l})
		return &vars[len(vars)-1]
	}
	for _, t := range valueTypes {
		add("value/"+t.short, t.name, GlobalValue, byAll)
	}
	add("value/str", "string", GlobalValue, byAll)
	for _, t := range valueTypes {
		add("local/"+t.short, t.name, LocalValue, byAll)
	}
	for _, t := range types {
		add("array/"+t.short, t.name, GlobalArray, line(5)).WeftOnly = t.short == "i8"
	}
	for _, t := range types {
		add("blocks/"+t.short, t.name, LocalArray, localLine).WeftOnly = t.short == "i8"
	}
	add("shape/rows", "double", GlobalArray, rows)
	add("shape/columns", "float", GlobalArray, columns)
	add("shape/cube", "int32_t", GlobalArray, cube)
	add("shape/blocks", "int32_t", GlobalArray, threeBlocks)
	add("shape/quadrants", "int16_t", GlobalArray, quadrants)
	add("shape/grow", "int64_t", GlobalArray, growing)
	add("shape/empty", "float", GlobalArray, oneEmpty)
	add("shape/owner", "double", GlobalArray, oneOwner)
	add("shape/holes", "double", GlobalArray, holes)
	add("shape/big", "double", GlobalArray, big)
	add("blocks/some", "int32_t", LocalArray, localSome)
	add("blocks/zero", "double", LocalArray, localZero)
	add("joined/rows", "double", JoinedArray, joinedRows)
	add("joined/columns", "float complex", JoinedArray, joinedColumns)
	add("odd/array", "int32_t", GlobalArray, odd(line(3)))
	add("odd/value", "uint16_t", GlobalValue, odd(byAll))
	add("odd/blocks", "uint8_t", LocalArray, odd(localLine))
	add("first/value", "double", GlobalValue, byFirst)
	add("first/str", "string", GlobalValue, byFirst)
	add("first/array", "double complex", GlobalArray, arrayByFirst)
	add("last/value", "uint64_t", GlobalValue, byLast)
	add("last/str", "string", GlobalValue, byLast)
	add("last/array", "uint8_t", GlobalArray, arrayByLast)
	add("turn/f64", "double", GlobalValue, byTurn).WeftReads = true
	add("turn/i8", "int8_t", GlobalValue, byTurn).WeftReads = true
	add("turn/c64", "float complex", GlobalValue, byTurn).WeftReads = true
	add("turn/str", "string", GlobalValue, byTurn).WeftReads = true
	add("special/f32", "float", GlobalArray, eightByFirst).constant = special32()
	add("special/f64", "double", GlobalArray, eightByFirst).constant = special64()
	add("special/str", "string", GlobalValue, byAll).constant = []string{""}
	add("name x_1_2_y", "int32_t", GlobalArray, line(2))
	add("name/été", "int32_t", GlobalValue, byAll)
	add("name[0]", "int32_t", GlobalArray, line(2))
	add("BPG_8_10_fake", "int32_t", GlobalValue, byAll)
	return vars
}
