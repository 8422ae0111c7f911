package operator

import (
	"errors"
	"fmt"
	"sync"
)

// Decoder undoes one operator. Its methods are safe for concurrent use.
type Decoder interface {
	// ID is the number of the operator, the same at each call.
	ID() ID
	// Name is the name of the operator, for listings.
	Name() string
	// Decode fills dst with the uncompressed block. block is the stored block with its 4-byte frame; len(dst) is the
	// size that the metadata promises, and a block of any other size is ErrCorrupt. block is not changed; neither slice
	// is kept. On error the content of dst is undefined.
	Decode(dst, block []byte, info Block) error
}

// Block is what the metadata says about a block. Most operators need none of it.
type Block struct {
	Count    []uint64 // elements in each dimension, in the writer's order
	ElemSize int      // bytes of an element
	Type     uint8    // BP5 type code (docs/wire/bp5.md §2.2)
}

var (
	// ErrUnsupported matches every UnsupportedError.
	ErrUnsupported = errors.New("unsupported operator")
	// ErrCorrupt says that a stored block contradicts itself or its metadata.
	ErrCorrupt = errors.New("corrupt block")
)

// UnsupportedError says that a block cannot be decoded because this program has no decoder for it. The block, and
// all that the metadata says about it, may still be right.
type UnsupportedError struct {
	ID ID
	// Detail says which feature is missing when there is a decoder for ID, but not for all of its blocks.
	Detail string
}

// Error names the operator by name and number, and says how to get the decoder if there is one.
func (e *UnsupportedError) Error() string {
	what := fmt.Sprintf("operator: %s (number %d)", e.ID, uint8(e.ID))
	switch pkg := subpackages[e.ID]; {
	case e.Detail != "":
		return what + ": unsupported: " + e.Detail
	case pkg != "":
		return what + ": unsupported: this program does not import " + pkg
	}
	return what + ": unsupported"
}

// Is makes errors.Is(err, ErrUnsupported) true.
func (e *UnsupportedError) Is(target error) bool { return target == ErrUnsupported }

var registry = struct {
	sync.RWMutex
	byID map[ID]Decoder
}{byID: map[ID]Decoder{Null: null{}}}

// Register makes d the decoder of its operator. It panics if d is nil or the operator has a decoder already, because
// both are mistakes in how the program is put together. Call it from an init function.
func Register(d Decoder) {
	if d == nil {
		panic("operator: Register of a nil decoder")
	}
	registry.Lock()
	defer registry.Unlock()
	if _, dup := registry.byID[d.ID()]; dup {
		panic(fmt.Sprintf("operator: Register called twice for %s (number %d)", d.ID(), uint8(d.ID())))
	}
	registry.byID[d.ID()] = d
}

// Lookup returns the decoder of id, if there is one.
func Lookup(id ID) (Decoder, bool) {
	registry.RLock()
	defer registry.RUnlock()
	d, ok := registry.byID[id]
	return d, ok
}

// Decode fills dst, whose length is the size that the metadata promises, with the uncompressed block, by the decoder that
// the block itself asks for. The error is an UnsupportedError if there is none, and ErrCorrupt if block is not what dst
// and info say; both name the operator. block is not changed and not kept.
func Decode(dst, block []byte, info Block) error {
	id, _, err := FrameID(block)
	if err != nil {
		return err
	}
	d, ok := Lookup(id)
	if !ok {
		return &UnsupportedError{ID: id}
	}
	return d.Decode(dst, block, info)
}

// FrameSize is the length of the frame in front of every stored block.
//
// wire: operator u8 | version of the operator's layout u8 | 0 u16 (docs/wire/bp5.md §8)
const FrameSize = 4

// FrameID returns the operator of a stored block and the version of its layout. A block shorter than a frame is
// ErrCorrupt; any number is accepted.
func FrameID(block []byte) (id ID, version uint8, err error) {
	if len(block) < FrameSize {
		return 0, 0, fmt.Errorf("operator: block of %d bytes has no frame: %w", len(block), ErrCorrupt)
	}
	return ID(block[0]), block[1], nil
}

// AppendFrame appends a frame to b.
func AppendFrame(b []byte, id ID, version uint8) []byte {
	return append(b, byte(id), version, 0, 0)
}
