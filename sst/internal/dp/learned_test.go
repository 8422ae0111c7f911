package dp

import (
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/weft-fabric/weft/step"
)

// none fails if something was sent.
func none(t *testing.T, what string, sent chan sentRequest) {
	t.Helper()
	select {
	case q := <-sent:
		t.Errorf("%s: rank %d was asked for %+v", what, q.rank, q.msg)
	default:
	}
}

// asks reads pieces of a step that must be asked for, and answers.
func asks(t *testing.T, e *Evpath, sent chan sentRequest, number int64, mode int32, pieces ...step.Piece) {
	t.Helper()
	done := read(t.Context(), e, number, mode, pieces...)
	for range pieces {
		answer(e, next(t, "request", sent))
	}
	if err := next(t, "end of Read", done); err != nil {
		t.Fatal(err)
	}
	check(t, number, pieces)
}

// gets reads pieces of a step that must be here, or come without being asked for.
func gets(t *testing.T, e *Evpath, sent chan sentRequest, number int64, mode int32, pieces ...step.Piece) {
	t.Helper()
	if err := next(t, "end of Read", read(t.Context(), e, number, mode, pieces...)); err != nil {
		t.Fatal(err)
	}
	check(t, number, pieces)
	none(t, "a block that was pushed", sent)
}

// TestLearned is the way of learned preload: who was asked in the first step of
// the mode pushes from the next one on; any other rank is asked.
func TestLearned(t *testing.T) {
	e, sent := newPlane(t)
	asks(t, e, sent, 4, ModeRequest, piece(2, 0, 8)) // nothing is learned from this
	e.Forget(4)
	asks(t, e, sent, 5, ModeLearned, piece(0, 0, 8), piece(0, 16, 8), piece(1, 4, 4))
	if !e.Learned() {
		t.Error("nothing was learned")
	}
	e.Forget(5)
	var early, twice, late memory
	push(e, 6, 0, blockOf(6, 0, 32), early.free()) // before its metadata
	push(e, 6, 0, blockOf(6, 0, 32), twice.free()) // as in capture e
	twice.want(t, "a repeat", 1)
	gets(t, e, sent, 6, ModeLearned, piece(0, 0, 32))
	awaited := []step.Piece{piece(0, 4, 4), piece(1, 0, 8)}
	done := read(t.Context(), e, 6, ModeLearned, awaited...)
	waiting(t, e, block{6, 1})
	push(e, 6, 1, blockOf(6, 1, 32), late.free())
	if err := next(t, "end of Read", done); err != nil {
		t.Fatal(err)
	}
	check(t, 6, awaited)
	none(t, "learned ranks", sent)
	asks(t, e, sent, 6, ModeLearned, piece(2, 0, 8))
	mixed := []step.Piece{piece(0, 8, 8), piece(2, 8, 8)}
	done = read(t.Context(), e, 6, ModeLearned, mixed...)
	answer(e, next(t, "request", sent))
	if err := next(t, "end of Read", done); err != nil {
		t.Fatal(err)
	}
	check(t, 6, mixed)
	e.Forget(6)
	early.want(t, "after the step", 1)
	late.want(t, "after the step", 1)
	push(e, 7, 0, blockOf(7, 0, 32), func() {})
	push(e, 7, 2, blockOf(7, 2, 32), func() {}) // not expected, and welcome
	gets(t, e, sent, 7, ModeLearned, piece(0, 0, 32), piece(2, 0, 4))
	want := []RankStats{
		{Requests: 2, Replied: 16, Pushes: 3, Pushed: 96, Duplicates: 1},
		{Requests: 1, Replied: 4, Pushes: 1, Pushed: 32},
		{Requests: 3, Replied: 24, Pushes: 1, Pushed: 32},
	}
	if got := e.Stats(); !slices.Equal(got, want) {
		t.Errorf("counted %+v, want %+v", got, want)
	}
}

// TestNothingLearned passes the first step of the mode over: the writer has
// nothing to go by, and must be asked for ever.
func TestNothingLearned(t *testing.T) {
	e, sent := newPlane(t)
	e.Saw(3, ModeLearned)
	e.Forget(3)
	for n := range int64(3) {
		asks(t, e, sent, 4+n, ModeLearned, piece(1, 0, 8))
		e.Forget(4 + n)
	}
	if e.Learned() {
		t.Error("something was learned")
	}
}

// TestLearnedStepIsHeld keeps the first step open: real writers push only when it
// was released.
func TestLearnedStepIsHeld(t *testing.T) {
	e, sent := newPlane(t)
	asks(t, e, sent, 0, ModeLearned, piece(1, 0, 8))
	asks(t, e, sent, 1, ModeLearned, piece(1, 0, 8))
	e.Forget(0)
	push(e, 1, 1, blockOf(1, 1, 8), func() {})
	gets(t, e, sent, 1, ModeLearned, piece(1, 0, 8))
}

// TestLearnedPushNeverComes asks after a while, and waits for that rank no more.
func TestLearnedPushNeverComes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, sent := newPlane(t)
		asks(t, e, sent, 0, ModeLearned, piece(1, 0, 8), piece(2, 0, 8))
		e.Forget(0)
		asks(t, e, sent, 1, ModeLearned, piece(1, 0, 8)) // time passes by itself in here
		p := piece(1, 0, 4)
		done := read(t.Context(), e, 1, ModeLearned, p)
		synctest.Wait()
		if len(sent) != 1 {
			t.Fatal("the rank is waited for again")
		}
		answer(e, <-sent)
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		push(e, 2, 2, blockOf(2, 2, 8), func() {})
		gets(t, e, sent, 2, ModeLearned, piece(2, 0, 8))
		e.Close(errTest)
	})
}

func TestLearnedView(t *testing.T) {
	e, sent := newPlane(t)
	view := func(number int64, rank int) ([]byte, func(), error) {
		return e.Step(number, ModeLearned).(step.Viewer).View(t.Context(), rank, 4, 8)
	}
	asks(t, e, sent, 0, ModeLearned, piece(0, 0, 8))
	e.Forget(0)
	var m memory
	push(e, 1, 0, blockOf(1, 0, 16), m.free())
	b, release, err := view(1, 0)
	if err != nil {
		t.Fatal(err)
	}
	e.Forget(1)
	m.want(t, "while it is viewed", 0)
	check(t, 1, []step.Piece{{Rank: 0, Offset: 4, Dst: b}})
	release()
	m.want(t, "after the view", 1)
	viewAsks(t, e, sent, 2, ModeLearned, 2) // it was not asked in the first step
}

// TestRetained keeps what was preloaded for a step that is held while later ones
// come and go.
func TestRetained(t *testing.T) {
	e, sent := newPlane(t)
	var kept, passed, later memory
	push(e, 0, 0, blockOf(0, 0, 16), kept.free())
	e.Step(0, ModeSpeculative)
	push(e, 1, 0, blockOf(1, 0, 16), passed.free())
	e.Forget(1) // passed over
	passed.want(t, "a step that was passed over", 1)
	push(e, 2, 0, blockOf(2, 0, 16), later.free())
	gets(t, e, sent, 2, ModeSpeculative, piece(0, 0, 16))
	e.Forget(2)
	later.want(t, "a later step that is over", 1)
	kept.want(t, "a step that is held", 0)
	push(e, 0, 1, blockOf(0, 1, 16), kept.free()) // rank 1 was slow
	gets(t, e, sent, 0, ModeSpeculative, piece(0, 0, 16), piece(1, 0, 16))
	e.Forget(0)
	kept.want(t, "after the step", 2)
	var late memory
	push(e, 0, 2, blockOf(0, 2, 16), late.free())
	late.want(t, "after its step", 1)
}

// TestRequestsNameOurRank: the writer indexes with it.
func TestRequestsNameOurRank(t *testing.T) {
	sent := make(chan sentRequest, 1)
	e := NewEvpath(EvpathConfig{ReaderID: ourID, Rank: 2, Send: senderTo(sent)})
	e.Attach(writerIDs)
	defer e.Close(errTest)
	done := read(t.Context(), e, 0, ModeRequest, piece(1, 0, 8))
	q := next(t, "request", sent)
	if q.msg.Rank != 2 {
		t.Errorf("rank %d, want 2", q.msg.Rank)
	}
	answer(e, q)
	if err := next(t, "end of Read", done); err != nil {
		t.Error(err)
	}
}

// TestLearnedInParallel reads from many goroutines while blocks come.
func TestLearnedInParallel(t *testing.T) {
	e, sent := newPlane(t)
	asks(t, e, sent, 0, ModeLearned, piece(0, 0, 8), piece(1, 0, 8), piece(2, 0, 8))
	e.Forget(0)
	for n := int64(1); n < 50; n++ {
		var wg sync.WaitGroup
		e.Step(n, ModeLearned)
		for rank := range 3 {
			wg.Go(func() { push(e, n, rank, blockOf(n, rank, 64), func() {}) })
			wg.Go(func() {
				p := piece(rank, 8, 48)
				if err := e.Step(n, ModeLearned).Read(t.Context(), []step.Piece{p}); err != nil {
					t.Error(err)
				}
				check(t, n, []step.Piece{p})
			})
		}
		wg.Wait()
		e.Forget(n)
	}
	none(t, "learned ranks", sent)
	if n := len(e.preloads); n != 0 {
		t.Errorf("%d blocks are left", n)
	}
}
