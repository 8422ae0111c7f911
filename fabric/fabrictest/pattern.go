package fabrictest

import "encoding/binary"

// word is the pattern's eight bytes number n. Every seed has its own pattern, and the bytes of a
// pattern depend on their place, so that bytes that went astray are seen.
func word(seed uint64, n uint64) uint64 {
	x := (seed + n + 1) * 0x9e3779b97f4a7c15
	x ^= x >> 29
	x *= 0xbf58476d1ce4e5b9
	return x ^ x>>32
}

// fill writes the pattern, from its byte number at on.
func fill(b []byte, seed uint64, at int) {
	for len(b) > 0 && at%8 != 0 {
		b[0] = byte(word(seed, uint64(at)/8) >> (8 * (at % 8)))
		b, at = b[1:], at+1
	}
	for len(b) >= 8 {
		binary.LittleEndian.PutUint64(b, word(seed, uint64(at)/8))
		b, at = b[8:], at+8
	}
	for i := range b {
		b[i] = byte(word(seed, uint64(at)/8) >> (8 * i))
	}
}

// wrong returns the index of the first byte that is not the pattern's, or -1.
func wrong(b []byte, seed uint64, at int) int {
	for i := 0; i < len(b); {
		if p := at + i; p%8 == 0 && len(b)-i >= 8 && binary.LittleEndian.Uint64(b[i:]) == word(seed, uint64(p)/8) {
			i += 8
			continue
		}
		p := at + i
		if b[i] != byte(word(seed, uint64(p)/8)>>(8*(p%8))) {
			return i
		}
		i++
	}
	return -1
}

// pattern returns n new bytes of the pattern.
func pattern(n int, seed uint64) []byte {
	b := make([]byte, n)
	fill(b, seed, 0)
	return b
}
