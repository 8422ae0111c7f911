package hooks

import (
	"debug/elf"
	"encoding/binary"
)

// maxJump is how many bytes of a function are looked at: the longest jumps that hooks write are 20 bytes.
const maxJump = 32

// pointer reads a word of memory.
type pointer func(addr uint64) (uint64, bool)

// jump says where code goes that begins with a jump: what it is for a machine, code at an address. It knows the forms that memory hooks
// are made of.
func jump(m elf.Machine, code []byte, at uint64, load pointer) (uint64, bool) {
	switch m {
	case elf.EM_X86_64:
		return jumpAMD64(code, at, load)
	case elf.EM_AARCH64:
		return jumpARM64(code, at, load)
	}
	return 0, false
}

// jumpAMD64 knows, after an endbr64 (F3 0F 1E FA) or without:
//
//	48+b B8+r imm64 | [41] FF E0+r   mov r, imm64; jmp r (b and r are the register)
//	E9 rel32                         jmp, from the next instruction
//	EB rel8                          the same
//	FF 25 rel32                      jmp *[rip + rel32]
func jumpAMD64(code []byte, at uint64, load pointer) (uint64, bool) {
	if len(code) >= 4 && string(code[:4]) == "\xf3\x0f\x1e\xfa" {
		code, at = code[4:], at+4
	}
	switch {
	case len(code) >= 10 && code[0]&^1 == 0x48 && code[1]&^7 == 0xb8:
		r, rest := code[1]&7, code[10:]
		if code[0] == 0x49 {
			if len(rest) == 0 || rest[0] != 0x41 {
				return 0, false
			}
			rest = rest[1:]
		}
		return binary.LittleEndian.Uint64(code[2:]), len(rest) >= 2 && rest[0] == 0xff && rest[1] == 0xe0|r
	case len(code) >= 5 && code[0] == 0xe9:
		return at + 5 + signed(binary.LittleEndian.Uint32(code[1:]), 32), true
	case len(code) >= 2 && code[0] == 0xeb:
		return at + 2 + signed(uint32(code[1]), 8), true
	case len(code) >= 6 && code[0] == 0xff && code[1] == 0x25:
		return load(at + 6 + signed(binary.LittleEndian.Uint32(code[2:]), 32))
	}
	return 0, false
}

// signed extends a number of some bits.
func signed(v uint32, bits uint) uint64 {
	return uint64(int64(uint64(v)<<(64-bits)) >> (64 - bits))
}

// Instructions of arm64: what a word has to be under the mask.
var arm64 = []struct {
	mask, is uint32
	do       func(*registers, uint32)
}{
	{0xffffffff, 0xd503201f, func(*registers, uint32) {}}, // nop
	{0xffffff3f, 0xd503241f, func(*registers, uint32) {}}, // bti
	{0xff800000, 0xd2800000, (*registers).movz},           // movz x, imm16, lsl
	{0xff800000, 0xf2800000, (*registers).movk},           // movk x, imm16, lsl
	{0x9f000000, 0x90000000, (*registers).adrp},           // adrp x, page
	{0xff800000, 0x91000000, (*registers).add},            // add x, x, imm12
	{0xffc00000, 0xf9400000, (*registers).ldr},            // ldr x, [x, imm12]
	{0xff000000, 0x58000000, (*registers).ldrLiteral},     // ldr x, label
	{0xfc000000, 0x14000000, (*registers).b},              // b label
	{0xfffffc1f, 0xd61f0000, (*registers).br},             // br x
}

// registers are what is known of them while instructions are followed.
type registers struct {
	pc    uint64
	load  pointer
	x     [32]uint64
	known [32]bool
	to    uint64
	left  bool // by a branch
	sure  bool // to is known
}

// The fields of an instruction word: the registers that it writes and reads, a number of 16 bits and its place.
func written(w uint32) uint32 { return w & 31 }
func read(w uint32) uint32    { return w >> 5 & 31 }
func place(w uint32) uint32   { return w >> 21 & 3 * 16 }
func piece(w uint32) uint64   { return uint64(w>>5&0xffff) << place(w) }

func (r *registers) set(w uint32, v uint64, known bool) {
	r.x[written(w)], r.known[written(w)] = v, known
}

func (r *registers) fetch(w uint32, addr uint64, known bool) {
	v := uint64(0)
	if known {
		v, known = r.load(addr)
	}
	r.set(w, v, known)
}

func (r *registers) movz(w uint32) { r.set(w, piece(w), true) }

func (r *registers) movk(w uint32) {
	d := written(w)
	r.set(w, r.x[d]&^(0xffff<<place(w))|piece(w), r.known[d])
}

func (r *registers) adrp(w uint32) {
	r.set(w, r.pc&^0xfff+signed(w>>5&0x7ffff<<2|w>>29&3, 21)<<12, true)
}

func (r *registers) add(w uint32) {
	imm := uint64(w >> 10 & 0xfff)
	if w>>22&1 != 0 {
		imm <<= 12
	}
	r.set(w, r.x[read(w)]+imm, r.known[read(w)])
}

func (r *registers) ldr(w uint32) {
	r.fetch(w, r.x[read(w)]+uint64(w>>10&0xfff)*8, r.known[read(w)])
}

func (r *registers) ldrLiteral(w uint32) { r.fetch(w, r.pc+signed(w>>5&0x7ffff, 19)*4, true) }

func (r *registers) b(w uint32) { r.to, r.left, r.sure = r.pc+signed(w&0x3ffffff, 26)*4, true, true }

func (r *registers) br(w uint32) { r.to, r.left, r.sure = r.x[read(w)], true, r.known[read(w)] }

// jumpARM64 follows the instructions that make an address in a register, up to a branch.
func jumpARM64(code []byte, at uint64, load pointer) (uint64, bool) {
	r := registers{pc: at, load: load}
next:
	for ; len(code) >= 4; code, r.pc = code[4:], r.pc+4 {
		w := binary.LittleEndian.Uint32(code)
		for _, i := range arm64 {
			if w&i.mask != i.is {
				continue
			}
			i.do(&r, w)
			if r.left {
				return r.to, r.sure
			}
			continue next
		}
		break
	}
	return 0, false
}
