package bp5

import "github.com/weft-fabric/weft/internal/wire/ffs"

// Kind is the letter that stands for a shape kind in a field name
// (docs/wire/bp5.md §2.1).
type Kind byte

// Shape kinds.
const (
	GlobalValue Kind = 'g' // one value, of the first rank that wrote it
	LocalValue  Kind = 'l' // one value a rank
	GlobalArray Kind = 'G' // blocks at offsets of a common shape
	LocalArray  Kind = 'L' // blocks without a common shape
	JoinedArray Kind = 'J' // blocks end to end along one dimension, in rank order
)

// IsArray reports whether the variable's field is a MetaArray struct.
func (k Kind) IsArray() bool { return k == GlobalArray || k == LocalArray || k == JoinedArray }

// Type is an element type code (docs/wire/bp5.md §2.2).
type Type uint8

// Element type codes.
const (
	None          Type = iota // no type, or one that BP5 does not have
	Int8                      // 1 byte, signed
	Int16                     // 2 bytes
	Int32                     // 4 bytes
	Int64                     // 8 bytes
	Uint8                     // 1 byte, unsigned
	Uint16                    // 2 bytes
	Uint32                    // 4 bytes
	Uint64                    // 8 bytes
	Float                     // IEEE, 4 bytes
	Double                    // IEEE, 8 bytes
	LongDouble                // 16 bytes in the writer's own form, on x86-64 the x87's
	ComplexFloat              // two Floats
	ComplexDouble             // two Doubles
	String                    // of values and attributes only
	Char                      // C's char; a single value of it is stored as Int8
	Struct                    // elements that a format of their own describes
)

// Size returns the bytes of one element, 0 for types whose elements have no size of their own.
func (t Type) Size() int {
	if t == String { // a slot, which is not its size
		return 0
	}
	_, size, _ := scalarType(t)
	return size
}

// JoinedDim marks the joined dimension in Shape (docs/wire/bp5.md §2.4).
const JoinedDim = ^uint64(1)

// NoData in ArrayMeta.Location says that the block's data is not stored
// (docs/wire/bp5.md §2.3).
const NoData = ^uint64(0)

// VarDesc describes one variable of a metadata format: one field after the
// three leading ones.
type VarDesc struct {
	Name       string
	Kind       Kind
	Type       Type
	ElemSize   int    // bytes of one element; 0 for strings
	StructID   ffs.ID // format of the element, Type Struct only
	Operator   bool   // blocks are stored through an operator
	MinMax     int    // bytes of one extremum in the record, 0 without statistics
	Expression string // base64 text of a derived variable's expression, else empty
}

// ArrayMeta is what one writer rank recorded of one array in one step. The
// slices are in block order; Count and Offset hold Dims numbers a block.
type ArrayMeta struct {
	Dims       int
	Blocks     int
	Shape      []uint64 // nil for local arrays
	Count      []uint64
	Offset     []uint64 // nil for local and joined arrays
	Location   []uint64 // byte offset in the writer's data block, or NoData
	StoredSize []uint64 // bytes after the operator; nil without one
	MinMax     []byte   // 2*VarDesc.MinMax bytes a block: minimum, maximum; nil if unordered
}

// Attr is one attribute of an attribute record. Exactly one of Data and Strings
// is used: Strings when Type is String.
type Attr struct {
	Name    string
	Type    Type
	Array   bool     // an array of one element is not a single value
	Data    []byte   // elements as the writer stored them
	Strings []string // len 1 for a single string
}
