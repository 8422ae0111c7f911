package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weft-fabric/weft/operator"
	"github.com/weft-fabric/weft/sst"
	"github.com/weft-fabric/weft/step"
)

// aCopier is a copier to a stream without readers.
func aCopier(t *testing.T) *copier {
	t.Helper()
	zero := 0
	w, err := sst.Create(t.Context(), filepath.Join(t.TempDir(), "s"), sst.WriterConfig{Params: sst.Params{RendezvousReaderCount: &zero, NetworkInterface: "lo"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Close() })
	return &copier{
		w: w, served: &served{w: w, readers: map[string]bool{}}, team: &team{size: 1}, stderr: new(bytes.Buffer),
		vars: map[string]*pipeVar{}, attrs: map[string]string{}, told: map[string]bool{},
	}
}

// TestFatal: what concerns one variable must not end the pipe, and a source that is
// gone must not look like a variable that cannot be read.
func TestFatal(t *testing.T) {
	gone := fmt.Errorf("read: %w", sst.ErrWriterFailed)
	for name, c := range map[string]struct {
		err        error
		live, file bool // whether it is fatal
	}{
		"the source is gone":      {gone, true, false},
		"an error of the network": {errors.New("reset"), true, false},
		"the target is closed":    {fmt.Errorf("x: %w", sst.ErrClosed), true, true},
		"a codec that we lack":    {fmt.Errorf("x: %w", operator.ErrUnsupported), false, false},
		"a damaged block":         {fmt.Errorf("x: %w", operator.ErrCorrupt), false, false},
		"unreadable":              {fmt.Errorf("x: %w", step.ErrUnreadable), false, false},
		"too large":               {fmt.Errorf("x: %w", step.ErrTooLarge), false, false},
		"it has changed":          {fmt.Errorf("x: %w", errLeftOut), false, false},
		"of one rank of many":     {&shareError{"x", step.ErrUnreadable}, true, true},
		"wrapped, of one rank":    {fmt.Errorf("y: %w", &shareError{"x", step.ErrUnreadable}), true, true},
	} {
		for live, want := range map[bool]bool{true: c.live, false: c.file} {
			if got := (&copier{live: live}).fatal(c.err); got != want {
				t.Errorf("%s, live %v: fatal %v", name, live, got)
			}
		}
	}
}

// TestComplaints are made once, by rank 0, in a form that a terminal can take.
func TestComplaints(t *testing.T) {
	for rank, want := range []string{"weft: variable x: left out: bad\\x1b\nweft: variable y: left out: bad\\x1b\n", ""} {
		var b bytes.Buffer
		c := &copier{team: &team{rank: rank, size: 2}, stderr: &b, told: map[string]bool{}}
		for _, name := range []string{"x", "y", "x"} {
			c.complain("variable "+name, errors.New("left out: bad\x1b"))
		}
		if b.String() != want || len(c.told) != 2 {
			t.Errorf("rank %d: %q, %d are told", rank, b.String(), len(c.told))
		}
	}
}

// copyOf writes a step with one variable to a stream, and has it copied.
func copyOf(t *testing.T, c *copier, typ step.Type, shape step.Shape, box step.Box, data []byte) error {
	t.Helper()
	e := step.NewEncoder(step.EncoderConfig{})
	store := step.NewHeapPool(0).NewStore()
	err := e.Begin(store)
	d, defErr := e.Define("x", typ, shape)
	if err = errors.Join(err, defErr); err == nil {
		err = e.Put(d, box, data)
	}
	if err != nil {
		t.Fatal(err)
	}
	out, err := e.End()
	if err != nil {
		t.Fatal(err)
	}
	dec := step.NewDecoder(step.DecoderConfig{})
	for _, f := range out.Formats {
		if err := dec.AddFormat(f.ID, f.Body); err != nil {
			t.Fatal(err)
		}
	}
	st, err := dec.Step(0, [][]byte{out.Metadata}, storeSource{store}, func() error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	defer st.End()
	return c.step(t.Context(), st)
}

// storeSource reads from a block store.
type storeSource struct{ store step.Store }

func (s storeSource) Read(_ context.Context, pieces []step.Piece) error {
	for _, p := range pieces {
		parts, err := s.store.Slices(p.Offset, uint64(len(p.Dst)))
		if err != nil {
			return err
		}
		copy(p.Dst, bytes.Join(parts, nil))
	}
	return nil
}

// TestVariableChanges: a shape may change from step to step; a variable that becomes
// another one is left out, is named, and the pipe goes on.
func TestVariableChanges(t *testing.T) {
	c := aCopier(t)
	row := func(n int) (step.Shape, step.Box, []byte) {
		return step.GlobalArray(uint64(n)), step.Box{Start: []uint64{0}, Count: []uint64{uint64(n)}}, make([]byte, 8*n)
	}
	steps := []struct {
		typ  step.Type
		n    int
		says string
	}{{step.Int64, 2, ""}, {step.Int64, 5, ""}, {step.Float64, 5, "variable x: left out: double"}, {step.Int64, 3, ""}}
	for i, x := range steps {
		var b bytes.Buffer
		c.stderr = &b
		shape, box, data := row(x.n)
		if err := copyOf(t, c, x.typ, shape, box, data); err != nil {
			t.Fatalf("step %d: %v", i, err)
		}
		if said := b.String(); (x.says == "") != (said == "") || !strings.Contains(said, x.says) {
			t.Errorf("step %d: stderr %q", i, said)
		}
		if dims := c.vars["x"].dims; x.says == "" && dims[0] != uint64(x.n) {
			t.Errorf("step %d: the target has the shape %v", i, dims)
		}
	}
	if n := c.w.Info().NextStep; n != uint64(len(steps)) {
		t.Errorf("%d steps went out of %d", n, len(steps))
	}
}
