package loop

// fifo is a queue in a ring that grows.
type fifo[T any] struct {
	ring []T
	head int
	n    int
}

func (f *fifo[T]) len() int { return f.n }

func (f *fifo[T]) push(v T) {
	if f.n == len(f.ring) {
		f.grow()
	}
	f.ring[(f.head+f.n)&(len(f.ring)-1)] = v
	f.n++
}

func (f *fifo[T]) grow() {
	bigger := make([]T, max(8, 2*len(f.ring)))
	for i := range f.n {
		bigger[i] = f.ring[(f.head+i)&(len(f.ring)-1)]
	}
	f.ring, f.head = bigger, 0
}

// first is the oldest; there must be one. It stays at its place until the next push.
func (f *fifo[T]) first() *T { return &f.ring[f.head] }

func (f *fifo[T]) pop() T {
	p := f.first()
	v := *p
	var zero T
	*p = zero
	f.head = (f.head + 1) & (len(f.ring) - 1)
	f.n--
	return v
}

// each calls f for all, the oldest first.
func (f *fifo[T]) each(do func(v T)) {
	for i := range f.n {
		do(f.ring[(f.head+i)&(len(f.ring)-1)])
	}
}

// drop takes out those that match, and keeps the order of the others.
func (f *fifo[T]) drop(match func(v T) bool) {
	for range f.n {
		if v := f.pop(); !match(v) {
			f.push(v)
		}
	}
}
