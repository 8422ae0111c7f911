package dp

import (
	"context"
	"encoding/binary"
	"flag"
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/weft-fabric/weft/fabric"
	"github.com/weft-fabric/weft/internal/testutil"
	"github.com/weft-fabric/weft/internal/wire/sstmsg"
	"github.com/weft-fabric/weft/step"
)

// TestAfterViewsHistory runs anything that can happen to steps against a model: a
// callback comes when its step is over and in use no more, not before, and once.
func TestAfterViewsHistory(t *testing.T) {
	const histories = 400
	if f := flag.Lookup("rapid.checks"); f.Value.String() == f.DefValue {
		n := histories
		if testing.Short() {
			n *= 5 // of which rapid plays a fifth: fewer do not show everything that is asked for below
		}
		if err := f.Value.Set(strconv.Itoa(n)); err != nil {
			t.Fatal(err)
		}
		defer f.Value.Set(f.DefValue)
	}
	kinds := map[string]int{}
	rapid.Check(t, func(rt *rapid.T) {
		h := &usesHistory{t: t, f: newFakes(t, 0, []Extent{{0, 64, 1, 0}}, nil), kinds: kinds}
		rt.Repeat(map[string]func(*rapid.T){
			"begin": h.begin, "view": h.view, "held": h.held, "read": h.read, "release": h.release, "after": h.after,
			"forget": h.forget, "end": h.end, "": h.check,
		})
		for len(h.lent) > 0 {
			h.release(rt)
			h.check(rt)
		}
		for _, s := range h.steps {
			h.finish(rt, s)
		}
		h.check(rt)
		h.f.uses.mu.Lock()
		defer h.f.uses.mu.Unlock()
		if n := len(h.f.uses.steps); n != 0 {
			rt.Fatalf("%d steps are kept", n)
		}
	})
	for _, kind := range []string{"called at once", "called by a release", "waits", "refused", "lent"} {
		if kinds[kind] < 20 {
			t.Errorf("%s: only %d times (%v)", kind, kinds[kind], kinds)
		}
	}
}

type usesHistory struct {
	t     *testing.T
	f     *fakes
	steps []*modelStep
	lent  []modelLoan
	ended bool // by Fail or Close
	kinds map[string]int
}

type modelStep struct {
	number          int64
	src             step.Source
	uses            int
	over, forgotten bool
	due             bool          // the callback should come, or have come
	came            bool          // it has
	called          chan struct{} // gets a token for each call
}

type modelLoan struct {
	step    *modelStep
	release func()
}

func (h *usesHistory) pick(t *rapid.T) *modelStep {
	if len(h.steps) == 0 {
		t.Skip("no step")
	}
	return rapid.SampledFrom(h.steps[max(0, len(h.steps)-3):]).Draw(t, "step")
}

func (h *usesHistory) begin(*rapid.T) {
	s := &modelStep{number: int64(len(h.steps)), forgotten: h.ended, called: make(chan struct{}, 8)}
	s.src = h.f.Step(s.number, ModeRequest, h.f.extents)
	h.steps = append(h.steps, s)
}

func (h *usesHistory) view(t *rapid.T) {
	s := h.pick(t)
	_, release, err := s.src.(step.Viewer).View(t.Context(), 0, 0, 8)
	h.got(t, s, release, err)
}

func (h *usesHistory) held(t *rapid.T) {
	s := h.pick(t)
	_, release, err := s.src.(step.Holder).Held(t.Context(), 0, 8, 8)
	h.got(t, s, release, err)
}

func (h *usesHistory) got(t *rapid.T, s *modelStep, release func(), err error) {
	if gone := s.over || s.forgotten || h.ended; (err != nil) != gone {
		t.Fatalf("step %d: gone %v, %v", s.number, gone, err)
	}
	if err != nil {
		h.kinds["refused"]++
		return
	}
	h.kinds["lent"]++
	s.uses++
	h.lent = append(h.lent, modelLoan{s, release})
}

func (h *usesHistory) read(t *rapid.T) {
	s := h.pick(t)
	err := s.src.Read(t.Context(), []step.Piece{piece(0, 8, 8)})
	if gone := s.over || s.forgotten || h.ended; (err != nil) != gone {
		t.Fatalf("step %d: gone %v, %v", s.number, gone, err)
	}
}

func (h *usesHistory) release(t *rapid.T) {
	if len(h.lent) == 0 {
		t.Skip("nothing is lent")
	}
	i := rapid.IntRange(0, len(h.lent)-1).Draw(t, "loan")
	l := h.lent[i]
	h.lent = append(h.lent[:i], h.lent[i+1:]...)
	l.release()
	if l.step.uses--; l.step.uses == 0 && l.step.over {
		l.step.due = true
		h.kinds["called by a release"]++
	}
}

func (h *usesHistory) after(t *rapid.T) { h.finish(t, h.pick(t)) }

func (h *usesHistory) finish(t *rapid.T, s *modelStep) {
	if s.over {
		return
	}
	s.over = true
	h.f.AfterViews(s.number, func() { s.called <- struct{}{} })
	if s.uses > 0 {
		h.kinds["waits"]++
		return
	}
	s.due = true
	h.kinds["called at once"]++
	if len(s.called) != 1 {
		t.Fatalf("step %d: not called in the call", s.number)
	}
}

func (h *usesHistory) forget(t *rapid.T) {
	s := h.pick(t)
	if rapid.IntRange(0, 3).Draw(t, "seldom") != 0 {
		t.Skip("not now")
	}
	s.forgotten = true
	h.f.Forget(s.number)
}

func (h *usesHistory) end(t *rapid.T) {
	if rapid.IntRange(0, 29).Draw(t, "rarely") != 0 {
		t.Skip("not now")
	}
	h.ended = true
	if rapid.Bool().Draw(t, "close") {
		h.f.Close(errTest)
	} else {
		h.f.Fail(errTest)
	}
}

func (h *usesHistory) check(t *rapid.T) {
	for _, s := range h.steps {
		if s.due && !s.came {
			next(h.t, "callback", s.called)
			s.came = true
		}
		if len(s.called) > 0 {
			t.Fatalf("step %d: called too early or twice (in use %d, over %v)", s.number, s.uses, s.over)
		}
	}
}

// TestAfterViewsWithLocksHeld: who releases may hold the lock that the callback takes.
func TestAfterViewsWithLocksHeld(t *testing.T) {
	f, s := placesPlane(t)
	_, release, err := s.(step.Viewer).View(t.Context(), 0, 0, 8)
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	called := make(chan struct{}, 1)
	f.AfterViews(5, func() {
		mu.Lock()
		defer mu.Unlock()
		called <- struct{}{}
	})
	mu.Lock()
	release()
	nothingIn(t, "call with the lock held", called)
	mu.Unlock()
	next(t, "call", called)
}

// TestAfterViewsAsked: what was asked for is this process's own, and holds up nobody.
func TestAfterViewsAsked(t *testing.T) {
	f, s := placesPlane(t)
	_, release, err := s.(step.Viewer).View(t.Context(), 0, 100, 8)
	if err != nil {
		t.Fatal(err)
	}
	called := false
	f.AfterViews(5, func() { called = true })
	if !called {
		t.Error("not called")
	}
	release()
}

// ownRoute lends the memory itself.
type ownRoute struct{ memory []byte }

func (r ownRoute) View(_ context.Context, _ fabric.Key, at uint64, n int) ([]byte, func(), error) {
	return r.memory[at:][:n], func() {}, nil
}

// TestAfterViewsConcurrent has steps follow each other in the same memory, as a writer
// makes them, while many read: nobody sees anything of another step, and the race
// detector no write to what is looked at.
func TestAfterViewsConcurrent(t *testing.T) {
	const words, readers = 64, 4
	rng := testutil.Rand(t)
	seeds := make([]uint64, readers)
	for i := range seeds {
		seeds[i] = rng.Uint64()
	}
	memory := make([]byte, words*8)
	p := NewNative(NewEvpath(EvpathConfig{}))
	p.Attach(writerIDs[:1])
	p.Use([]Route{ownRoute{memory}})
	defer p.Close(errTest)
	extents := []sstmsg.Block{{Data: sstmsg.ByteBlob(AppendExtents(nil, []Extent{{0, words * 8, 1, 0}}))}}

	for number := range int64(testutil.Count(t, 200, 20000)) {
		for i := range words {
			binary.LittleEndian.PutUint64(memory[i*8:], uint64(number))
		}
		s := p.Step(number, ModeRequest, extents)
		given := make(chan struct{})
		var all sync.WaitGroup
		for i := range readers {
			all.Go(func() { lookAt(t, s, number, rand.New(rand.NewPCG(seeds[i], uint64(number)))) })
		}
		p.AfterViews(number, func() { close(given) })
		next(t, "the step", given)
		clear(memory)
		all.Wait()
		p.Forget(number)
	}
}

// lookAt looks at a step until it is over.
func lookAt(t *testing.T, s step.Source, number int64, rng *rand.Rand) {
	right := func(b []byte) {
		if n := binary.LittleEndian.Uint64(b); n != uint64(number) {
			t.Errorf("step %d: found %d", number, n)
		}
	}
	for range 1000 {
		at := uint64(rng.IntN(64) * 8)
		switch rng.IntN(3) {
		case 0:
			p := piece(0, at, 8)
			if s.Read(t.Context(), []step.Piece{p}) != nil {
				return
			}
			right(p.Dst)
		case 1:
			b, release, err := s.(step.Viewer).View(t.Context(), 0, at, 8)
			if err != nil {
				return
			}
			right(b)
			go func() { // anybody may
				right(b)
				release()
			}()
		default:
			b, release, err := s.(step.Holder).Held(t.Context(), 0, at, 8)
			if err != nil {
				return
			}
			right(b)
			release()
		}
	}
}
