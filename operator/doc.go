// Package operator undoes the compression operators of BP5 blocks. A stored block says by number which operator made it;
// a registry maps that number to a Decoder. What is built in is only "null", which stores bytes as they are. The decoders
// of the subpackages register themselves when they are imported:
//
//	import _ "github.com/weft-fabric/weft/operator/bzip2" // or operator/all for every one
//
// It is not a compressor, except for "null", and has no lossy operators: those need large numerical libraries. A block whose
// operator is not registered fails alone, with an UnsupportedError; all else of its step stays usable.
//
// Stored blocks are foreign bytes: every size in them is compared with the size that the metadata promises before
// anything is allocated or decoded. All functions and all decoders are safe for concurrent use.
//
// Layouts: docs/wire/bp5.md §8.
package operator
