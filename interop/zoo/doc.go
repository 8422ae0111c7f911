// Package zoo is the table of values that Weft and its real peers exchange in
// the interop tests: variables of every type and shape kind and attributes of
// every kind, with contents from closed formulas of (step, rank, block,
// element). The Python half, interop/peers/zoo.py, computes the same table from
// its own code, so the two check each other.
//
// A writer's test walks [Vars], puts what [Var.Blocks] says and defines what
// [Attributes] says. A reader's test compares with [Var.Expect], or, for tools
// that print JSON, with [ExpectJSON] through [Check].
//
// The package is test support: it knows neither ADIOS2 nor Weft, it uses the
// standard library only, and it panics on a name or type that is not in the
// table. Everything in it is safe for concurrent use; what it returns belongs
// to the caller.
package zoo
