package step

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"

	"github.com/weft-fabric/weft/internal/testutil"
	"github.com/weft-fabric/weft/internal/wire/bp5"
)

// gateSource holds transfers until the gate opens.
type gateSource struct {
	*memSource
	entered chan struct{}
	gate    chan struct{}
}

func (g *gateSource) Read(ctx context.Context, pieces []Piece) error {
	g.entered <- struct{}{}
	select {
	case <-g.gate:
	case <-ctx.Done():
		return ctx.Err()
	}
	return g.memSource.Read(ctx, pieces)
}

// End waits for what is running, and what comes later fails without waiting.
func TestEndWaitsForTransfers(t *testing.T) {
	s := newSynth(t, DecoderConfig{})
	metas, data := s.records([][]put{{array[int32]("x", dims{2}, blockOf[int32](dims{0}, dims{2}, 1, 2))}})
	src := &gateSource{memSource: &memSource{data: data}, entered: make(chan struct{}), gate: make(chan struct{})}
	ended := make(chan struct{})
	st, err := s.dec.Step(0, metas, src, func() error { close(ended); return nil })
	if err != nil {
		t.Fatal(err)
	}
	x := lookup[int32](t, st, "x")
	var wg sync.WaitGroup
	wg.Go(func() {
		if got, err := x.Get(t.Context(), All, nil); err != nil || !slices.Equal(got, []int32{1, 2}) {
			t.Errorf("running transfer: %v, %v", got, err)
		}
	})
	<-src.entered
	wg.Go(func() {
		if err := st.End(); err != nil {
			t.Error(err)
		}
	})
	testutil.Eventually(t, "the step is being ended", st.ended.Load)
	select {
	case <-ended:
		t.Error("the step ended under a transfer")
	default:
	}
	if _, err := x.Get(t.Context(), All, nil); !errors.Is(err, ErrStepEnded) {
		t.Errorf("late transfer: %v", err)
	}
	close(src.gate)
	wg.Wait()
	<-ended
}

// A step may be used from many goroutines, from its first use on.
func TestConcurrentUse(t *testing.T) {
	steps := openDataset(t, "main-shapes-3ranks").decode(t)
	want := dump(t, openDataset(t, "main-shapes-3ranks").decode(t))
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			if got := dump(t, steps); got != want {
				t.Error("differs")
			}
		})
	}
	wg.Wait()
}

// A box may be changed, and a Get used again, after it was made.
func TestGetKeepsItsBox(t *testing.T) {
	s := newSynth(t, DecoderConfig{})
	st := s.step(0, []put{array[int32]("x", dims{8}, blockOf(dims{0}, dims{8}, seq[int32](0, 8)...)), value("v", bp5.LocalValue, int32(5))})
	x := lookup[int32](t, st, "x")
	box := Box{dims{0}, dims{2}}
	mem := &Memory{dims{4}, dims{1}}
	dst := make([][]int32, 4)
	var gets []Get
	for i := range dst {
		dst[i] = make([]int32, 4)
		box.Start[0] = uint64(2 * i)
		gets = append(gets, x.Into(Selection{Box: box, Memory: mem}, dst[i]))
	}
	box.Start[0], box.Count[0], mem.Start[0], mem.Shape[0] = 0, 0, 0, 0
	for range 2 {
		if err := st.Fetch(t.Context(), gets...); err != nil {
			t.Fatal(err)
		}
		for i := range dst {
			if want := []int32{0, int32(2 * i), int32(2*i + 1), 0}; !slices.Equal(dst[i], want) {
				t.Errorf("%d: %v", i, dst[i])
			}
			clear(dst[i])
		}
	}
}
