package blosc

import "encoding/binary"

// Filters (C-Blosc2 README_CHUNK_FORMAT, filter codes).
const (
	filterNone       = 0 // the slot is not used
	filterShuffle    = 1 // bytes of equal weight together
	filterBitShuffle = 2 // bits of equal weight together
	filterDelta      = 3 // exclusive or with the chunk's first block
	filterTruncate   = 4 // cuts bits off floats: nothing to undo
)

// unfilter undoes the filters of a chunk, block by block. A block is decoded into input and comes out in the chunk's
// destination.
type unfilter struct {
	*chunk
	cur, next []byte // of a block's size; nil if no filter moves bytes
	direct    []byte // the block, if no filter moves bytes
}

// newUnfilter allocates two blocks if bytes have to be moved, for all blocks of the chunk. Their size is at most that
// of the destination, which parseChunk has made sure of.
func newUnfilter(c *chunk) *unfilter {
	u := &unfilter{chunk: c}
	for _, f := range c.filters {
		if f == filterShuffle || f == filterBitShuffle {
			u.cur, u.next = make([]byte, c.blockSize), make([]byte, c.blockSize)
			break
		}
	}
	return u
}

// input returns where to decode the block that belongs into dst.
func (u *unfilter) input(dst []byte) []byte {
	if u.cur == nil {
		u.direct = dst
		return dst
	}
	return u.cur[:len(dst)]
}

// undo takes the block from where input said and puts it into dst[lo:hi]. Filters were applied in the order of their
// slots, so they are undone from the last to the first.
func (u *unfilter) undo(dst []byte, lo, hi int) {
	n := hi - lo // the last block is shorter
	for i := filterSlots - 1; i >= 0; i-- {
		switch u.filters[i] {
		case filterShuffle:
			unshuffle(u.next[:n], u.cur[:n], u.typeSize)
			u.cur, u.next = u.next, u.cur
		case filterBitShuffle:
			bitUnshuffle(u.next[:n], u.cur[:n], u.typeSize)
			u.cur, u.next = u.next, u.cur
		case filterDelta:
			b := u.direct
			if u.cur != nil {
				b = u.cur[:n]
			}
			undoDelta(b, dst, lo, u.typeSize)
		}
	}
	if u.cur != nil {
		copy(dst[lo:hi], u.cur)
	}
}

// unshuffle puts the bytes of each element together again. src has first byte 0 of all elements, then byte 1 of all
// elements, and so on; bytes behind the last whole element are as they were.
func unshuffle(dst, src []byte, typeSize int) {
	n := len(src) / typeSize
	for b := range typeSize {
		plane := src[b*n : (b+1)*n]
		for i, j := 0, b; i < len(plane); i, j = i+1, j+typeSize {
			dst[j] = plane[i]
		}
	}
	copy(dst[n*typeSize:], src[n*typeSize:])
}

// bitUnshuffle is unshuffle for bits: src has bit 0 of byte 0 of all elements, then bit 1, and so on. That needs a
// multiple of 8 elements; bytes of the elements behind are as they were.
func bitUnshuffle(dst, src []byte, typeSize int) {
	row := len(src) / typeSize / 8 // bytes of one bit of all elements
	for b := range typeSize {
		p := src[b*8*row : (b+1)*8*row]
		p0, p1, p2, p3 := p[:row], p[row:2*row], p[2*row:3*row], p[3*row:4*row]
		p4, p5, p6, p7 := p[4*row:5*row], p[5*row:6*row], p[6*row:7*row], p[7*row:8*row]
		for g := range row {
			x := transpose(uint64(p0[g]) | uint64(p1[g])<<8 | uint64(p2[g])<<16 | uint64(p3[g])<<24 |
				uint64(p4[g])<<32 | uint64(p5[g])<<40 | uint64(p6[g])<<48 | uint64(p7[g])<<56)
			for at := g*8*typeSize + b; at < (g+1)*8*typeSize; at += typeSize {
				dst[at] = byte(x)
				x >>= 8
			}
		}
	}
	done := row * 8 * typeSize // elements beyond a multiple of 8 were left alone
	copy(dst[done:], src[done:])
}

// transpose mirrors the 8 × 8 bits of x: bit e of byte k becomes bit k of byte e. It swaps blocks of 1, 2 and 4 bits.
func transpose(x uint64) uint64 {
	// By ever larger squares along the diagonal.
	x = swap(x, 7, 0x00aa00aa00aa00aa)
	x = swap(x, 14, 0x0000cccc0000cccc)
	return swap(x, 28, 0x00000000f0f0f0f0)
}

// swap exchanges the bits of mask with those that lie shift higher.
func swap(x uint64, shift uint, mask uint64) uint64 {
	t := (x ^ x>>shift) & mask
	return x ^ t ^ t<<shift
}

// undoDelta undoes the exclusive or of block b, which belongs at lo of dst. The reference is the first block of the
// chunk; there it is the element before.
func undoDelta(b, dst []byte, lo, typeSize int) {
	if lo > 0 {
		xor(b, dst)
		return
	}
	for i := typeSize; i < len(b); i++ {
		b[i] ^= b[i-typeSize]
	}
}

// xor is b ^= ref; ref is at least as long.
func xor(b, ref []byte) {
	for len(b) >= 8 {
		binary.LittleEndian.PutUint64(b, binary.LittleEndian.Uint64(b)^binary.LittleEndian.Uint64(ref))
		b, ref = b[8:], ref[8:]
	}
	for i := range b {
		b[i] ^= ref[i]
	}
}
