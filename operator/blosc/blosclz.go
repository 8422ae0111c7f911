package blosc

// Constants of blosclz, which is the second level of FastLZ (FastLZ README, block format).
const (
	lzMaxShort    = 8191 // distance − 1 that stands for: a 16-bit distance follows
	lzMinMatch    = 3    // bytes of the shortest match
	lzLongMatch   = 7    // value of the length bits that says: more length follows
	lzOffsetBits  = 0x1f // upper bits of the distance in the first byte
	lzLengthShift = 5
)

// decodeBloscLZ decodes src into dst and returns the number of bytes made. It never writes outside dst nor reads before
// its start.
//
// A stream is a row of instructions. The first byte is t:
//   - t < 32: copy the t+1 bytes that follow. The first instruction is one of these, with its upper bits ignored.
//   - else: copy (t>>5) + 2 bytes from output made before. For t>>5 == 7 add bytes to the length up to one that is not 255.
//     The distance is (t&31)<<8 + next byte + 1. If these 13 bits are all ones, it is 8191 + the next two bytes
//     (big-endian) + 1.
func decodeBloscLZ(dst, src []byte) (int, error) {
	in, out := 0, 0
	for in < len(src) {
		t := int(src[in])
		if in == 0 {
			t &= lzOffsetBits
		}
		in++
		if t>>lzLengthShift == 0 {
			n := t + 1
			if n > len(src)-in || n > len(dst)-out {
				return out, bad("blosclz: %d bytes at %d go over the end", n, in)
			}
			copy(dst[out:], src[in:in+n])
			in, out = in+n, out+n
			continue
		}
		n, dist, used := lzMatch(t, src[in:], len(dst)-out)
		if used == 0 || dist > out || n > len(dst)-out {
			return out, bad("blosclz: match at %d of %d bytes, %d back from %d", in, n, dist, out)
		}
		copyMatch(dst, out, n, dist)
		in, out = in+used, out+n
	}
	return out, nil
}

// lzMatch parses a match whose first byte was t, and returns its length, its distance and the bytes used of src, 0 if
// these do not suffice or the length is beyond limit.
func lzMatch(t int, src []byte, limit int) (n, dist, used int) {
	n = t>>lzLengthShift - 1 + lzMinMatch
	if t>>lzLengthShift == lzLongMatch {
		for more := byte(255); more == 255; used++ {
			if used >= len(src) || n > limit {
				return n, 0, 0
			}
			more = src[used]
			n += int(more)
		}
	}
	if used >= len(src) {
		return n, 0, 0
	}
	dist = (t&lzOffsetBits)<<8 | int(src[used])
	used++
	if dist == lzMaxShort {
		if used+2 > len(src) {
			return n, 0, 0
		}
		dist += int(src[used])<<8 | int(src[used+1])
		used += 2
	}
	return n, dist + 1, used
}

// copyMatch copies n bytes within dst to out from dist before. Source and destination may overlap: then the bytes
// repeat. dist is at least 1.
func copyMatch(dst []byte, out, n, dist int) {
	for n > 0 {
		m := copy(dst[out:out+n], dst[out-dist:out])
		out, n, dist = out+m, n-m, dist+m
	}
}
