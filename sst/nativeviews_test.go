package sst_test

import (
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"testing"

	"github.com/weft-fabric/weft/internal/testutil"
	"github.com/weft-fabric/weft/sst"
	"github.com/weft-fabric/weft/step"
)

// viewValues make a block of 512 KiB, which spans many pages.
const viewValues = 64 << 10

// held is a view of all values of a step that numbers wrote.
type held struct {
	number int64
	view   step.View[int64]
}

// viewOf views the values of a step.
func viewOf(t testing.TB, st *step.Step) held {
	t.Helper()
	v, err := step.Lookup[int64](st, "n")
	if err != nil {
		t.Fatal(err)
	}
	view, err := v.View(bounded(t), step.All)
	if err != nil {
		t.Fatal(err)
	}
	return held{int64(st.Number()), view}
}

// viewNext takes the next step and views its values.
func viewNext(t testing.TB, r *sst.Reader) (*step.Step, held) {
	t.Helper()
	st, err := r.BeginStep(bounded(t))
	if err != nil {
		t.Fatal(err)
	}
	return st, viewOf(t, st)
}

// intact fails if a byte of the view is another one than was written.
func (h held) intact(t testing.TB, when string) {
	t.Helper()
	if err := alike("the view", h.view.Data(), viewValues, func(i int) int64 { return h.number<<20 + int64(i) }); err != nil {
		t.Fatalf("%s: step %d: %v", when, h.number, err)
	}
}

// used is the memory in blocks of a session's arenas.
func used(s *sst.Session) uint64 { return sst.SharedMemory(s).ArenaUsed }

// TestNativeViewOutlives: a view stays what it was after the end of whatever it came
// from, whether the writer goes on or not; its release is harmless then.
func TestNativeViewOutlives(t *testing.T) {
	type world struct {
		x      *numbers
		ws, rs *sst.Session
		r      *sst.Reader
		st     *step.Step
	}
	for _, c := range []struct {
		what    string
		end     func(t *testing.T, w *world)
		goesOn  bool // the writer
		session bool // of the writer is closed
	}{
		{"step ends", func(t *testing.T, w *world) { w.st.End() }, true, false},
		{"step ends twice", func(t *testing.T, w *world) { w.st.End(); w.st.End() }, true, false},
		{"retained step ends", func(t *testing.T, w *world) {
			if err := w.r.Retain(w.st); err != nil {
				t.Error(err)
			}
			w.st.End()
		}, true, false},
		{"reader closes", func(t *testing.T, w *world) { w.r.Close() }, true, false},
		{"reader closes after the step", func(t *testing.T, w *world) { w.st.End(); w.r.Close() }, true, false},
		{"step ends after the reader", func(t *testing.T, w *world) { w.r.Close(); w.st.End() }, true, false},
		{"session of the reader closes", func(t *testing.T, w *world) { w.rs.Close() }, true, false},
		{"writer closes", func(t *testing.T, w *world) { wants(t, "Close", w.x.w.Close(), sst.ErrTimeout) }, false, false},
		{"writer aborts", func(t *testing.T, w *world) { w.x.w.Abort(errors.New("no more")) }, false, false},
		{"session of the writer closes", func(t *testing.T, w *world) { w.ws.Close() }, false, true},
		{"all of them", func(t *testing.T, w *world) { w.r.Close(); w.ws.Close(); w.rs.Close() }, false, true},
	} {
		t.Run(c.what, func(t *testing.T) {
			w := &world{ws: quickSession(t), rs: quickSession(t)}
			name := streamName(t)
			w.x = define(t, create(t, name, sst.WriterConfig{Session: w.ws, CloseTimeout: 50e6}), viewValues)
			w.r = attach(t, name, sst.ReaderConfig{Session: w.rs})
			w.x.must(t)
			w.x.must(t)
			st, h := viewNext(t, w.r)
			w.st = st
			h.intact(t, "at first")
			c.end(t, w)
			h.intact(t, "after the end")
			for range 20 {
				if !c.goesOn {
					break
				}
				w.x.must(t)
				h.intact(t, "while the writer goes on")
			}
			if !c.session {
				w.x.w.Close()
			}
			h.intact(t, "after the end of the stream")
			h.view.Release()
			w.r.Close()
			if !c.session {
				w.x.w.Close()
				testutil.Eventually(t, "the memory is given back", func() bool { return used(w.ws) <= 4096 })
			}
		})
	}
}

// TestNativeViewOfEvicted: a reader that was detached looks at what it looked at, however
// many steps the writer goes on for, and whoever else reads them; a reader that observes
// is no other. When it lets go the memory is the writer's again.
func TestNativeViewOfEvicted(t *testing.T) {
	for _, ranks := range []int{1, 3} {
		t.Run(fmt.Sprintf("%d writer ranks", ranks), func(t *testing.T) {
			ws := quickSession(t)
			name := streamName(t)
			x := define(t, create(t, name, sst.WriterConfig{Session: ws, Ranks: ranks, Params: sst.Params{LagLimit: 2}}), viewValues)
			honest := attach(t, name, sst.ReaderConfig{})
			slow := attach(t, name, sst.ReaderConfig{})
			attachedBy(t, x.w, "native", "native")
			x.must(t)
			takeStep(t, honest)
			st, h := viewNext(t, slow)
			for n := range int64(40) {
				x.must(t)
				takeStep(t, honest)
				testutil.Eventually(t, "the writer has the release", func() bool { return x.w.Info().Readers[0].Released == n+2 })
				h.intact(t, fmt.Sprintf("%d steps later", n+1))
			}
			attachedBy(t, x.w, "native")
			st.End()
			h.intact(t, "after the end of the step")
			inUse := used(ws)
			h.view.Release()
			slow.Close()
			testutil.Eventually(t, "the memory of the view is given back", func() bool { return used(ws) <= inUse-viewValues*8 })
			x.must(t)
			takeStep(t, honest)
			finished := async(x.w.Close)
			beginEOF(t, honest)
			if err := next(t, "Close", finished); err != nil {
				t.Error(err)
			}
			testutil.Eventually(t, "nothing is in use", func() bool { return used(ws) <= 4096 })
		})
	}
}

// TestNativeViewBlocksQueue: a step that has ended stays with the writer while it is
// looked at, so a queue of one is full, and the log explains the wait.
func TestNativeViewBlocksQueue(t *testing.T) {
	log, logger := testutil.NewLog(slog.LevelInfo)
	name := streamName(t)
	x := define(t, create(t, name, sst.WriterConfig{Session: newSession(t, sst.SessionConfig{Logger: logger}), Params: sst.Params{QueueLimit: 1}}), viewValues)
	r := attach(t, name, sst.ReaderConfig{})
	x.must(t)
	st, h := viewNext(t, r)
	st.End()
	if info := r.Info(); info.Unreleased != 1 {
		t.Errorf("unreleased: %d", info.Unreleased)
	}
	written := async(func() error { return x.write(bounded(t)) })
	testutil.Eventually(t, "End waits for room", func() bool { return sst.WaitsForRoom(x.w) })
	still(t, "End", written)
	log.Expect(t, "room in the queue", "a reader is slow")
	h.intact(t, "while the writer waits")
	h.view.Release()
	if err := next(t, "End", written); err != nil {
		t.Error(err)
	}
	takeStep(t, r)
}

// TestNativeViewOfRankThatLeaves: one rank closes and goes on looking, while the others
// go on with the stream.
func TestNativeViewOfRankThatLeaves(t *testing.T) {
	for leaver := range 2 {
		t.Run(fmt.Sprintf("rank %d", leaver), func(t *testing.T) {
			name := streamName(t)
			x := define(t, create(t, name, sst.WriterConfig{}), viewValues)
			c := attachRanks(t, name, 2, sst.ReaderConfig{})
			x.must(t)
			held := make([]held, 2)
			steps := make([]*step.Step, 2)
			for i, r := range c.readers {
				steps[i], held[i] = viewNext(t, r)
			}
			steps[1-leaver].End()
			held[1-leaver].view.Release()
			closed := async(c.readers[leaver].Close)
			if leaver != 0 { // rank 0 waits for the others
				if err := next(t, "Close", closed); err != nil {
					t.Error(err)
				}
			}
			h := held[leaver]
			for range 20 {
				x.must(t)
				takeStep(t, c.readers[1-leaver])
				h.intact(t, "while the other rank goes on")
			}
			c.readers[1-leaver].Close()
			next(t, "Close", async(c.readers[leaver].Close))
			for range 5 {
				x.must(t)
				h.intact(t, "after the reader has gone")
			}
			h.view.Release()
		})
	}
}

// TestNativeObserverViews: an observer holds nobody up, and what it looks at stays while the
// stream drains and afterwards.
func TestNativeObserverViews(t *testing.T) {
	ws := quickSession(t)
	name := streamName(t)
	x := define(t, create(t, name, sst.WriterConfig{Session: ws, Params: sst.Params{QueueLimit: 1}}), viewValues)
	r := attach(t, name, sst.ReaderConfig{})
	o := attach(t, name, sst.ReaderConfig{Observer: true})
	attachedBy(t, x.w, "native", "native")
	x.must(t)
	st, h := viewNext(t, o)
	takeStep(t, r)
	st.End() // the view keeps it
	for range 10 {
		x.must(t)
		takeStep(t, r)
		h.intact(t, "while the others go on")
	}
	if err := next(t, "Close of the writer", async(x.w.Close)); err != nil {
		t.Error(err)
	}
	h.intact(t, "after the stream")
	h.view.Release()
	o.Close()
	testutil.Eventually(t, "nothing is in use", func() bool { return used(ws) <= 4096 })
}

// TestNativeManyViews: views are released from other goroutines, while steps end and the
// reader closes.
func TestNativeManyViews(t *testing.T) {
	const steps, each = 12, 6
	ws := quickSession(t)
	name := streamName(t)
	x := define(t, create(t, name, sst.WriterConfig{Session: ws, Params: sst.Params{QueueLimit: 3}}), viewValues)
	r := attach(t, name, sst.ReaderConfig{})
	written := async(func() error {
		for range steps {
			if err := x.write(bounded(t)); err != nil {
				return err
			}
		}
		return x.w.Close()
	})
	var wg sync.WaitGroup
	for range steps {
		st, err := r.BeginStep(bounded(t))
		if err != nil {
			t.Fatal(err)
		}
		if st.Number()%3 == 1 {
			if err := r.Retain(st); err != nil {
				t.Error(err)
			}
		}
		for range each {
			h := viewOf(t, st)
			wg.Go(func() {
				h.intact(t, "in a goroutine")
				h.view.Release()
			})
		}
		if st.Number()%3 == 1 {
			wg.Go(func() { st.End() })
		} else {
			st.End()
		}
	}
	wg.Go(func() { r.Close() })
	wg.Wait()
	if err := next(t, "Close of the writer", written); err != nil {
		t.Error(err)
	}
	testutil.Eventually(t, "nothing is in use", func() bool { return used(ws) <= 4096 })
}
