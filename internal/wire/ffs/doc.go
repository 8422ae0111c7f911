// Package ffs reads and writes FFS format descriptions and records, the
// encoding of every EVPath control message and of BP5 metadata
// (docs/wire/ffs.md).
//
// A [Format] is a named struct plus the structs that it uses, parsed from a
// format body or built from [Struct] values. A [Record] is one value of a
// format; it is read through [View] values that point into the caller's bytes,
// and written by a [Builder].
//
// The package knows nothing of messages, connections or variables: which
// fields a format has is the business of its importers. It handles
// little-endian bodies of version 2 with 8-byte pointers only and refuses the
// others. It never converts a record to another layout: readers look fields up
// by name and take integers of any size.
//
// Everything that is parsed is taken to be hostile. A record is checked as a
// whole before the first View of it is handed out: all offsets lie inside it,
// all strings end, nothing forms a cycle, and walking everything that can be
// reached costs time and memory in proportion to the record's length.
//
// A Format, Record and View are immutable and safe for concurrent use, as long
// as nobody writes to the bytes of the record. A Builder and its children
// belong to one goroutine at a time.
package ffs
