package cp

import (
	"flag"
	"fmt"
	"slices"
	"strconv"
	"testing"

	"pgregory.net/rapid"

	"github.com/weft-fabric/weft/internal/testutil"
)

// writerSimRecord is the metadata of a rank in a try.
func writerSimRecord(rank int, try int64) string { return fmt.Sprintf("m%d t%d", rank, try) }

// writerHistories plays n histories, unless -rapid.checks says how many.
func writerHistories(t *testing.T, n int) {
	t.Helper()
	few := n / 500
	if testing.Short() {
		n *= 5 // as the reader's
	}
	if f := flag.Lookup("rapid.checks"); f != nil && f.Value.String() == f.DefValue {
		if err := f.Value.Set(strconv.Itoa(n)); err != nil {
			t.Fatal(err)
		}
		defer f.Value.Set(f.DefValue)
	}
	seen := map[string]int{}
	rapid.Check(t, func(t *rapid.T) {
		for what, is := range playWriter(t) {
			if is {
				seen[what]++
			}
		}
	})
	for _, what := range []string{
		"places for a reader of plane evpath", "places for a reader of plane native", "places for a reader of plane mixed", "push after native", "replane",
	} {
		if seen[what] < few {
			t.Errorf("only %d histories with: %s (%v)", seen[what], what, seen)
		}
	}
	t.Log(seen)
}

// TestWriterHistories plays random histories of a writer cohort and up to four
// readers at a time, and then lets everything come to its end.
func TestWriterHistories(t *testing.T) { writerHistories(t, 2000) }

// TestSoakWriterHistories plays as many as the acceptance of the engine asks for.
func TestSoakWriterHistories(t *testing.T) {
	writerHistories(t, testutil.Count(t, 100, 100_000))
}

// playWriter plays one history, and returns what it was about.
func playWriter(t *rapid.T) map[string]bool {
	s := newWriterSim(t)
	deaths := s.below("deaths", 4) == 0
	if s.below("slow start", 4) > 0 {
		s.flow()
	}
	for range s.below("events", 200) {
		s.event(deaths)
	}
	s.settle()
	s.judge()
	return s.seen
}

// event lets one thing happen.
func (s *writerSim) event(deaths bool) {
	m := s.members[s.below("member", len(s.members))]
	var r *writerSimReader
	if live := s.live(); len(live) > 0 {
		r = live[s.below("reader", len(live))]
	}
	kind := s.below("event", 60)
	switch {
	case kind < 5:
		s.room(m)
		s.write(m)
	case kind < 8:
		s.toLeader(m)
	case kind < 11:
		s.toMember(m)
	case kind < 13:
		s.admit(m)
	case kind < 25: // everybody writes a step
		for _, m := range s.members {
			s.write(m)
			s.write(m)
			if s.coin("room") {
				s.room(m)
			}
			s.toLeader(m)
		}
	case kind < 26:
		s.contact(nil)
	case kind < 32:
		s.flow()
	case kind < 36 || r == nil:
		if len(s.live()) < 4 {
			s.joinReader()
		}
	case kind < 40:
		s.fromReader(r)
	case kind < 44:
		s.toReader(r)
	case kind < 58:
		s.readerActs(r)
	default:
		s.trouble(m, r, deaths)
	}
}

// write begins a step or ends it.
func (s *writerSim) write(m *writerSimMember) {
	if !m.dead && !s.begin(m) {
		s.end(m)
	}
}

// trouble lets something happen that is not part of plain work.
func (s *writerSim) trouble(m *writerSimMember, r *writerSimReader, deaths bool) {
	switch s.below("trouble", 10) {
	case 0, 1:
		r.leave()
	case 2, 3:
		s.vanish(r)
	case 4, 5:
		if !m.dead {
			s.member(m, AbortTry{errTest})
		}
	case 6:
		if !m.dead && m.admitted[r.key] {
			s.member(m, PushBroke{&PushFailed{Reader: r.key, Cause: NewFault(errTest)}})
		}
	case 7:
		if !m.dead && s.below("finish", 4) == 0 {
			m.asked = true
			s.member(m, MemberFinish{})
		}
	case 8:
		if deaths {
			s.kill(m)
		}
	case 9:
		if deaths && s.below("give up", 4) == 0 {
			s.giveUp([]error{ErrClosed, errTest}[s.below("why", 2)])
		}
	}
}

// live lists the readers that the writer has.
func (s *writerSim) live() []*writerSimReader {
	var list []*writerSimReader
	for _, r := range s.readers {
		if !r.gone {
			list = append(list, r)
		}
	}
	return list
}

// flow lets everything arrive that is under way.
func (s *writerSim) flow() {
	s.contact(nil)
	for busy := true; busy; {
		busy = false
		for _, m := range s.members {
			for len(m.up) > 0 || m.dead && !m.told && !s.leaderDead {
				busy = true
				s.toLeader(m)
			}
			for len(m.down) > 0 || s.leaderDead && !m.orphan && !m.dead {
				busy = true
				s.toMember(m)
			}
			for len(m.admits) > 0 && !m.dead {
				busy = true
				s.admit(m)
			}
		}
		s.contact(nil)
		for _, r := range s.readers {
			for len(r.up) > 0 || r.cut && !r.gone && !s.leaderDead {
				busy = true
				s.fromReader(r)
			}
			for len(r.down) > 0 {
				busy = true
				s.toReader(r)
			}
		}
	}
}

// settle lets readers read to the end, and members write and finish: nobody may
// wait for ever.
func (s *writerSim) settle() {
	s.settling, s.idle = true, s.coin("idle observers")
	for s.readOn(); s.catchUp(); s.readOn() {
	}
	for _, m := range s.members {
		if m.dead {
			continue
		}
		if v, ok := m.machine.LastVerdict(); m.tries > 0 && !ok && !s.ended && !s.failed && !s.leaderDead && s.started {
			s.t.Fatalf("member %d waits for the verdict on try %d: %+v", m.id, m.tries-1, v)
		}
		m.asked = true
		s.member(m, MemberFinish{})
	}
	s.readOn()
}

// readOn lets readers do what they do until there is nothing left, and a member
// end the step that it has open.
func (s *writerSim) readOn() {
	for before := ""; before != s.progress(); {
		before = s.progress()
		s.flow()
		for _, r := range s.readers {
			if !r.observer || !s.idle {
				s.readerActs(r)
			}
		}
		for _, m := range s.members {
			if !m.dead {
				s.end(m)
			}
			s.room(m)
		}
		s.flow()
	}
}

// catchUp lets a member that is behind begin the steps that the others have.
func (s *writerSim) catchUp() bool {
	most, busy := int64(0), false
	for _, m := range s.members {
		most = max(most, m.tries)
	}
	for _, m := range s.members {
		if !m.dead && m.tries < most && s.begin(m) {
			busy = true
		}
	}
	return busy
}

// progress renders what changes when something happens.
func (s *writerSim) progress() string {
	var parts []int
	for _, r := range s.readers {
		parts = append(parts, len(r.whole), len(r.hollow), len(r.returned), len(r.up), len(r.down), len(r.has), r.asks)
		if r.activated {
			parts = append(parts, -1)
		}
	}
	return fmt.Sprint(parts, len(s.readers), len(s.verdicts), s.drained, s.failed, len(s.live()), len(s.over))
}

// judge checks what must hold when all is over.
func (s *writerSim) judge() {
	lost := s.leaderDead || s.failed
	for _, m := range s.members {
		want := WriterDrained
		if lost {
			want = WriterFailed
		}
		if got := m.machine.Phase(); !m.dead && got != want && !(s.drained && got == WriterDrained) {
			s.t.Errorf("member %d ends in phase %v, want %v", m.id, got, want)
		}
		if !m.dead && m.machine.Phase() == WriterDrained && len(m.data) > 0 {
			s.t.Errorf("member %d has data of %d steps at the end", m.id, len(m.data))
		}
		for _, r := range s.readers {
			if !m.dead && !r.gone && !lost && !s.drained && m.planes[r.key] != r.plane {
				s.t.Errorf("member %d takes reader %d for one of plane %q, it is of plane %s", m.id, r.key, m.planes[r.key], r.plane)
			}
		}
		for i, v := range m.verdicts {
			if v != s.verdicts[i] {
				s.t.Errorf("member %d: verdict %+v on try %d, the leader said %+v", m.id, v, i, s.verdicts[i])
			}
		}
	}
	if s.leaderDead {
		return
	}
	for _, r := range s.readers {
		s.judgeReader(r)
	}
	if !s.ended {
		s.giveUp(ErrClosed)
	}
	if left := s.live(); len(left) > 0 {
		s.t.Errorf("%d readers are left", len(left))
	}
	if s.notices > 1 || s.notices > 0 && s.cfg.Distribution == AllToAll {
		s.t.Errorf("%d notices", s.notices)
	}
}

// judgeReader checks what a reader has got that stayed to the end.
func (s *writerSim) judgeReader(r *writerSimReader) {
	if r.gone || !s.drained {
		return
	}
	if !r.closed && r.active {
		s.t.Errorf("reader %d was not told of the end", r.key)
	}
	if r.seenWhole != len(r.whole) || r.seenHollow != len(r.hollow) {
		s.t.Errorf("reader %d has seen %d steps and %d dropped ones, it was sent %d and %d", r.key, r.seenWhole, r.seenHollow, len(r.whole), len(r.hollow))
	}
	for _, n := range r.due {
		if !slices.Contains(r.hollow, n) {
			s.t.Errorf("reader %d was never told that step %d was discarded", r.key, n)
		}
	}
	if r.observer || s.cfg.Distribution != AllToAll || !r.active {
		return
	}
	// Nothing is missing from the step on that it was told of, but what was dropped.
	got := append(append([]int64{}, r.whole...), r.hollow...)
	for _, st := range s.model.steps {
		missing := true
		for _, n := range got {
			missing = missing && n != st.number
		}
		if missing && st.number >= r.from {
			s.t.Errorf("reader %d joined at step %d and has not got step %d", r.key, r.from, st.number)
		}
	}
	// A step that was discarded before its activation is not announced to it.
	for n := r.next; len(r.whole) > 0 && n < r.whole[0] && len(r.hollow) == 0; n++ {
		if !s.model.steps[n].discarded {
			s.t.Errorf("reader %d was told of step %d and got step %d first", r.key, r.next, r.whole[0])
		}
	}
}
