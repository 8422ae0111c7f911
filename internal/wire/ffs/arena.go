package ffs

// arena hands out the parts of the builders of one record from a few large
// pieces: a BP5 record has a struct for each variable, and allocations for each
// would cost more than encoding them. Nothing is ever given back to it; the
// collector frees it with the last builder.
type arena struct {
	builders pieces[Builder]
	vals     pieces[value]
	mem      pieces[byte]
	rows     pieces[*Builder]

	// The first pieces, in one allocation with the arena: most messages need no more.
	first struct {
		builders [4]Builder
		vals     [10]value
		mem      [192]byte
		rows     [4]*Builder
	}
}

func newArena() *arena {
	a := new(arena)
	a.builders.free = a.first.builders[:]
	a.vals.free = a.first.vals[:]
	a.mem.free = a.first.mem[:]
	a.rows.free = a.first.rows[:]
	return a
}

// pieces is a row of pieces of one type. They start small, as most records are
// small, and double up to a limit.
type pieces[T any] struct {
	free []T
	next int // elements of the next piece
}

// take returns n zero elements.
func (p *pieces[T]) take(n, first, last int) []T {
	switch {
	case n == 0:
		return nil
	case n > last:
		return make([]T, n)
	case n > len(p.free):
		size := max(p.next, first, n)
		p.free, p.next = make([]T, size), min(2*size, last)
	}
	out := p.free[:n:n]
	p.free = p.free[n:]
	return out
}

// builder returns an empty builder. First and last pieces suit a message of a
// few structs and a step of thousands of variables.
func (a *arena) builder() *Builder { return &a.builders.take(1, 4, 1024)[0] }

// values returns n empty values.
func (a *arena) values(n int) []value { return a.vals.take(n, 4, 4096) }

// bytes returns n zero bytes.
func (a *arena) bytes(n int) []byte { return a.mem.take(n, 128, 1<<16) }

// row copies a row of builders.
func (a *arena) row(s []*Builder) []*Builder {
	out := a.rows.take(len(s), 4, 4096)
	copy(out, s)
	return out
}
