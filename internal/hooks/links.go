package hooks

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// The dynamic loader lists what it has loaded for debuggers, in the order in which it looks for symbols: the program's dynamic section names the list.
// All of it is words of 64 bits, little-endian, but where said otherwise.
const (
	// of the auxiliary vector (getauxval(3)): pairs tag u64 | value u64
	auxHeaders = 3 // AT_PHDR
	auxNumber  = 5 // AT_PHNUM

	// program header: type u32 | flags u32 | offset u64 | address u64 | physical u64 | bytes in the file u64 | bytes u64 | align u64
	headerSize  = 56
	typeLoad    = 1 // PT_LOAD
	typeDynamic = 2 // PT_DYNAMIC
	typeHeaders = 6 // PT_PHDR

	// The program headers come right behind the file's own.
	fileHeaderSize = 64

	// dynamic section: pairs tag u64 | value u64
	pairSize = 16
	tagDebug = 21 // DT_DEBUG

	// struct r_debug: version u32 | pad u32 | first u64 | ...
	debugSize = 16

	// struct link_map: bias u64 | name u64 | dynamic section u64 | next u64 | previous u64
	linkSize = 40
)

// Bounds of what a process can make us read.
const (
	maxHeaders = 1024
	maxDynamic = 1 << 16 // bytes
	maxLinks   = 1 << 14
)

var (
	errStatic   = errors.New("the program is static")
	errNoLinks  = errors.New("the program has no list of what is loaded (the loader was started by hand, or has not come that far)")
	errOddLinks = errors.New("odd list of what is loaded")
)

// link is an object that was loaded.
type link struct {
	bias    uint64 // what its addresses are more than those in its file
	dynamic uint64 // address of its dynamic section
}

func word(b []byte, i int) uint64 { return binary.LittleEndian.Uint64(b[8*i:]) }

// links reads the list of a process, of whose memory offsets are addresses.
func links(mem io.ReaderAt, auxv []byte) ([]link, error) {
	first, err := firstLink(mem, auxv)
	if err != nil {
		return nil, err
	}
	var list []link
	for at := first; at != 0; {
		if len(list) == maxLinks {
			return nil, fmt.Errorf("%w: more than %d", errOddLinks, maxLinks)
		}
		b, err := peek(mem, at, linkSize)
		if err != nil {
			return nil, err
		}
		list = append(list, link{bias: word(b, 0), dynamic: word(b, 2)})
		at = word(b, 3)
	}
	return list, nil
}

// firstLink finds the address of the first entry.
func firstLink(mem io.ReaderAt, auxv []byte) (uint64, error) {
	if len(auxv) >= pairSize && word(auxv, 0)>>32 != 0 { // words of 32 bits: no tag is as large
		return 0, errMachine
	}
	headers, number := value(auxv, auxHeaders), value(auxv, auxNumber)
	if headers == 0 || number == 0 || number > maxHeaders {
		return 0, fmt.Errorf("%w: %d program headers at %#x", errOddLinks, number, headers)
	}
	b, err := peek(mem, headers, int(number)*headerSize)
	if err != nil {
		return 0, err
	}
	at, size, ok := dynamicSection(b, headers)
	if !ok {
		return 0, errStatic
	}
	if b, err = peek(mem, at, int(min(size, maxDynamic))); err != nil {
		return 0, err
	}
	debug := value(b, tagDebug)
	if debug == 0 {
		return 0, errNoLinks
	}
	if b, err = peek(mem, debug, debugSize); err != nil {
		return 0, err
	}
	if word(b, 1) == 0 {
		return 0, errNoLinks
	}
	return word(b, 1), nil
}

// dynamicSection finds it in the program headers that lie at an address. They say themselves where they belong; those of static programs and of the
// loader do not, but the first piece that is loaded begins with the file's header.
func dynamicSection(b []byte, headers uint64) (at, size uint64, ok bool) {
	bias, sure := uint64(0), false
	for ; len(b) >= headerSize; b = b[headerSize:] {
		switch kind := binary.LittleEndian.Uint32(b); {
		case kind == typeHeaders:
			bias, sure = headers-word(b, 2), true
		case kind == typeLoad && word(b, 1) == 0 && !sure:
			bias = headers - fileHeaderSize - word(b, 2)
		case kind == typeDynamic:
			at, size, ok = word(b, 2), word(b, 5), true
		}
	}
	return at + bias, size, ok
}

// value is that of the first pair with a tag; 0 if there is none. A tag of zero ends the pairs.
func value(b []byte, tag uint64) uint64 {
	for ; len(b) >= pairSize && word(b, 0) != 0; b = b[pairSize:] {
		if word(b, 0) == tag {
			return word(b, 1)
		}
	}
	return 0
}

// peek reads n bytes at an address.
func peek(mem io.ReaderAt, addr uint64, n int) ([]byte, error) {
	if addr > 1<<63-1 {
		return nil, fmt.Errorf("%w: address %#x", errOddLinks, addr)
	}
	b := make([]byte, n)
	if _, err := mem.ReadAt(b, int64(addr)); err != nil {
		return nil, fmt.Errorf("%d bytes at %#x: %w", n, addr, err)
	}
	return b, nil
}
