package provutil

import "math/bits"

// The sizes of pooled buffers: powers of two.
const (
	minBuffer = 6  // 64 bytes
	maxBuffer = 16 // 64 KiB
	keepBytes = 1 << 20
)

// Buffers hands out private memory for messages that wait, and takes it back. At most 1 MiB of each size is kept.
// The lock of the domain guards it.
type Buffers struct {
	free [maxBuffer + 1][][]byte
}

// Get returns n bytes that hold anything.
func (p *Buffers) Get(n int) []byte {
	c := bufferClass(n)
	if c > maxBuffer {
		return make([]byte, n)
	}
	if l := p.free[c]; len(l) > 0 {
		b := l[len(l)-1]
		l[len(l)-1] = nil
		p.free[c] = l[:len(l)-1]
		return b[:n]
	}
	return make([]byte, n, 1<<c)
}

// Put takes back what Get gave.
func (p *Buffers) Put(b []byte) {
	c := bufferClass(cap(b))
	if c > maxBuffer || cap(b) != 1<<c || len(p.free[c])<<c >= keepBytes {
		return
	}
	p.free[c] = append(p.free[c], b[:0])
}

func bufferClass(n int) int { return max(minBuffer, bits.Len(uint(max(n, 1)-1))) }
