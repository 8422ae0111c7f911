package cp

import "slices"

// stepList is a list of steps in rising order that is mostly taken from the
// front. It costs no allocation while its length stays about the same.
type stepList struct {
	all  []*heldStep
	head int // those before are gone
}

func (l *stepList) len() int           { return len(l.all) - l.head }
func (l *stepList) at(i int) *heldStep { return l.all[l.head+i] }
func (l *stepList) live() []*heldStep  { return l.all[l.head:] }

// last returns the newest step, nil if there is none.
func (l *stepList) last() *heldStep {
	if l.len() == 0 {
		return nil
	}
	return l.all[len(l.all)-1]
}

func (l *stepList) push(s *heldStep) {
	if len(l.all) == cap(l.all) && l.head > len(l.all)/2 {
		n := copy(l.all, l.all[l.head:])
		clear(l.all[n:])
		l.all, l.head = l.all[:n], 0
	}
	l.all = append(l.all, s)
}

// find returns where the step is, or would be.
func (l *stepList) find(number int64) (int, bool) {
	if l.len() > 0 && l.at(0).number == number {
		return 0, true
	}
	return slices.BinarySearchFunc(l.live(), number, compareStep)
}

func compareStep(s *heldStep, number int64) int {
	switch {
	case s.number < number:
		return -1
	case s.number > number:
		return 1
	}
	return 0
}

func (l *stepList) insert(s *heldStep) {
	i, _ := l.find(s.number)
	l.all = slices.Insert(l.all, l.head+i, s)
}

func (l *stepList) removeAt(i int) {
	if i > 0 {
		l.all = slices.Delete(l.all, l.head+i, l.head+i+1)
		return
	}
	l.all[l.head] = nil
	l.head++
	if l.head == len(l.all) {
		l.all, l.head = l.all[:0], 0
	}
}

func (l *stepList) remove(number int64) {
	if i, ok := l.find(number); ok {
		l.removeAt(i)
	}
}
