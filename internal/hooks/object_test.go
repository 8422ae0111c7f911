package hooks

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	_ "net" // links the C library, if there is cgo
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weft-fabric/weft/internal/sys"
	"github.com/weft-fabric/weft/internal/testutil"
)

// madeSymbol and madeSlot are what a file made for a test has.
type madeSymbol struct {
	name        string
	info, other byte
	section     uint16
	value, size uint64
}

// madeELF makes a file: all of it is loaded at 0x1000. The code of functions lies from 0x2000 on, the slots from 0x3000 on.
func madeELF(m elf.Machine, list []madeSymbol, relocations []byte) []byte {
	names, table := []byte{0}, make([]byte, symbolSize)
	for _, s := range list {
		table = binary.LittleEndian.AppendUint32(table, uint32(len(names)))
		table = append(table, s.info, s.other)
		table = binary.LittleEndian.AppendUint16(table, s.section)
		table = append(table, w64(s.value, s.size)...)
		names = append(append(names, s.name...), 0)
	}
	b := make([]byte, 0x3000)
	for i := range 0x1000 {
		b[0x1000+i] = byte(i)
	}
	copy(b[0x2000:], w64(0, 0x2222))
	section := func(kind elf.SectionType, at int, size int, link uint32) []byte {
		h := binary.LittleEndian.AppendUint32([]byte{0, 0, 0, 0}, uint32(kind))
		h = append(h, w64(0, 0, uint64(at), uint64(size))...)
		h = binary.LittleEndian.AppendUint32(h, link)
		return append(append(h, 0, 0, 0, 0), w64(8, 24)...)
	}
	place := func(part []byte) int {
		at := len(b)
		b = append(b, part...)
		return at
	}
	var headers []byte
	headers = append(headers, section(elf.SHT_NULL, 0, 0, 0)...)
	headers = append(headers, section(elf.SHT_DYNSYM, place(table), len(table), 2)...)
	headers = append(headers, section(elf.SHT_STRTAB, place(names), len(names), 0)...)
	headers = append(headers, section(elf.SHT_RELA, place(relocations), len(relocations), 1)...)
	at := place(headers)
	head := append([]byte("\x7fELF\x02\x01\x01"), make([]byte, 9)...)
	head = binary.LittleEndian.AppendUint16(head, uint16(elf.ET_DYN))
	head = binary.LittleEndian.AppendUint16(head, uint16(m))
	head = binary.LittleEndian.AppendUint32(head, 1)
	head = append(head, w64(0, 64, uint64(at))...)
	for _, v := range []uint16{0, 0, 64, headerSize, 1, 64, 4, 2} {
		head = binary.LittleEndian.AppendUint16(head, v)
	}
	head = append(head, 1, 0, 0, 0, 5, 0, 0, 0)
	head = append(head, w64(0, 0x1000, 0x1000, 0x3000, 0x3000, 0x1000)...)
	copy(b, head)
	return b
}

func madeRelocation(kind, symbol uint32, at uint64) []byte {
	return w64(at, uint64(kind)|uint64(symbol)<<32, 0)
}

const global, weak, local = byte(elf.STB_GLOBAL)<<4 | byte(elf.STT_FUNC), byte(elf.STB_WEAK)<<4 | byte(elf.STT_FUNC), byte(elf.STB_LOCAL)<<4 | byte(elf.STT_FUNC)

func made() []byte {
	return madeELF(elf.EM_X86_64, []madeSymbol{
		{"munmap", weak, 0, 5, 0x2000, 16},
		{"mmap", global, 0, 0, 0, 0},
		{"madvise", global, 0, 0, 0x2100, 0}, // a stub
		{"shmdt", global, byte(elf.STV_HIDDEN), 5, 0x2020, 8},
		{"brk", local, 0, 5, 0x2030, 8},
		{"helper", global, 0, 5, 0x2040, 0},
		{"sbrk", global, 0, 5, 0x2050, 0},
		{"malloc", global, 0, 0, 0, 0},
	}, slices.Concat(
		madeRelocation(uint32(elf.R_X86_64_JMP_SLOT), 2, 0x3000),
		madeRelocation(uint32(elf.R_X86_64_GLOB_DAT), 1, 0x3008),
		madeRelocation(uint32(elf.R_X86_64_RELATIVE), 1, 0x3010),
		madeRelocation(uint32(elf.R_X86_64_JMP_SLOT), 8, 0x3018),
		madeRelocation(uint32(elf.R_X86_64_JMP_SLOT), 99, 0x3018),
	))
}

func TestReadObject(t *testing.T) {
	o, err := readObject(bytes.NewReader(made()))
	if err != nil {
		t.Fatal(err)
	}
	code := func(from, n int) (b []byte) {
		for i := range n {
			b = append(b, byte(from+i))
		}
		return b
	}
	want := &object{
		machine: elf.EM_X86_64, begin: 0x1000, end: 0x4000,
		defines: map[string]uint64{"munmap": 0x2000, "sbrk": 0x2050},
		stubs:   map[string]uint64{"madvise": 0x2100},
		slots:   []slot{{"mmap", 0x3000, 0}, {"munmap", 0x3008, 0x2222}},
		code:    map[string][]byte{"munmap": code(0, 16), "sbrk": code(0x50, 16), "madvise": code(0x100, 16)},
	}
	if diff := cmp.Diff(want, o, cmp.AllowUnexported(object{}, slot{})); diff != "" {
		t.Error(diff)
	}
	for addr, name := range map[uint64]string{
		0x2000: "munmap", 0x200f: "munmap+0xf", 0x2010: "", 0x1fff: "", 0x2024: "shmdt+0x4", 0x2030: "brk", 0x2049: "helper+0x9", 0x9999: "sbrk+0x7949",
	} {
		if got, err := nearest(bytes.NewReader(made()), addr); got != name || err != nil {
			t.Errorf("%#x is in %q, %v; want %q", addr, got, err, name)
		}
	}
}

func TestOddObjects(t *testing.T) {
	whole := made()
	for i := range len(whole) - 1 {
		if o, err := readObject(bytes.NewReader(whole[:i])); err == nil && i < len(whole)-64 {
			t.Fatalf("%d of %d bytes: %+v", i, len(whole), o)
		}
	}
	at := int(binary.LittleEndian.Uint64(whole[40:])) // the section headers
	for what, c := range map[string]struct {
		at  int
		to  []byte
		err error
	}{
		"32 bits":                      {4, []byte{1}, errObject},
		"big-endian":                   {5, []byte{2}, errObject},
		"another machine":              {18, []byte{22}, errMachine},
		"a table that is compressed":   {at + 64 + 8, w64(uint64(elf.SHF_COMPRESSED)), errObject},
		"a table without end":          {at + 64 + 32, w64(1 << 60), errObject},
		"names in no section":          {at + 64 + 40, []byte{200}, errObject},
		"names behind the end":         {at + 128 + 24, w64(1 << 40), errObject},
		"relocations behind the end":   {at + 192 + 24, w64(1 << 40), errObject},
		"negative place of the header": {40, w64(1 << 63), errObject},
	} {
		b := slices.Clone(whole)
		copy(b[c.at:], c.to)
		if o, err := readObject(bytes.NewReader(b)); !errors.Is(err, c.err) {
			t.Errorf("%s: %+v, %v", what, o, err)
		}
		if _, err := nearest(bytes.NewReader(b), 0x2000); err == nil && !strings.HasPrefix(what, "relocations") {
			t.Errorf("%s: a symbol was found", what)
		}
	}
}

// TestLibraryOnDisk reads the C library that this program is linked with: package net brings it.
func TestLibraryOnDisk(t *testing.T) {
	maps, err := sys.Mappings()
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(maps, func(m sys.MappingInfo) bool { return isLibrary(m.File) })
	testutil.Require(t, testutil.Capability{Name: "a C library in this program (cgo)", Probe: func() error {
		if i < 0 {
			return errors.New("it is static")
		}
		return nil
	}})
	f, err := os.Open(maps[i].File)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	o, err := readObject(f)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range functions {
		if o.defines[name] == 0 && name != "mmap64" || len(o.code[name]) == 0 && o.defines[name] != 0 {
			t.Errorf("%s: at %#x, %d bytes", name, o.defines[name], len(o.code[name]))
		}
	}
	name, err := nearest(f, o.defines["mremap"]+1)
	if err != nil || !strings.Contains(name, "mremap+0x1") {
		t.Errorf("%q, %v", name, err)
	}
}

func FuzzReadObject(f *testing.F) {
	f.Add(made())
	f.Add(madeELF(elf.EM_AARCH64, nil, nil))
	f.Fuzz(func(_ *testing.T, b []byte) {
		if _, err := readObject(bytes.NewReader(b)); err == nil {
			nearest(bytes.NewReader(b), 0x2001)
		}
	})
}
