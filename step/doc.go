// Package step is Weft's data model: steps of n-dimensional arrays, and the
// one piece of code that turns a selection into bytes.
//
// A [Step] is what one output step of a program holds: variables with their
// blocks, attributes, and a way to fetch the data. Streams (package sst) and
// BP5 files (package bp) both hand out *Step, so a program that analyses one
// analyses the other. The words are ADIOS2's: a [Variable] has a [Kind] of
// shape and an element [Type]; it consists of blocks, each put by one writer
// rank; a selection is a [Box] of the global shape or one block.
//
// Reading:
//
//	T, err := step.Lookup[float64](st, "T")             // wrong type: an error
//	a, err := T.Get(ctx, step.All, nil)                 // the whole array, in a new slice
//	err = st.Fetch(ctx, T.Into(box, dst), U.Into(step.All, dst2)) // one batch
//
// All dimensions are row-major, slowest first. Arrays of a column-major writer
// (Fortran) appear with their dimensions reversed, as in ADIOS2.
//
// The package holds no I/O: bytes come through a [Source], which a file or a
// data plane implements. [Decoder] makes steps from the BP5 records of a
// stream or file; [Encoder] makes BP5 records from what a writer puts.
//
// A Step, its variables and attributes are immutable once made, and safe for
// concurrent use. Decoder and Encoder belong to one goroutine at a time.
package step
