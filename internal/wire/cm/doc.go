// Package cm holds the bytes of EVPath's connection manager ("CM"), the layer
// below every message of ADIOS2's SST engine: contact strings, the handshake of
// a connection, and the units that follow it in each direction.
//
// What it is: codecs (Append and Parse for each unit), a Reader that cuts a byte
// stream into units within stated limits, and the header of a data message over
// a list of parts, so that a sender need not join them.
//
// What it is not: it opens no connection, keeps no table of formats and does not
// look into records. Package sst/internal/carrier does the first two, package
// ffs the third.
//
// Everything is little-endian, as x86-64 and arm64 peers send it, but for the
// port in the preamble. Units of a big-endian peer are recognised and refused
// with ErrByteOrder.
//
// Concurrency: functions and values are safe for concurrent use as long as
// nobody writes to them; a Reader belongs to one goroutine at a time.
//
// The facts behind every constant are in docs/wire/cm.md; "cm.md" in a comment
// means that file.
package cm
