package hooks

import (
	"encoding/binary"
	"errors"
	"io"
	"slices"
	"testing"
)

// pieces is memory of some pieces, by address.
type pieces map[uint64][]byte

func (p pieces) ReadAt(b []byte, addr int64) (int, error) {
	for at, piece := range p {
		if off := uint64(addr) - at; uint64(addr) >= at && off < uint64(len(piece)) {
			if n := copy(b, piece[off:]); n == len(b) {
				return n, nil
			}
		}
	}
	return 0, io.ErrUnexpectedEOF
}

func w64(list ...uint64) []byte {
	var b []byte
	for _, v := range list {
		b = binary.LittleEndian.AppendUint64(b, v)
	}
	return b
}

// Two objects that were loaded, in a program at 0x5000_0000.
func loadedTwo() (pieces, []byte) {
	const base = 0x5000_0000
	header := func(kind uint32, addr, size uint64) []byte {
		return append(binary.LittleEndian.AppendUint64(nil, uint64(kind)|4<<32), w64(0x999, addr, 0x999, size, size, 8)...)
	}
	return pieces{
		base + 0x40:   slices.Concat(header(typeHeaders, 0x40, 168), header(1, 0, 0x4000), header(typeDynamic, 0x3000, 48)),
		base + 0x3000: w64(5, 0x300, tagDebug, 0x7000_0000, 0, 0),
		0x7000_0000:   w64(1, 0x7000_1000, 0x7777, 0, 0),
		0x7000_1000:   w64(base, 0x7000_5000, base+0x3000, 0x7000_2000, 0),
		0x7000_2000:   w64(0x6000_0000, 0x7000_5010, 0x6000_3000, 0, 0x7000_1000),
	}, w64(33, 0x7fff_0000, auxHeaders, base+0x40, 4, headerSize, auxNumber, 3, 0, 0)
}

func TestLinks(t *testing.T) {
	mem, auxv := loadedTwo()
	want := []link{{0x5000_0000, 0x5000_3000}, {0x6000_0000, 0x6000_3000}}
	if list, err := links(mem, auxv); err != nil || !slices.Equal(list, want) {
		t.Errorf("%#x, %v", list, err)
	}
	for i := range auxv[:64] { // whole without its end
		if list, err := links(mem, auxv[:i]); err == nil {
			t.Errorf("%d bytes of the auxiliary vector: %#x", i, list)
		}
	}
	for at, piece := range mem {
		needed := map[uint64]int{0x5000_3000: 48, 0x7000_0000: debugSize}[at]
		if needed == 0 {
			needed = len(piece)
		}
		for i := range needed {
			mem[at] = piece[:i]
			if list, err := links(mem, auxv); err == nil {
				t.Errorf("%d bytes at %#x: %#x", i, at, list)
			}
		}
		mem[at] = piece
	}
}

func TestOddLinks(t *testing.T) {
	for what, c := range map[string]struct {
		spoil func(pieces)
		err   error
	}{
		"static":                {func(p pieces) { p[0x5000_0040][112] = 1 }, errStatic},
		"no list":               {func(p pieces) { p[0x5000_3000][16] = 7 }, errNoLinks},
		"no list yet":           {func(p pieces) { copy(p[0x5000_3000][24:], w64(0)) }, errNoLinks},
		"an empty list":         {func(p pieces) { copy(p[0x7000_0000][8:], w64(0)) }, errNoLinks},
		"a ring":                {func(p pieces) { copy(p[0x7000_2000][24:], w64(0x7000_1000)) }, errOddLinks},
		"a wild address":        {func(p pieces) { copy(p[0x7000_2000][24:], w64(1<<63)) }, errOddLinks},
		"an address in nothing": {func(p pieces) { copy(p[0x7000_2000][24:], w64(0x1234)) }, io.ErrUnexpectedEOF},
	} {
		mem, auxv := loadedTwo()
		c.spoil(mem)
		if list, err := links(mem, auxv); !errors.Is(err, c.err) {
			t.Errorf("%s: %d, %v", what, len(list), err)
		}
	}
	mem, auxv := loadedTwo()
	copy(auxv[56:], w64(1<<40))
	if _, err := links(mem, auxv); !errors.Is(err, errOddLinks) {
		t.Errorf("too many headers: %v", err)
	}
}

// TestLinksWithoutPlace is of programs whose headers do not say where they belong: static ones at a random address, and the loader.
func TestLinksWithoutPlace(t *testing.T) {
	mem, auxv := loadedTwo()
	want, err := links(mem, auxv)
	if err != nil {
		t.Fatal(err)
	}
	headers := mem[0x5000_0040]
	copy(headers, w64(4))                // not PT_PHDR
	copy(headers[headerSize+8:], w64(0)) // the beginning of the file is loaded, at its address 0
	if list, err := links(mem, auxv); err != nil || !slices.Equal(list, want) {
		t.Errorf("%#x, %v", list, err)
	}
}

// TestLinksOf32Bits has the auxiliary vector of a program of 32 bits.
func TestLinksOf32Bits(t *testing.T) {
	auxv := binary.LittleEndian.AppendUint64(nil, 33|0xf7f0_0000<<32)
	if _, err := links(pieces{}, append(auxv, w64(3|0x0804_8034<<32, 5|1<<32, 0)...)); !errors.Is(err, errMachine) {
		t.Error(err)
	}
}

func FuzzLinks(f *testing.F) {
	mem, auxv := loadedTwo()
	f.Add(auxv, mem[0x5000_0040], mem[0x5000_3000], mem[0x7000_0000], mem[0x7000_1000], mem[0x7000_2000])
	f.Fuzz(func(_ *testing.T, auxv, headers, dynamic, debug, one, two []byte) {
		links(pieces{0x5000_0040: headers, 0x5000_3000: dynamic, 0x7000_0000: debug, 0x7000_1000: one, 0x7000_2000: two}, auxv)
	})
}
