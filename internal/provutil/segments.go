package provutil

import "github.com/weft-fabric/weft/fabric/provider"

// Vector is the local buffer of an operation: a first segment, and more. It is what Op.Local and Op.Locals say.
type Vector struct {
	First []byte
	More  []provider.Segment
}

// VectorOf is the local buffer of op.
func VectorOf(op *provider.Op) Vector { return Vector{op.Local.Bytes, op.Locals} }

// Joined is all of it in one piece: its own if it has but one, else a copy in scratch, which must have room.
func (v Vector) Joined(scratch []byte) []byte {
	if len(v.More) == 0 {
		return v.First
	}
	return scratch[:v.Gather(0, scratch)]
}

// Len is the number of bytes.
func (v Vector) Len() uint64 {
	n := uint64(len(v.First))
	for i := range v.More {
		n += uint64(len(v.More[i].Bytes))
	}
	return n
}

// At is the contiguous piece from offset on, empty at the end.
func (v Vector) At(offset uint64) []byte {
	if offset < uint64(len(v.First)) {
		return v.First[offset:]
	}
	offset -= uint64(len(v.First))
	for i := range v.More {
		b := v.More[i].Bytes
		if offset < uint64(len(b)) {
			return b[offset:]
		}
		offset -= uint64(len(b))
	}
	return nil
}

// Scatter copies src into the vector from offset on, and returns how many bytes had room.
func (v Vector) Scatter(offset uint64, src []byte) int {
	done := 0
	for done < len(src) {
		dst := v.At(offset + uint64(done))
		if len(dst) == 0 {
			break
		}
		done += copy(dst, src[done:])
	}
	return done
}

// Gather copies from the vector, from offset on, into dst, and returns how many bytes there were.
func (v Vector) Gather(offset uint64, dst []byte) int {
	done := 0
	for done < len(dst) {
		src := v.At(offset + uint64(done))
		if len(src) == 0 {
			break
		}
		done += copy(dst[done:], src)
	}
	return done
}

// CopyVector copies at most limit bytes from src to dst, from the same offset in both plus their own starts, and
// returns how many it copied: less than limit where one of them ends.
func CopyVector(dst Vector, dstOffset uint64, src Vector, srcOffset, limit uint64) uint64 {
	var done uint64
	for done < limit {
		from := src.At(srcOffset + done)
		to := dst.At(dstOffset + done)
		if len(from) == 0 || len(to) == 0 {
			break
		}
		if uint64(len(from)) > limit-done {
			from = from[:limit-done]
		}
		done += uint64(copy(to, from))
	}
	return done
}
