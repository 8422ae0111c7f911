package cp

import (
	"errors"
	"flag"
	"slices"
	"strconv"
	"testing"

	"pgregory.net/rapid"

	"github.com/weft-fabric/weft/internal/testutil"
	"github.com/weft-fabric/weft/internal/wire/sstmsg"
)

// TestReaderHistories plays random histories of one to four members against a
// model writer, and lets each come to its end.
func TestReaderHistories(t *testing.T) { readerHistories(t, 2000) }

// TestSoakReaderHistories plays many more.
func TestSoakReaderHistories(t *testing.T) { readerHistories(t, testutil.Count(t, 2000, 100_000)) }

// readerHistories plays n histories, or as many as -rapid.checks says.
func readerHistories(t *testing.T, n int) {
	few := n / 500
	if testing.Short() {
		n *= 5 // of which rapid plays a fifth: fewer do not show everything that is asked for below
	}
	if f := flag.Lookup("rapid.checks"); f != nil && f.Value.String() == f.DefValue {
		if err := f.Value.Set(strconv.Itoa(n)); err != nil {
			t.Fatal(err)
		}
		defer f.Value.Set(f.DefValue)
	}
	seen := map[string]int{}
	rapid.Check(t, func(t *rapid.T) {
		s := newReaderSim(t)
		for range evenly(t, 8, "events") {
			s.event()
		}
		s.settle()
		s.judge()
		s.count(seen)
	})
	for _, what := range []string{"clean end", "writer lost", "rank lost", "evicted", "opening failed", "locked", "passed over", "discarded", "retained at the end"} {
		if seen[what] == 0 {
			t.Errorf("no history with: %s (%v)", what, seen)
		}
	}
	for _, what := range []string{
		"native of native", "mixed of native", "evpath of native", "native is wanted and not reached", "a rank closes while trying", "a rank dies while trying",
		"the writer goes while trying", "the opening is given up while trying", "the stream ends while trying",
	} {
		if seen[what] < few {
			t.Errorf("only %d histories with: %s (%v)", seen[what], what, seen)
		}
	}
	t.Log(seen)
}

// evenly draws a number below 2^bits. Unlike rapid's own ranges it does not
// prefer small numbers, which would make most histories short and dull.
func evenly(t *rapid.T, bits int, label string) int { return evenBits[bits].Draw(t, label) }

var evenBits = func() (list [9]*rapid.Generator[int]) {
	for bits := range list {
		list[bits] = rapid.Custom(func(t *rapid.T) int {
			n := 0
			for range bits {
				n *= 2
				if coin.Draw(t, "bit") {
					n++
				}
			}
			return n
		})
	}
	return list
}()

var coin = rapid.Bool()

// event lets one thing happen.
func (s *readerSim) event() {
	m := s.members[evenly(s.t, 4, "member")%s.n]
	if s.l.Phase() == Routing && evenly(s.t, 5, "while trying") == 0 && !s.dead {
		s.whileTrying(m)
		return
	}
	switch kind := evenly(s.t, 6, "event"); {
	case kind < 5:
		if s.w == nil || s.looking {
			s.attempt()
			return
		}
		s.w.respond(evenly(s.t, 4, "ended") == 1)
	case kind < 15:
		if s.w != nil {
			s.w.publish()
		}
	case kind < 21:
		if s.w != nil {
			s.w.listen()
		}
	case kind < 30:
		s.fromWriter()
	case kind < 38:
		m.toLeader()
	case kind < 45:
		m.fromLeader()
	case kind < 52:
		_ = m.start() || m.try() || m.next()
	case kind < 58:
		m.release(evenly(s.t, 2, "which"))
	case kind == 58:
		m.retain()
	case kind == 59:
		m.lock()
	case kind == 60:
		_ = s.settled() || s.w != nil && s.w.hangUp()
	default:
		s.seldom(m)
	}
}

// whileTrying is what can happen to a reader that tries its routes.
func (s *readerSim) whileTrying(m *readerSimMember) {
	saw := func(what string, done bool) { s.seen[what+" while trying"] = s.seen[what+" while trying"] || done }
	switch evenly(s.t, 3, "what happens") {
	case 0, 1:
		saw("a rank closes", m.leave())
	case 2, 3:
		alive := !m.dead
		m.die()
		saw("a rank dies", alive && m.dead)
	case 4:
		s.trouble = true
		s.lead(Cancel{errTest})
		saw("the opening is given up", true)
	case 5:
		s.w.die()
		saw("the writer goes", true)
	case 6:
		saw("the writer goes", s.w.turnAway(sstmsg.CloseFailed))
	case 7:
		saw("the stream ends", s.w.turnAway(sstmsg.CloseNormal))
	}
}

// seldom is what would end most histories too early if it came often.
func (s *readerSim) seldom(m *readerSimMember) {
	switch evenly(s.t, 6, "seldom") {
	case 0:
		m.die()
	case 1:
		s.dieLeader()
	case 2:
		m.leave()
	case 3:
		s.trouble = true
		s.lead(Cancel{errTest})
	case 4:
		s.left, s.trouble = true, true
		s.lead(LeaveNow{errTest})
	case 5:
		if s.w != nil {
			s.w.die()
		}
	case 6, 7:
		if s.w != nil {
			s.w.finish(int32(evenly(s.t, 2, "code") % 3))
		}
	case 8, 9, 10, 11:
		if s.w != nil && s.w.weft {
			s.w.finish(sstmsg.CloseEvicted)
		}
	}
}

// settle lets everything come to its end: applications read what there is, then
// the writer closes, and they read to the end and close.
func (s *readerSim) settle() {
	for s.settleOnce(false) {
	}
	s.judgeQuiet()
	for s.settleOnce(true) {
	}
}

// settleOnce moves everything that can move by one; it reports whether something
// did.
func (s *readerSim) settleOnce(closing bool) bool {
	busy := s.looking && s.l.Phase() == Idle && s.lookOn()
	if w := s.w; w != nil {
		busy = w.listen() || busy
		busy = w.respond(false) || busy
		busy = closing && w.finish(sstmsg.CloseNormal) || busy
		busy = w.hangUp() || busy
	}
	busy = s.fromWriter() || busy
	for _, m := range s.members {
		busy = m.start() || busy
		busy = m.try() || busy
		busy = m.toLeader() || busy
		busy = m.fromLeader() || busy
		busy = m.release(0) || busy
		busy = m.next() || busy
		if m.ended || m.openErr != nil {
			busy = m.leave() || busy
		}
	}
	return busy || s.settled() // Settled comes only when it is quiet
}

// judgeQuiet checks a stream that stands still: the applications wait for the
// writer's next step, the writer has all its steps back, and knows if it must be
// asked.
func (s *readerSim) judgeQuiet() {
	w := s.w
	if s.dead || w == nil || w.cut || w.closed {
		return
	}
	if s.l.Phase() == Parting {
		s.t.Fatal("parting for ever")
	}
	if s.l.Phase() != Streaming {
		return
	}
	if !w.drained() {
		s.t.Fatalf("all is read, and of the writer's steps %v only %v were released", w.steps, w.released)
	}
	if asks := w.mode == distributeOnDemand && (!w.weft || !s.cfg.Observer); asks && w.requests != 1 {
		s.t.Fatalf("%d requests for a step that is waited for", w.requests)
	}
}

// lookOn finds another writer, or gives up.
func (s *readerSim) lookOn() bool {
	if rapid.Bool().Draw(s.t, "another writer") {
		return s.attempt()
	}
	s.looking, s.trouble = false, true
	s.lead(Cancel{errTest})
	return true
}

// judge checks what must hold when all is over.
func (s *readerSim) judge() {
	for _, m := range s.members {
		if !m.dead {
			s.judgeMember(m)
		}
	}
	if s.dead {
		return
	}
	if s.l.Phase() != Closed || s.l.Present() != 0 || s.l.Held() != 0 || s.l.Queued() != 0 {
		s.t.Fatalf("at the end: phase %v, %d members, %d steps held, %d queued", s.l.Phase(), s.l.Present(), s.l.Held(), s.l.Queued())
	}
	for i, m := range s.memory {
		if m.freed != 1 {
			s.t.Errorf("message %d (step %d) was freed %d times", i, m.step, m.freed)
		}
	}
	s.judgeWriter()
}

// judgeMember: nobody waits, and whoever stayed has got everything, or an error
// that says why not.
func (s *readerSim) judgeMember(m *readerSimMember) {
	switch {
	case m.opens != 1:
		s.t.Fatalf("member %d: Open got %d results", m.i, m.opens)
	case m.waiting:
		s.t.Fatalf("member %d waits for ever", m.i)
	case !slices.Equal(m.delivered, s.order[:len(m.delivered)]):
		s.t.Fatalf("member %d got %v, all get %v", m.i, m.delivered, s.order)
	}
	err := m.openErr
	if m.ended && m.endErr != nil {
		err = m.endErr
	}
	if err != nil {
		known := errors.Is(err, ErrRankLost) || errors.Is(err, ErrWriterLost) || errors.Is(err, ErrEvicted) || errors.Is(err, ErrPlane)
		if !known && !s.trouble && !errors.Is(err, errTest) {
			s.t.Fatalf("member %d ends with %v, and nothing had happened", m.i, err)
		}
		return
	}
	if m.ended {
		s.judgeCleanEnd(m)
	}
}

func (s *readerSim) judgeCleanEnd(m *readerSimMember) {
	if !s.w.closed || !s.w.normal {
		s.t.Fatalf("member %d: a clean end, and the writer has not closed", m.i)
	}
	if !slices.Equal(m.delivered, s.order) {
		s.t.Fatalf("member %d: a clean end after %v, all get %v", m.i, m.delivered, s.order)
	}
	whole := int64(0)
	for _, a := range s.arrived {
		if a.whole {
			whole++
		}
	}
	passed := whole - int64(len(s.order))
	if passed > 0 && !s.cfg.Latest {
		s.t.Fatalf("%d steps came, %v were handed out", whole, s.order)
	}
	if got := m.m.Skipped(); got != passed+s.w.discards {
		s.t.Fatalf("member %d counts %d skipped steps; the writer dropped %d, %d were passed over", m.i, got, s.w.discards, passed)
	}
	if want := s.textsBefore(int64(len(s.w.steps))); !s.enough(m.texts, want) {
		s.t.Fatalf("member %d has %v at the end, the writer sent %v", m.i, m.texts, want)
	}
}

// judgeWriter: a writer that lived was left in order.
func (s *readerSim) judgeWriter() {
	w := s.w
	if w == nil || w.died || w.told {
		return
	}
	if w.registered && !w.activated && !w.weft {
		s.t.Fatal("an ADIOS2 writer waits for ReaderActivate for ever")
	}
	if w.activated && !w.saidGoodbye() && (!w.closed || w.normal) {
		s.t.Fatal("left without ReaderClose")
	}
}

// count notes what a history was about, so that the test can tell whether it
// reaches everything.
func (s *readerSim) count(seen map[string]int) {
	note := func(what string, is bool) {
		if is {
			seen[what]++
		}
	}
	for _, m := range s.members {
		note("clean end", m.ended && m.endErr == nil)
		note("writer lost", errors.Is(m.endErr, ErrWriterLost))
		note("rank lost", errors.Is(m.endErr, ErrRankLost))
		note("evicted", errors.Is(m.endErr, ErrEvicted))
		note("opening failed", m.openErr != nil)
		note("retained at the end", m.ended && m.failReads)
	}
	if s.w != nil {
		note("locked", s.w.locks > 0)
		note("discarded", s.w.discards > 0)
	}
	note("passed over", s.l.Skipped() > 0 && s.cfg.Latest)
	for what := range s.seen {
		note(what, true)
	}
	note("native is wanted and not reached", s.said == "" && s.tries > 0 && !slices.Contains(s.cfg.Planes, PlaneEvpath) && errors.Is(s.l.Failure(), ErrPlane))
}
