package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/weft-fabric/weft/internal/testutil"
	"github.com/weft-fabric/weft/sst"
	"github.com/weft-fabric/weft/step"
)

func TestMain(m *testing.M) {
	testutil.Main(m, testutil.Role{Name: "look", Run: func(args []string) error {
		os.Args = append([]string{"look"}, args...)
		main()
		return nil
	}})
}

// bounded returns a context that ends a test that hangs.
func bounded(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// writer is a stream of the variable x, which each of some ranks has two elements of.
type writer struct {
	*sst.Writer
	x *sst.Variable[float64]
}

// create waits for a reader.
func create(t *testing.T, stream string, ranks int) writer {
	t.Helper()
	w, err := sst.Create(bounded(t), stream, sst.WriterConfig{Ranks: ranks})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Close() })
	x, err := sst.Define[float64](w, "x", step.GlobalArray(2*uint64(ranks)))
	if err != nil {
		t.Fatal(err)
	}
	return writer{w, x}
}

func (w writer) write(t *testing.T, values ...float64) {
	t.Helper()
	st, err := w.BeginStep(bounded(t))
	if err != nil {
		t.Fatal(err)
	}
	for r := 0; 2*r < len(values); r++ {
		mem, err := w.x.Span(st.Rank(r), step.Box{Start: []uint64{2 * uint64(r)}, Count: []uint64{2}})
		if err != nil {
			t.Fatal(err)
		}
		copy(mem, values[2*r:])
	}
	if err := st.End(bounded(t)); err != nil {
		t.Fatal(err)
	}
}

// looked is what the program prints of a stream of two steps.
func looked(t *testing.T, ranks int, a, b []float64) string {
	t.Helper()
	stream := filepath.Join(t.TempDir(), "s")
	var out bytes.Buffer
	done := make(chan error, 1)
	go func() { done <- run(bounded(t), []string{stream, "x"}, &out) }()
	w := create(t, stream, ranks)
	w.write(t, a...)
	w.write(t, b...)
	if err := w.Close(); err != nil {
		t.Error(err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
	return out.String()
}

func TestLook(t *testing.T) {
	got := looked(t, 1, []float64{1, 2}, []float64{-3, -0.5})
	if want := "step 0: min 1, mean 1.5, max 2 (native)\nstep 1: min -3, mean -1.75, max -0.5 (native)\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// What is not in one piece is copied, and why is said once.
func TestCopied(t *testing.T) {
	got := looked(t, 2, []float64{1, 2, 3, 4}, []float64{5, 6, 7, 8})
	want := `copied, not looked at: step 0: variable "x": the selected elements are in 2 blocks, or partly in none: no view possible` +
		"\nstep 0: min 1, mean 2.5, max 4 (native)\nstep 1: min 5, mean 6.5, max 8 (native)\n"
	if got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// An interrupt ends the program in order, and the writer goes on.
func TestInterrupted(t *testing.T) {
	stream := filepath.Join(t.TempDir(), "s")
	p := testutil.Child(t, "look", stream, "x")
	w := create(t, stream, 1)
	w.write(t, 1, 2)
	p.Expect("step 0: min 1, mean 1.5, max 2 (native)")
	if err := p.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if err := p.Wait(); err != nil || p.Stderr() != "" {
		t.Errorf("%v, %q", err, p.Stderr())
	}
	testutil.Eventually(t, "the reader has left", func() bool { return len(w.Info().Readers) == 0 })
	w.write(t, 3, 4)
}

// So does one that comes before there is a stream.
func TestInterruptedEarly(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := run(ctx, []string{filepath.Join(t.TempDir(), "s"), "x"}, nil); err != nil {
		t.Error(err)
	}
	if err := run(t.Context(), nil, nil); err == nil {
		t.Error("no usage")
	}
}
