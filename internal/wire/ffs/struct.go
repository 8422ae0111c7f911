package ffs

// Field describes one field of a struct.
type Field struct {
	Name string
	Type string // type string, docs/wire/ffs.md §4
	// Size is the bytes of one element: of the value for plain types and
	// arrays, 8 for string, the record length for structs and pointers to
	// them. A field of struct type may declare more than the struct's record
	// length; BP5 does.
	Size   int
	Offset int // bytes from the start of the struct
}

// Struct describes one struct of a format.
type Struct struct {
	Name      string
	RecordLen int // bytes of one such struct, its C sizeof
	Align     int // 0 lets New compute it: the largest alignment of a field
	Fields    []Field
}

// slotSize is the size of everything that points into the variable part of a
// record, and the alignment of what it points at.
const slotSize = 8

// maxRecordLen bounds the size of one struct, so that sums and products of
// sizes in a format cannot overflow.
const maxRecordLen = 1<<31 - 1
