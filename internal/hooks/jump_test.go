package hooks

import (
	"debug/elf"
	"encoding/binary"
	"testing"
)

// atWord is memory that has one word.
func atWord(addr, v uint64) pointer {
	return func(a uint64) (uint64, bool) { return v, a == addr }
}

// words are instructions of arm64.
func words(list ...uint32) string {
	var b []byte
	for _, w := range list {
		b = binary.LittleEndian.AppendUint32(b, w)
	}
	return string(b)
}

const (
	codeAt = 0x7f00_0000_1ffc
	goal   = 0x7f12_3456_789a
)

var jumps = []struct {
	what string
	m    elf.Machine
	code string
	to   uint64
}{
	{"Open MPI, libfabric", elf.EM_X86_64, "\x49\xbb\x9a\x78\x56\x34\x12\x7f\x00\x00\x41\xff\xe3", goal},
	{"mov rax; jmp rax", elf.EM_X86_64, "\x48\xb8\x9a\x78\x56\x34\x12\x7f\x00\x00\xff\xe0", goal},
	{"behind an endbr64", elf.EM_X86_64, "\xf3\x0f\x1e\xfa\xe9\xfb\xff\xff\xff", codeAt + 4},
	{"near", elf.EM_X86_64, "\xe9\x00\x01\x00\x00", codeAt + 5 + 0x100},
	{"short, backwards", elf.EM_X86_64, "\xeb\xfe", codeAt},
	{"through a word", elf.EM_X86_64, "\xff\x25\x02\x00\x00\x00", goal},
	{"Open MPI", elf.EM_AARCH64, words(0xd2e0000f, 0xf2cfe24f, 0xf2a68acf, 0xf28f134f, 0xd61f01e0), goal},
	{"the other way round, with movz of the low part", elf.EM_AARCH64, words(0xd503245f, 0xd28f134f, 0xf2a68acf, 0xf2cfe24f, 0xd61f01e0), goal},
	{"b", elf.EM_AARCH64, words(0x14000003), codeAt + 12},
	{"b backwards", elf.EM_AARCH64, words(0xd503201f, 0x17ffffff), codeAt},
	{"a word behind", elf.EM_AARCH64, words(0x58000050, 0xd61f0200), goal}, // ldr x16, .+8; br x16
	{"adrp, add", elf.EM_AARCH64, words(0x90000010, 0x91003210, 0xd61f0200), codeAt&^0xfff + 12},
	{"adrp of the next page, add of pages", elf.EM_AARCH64, words(0xb0000010, 0x91400610, 0xd61f0200), codeAt&^0xfff + 0x2000},
	{"a stub", elf.EM_AARCH64, words(0xf0000010, 0xf9400a11, 0xd61f0220), goal}, // adrp x16, 3 pages; ldr x17, [x16, 16]; br x17
}

func TestJump(t *testing.T) {
	holds := func(addr uint64) (uint64, bool) {
		return goal, addr == codeAt+8 || addr == codeAt&^0xfff+3<<12+16
	}
	for _, j := range jumps {
		if to, ok := jump(j.m, []byte(j.code), codeAt, holds); !ok || to != j.to {
			t.Errorf("%s: %#x, %v; want %#x", j.what, to, ok, j.to)
		}
		for i := range j.code {
			if to, ok := jump(j.m, []byte(j.code[:i]), codeAt, holds); ok && i < len(j.code)-2 {
				t.Errorf("%s: the first %d bytes go to %#x", j.what, i, to)
			}
		}
	}
}

func TestNoJump(t *testing.T) {
	for what, c := range map[string]struct {
		m    elf.Machine
		code string
	}{
		"a system call":               {elf.EM_X86_64, "\xb8\x0b\x00\x00\x00\x0f\x05\x48\x3d\x01\xf0\xff\xff"},
		"another register":            {elf.EM_X86_64, "\x49\xbb\x9a\x78\x56\x34\x12\x7f\x00\x00\x41\xff\xe2"},
		"a call":                      {elf.EM_X86_64, "\x49\xbb\x9a\x78\x56\x34\x12\x7f\x00\x00\x41\xff\xd3"},
		"no word there":               {elf.EM_X86_64, "\xff\x25\x02\x00\x00\x10"},
		"a breakpoint":                {elf.EM_X86_64, "\xcc"},
		"a system call of arm64":      {elf.EM_AARCH64, words(0xd2801ae8, 0xd4000001)},
		"a register nobody has set":   {elf.EM_AARCH64, words(0xd61f01e0)},
		"movk of what nobody has set": {elf.EM_AARCH64, words(0xf28f134f, 0xd61f01e0)},
		"add to what nobody has set":  {elf.EM_AARCH64, words(0x91003210, 0xd61f0200)},
		"a word of nobody's":          {elf.EM_AARCH64, words(0xf9400a11, 0xd61f0220)},
		"a word that cannot be read":  {elf.EM_AARCH64, words(0x58000070, 0xd61f0200)},
		"no end":                      {elf.EM_AARCH64, words(0xd503201f, 0xd503201f)},
		"a machine that nobody knows": {elf.EM_S390, "\xe9\x00\x01\x00\x00"},
	} {
		if to, ok := jump(c.m, []byte(c.code), codeAt, atWord(codeAt+8, goal)); ok {
			t.Errorf("%s goes to %#x", what, to)
		}
	}
}

func FuzzJump(f *testing.F) {
	for _, j := range jumps {
		f.Add([]byte(j.code), j.m == elf.EM_AARCH64)
	}
	f.Fuzz(func(t *testing.T, code []byte, arm bool) {
		m := elf.EM_X86_64
		if arm {
			m = elf.EM_AARCH64
		}
		jump(m, code, codeAt, atWord(codeAt+8, goal))
	})
}
