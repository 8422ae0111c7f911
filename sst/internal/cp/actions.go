package cp

// actions collects what a machine wants done while it handles an event.
type actions[A any] struct {
	out   []A // of the event being handled
	spare []A // memory of an earlier list
}

// maxSpare bounds the memory that is kept, in actions.
const maxSpare = 64

func (a *actions[A]) emit(action A) {
	if a.out == nil {
		a.out, a.spare = a.spare, nil
		if a.out == nil {
			a.out = make([]A, 0, 8)
		}
	}
	a.out = append(a.out, action)
}

// emitted returns the list. It belongs to the caller.
func (a *actions[A]) emitted() []A {
	list := a.out
	a.out = nil
	return list
}

// Done gives a list that Handle has returned back, when all in it is done and it
// is not used any more: a later one takes its memory. To do without costs no more
// than that.
func (a *actions[A]) Done(list []A) {
	if n := cap(list); n > maxSpare || n <= cap(a.spare) {
		return
	}
	clear(list)
	a.spare = list[:0]
}
