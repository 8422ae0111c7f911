package cp

import (
	"flag"
	"testing"

	"pgregory.net/rapid"
)

// histories is how many are played in an ordinary run; more by -rapid.checks.
const histories = "2000"

// TestHistories plays random histories of one writer and up to three readers at
// a time, and then lets everything come to its end.
func TestHistories(t *testing.T) {
	if f := flag.Lookup("rapid.checks"); f != nil && f.Value.String() == f.DefValue {
		if err := f.Value.Set(histories); err != nil {
			t.Fatal(err)
		}
		defer f.Value.Set(f.DefValue)
	}
	rapid.Check(t, func(t *rapid.T) {
		s := newWorld(t)
		for range rapid.IntRange(1, 150).Draw(t, "events") {
			s.event()
		}
		s.settle()
		s.judge()
	})
}

// event lets one thing happen.
func (s *world) event() {
	alive := s.alive()
	pick := func() *simReader { return alive[rapid.IntRange(0, len(alive)-1).Draw(s.t, "reader")] }
	const kinds = 20
	kind := rapid.IntRange(0, kinds-1).Draw(s.t, "event")
	switch {
	case kind < 5:
		s.publish()
	case kind == 5 || len(alive) == 0:
		if len(alive) < 3 {
			s.join()
		}
	case kind < 10:
		s.toWriter(pick())
	case kind < 14:
		s.toReader(pick())
	case kind < 16:
		s.next(pick())
	case kind < 18:
		s.release(pick())
	case kind == 18:
		switch rapid.IntRange(0, 3).Draw(s.t, "trouble") {
		case 0:
			s.breakLink(pick())
		case 1:
			s.leave(pick())
		case 2:
			s.cancel(pick())
		}
	default:
		if rapid.IntRange(0, 9).Draw(s.t, "finish") == 0 {
			s.finished = true
			s.writer(Finish{})
		}
	}
}

// settle finishes the stream; readers that are left read to the end.
func (s *world) settle() {
	s.finished = true
	s.writer(Finish{})
	for busy := true; busy; {
		busy = false
		for _, r := range s.readers {
			before := s.work(r)
			s.toWriter(r)
			s.toReader(r)
			s.release(r)
			s.next(r)
			busy = busy || s.work(r) != before
		}
	}
	for _, r := range s.readers {
		s.leave(r)
		for len(r.up.queue) > 0 || r.up.closed && !r.up.told {
			s.toWriter(r)
		}
		s.toReader(r)
	}
	// Handshakes whose readers gave up while the writer had yet to answer.
	for busy := true; busy; {
		busy = false
		for _, r := range s.readers {
			before := s.work(r)
			s.toWriter(r)
			s.toReader(r)
			busy = busy || s.work(r) != before
		}
	}
}

// progress is what changes when something happens to a reader.
type progress struct {
	up, down, delivered, messages int
	phase                         Phase
	upTold, downTold              bool
	open, absorbed                int64
}

func (s *world) work(r *simReader) progress {
	return progress{
		len(r.up.queue), len(r.down.queue), len(r.delivered), r.messages,
		r.machine.Phase(), r.up.told, r.down.told, r.open, r.absorbed,
	}
}

// judge checks what must hold when all is over.
func (s *world) judge() {
	if s.w.Held() != 0 || !s.w.Drained() || s.w.Active() != 0 {
		s.t.Fatalf("at the end %d steps are held, drained %v, %d readers are active", s.w.Held(), s.w.Drained(), s.w.Active())
	}
	for n, info := range s.steps {
		if info.freed != 1 {
			s.t.Errorf("step %d was freed %d times", n, info.freed)
		}
	}
	for i, r := range s.readers {
		if r.opens != 1 {
			s.t.Errorf("reader %d: Open got %d results", i, r.opens)
		}
		for id, n := range r.memory {
			if n != 1 {
				s.t.Errorf("reader %d: message %d was freed %d times", i, id, n)
			}
		}
		if r.machine.Opening() {
			s.t.Errorf("reader %d is still opening", i)
		}
		if r.activated && !r.closed && r.machine.Phase() == Closed && !r.down.told {
			s.t.Errorf("reader %d left without ReaderClose", i)
		}
		s.judgeOrder(i, r)
	}
}

// judgeOrder checks that a reader which stayed has seen every step from its
// first on, under Block without a gap, and that the counts agree.
func (s *world) judgeOrder(i int, r *simReader) {
	if !r.ended {
		return
	}
	for n, info := range s.steps {
		_, meant := info.holders[r.key]
		got := false
		for _, d := range r.delivered {
			got = got || d == int64(n)
		}
		if got && !meant {
			s.t.Errorf("reader %d got step %d, which was not meant for it", i, n)
		}
		if meant && !got && !s.latest {
			s.t.Errorf("reader %d stayed to the end and has not got step %d", i, n)
		}
	}
	if want := r.machine.Skipped(); !s.latest && want != r.dropped {
		s.t.Errorf("reader %d counts %d skipped steps, it was told of %d", i, want, r.dropped)
	}
}
