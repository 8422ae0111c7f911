package main

import (
	"bytes"
	"context"
	"math"
	"math/rand/v2"
	"path/filepath"
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

// truth is what the fields of the tests obey.
var truth = model{-0.03, 0.2}

// field is a field that obeys the truth; its edge is 0.
type field struct{ samples }

func newField(height, width int, random *rand.Rand) *field {
	f := &field{samples{make([]float64, height*width), make([]float64, height*width), make([]float64, height*width), width}}
	for _, p := range f.points() {
		f.now[p] = random.NormFloat64()
	}
	copy(f.before, f.now)
	return f
}

func (f *field) advance() {
	clear(f.after)
	for _, p := range f.points() {
		given, rest := f.at(p) // without after
		f.after[p] = truth[0]*given[0] + truth[1]*given[1] - rest
	}
	f.before, f.now, f.after = f.now, f.after, f.before
}

// write makes the stream s of fields of some shapes, each of them for a number of steps.
func write(t *testing.T, stream string, steps int, shapes ...[2]int) {
	t.Helper()
	random := rand.New(rand.NewPCG(3, 4))
	w, err := sst.Create(bounded(t), stream, sst.WriterConfig{Params: sst.Params{QueueLimit: span}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Close() })
	u, err := sst.Define[float64](w, "u", step.GlobalArray(1, 1))
	if err != nil {
		t.Fatal(err)
	}
	for _, shape := range shapes {
		if err := u.SetShape(uint64(shape[0]), uint64(shape[1])); err != nil {
			t.Fatal(err)
		}
		f := newField(shape[0], shape[1], random)
		for range steps {
			st, err := w.BeginStep(bounded(t))
			if err != nil {
				t.Fatal(err)
			}
			f.advance()
			if err := u.Put(st, step.All, f.now); err != nil {
				t.Fatal(err)
			}
			if err := st.End(bounded(t)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := w.Close(); err != nil {
		t.Error(err)
	}
}

// trained returns the model that is learned from a stream, and what was printed.
func trained(t *testing.T, steps int, shapes ...[2]int) (model, string) {
	t.Helper()
	stream := filepath.Join(t.TempDir(), "s")
	s, err := sst.NewSession(bounded(t), sst.SessionConfig{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var out bytes.Buffer
	learner := trainer{variable: "u", epochs: 3, out: &out, random: rand.New(rand.NewPCG(5, 6))}
	done := make(chan error, 1)
	go func() { done <- learner.train(bounded(t), s, stream) }()
	write(t, stream, steps, shapes...)
	if err := <-done; err != nil {
		t.Error(err)
	}
	return learner.model, out.String()
}

// The truth is found, in the same way each time; a change of the shape does not
// mix steps that have nothing to do with each other.
func TestLearns(t *testing.T) {
	for name, shapes := range map[string][][2]int{"one field": {{40, 50}}, "two fields": {{40, 50}, {50, 40}}} {
		t.Run(name, func(t *testing.T) {
			const steps = 10
			got, out := trained(t, steps, shapes...)
			for i := range got {
				if !(math.Abs(got[i]-truth[i]) < 1e-9) {
					t.Errorf("learned %v, the truth is %v", got, truth)
				}
			}
			lines := strings.Split(strings.TrimSuffix(out, "\n"), "\n")
			if want := len(shapes) * (steps - span + 1); len(lines) != want {
				t.Errorf("%d lines, want %d:\n%s", len(lines), want, out)
			}
			for _, line := range lines {
				if !strings.HasSuffix(line, " D (native)") {
					t.Error(line)
				}
			}
			if last := lines[len(lines)-1]; !strings.Contains(last, "acceleration -0.03 u + 0.2 D") {
				t.Error(last)
			}
			if _, again := trained(t, steps, shapes...); again != out {
				t.Errorf("another time:\n%s\nbefore:\n%s", again, out)
			}
		})
	}
}

// A writer that keeps too few steps is refused, instead of waited for.
func TestShortQueue(t *testing.T) {
	stream := filepath.Join(t.TempDir(), "s")
	done := make(chan error, 1)
	go func() { done <- run(bounded(t), []string{stream, "u"}, nil) }()
	w, err := sst.Create(bounded(t), stream, sst.WriterConfig{Params: sst.Params{QueueLimit: span - 1, RendezvousReaderCount: new(int)}})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	if err := <-done; err == nil || !strings.Contains(err.Error(), "QueueLimit") {
		t.Error(err)
	}
}

func TestUsage(t *testing.T) {
	for _, args := range [][]string{nil, {"s"}, {"-epochs", "0", "s", "u"}} {
		if err := run(t.Context(), args, nil); err == nil || !strings.Contains(err.Error(), "usage: ") {
			t.Errorf("%q: %v", args, err)
		}
	}
}
