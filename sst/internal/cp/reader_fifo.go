package cp

// fifo is a queue whose push and pop are cheap at any length: a reader without a
// queue limit can have very many steps in it. The zero fifo is empty.
type fifo[T any] struct {
	items []T
	head  int // items before it were popped
}

func (q *fifo[T]) len() int { return len(q.items) - q.head }

func (q *fifo[T]) push(v T) {
	if len(q.items) == cap(q.items) && q.head > len(q.items)/2 { // more room than need
		n := copy(q.items, q.items[q.head:])
		clear(q.items[n:])
		q.items, q.head = q.items[:n], 0
	}
	q.items = append(q.items, v)
}

// pop takes the first item out; there must be one.
func (q *fifo[T]) pop() T {
	var none T
	v := q.items[q.head]
	q.items[q.head] = none
	if q.head++; q.head == len(q.items) {
		q.items, q.head = q.items[:0], 0
	}
	return v
}

// last returns the item that was pushed last, nil if the queue is empty. It is
// valid until the next push or pop.
func (q *fifo[T]) last() *T {
	if q.len() == 0 {
		return nil
	}
	return &q.items[len(q.items)-1]
}
