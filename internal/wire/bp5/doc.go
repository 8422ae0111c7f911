// Package bp5 reads and writes the records of ADIOS2's BP5 format: metadata
// and attributes of one step of one writer rank, which streams and files share,
// and the index, metadata and format files of a BP5 folder.
//
// It knows bytes, not meaning: shapes are not checked against blocks here, and
// nothing is assembled (package step does both). Everything it parses is taken
// to be hostile. Layouts: docs/wire/bp5.md; the records are FFS records
// (package ffs).
//
// Values are immutable once made and safe for concurrent use; builders belong
// to one goroutine.
package bp5
