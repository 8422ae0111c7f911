package hooks

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"slices"
	"testing"
)

// manyTables is a file of n tables of symbols, which all lie at its beginning.
func manyTables(t *testing.T, n int) []byte {
	t.Helper()
	h := elf.Header64{
		Ident: [16]byte{0x7f, 'E', 'L', 'F', 2, 1, 1}, Type: uint16(elf.ET_DYN), Machine: uint16(elf.EM_X86_64), Version: 1,
		Ehsize: 64, Shoff: 64, Shentsize: 64, Shnum: uint16(n + 2), Shstrndx: uint16(n + 1),
	}
	list := make([]elf.Section64, n+2)
	for i := range n {
		list[1+i] = elf.Section64{Type: uint32(elf.SHT_DYNSYM), Size: 24, Entsize: 24, Link: uint32(n + 1)}
	}
	list[n+1] = elf.Section64{Type: uint32(elf.SHT_STRTAB), Off: 56, Size: 8}
	var b bytes.Buffer
	for _, v := range []any{h, list} {
		if err := binary.Write(&b, binary.LittleEndian, v); err != nil {
			t.Fatal(err)
		}
	}
	return b.Bytes()
}

// TestManyTables has a file that says that it has thousands of tables: in one of holes each may have maxSection bytes, which took hours to read.
func TestManyTables(t *testing.T) {
	if _, err := readObject(bytes.NewReader(manyTables(t, maxTables))); err != nil {
		t.Error(err)
	}
	b := manyTables(t, maxTables+1)
	if _, err := readObject(bytes.NewReader(b)); !errors.Is(err, errTables) {
		t.Error(err)
	}
	if _, err := nearest(bytes.NewReader(b), 1); !errors.Is(err, errTables) {
		t.Error(err)
	}
}

// TestNamedTooOften has files that name the functions in more places than anybody has.
func TestNamedTooOften(t *testing.T) {
	one := madeSymbol{"munmap", weak, 0, 5, 0x2000, 16}
	relocation := madeRelocation(uint32(elf.R_X86_64_JMP_SLOT), 1, 0x3000)
	for what, b := range map[string]func(n int) []byte{
		"symbols": func(n int) []byte { return madeELF(elf.EM_X86_64, slices.Repeat([]madeSymbol{one}, n), nil) },
		"slots":   func(n int) []byte { return madeELF(elf.EM_X86_64, []madeSymbol{one}, bytes.Repeat(relocation, n)) },
	} {
		if _, err := readObject(bytes.NewReader(b(maxNamed))); err != nil {
			t.Errorf("%s: %v", what, err)
		}
		if _, err := readObject(bytes.NewReader(b(maxNamed + 1))); !errors.Is(err, errNamed) {
			t.Errorf("%s: %v", what, err)
		}
	}
}
