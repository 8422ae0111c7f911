package step

import (
	"context"
	"errors"
	"io"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/weft-fabric/weft/internal/wire/bp5"
)

// slowSource is a source whose n-th Read waits until ctx is done; those before
// it read nothing and succeed.
type slowSource struct {
	n       int
	reads   int
	waiting chan struct{} // closed when it waits
}

func (s *slowSource) Read(ctx context.Context, pieces []Piece) error {
	if s.reads++; s.reads < s.n {
		return nil
	}
	close(s.waiting)
	<-ctx.Done()
	return ctx.Err()
}

// A Fetch that is cancelled in the middle, between rounds of a long one too,
// returns the context's error, and the step can be used and ended afterwards.
func TestCancelInTheMiddle(t *testing.T) {
	for _, n := range []int{1, 2} {
		src := &slowSource{n: n, waiting: make(chan struct{})}
		s := newSynth(t, DecoderConfig{})
		m := &bp5.ArrayMeta{Dims: 2, Blocks: 1, Shape: dims{1 << 12, 1 << 15}, Count: dims{1 << 12, 1 << 15}, Offset: dims{0, 0}, Location: dims{0}}
		rec := s.hostileRecord(arrayDesc[uint8]("x", bp5.GlobalArray), m, 1<<27)
		ended := 0
		st, err := s.dec.Step(0, [][]byte{rec}, src, func() error { ended++; return nil })
		must(t, err)
		x := lookup[uint8](t, st, "x")
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() {
			// Half of each row: staged, so that it takes more than one round.
			missing := uint64(99)
			sel := Selection{Box: Box{dims{0, 0}, dims{1 << 12, 1 << 14}}, Missing: &missing}
			if _, err := x.Get(ctx, sel, nil); !errors.Is(err, context.Canceled) || missing != 99 {
				t.Errorf("error %v, %d missing", err, missing)
			}
		})
		<-src.waiting
		cancel()
		wg.Wait()
		src.n, src.reads = 1<<30, 0
		if _, err := x.Get(t.Context(), Box{dims{0, 0}, dims{1, 1}}, nil); err != nil {
			t.Errorf("afterwards: %v", err)
		}
		if err := st.End(); err != nil || ended != 1 {
			t.Errorf("end: %v, called %d times", err, ended)
		}
	}
}

// A context that is done stops a Fetch before anything is read, and the search
// for holes, which can be long.
func TestCancelledBefore(t *testing.T) {
	s := newSynth(t, DecoderConfig{})
	st := s.step(0, []put{array[int32]("x", dims{4}, blockOf(dims{0}, dims{3}, int32(1), 2, 3), blockOf(dims{1}, dims{3}, int32(4), 5, 6))})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	x := lookup[int32](t, st, "x")
	if _, err := x.Get(ctx, All, nil); !errors.Is(err, context.Canceled) || s.data.calls != 0 {
		t.Errorf("error %v after %d reads", err, s.data.calls)
	}
	if n, err := covered(ctx, []overlap{part(dims{0}, dims{1})}, dims{1}, 1); n != 0 || !errors.Is(err, context.Canceled) {
		t.Errorf("covered: %d, %v", n, err)
	}
	if got, err := x.Get(t.Context(), All, nil); err != nil || !slices.Equal(got, []int32{1, 4, 5, 6}) {
		t.Errorf("afterwards: %v, %v", got, err)
	}
}

// Many readers while the step ends: each one gets all or ErrStepEnded, and the
// end comes once, after the last transfer.
func TestGetsAgainstEnd(t *testing.T) {
	for range 50 {
		s := newSynth(t, DecoderConfig{})
		metas, data := s.records([][]put{{array[int32]("x", dims{4}, blockOf(dims{0}, dims{4}, int32(1), 2, 3, 4))}})
		var running, ended atomic.Int32
		src := sourceFunc(func(_ context.Context, pieces []Piece) error {
			running.Add(1)
			defer running.Add(-1)
			if ended.Load() != 0 {
				t.Error("a transfer began after the end")
			}
			for _, p := range pieces {
				copy(p.Dst, data[p.Rank][p.Offset:])
			}
			return nil
		})
		st, err := s.dec.Step(0, metas, src, func() error {
			ended.Add(1)
			if running.Load() != 0 {
				t.Error("the step ended under a transfer")
			}
			return io.ErrClosedPipe
		})
		must(t, err)
		x := lookup[int32](t, st, "x")
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				for {
					got, err := x.Get(t.Context(), All, nil)
					if errors.Is(err, ErrStepEnded) {
						return
					}
					if err != nil || !slices.Equal(got, []int32{1, 2, 3, 4}) {
						t.Errorf("%v, %v", got, err)
						return
					}
				}
			})
		}
		for range 2 {
			wg.Go(func() {
				if err := st.End(); !errors.Is(err, io.ErrClosedPipe) {
					t.Errorf("end: %v", err)
				}
			})
		}
		wg.Wait()
		if ended.Load() != 1 {
			t.Errorf("ended %d times", ended.Load())
		}
	}
}

// sourceFunc is a source of one function.
type sourceFunc func(ctx context.Context, pieces []Piece) error

func (f sourceFunc) Read(ctx context.Context, pieces []Piece) error { return f(ctx, pieces) }

// A step without a source describes everything and reads what is in the
// metadata; data is not there.
func TestNoSource(t *testing.T) {
	s := newSynth(t, DecoderConfig{})
	metas, _ := s.records([][]put{{array[int32]("x", dims{1}, blockOf(dims{0}, dims{1}, int32(1))), value("v", bp5.GlobalValue, 1.5)}})
	st, err := s.dec.Step(3, metas, nil, nil)
	must(t, err)
	check(t, st, "v", 1.5)
	x := lookup[int32](t, st, "x")
	if _, err := x.Get(t.Context(), All, nil); !errors.Is(err, ErrNotStored) {
		t.Errorf("Get: %v", err)
	}
	if _, err := x.ReadBlockRaw(t.Context(), 0); !errors.Is(err, ErrNotStored) {
		t.Errorf("ReadBlockRaw: %v", err)
	}
	if err := st.Fetch(t.Context(), Get{}); !errors.Is(err, ErrSelection) {
		t.Errorf("zero Get: %v", err)
	}
	other, err := s.dec.Step(4, metas, nil, nil)
	must(t, err)
	if err := other.Fetch(t.Context(), x.Into(All, make([]int32, 1))); !errors.Is(err, ErrSelection) {
		t.Errorf("Get of another step: %v", err)
	}
}
