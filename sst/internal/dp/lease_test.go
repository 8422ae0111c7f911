package dp

import (
	"errors"
	"sync"
	"testing"

	"github.com/weft-fabric/weft/fabric"
	"github.com/weft-fabric/weft/internal/invariants"
	"github.com/weft-fabric/weft/step"
)

// look views a range of rank 0 of step 5, and checks what is there.
func look(t *testing.T, s step.Source, offset, n int) (release func()) {
	t.Helper()
	b, release, err := s.(step.Viewer).View(t.Context(), 0, uint64(offset), uint64(n))
	if err != nil {
		t.Fatal(err)
	}
	if want := blockOf(5, 0, offset+n)[offset:]; string(b) != string(want) {
		t.Fatalf("% x, want % x", b, want)
	}
	return release
}

// TestLease: many views of an extent are one of the route, until the step is over.
func TestLease(t *testing.T) {
	f, s := placesPlane(t)
	r := f.routes[0]
	for i := range 64 {
		look(t, s, i, 1)()
	}
	r.wantViews(t, "an extent", 1, 1)
	if got := f.InUse(); len(got) != 0 {
		t.Errorf("in use: %v", got)
	}
	inside, also := look(t, s, 8, 8), look(t, s, 0, 64)
	if got := f.InUse(); len(got) != 1 || got[0] != 5 {
		t.Errorf("in use: %v", got)
	}
	other := look(t, s, 64, 8) // another extent, which takes the place of the first
	r.wantViews(t, "two extents", 2, 2)
	inside()
	r.wantViews(t, "one of two parts is back", 2, 2)
	also()
	r.wantViews(t, "both are", 2, 1)
	other()
	over := false
	f.AfterViews(5, func() {
		over = true
		r.wantViews(t, "the step is given back", 2, 0)
	})
	if !over {
		t.Error("the step is in use")
	}
}

// TestLeaseOfStepThatIsOver: the last view of a step ends the lease before the step goes back.
func TestLeaseOfStepThatIsOver(t *testing.T) {
	f, s := placesPlane(t)
	r := f.routes[0]
	first, second := look(t, s, 0, 8), look(t, s, 8, 8)
	called := make(chan struct{}, 1)
	f.AfterViews(5, func() {
		r.wantViews(t, "the step is given back", 1, 0)
		called <- struct{}{}
	})
	first()
	r.wantViews(t, "a view is left", 1, 1)
	nothingIn(t, "call while a view is left", called)
	second()
	next(t, "call", called)
}

// TestLeaseOfPlaneThatEnds: what nobody looks at is given back with the plane, the rest when it is released.
func TestLeaseOfPlaneThatEnds(t *testing.T) {
	for name, end := range map[string]func(f *fakes){
		"Fail":  func(f *fakes) { f.Fail(errTest) },
		"Close": func(f *fakes) { f.Close(errTest) },
	} {
		t.Run(name, func(t *testing.T) {
			f, s := placesPlane(t)
			idle := f.Step(6, ModeRequest, f.extents).(step.Viewer)
			_, release, err := idle.View(t.Context(), 0, 0, 8)
			if err != nil {
				t.Fatal(err)
			}
			release()
			kept := look(t, s, 0, 8)
			f.routes[0].wantViews(t, "two steps", 2, 2)
			end(f)
			f.routes[0].wantViews(t, "what is looked at", 2, 1)
			kept()
			f.routes[0].wantViews(t, "nothing", 2, 0)
		})
	}
}

// TestLeaseReleasedTwice: a view that is released once too often, while no other is held, costs the writer no step.
func TestLeaseReleasedTwice(t *testing.T) {
	f, s := placesPlane(t)
	release := look(t, s, 0, 8)
	release()
	again := func() {
		if !invariants.Enabled { // they panic then
			release()
		}
	}
	again()
	kept := look(t, s, 8, 8)
	if got := f.InUse(); len(got) != 1 {
		t.Errorf("in use: %v", got)
	}
	kept()
	if !f.AfterViews(5, func() {}) {
		t.Error("the step is in use for ever")
	}
	again()
	f.routes[0].wantViews(t, "in the end", 1, 0)
}

// TestLeaseOfTooMuch: a list may promise more than there is, as long as nobody wants it.
func TestLeaseOfTooMuch(t *testing.T) {
	f, s := placesPlane(t)
	r := f.routes[0]
	r.memory[1] = r.memory[1][:16+32] // of 64 bytes at 16
	for i := range 3 {
		look(t, s, 8*i, 8)()
	}
	r.wantViews(t, "parts", 3, 1)
	if _, _, err := s.(step.Viewer).View(t.Context(), 0, 32, 8); !errors.Is(err, fabric.ErrKey) {
		t.Errorf("what is not there: %v", err)
	}
}

// TestLeasesMakeRoom: what nobody looks at keeps nobody from looking at something else.
func TestLeasesMakeRoom(t *testing.T) {
	f, s := placesPlane(t)
	r := f.routes[0]
	r.err = func(fabric.Key) error { // called with the lock held
		if r.out == 2 {
			return fabric.ErrNoMemory
		}
		return nil
	}
	viewers := map[int64]step.Viewer{}
	for number := int64(7); number < 12; number++ {
		viewers[number] = f.Step(number, ModeRequest, f.extents).(step.Viewer)
		_, release, err := viewers[number].View(t.Context(), 0, 0, 8)
		if err != nil {
			t.Fatal(err)
		}
		release()
	}
	held := look(t, s, 0, 8)
	if n := f.asked(); n[0] != 0 {
		t.Errorf("%d bytes were asked for", n[0])
	}
	_, also, err := viewers[9].View(t.Context(), 0, 64, 8)
	if err != nil {
		t.Fatal(err)
	}
	_, asked, err := viewers[10].View(t.Context(), 0, 64, 8) // two are in use: there is no room
	if err != nil {
		t.Fatal(err)
	}
	if n := f.asked(); n[0] != 8 {
		t.Errorf("%d bytes were asked for", n[0])
	}
	asked()
	also()
	held()
}

// TestLeaseConcurrent has many look at the same extents, which take each other's place.
func TestLeaseConcurrent(t *testing.T) {
	f, s := placesPlane(t)
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for k := range 200 {
				look(t, s, []int{0, 8, 64, 128}[(i+k)%4], 8)()
			}
		})
	}
	all.Wait()
	f.AfterViews(5, func() {})
	r := f.routes[0]
	r.wantViews(t, "in the end", r.made, 0)
}

// TestLeaseAllocates: to lend what is leased takes no memory.
func TestLeaseAllocates(t *testing.T) {
	_, s := placesPlane(t)
	n := s.(*nativeStep)
	look(t, s, 0, 8)()
	ctx := t.Context()
	for what, lend := range map[string]func() ([]byte, func(), bool){
		"ViewNow": func() ([]byte, func(), bool) { return n.ViewNow(ctx, 0, 8, 8) },
		"HeldNow": func() ([]byte, func(), bool) { return n.HeldNow(ctx, 0, 8, 8) },
	} {
		got := testing.AllocsPerRun(100, func() {
			_, release, ok := lend()
			if !ok {
				t.Fatal("it has to be asked for")
			}
			release()
		})
		if got != 0 && !invariants.Enabled { // each view is a mapping of its own then
			t.Errorf("%s: %v allocations", what, got)
		}
	}
	if _, _, ok := n.HeldNow(ctx, 0, 64, 8); ok {
		t.Error("another extent is there at once")
	}
}
