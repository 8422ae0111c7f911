package shm

import (
	"encoding/binary"
	"fmt"
	"io"
)

// reader takes fields off a body. The first thing that is wrong stays in err, and all later fields are
// zero, so that a parser asks once, at the end.
type reader struct {
	b   []byte
	err error
}

func (r *reader) take(n int) []byte {
	if r.err == nil && n > len(r.b) {
		r.err = io.ErrUnexpectedEOF
	}
	if r.err != nil {
		return nil
	}
	v := r.b[:n]
	r.b = r.b[n:]
	return v
}

func (r *reader) u16() uint16 {
	if v := r.take(2); v != nil {
		return binary.LittleEndian.Uint16(v)
	}
	return 0
}

func (r *reader) u32() uint32 {
	if v := r.take(4); v != nil {
		return binary.LittleEndian.Uint32(v)
	}
	return 0
}

func (r *reader) u64() uint64 {
	if v := r.take(8); v != nil {
		return binary.LittleEndian.Uint64(v)
	}
	return 0
}

// text reads a length and as many bytes.
func (r *reader) text(most int) string {
	n := int(r.u16())
	if r.err == nil && n > most {
		r.err = fmt.Errorf("%w: a text of %d bytes, at most %d", errMessage, n, most)
	}
	return string(r.take(n))
}

func (r *reader) segments() []segmentInfo {
	n := int(r.u16())
	if r.err == nil && n > maxSegments {
		r.err = fmt.Errorf("%w: %d segments, at most %d", errMessage, n, maxSegments)
	}
	var list []segmentInfo
	for range n {
		if r.err != nil {
			return nil
		}
		list = append(list, segmentInfo{r.u32(), r.u32(), r.u64()})
	}
	return list
}

// end is the error of all that was read; what is left over is one.
func (r *reader) end() error {
	if r.err == nil && len(r.b) > 0 {
		r.err = fmt.Errorf("%w: %d bytes too many", errMessage, len(r.b))
	}
	return r.err
}
