package provutil

// hook is the place of a record in a list.
type hook[T any] struct {
	next, prev *T
	in         bool
}

// linked is a record with a hook.
type linked[T any] interface {
	*T
	link() *hook[T]
}

// list holds records in the order in which they were added.
type list[T any, P linked[T]] struct {
	head, tail *T
	n          int
}

func (l *list[T, P]) add(e *T) {
	h := P(e).link()
	h.prev, h.next, h.in = l.tail, nil, true
	if l.tail == nil {
		l.head = e
	} else {
		P(l.tail).link().next = e
	}
	l.tail = e
	l.n++
}

func (l *list[T, P]) remove(e *T) {
	h := P(e).link()
	if !h.in {
		return
	}
	if h.prev == nil {
		l.head = h.next
	} else {
		P(h.prev).link().next = h.next
	}
	if h.next == nil {
		l.tail = h.prev
	} else {
		P(h.next).link().prev = h.prev
	}
	*h = hook[T]{}
	l.n--
}

func (l *list[T, P]) next(e *T) *T { return P(e).link().next }
