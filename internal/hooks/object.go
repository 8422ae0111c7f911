package hooks

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
)

// functions are those that can give memory back, or put other memory at its address. mmap64 is the name of mmap for programs with 64-bit offsets.
var functions = []string{"munmap", "mmap", "mmap64", "mremap", "madvise", "shmat", "shmdt", "brk", "sbrk"}

// isFunction has them by name, so that looking one up takes no memory.
var isFunction = func() map[string]string {
	m := map[string]string{}
	for _, f := range functions {
		m[f] = f
	}
	return m
}()

// object is what the file of a program or library says of the functions. Addresses are as in the file.
type object struct {
	machine elf.Machine
	begin   uint64            // where it is loaded, and the end of that
	end     uint64            //
	defines map[string]uint64 // functions that others can find in it
	stubs   map[string]uint64 // functions of others, of which it publishes stubs of its own as the address
	slots   []slot
	code    map[string][]byte // first bytes of the functions it defines, and of the stubs
}

// slot is a word through which an object calls a function.
type slot struct {
	function string
	addr     uint64
	initial  uint64 // what it holds before the loader has looked the function up (and moved it by the bias); 0: nothing
}

// symbolSize is of Elf64_Sym: name u32 | info u8 | other u8 | section u16 | value u64 | size u64. relocationSize is of Elf64_Rela:
// offset u64 | type u32 | symbol u32 | addend i64. Both are little-endian here.
const (
	symbolSize     = 24
	relocationSize = 24
)

// Relocations that fill a slot with the address of a function, by machine.
var slotTypes = map[elf.Machine][]uint32{
	elf.EM_X86_64:  {uint32(elf.R_X86_64_JMP_SLOT), uint32(elf.R_X86_64_GLOB_DAT)},
	elf.EM_AARCH64: {uint32(elf.R_AARCH64_JUMP_SLOT), uint32(elf.R_AARCH64_GLOB_DAT)},
}

// maxSection is how many bytes a table may have, and maxTables how many tables of symbols, and of relocations of one of those, are read: ELF has one
// table of dynamic symbols, and two of relocations; a file of holes has as many as it says. maxNamed is how often a table of symbols, and the slots of a
// file, may name the functions.
const (
	maxSection = 1 << 28
	maxTables  = 4
	maxNamed   = 1 << 10
)

var (
	errObject  = errors.New("odd ELF file")
	errTables  = fmt.Errorf("%w: more tables than %d", errObject, maxTables)
	errNamed   = fmt.Errorf("%w: it names memory functions more than %d times", errObject, maxNamed)
	errMachine = errors.New("not of a machine that is understood: 64 bits, little-endian, amd64 or arm64")
)

// readObject reads a file, which may be anything.
func readObject(r io.ReaderAt) (o *object, err error) {
	defer func() { // debug/elf promises nothing for hostile files
		if p := recover(); p != nil {
			o, err = nil, fmt.Errorf("%w: %v", errObject, p)
		}
	}()
	f, err := openELF(r)
	if err != nil {
		return nil, err
	}
	o = &object{machine: f.Machine, defines: map[string]uint64{}, stubs: map[string]uint64{}, code: map[string][]byte{}}
	o.begin, o.end = extent(f)
	for n, i := range tables(f, func(s *elf.Section) bool { return s.Type == elf.SHT_DYNSYM }) {
		if n == maxTables {
			return nil, errTables
		}
		if err := o.readTable(f, i); err != nil {
			return nil, err
		}
	}
	return o, nil
}

// tables are the sections of a kind, by their numbers.
func tables(f *elf.File, is func(*elf.Section) bool) (list []int) {
	for i, s := range f.Sections {
		if is(s) {
			list = append(list, i)
		}
	}
	return list
}

func openELF(r io.ReaderAt) (*elf.File, error) {
	f, err := elf.NewFile(r)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errObject, err)
	}
	if f.Class != elf.ELFCLASS64 || f.Data != elf.ELFDATA2LSB || slotTypes[f.Machine] == nil {
		return nil, errMachine
	}
	return f, nil
}

// readTable reads a table of dynamic symbols, and the relocations that use it.
func (o *object) readTable(f *elf.File, index int) error {
	t, err := openSymbols(f, index)
	if err != nil {
		return err
	}
	at := map[uint32]string{}
	for i := range t.number() {
		s := t.at(i)
		name, ok := isFunction[string(s.name)]
		if !ok {
			continue
		}
		if len(at) == maxNamed {
			return errNamed
		}
		at[uint32(i)] = name
		switch {
		case s.section == uint16(elf.SHN_UNDEF) && s.value != 0:
			o.stubs[name] = s.value
			o.code[name] = contents(f, s.value, codeLen(0))
		case s.public():
			o.defines[name] = s.value
			o.code[name] = contents(f, s.value, codeLen(s.size))
		}
	}
	if len(at) == 0 {
		return nil
	}
	for n, i := range tables(f, func(s *elf.Section) bool { return s.Type == elf.SHT_RELA && s.Link == uint32(index) }) {
		if n == maxTables {
			return errTables
		}
		b, err := section(f.Sections[i])
		if err != nil {
			return err
		}
		if err := o.readRelocations(f, b, at); err != nil {
			return err
		}
	}
	return nil
}

// codeLen is how much of a function is compared: not what lies behind a short one.
func codeLen(size uint64) int {
	if size == 0 {
		return maxJump / 2
	}
	return int(min(size, maxJump))
}

func (o *object) readRelocations(f *elf.File, b []byte, at map[uint32]string) error {
	for ; len(b) >= relocationSize; b = b[relocationSize:] {
		kind, symbol := binary.LittleEndian.Uint32(b[8:]), binary.LittleEndian.Uint32(b[12:])
		name, ok := at[symbol]
		if !ok || !slices.Contains(slotTypes[o.machine], kind) {
			continue
		}
		if len(o.slots) == maxNamed {
			return errNamed
		}
		s := slot{function: name, addr: word(b, 0)}
		if c := contents(f, s.addr, 8); len(c) == 8 {
			s.initial = word(c, 0)
		}
		o.slots = append(o.slots, s)
	}
	return nil
}

// extent is from the first to the last address that is loaded.
func extent(f *elf.File) (begin, end uint64) {
	begin = ^uint64(0)
	for _, p := range f.Progs {
		if p.Type == elf.PT_LOAD && p.Memsz <= ^uint64(0)-p.Vaddr {
			begin, end = min(begin, p.Vaddr), max(end, p.Vaddr+p.Memsz)
		}
	}
	return min(begin, end), end
}

// contents are up to n bytes of the file that are loaded at an address; those behind the end of the segment are not there.
func contents(f *elf.File, addr uint64, n int) []byte {
	for _, p := range f.Progs {
		if p.Type != elf.PT_LOAD || addr < p.Vaddr || addr-p.Vaddr >= p.Filesz {
			continue
		}
		b := make([]byte, min(uint64(n), p.Filesz-(addr-p.Vaddr)))
		got, err := p.ReadAt(b, int64(addr-p.Vaddr))
		if err != nil && !errors.Is(err, io.EOF) {
			return nil
		}
		return b[:got]
	}
	return nil
}

// section is the contents of one.
func section(s *elf.Section) ([]byte, error) {
	if s.Size > maxSection || s.Flags&elf.SHF_COMPRESSED != 0 || s.Type == elf.SHT_NOBITS {
		return nil, fmt.Errorf("%w: section %q of %d bytes", errObject, s.Name, s.Size)
	}
	b, err := s.Data()
	if err != nil {
		return nil, fmt.Errorf("%w: section %q: %w", errObject, s.Name, err)
	}
	return b, nil
}

// symbols is a table of symbols with their names.
type symbols struct{ entries, names []byte }

func openSymbols(f *elf.File, index int) (symbols, error) {
	s := f.Sections[index]
	if int64(s.Link) >= int64(len(f.Sections)) {
		return symbols{}, fmt.Errorf("%w: section %q has its names in section %d of %d", errObject, s.Name, s.Link, len(f.Sections))
	}
	entries, err := section(s)
	if err != nil {
		return symbols{}, err
	}
	names, err := section(f.Sections[s.Link])
	return symbols{entries, names}, err
}

type symbol struct {
	name        []byte // of the table
	info, other byte
	section     uint16
	value, size uint64
}

func (t symbols) number() int { return len(t.entries) / symbolSize }

// maxName is where names are cut off: longer than any that is looked for, and short enough for a line.
const maxName = 200

// at is symbol i.
func (t symbols) at(i int) symbol {
	b := t.entries[i*symbolSize : (i+1)*symbolSize]
	s := symbol{info: b[4], other: b[5], section: binary.LittleEndian.Uint16(b[6:]), value: word(b, 1), size: word(b, 2)}
	if off := binary.LittleEndian.Uint32(b); int64(off) < int64(len(t.names)) {
		s.name = t.names[off:min(len(t.names), int(off)+maxName)]
		if end := bytes.IndexByte(s.name, 0); end >= 0 {
			s.name = s.name[:end]
		}
	}
	return s
}

func (s symbol) isFunction() bool {
	kind := elf.ST_TYPE(s.info)
	return (kind == elf.STT_FUNC || kind == elf.STT_GNU_IFUNC) && s.section != uint16(elf.SHN_UNDEF) && s.value != 0 && len(s.name) > 0
}

// public says whether other objects can find the function.
func (s symbol) public() bool {
	bind, seen := elf.ST_BIND(s.info), elf.ST_VISIBILITY(s.other)
	return s.isFunction() && (bind == elf.STB_GLOBAL || bind == elf.STB_WEAK) && (seen == elf.STV_DEFAULT || seen == elf.STV_PROTECTED)
}

// nearest names the function in a file in which an address lies, or behind which it lies: "name" or "name+0x10". Empty if there is none.
func nearest(r io.ReaderAt, addr uint64) (name string, err error) {
	defer func() {
		if p := recover(); p != nil {
			name, err = "", fmt.Errorf("%w: %v", errObject, p)
		}
	}()
	f, err := openELF(r)
	if err != nil {
		return "", err
	}
	var best symbol
	for n, i := range tables(f, func(s *elf.Section) bool { return s.Type == elf.SHT_DYNSYM || s.Type == elf.SHT_SYMTAB }) {
		if n == maxTables {
			return "", errTables
		}
		t, err := openSymbols(f, i)
		if err != nil {
			return "", err
		}
		for i := range t.number() {
			if s := t.at(i); s.isFunction() && s.value <= addr && s.value > best.value {
				best = s
			}
		}
	}
	if len(best.name) == 0 || best.size != 0 && addr-best.value >= best.size {
		return "", nil
	}
	if best.value == addr {
		return string(best.name), nil
	}
	return fmt.Sprintf("%s+%#x", best.name, addr-best.value), nil
}
