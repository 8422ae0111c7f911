package main

import (
	"bytes"
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weft-fabric/weft/internal/testutil"
	"github.com/weft-fabric/weft/sst"
	"github.com/weft-fabric/weft/step"
)

func TestMain(m *testing.M) { testutil.Main(m) }

// bounded returns a context that ends a test that hangs.
func bounded(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// A standing wave swings as the difference equation says, in whatever memory.
func TestAdvance(t *testing.T) {
	const n, steps = 17, 100
	p := newPond(n)
	for i := range n {
		for j := range n {
			p.now[i*n+j] = math.Sin(math.Pi*float64(i)/(n-1)) * math.Sin(2*math.Pi*float64(j)/(n-1))
		}
	}
	p.before = slices.Clone(p.now)
	mode := slices.Clone(p.now)
	half := func(k float64) float64 { s := math.Sin(k * math.Pi / (n - 1) / 2); return 4 * s * s }
	omega := math.Acos(1 - courant*(half(1)+half(2))/2)
	for k := 1; k <= steps; k++ {
		next := slices.Repeat([]float64{math.NaN()}, n*n)
		p.advance(next)
		height := math.Cos(omega*(float64(k)+0.5)) / math.Cos(omega/2) // equal at times 0 and -1
		for i, u := range next {
			if !(math.Abs(u-height*mode[i]) < 1e-12) {
				t.Fatalf("step %d: %g at %d, want %g", k, u, i, height*mode[i])
			}
		}
	}
}

// Its readers look at what it has computed.
func TestNative(t *testing.T) {
	const size, steps = 20, 12
	stream := filepath.Join(t.TempDir(), "pond")
	var out bytes.Buffer
	done := make(chan error, 1)
	go func() { done <- run(bounded(t), []string{"-stream", stream, "-size", "20", "-steps", "12"}, &out) }()
	r, err := sst.Open(bounded(t), stream, sst.ReaderConfig{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	p, want, seen := newPond(size), make([]float64, size*size), 0
	for st, err := range r.Steps(bounded(t)) {
		if err != nil {
			t.Fatal(err)
		}
		u, err := step.Lookup[float64](st, "u")
		if err != nil {
			t.Fatal(err)
		}
		v, err := u.View(bounded(t), step.All)
		if err != nil {
			t.Fatal(err)
		}
		p.advance(want)
		if !slices.Equal(v.Data(), want) {
			t.Errorf("step %d is not what was computed", st.Number())
		}
		v.Release()
		seen++
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
	if got := out.String(); got != "step 0: readers: native\n" || seen != steps {
		t.Errorf("%d steps, output %q", seen, got)
	}
	if w := r.Info().Writers[0]; w.Views != steps || w.Viewed != 8*size*size*steps || w.Requests != 0 {
		t.Errorf("%+v", w)
	}
}

// An interrupt ends the stream before its time: the reader is told, and no file stays.
func TestInterrupted(t *testing.T) {
	dir := t.TempDir()
	stream := filepath.Join(dir, "pond")
	ctx, interrupt := context.WithCancel(bounded(t))
	defer interrupt()
	done := make(chan error, 1)
	go func() {
		done <- run(ctx, []string{"-stream", stream, "-size", "20", "-steps", "1000000"}, new(bytes.Buffer))
	}()
	r, err := sst.Open(bounded(t), stream, sst.ReaderConfig{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var last error
	for st, err := range r.Steps(bounded(t)) {
		if last = err; err == nil && st.Number() == 3 {
			interrupt()
		}
	}
	if !errors.Is(last, sst.ErrWriterFailed) || !strings.Contains(last.Error(), context.Canceled.Error()) {
		t.Errorf("the reader got %v", last)
	}
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("%v, %v", left, err)
	}
}

func TestUsage(t *testing.T) {
	for _, args := range [][]string{{"-size", "2"}, {"-steps", "-1"}, {"pond"}} {
		if err := run(t.Context(), args, nil); err == nil {
			t.Error(args)
		}
	}
}
