package provutil

import "math/rand/v2"

// poolChunk is how many records a Pool makes at a time.
const poolChunk = 64

// Pool hands out records of one type by number, and takes them back. Records never move, so a pointer is good
// until Put. A number is also good to name a record to somebody else: Get with a generation finds out whether the
// record is still the same. The lock of the domain guards it.
type Pool[T any] struct {
	chunks [][]slot[T]
	free   []uint32
	used   int
	veiled bool
}

type slot[T any] struct {
	value T
	gen   uint32
	used  bool
}

// Veil has the generations of records that are made later start anywhere, so that nobody guesses an id that he was not told.
func (p *Pool[T]) Veil() { p.veiled = true }

// New returns a record, zeroed, and its id: its number in the lower half, its generation in the upper one. An id
// is never 0.
func (p *Pool[T]) New() (id uint64, value *T) {
	if len(p.free) == 0 {
		p.grow()
	}
	i := p.free[len(p.free)-1]
	p.free = p.free[:len(p.free)-1]
	s := p.at(i)
	s.used = true
	s.gen++
	if s.gen == 0 {
		s.gen = 1
	}
	p.used++
	return uint64(s.gen)<<32 | uint64(i), &s.value
}

func (p *Pool[T]) grow() {
	first := uint32(len(p.chunks) * poolChunk)
	p.chunks = append(p.chunks, make([]slot[T], poolChunk))
	for i := range uint32(poolChunk) {
		if p.veiled {
			p.at(first + i).gen = rand.Uint32()
		}
		p.free = append(p.free, first+poolChunk-1-i) // the lowest is taken first
	}
}

func (p *Pool[T]) at(i uint32) *slot[T] { return &p.chunks[i/poolChunk][i%poolChunk] }

// Get returns the record of an id, or nil if it was put back. The id may come from a peer.
func (p *Pool[T]) Get(id uint64) *T {
	i := uint32(id)
	if uint64(i) >= uint64(len(p.chunks))*poolChunk {
		return nil
	}
	if s := p.at(i); s.used && s.gen == uint32(id>>32) {
		return &s.value
	}
	return nil
}

// Put takes a record back and lets go of what it holds. An id that is not in use is ignored.
func (p *Pool[T]) Put(id uint64) {
	if p.Get(id) == nil {
		return
	}
	s := p.at(uint32(id))
	var zero T
	s.value, s.used = zero, false
	p.free = append(p.free, uint32(id))
	p.used--
}

// Len is the number of records in use.
func (p *Pool[T]) Len() int { return p.used }

// Each calls f for each record in use, in the order of their numbers. f may put records back.
func (p *Pool[T]) Each(f func(id uint64, value *T)) {
	for i := range uint32(len(p.chunks) * poolChunk) {
		if s := p.at(i); s.used {
			f(uint64(s.gen)<<32|uint64(i), &s.value)
		}
	}
}
