package provutil

// links are a waiter's place in one list, a ring with the list's own links as its start.
type links struct {
	next, prev *links
	self       *waiter // nil in the start of a list
}

// waiters is a list of waiters in the order in which they came.
type waiters struct{ root links }

func (l *waiters) init() { l.root.next, l.root.prev = &l.root, &l.root }

func (l *waiters) add(e *links) {
	e.prev, e.next = l.root.prev, &l.root
	e.prev.next, e.next.prev = e, e
}

func (l *waiters) first() *waiter { return l.root.next.self }

// following is the waiter after this one in its list, or nil.
func (e *links) following() *waiter { return e.next.self }

// owner is the waiter of e, or nil.
func (e *links) owner() *waiter {
	if e == nil {
		return nil
	}
	return e.self
}

func (e *links) remove() {
	if e.next == nil {
		return
	}
	e.prev.next, e.next.prev = e.next, e.prev
	e.next, e.prev = nil, nil
}
