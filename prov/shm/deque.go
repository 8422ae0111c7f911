package shm

// deque is a queue in a ring that grows.
type deque[T any] struct {
	ring []T
	head int
	n    int
}

func (q *deque[T]) len() int { return q.n }

func (q *deque[T]) push(v T) {
	if q.n == len(q.ring) {
		q.grow()
	}
	q.ring[(q.head+q.n)&(len(q.ring)-1)] = v
	q.n++
}

func (q *deque[T]) grow() {
	ring := make([]T, max(8, 2*len(q.ring)))
	for i := range q.n {
		ring[i] = q.ring[(q.head+i)&(len(q.ring)-1)]
	}
	q.ring, q.head = ring, 0
}

// front is the oldest entry, which must be there.
func (q *deque[T]) front() *T { return &q.ring[q.head] }

// pop takes the oldest entry out.
func (q *deque[T]) pop() T {
	var zero T
	v := q.ring[q.head]
	q.ring[q.head] = zero
	q.head = (q.head + 1) & (len(q.ring) - 1)
	q.n--
	return v
}

// remove takes out the first entry that is so, and says whether there was one.
func (q *deque[T]) remove(is func(T) bool) bool {
	for i := range q.n {
		if !is(q.ring[(q.head+i)&(len(q.ring)-1)]) {
			continue
		}
		for j := i; j > 0; j-- {
			q.ring[(q.head+j)&(len(q.ring)-1)] = q.ring[(q.head+j-1)&(len(q.ring)-1)]
		}
		q.pop()
		return true
	}
	return false
}
