// Package memmon says what memory is, and who can tell when it goes away.
//
// Go cannot ask whether an address is Go heap, a mapping or C memory, so the
// kinds of memory are types: [HeapBytes] and [Mapped] now; memory of Weft's own
// arenas comes from a fabric domain's Alloc.
//
// Values are immutable and safe for concurrent use.
package memmon
