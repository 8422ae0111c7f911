// Package lookup3 is Bob Jenkins' lookup3 hash in its little-endian byte
// forms, hashlittle and hashlittle2. EVPath names attributes by the first
// (docs/wire/cm.md §2.2), FFS names formats by the second (docs/wire/ffs.md
// §3), so both must agree bit for bit with the C originals.
//
// It is not a hash for tables that hostile input fills: it has no secret seed.
//
// All functions are pure and safe for concurrent use.
package lookup3

import (
	"encoding/binary"
	"math/bits"
)

// start is the constant that all three words begin with, before the length
// and the seed are added (docs/wire/bp5.md §1.2).
const start = 0xdeadbeef

// Hash is hashlittle: the 32-bit hash of p with the seed init.
func Hash(p []byte, init uint32) uint32 {
	c, _ := sum(p, init)
	return c
}

// Hash2 is hashlittle2 with both seeds 0: two 32-bit hashes of p, the primary
// one (c) first.
func Hash2(p []byte) (c, b uint32) {
	return sum(p, 0)
}

// sum runs the hash over p. Only the first seed is a parameter: nothing in
// EVPath or FFS uses the second one.
func sum(p []byte, init uint32) (uint32, uint32) {
	a := start + uint32(len(p)) + init
	b, c := a, a
	for len(p) > 12 {
		a += binary.LittleEndian.Uint32(p)
		b += binary.LittleEndian.Uint32(p[4:])
		c += binary.LittleEndian.Uint32(p[8:])
		a, b, c = mix(a, b, c)
		p = p[12:]
	}
	if len(p) == 0 {
		return c, b // no bytes at all: the final rounds are skipped
	}
	var tail [12]byte // the rest, zero-extended; a full 12 bytes come here too
	copy(tail[:], p)
	a += binary.LittleEndian.Uint32(tail[:])
	b += binary.LittleEndian.Uint32(tail[4:])
	c += binary.LittleEndian.Uint32(tail[8:])
	return final(a, b, c)
}

// mix stirs three words reversibly (rotations of docs/wire/bp5.md §1.2).
func mix(a, b, c uint32) (uint32, uint32, uint32) {
	a -= c
	a ^= bits.RotateLeft32(c, 4)
	c += b
	b -= a
	b ^= bits.RotateLeft32(a, 6)
	a += c
	c -= b
	c ^= bits.RotateLeft32(b, 8)
	b += a
	a -= c
	a ^= bits.RotateLeft32(c, 16)
	c += b
	b -= a
	b ^= bits.RotateLeft32(a, 19)
	a += c
	c -= b
	c ^= bits.RotateLeft32(b, 4)
	b += a
	return a, b, c
}

// final spreads the three words over (c, b).
func final(a, b, c uint32) (uint32, uint32) {
	c ^= b
	c -= bits.RotateLeft32(b, 14)
	a ^= c
	a -= bits.RotateLeft32(c, 11)
	b ^= a
	b -= bits.RotateLeft32(a, 25)
	c ^= b
	c -= bits.RotateLeft32(b, 16)
	a ^= c
	a -= bits.RotateLeft32(c, 4)
	b ^= a
	b -= bits.RotateLeft32(a, 14)
	c ^= b
	c -= bits.RotateLeft32(b, 24)
	return c, b
}
