package interop

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"testing"
	"time"

	"github.com/weft-fabric/weft/internal/testutil"
	"github.com/weft-fabric/weft/sst"
	"github.com/weft-fabric/weft/step"
)

// viewRole is a process that writes an array in each step, or one that looks at it: for
// tests of the native plane.
const viewRole = "view"

// viewJob is what it is told.
type viewJob struct {
	Name     string
	Params   map[string]string
	Write    bool
	Elements uint64        // of the array
	Steps    int           // of a writer; 0: until it is told to leave
	Delay    time.Duration // of a writer, after each step
	StepWait bool          // a writer waits for the word "go" before each step
	Compute  bool          // and computes meanwhile, without a pause
	Views    int           // a reader holds so many, of steps that have ended
	Quiet    bool          // no lines STEP
	Manual   bool          // a reader's session has no goroutines
}

// startViews starts such a process.
func startViews(t testing.TB, job viewJob) *WeftPeer {
	t.Helper()
	text, err := json.Marshal(job)
	if err != nil {
		t.Fatal(err)
	}
	return &WeftPeer{t: t, Ranks: []*testutil.Process{testutil.Child(t, viewRole, string(text))}}
}

// runViewRole is the main of the process. It ends as a rank does.
func runViewRole(args []string) error {
	var job viewJob
	if err := json.Unmarshal([]byte(args[0]), &job); err != nil {
		return err
	}
	ctl := newControl(1)
	return endRank(takeCounts(), job.run(context.Background(), ctl.member(0)))
}

func (j viewJob) run(ctx context.Context, ctl member) error {
	p, err := sst.ParseParams(j.Params)
	if err != nil {
		return err
	}
	say("OPENING", j.Name)
	if j.Write {
		return j.write(ctx, p, ctl)
	}
	return j.read(ctx, p)
}

// viewArray is the variable of these streams.
const viewArray = "v"

// valueAt is element i of the array in a step.
func valueAt(step, i uint64) uint64 { return step<<32 + i + 1 }

// checkArray compares what was seen of a step.
func checkArray(step uint64, data []uint64, elements uint64) error {
	if uint64(len(data)) != elements {
		return fmt.Errorf("step %d has %d elements: %w", step, len(data), errMismatch)
	}
	for i, v := range data {
		if want := valueAt(step, uint64(i)); v != want {
			return fmt.Errorf("step %d: element %d is %#x, must be %#x: %w", step, i, v, want, errMismatch)
		}
	}
	return nil
}

func (j viewJob) write(ctx context.Context, p sst.Params, ctl member) error {
	w, err := sst.Create(ctx, j.Name, sst.WriterConfig{Params: p})
	if err != nil {
		return err
	}
	defer w.Close()
	ctl.setStats(func(s *RankStats) {
		info := w.Info()
		s.Bytes, s.Held, s.Readers, s.Planes = info.Bytes, info.Held, len(info.Readers), planesOf(info.Readers)
	})
	defer ctl.setStats(nil)
	v, err := sst.Define[uint64](w, viewArray, step.GlobalArray(j.Elements))
	if err != nil {
		return err
	}
	say("READY")
	for n := 0; j.Steps == 0 || n < j.Steps; n++ {
		if j.StepWait && !ctl.passNext() || ctl.leaving() {
			break
		}
		if err := j.put(ctx, w, v, uint64(n)); err != nil {
			return fmt.Errorf("step %d: %w", n, err)
		}
		if !j.Quiet {
			say("STEP", n)
		}
		if j.Compute {
			ctl.compute()
		}
		ctl.pause(j.Delay)
	}
	say("INFO", mustJSON(w.Info()))
	if err := w.Close(); err != nil {
		return err
	}
	say("DONE")
	return nil
}

func (j viewJob) put(ctx context.Context, w *sst.Writer, v *sst.Variable[uint64], n uint64) error {
	st, err := w.BeginStep(ctx)
	if err != nil {
		return err
	}
	span, err := v.Span(st, step.Box{Start: []uint64{0}, Count: []uint64{j.Elements}})
	if err != nil {
		return err
	}
	for i := range span {
		span[i] = valueAt(n, uint64(i))
	}
	return st.End(ctx)
}

// compute burns a processor, and calls nothing, until there is a word for this rank.
func (m member) compute() {
	for n := uint64(1); ; n++ {
		if n%(1<<20) == 0 && (len(m.next) > 0 || m.leaving() || m.ended()) {
			return
		}
	}
}

// heldView is a view of a step that has ended.
type heldView struct {
	step uint64
	step.View[uint64]
}

// read looks at each step, and holds the views of the last ones. However the stream ends, what is
// held must be what it was: it says "HELD n", and looks several times.
func (j viewJob) read(ctx context.Context, p sst.Params) (err error) {
	s, err := sst.NewSession(ctx, sst.SessionConfig{ManualProgress: j.Manual})
	if err != nil {
		return err
	}
	defer s.Close()
	r, err := sst.Open(ctx, j.Name, sst.ReaderConfig{Params: p, Session: s})
	if err != nil {
		return err
	}
	defer r.Close()
	say("READY")
	var held []heldView
	defer func() {
		say("HELD", len(held))
		const looks = 3
		for range looks {
			err = errors.Join(err, j.checkHeld(held))
		}
		r.Close() // the views outlive the reader
		err = errors.Join(err, j.checkHeld(held))
		for _, v := range held {
			v.Release()
		}
	}()
	for {
		st, err := r.BeginStep(ctx)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		v, err := j.look(ctx, st)
		if err != nil {
			return err
		}
		if v.Data() != nil {
			held = append(held, v)
		}
		if len(held) > j.Views {
			if err := j.checkHeld(held[:1]); err != nil {
				return err
			}
			held[0].Release()
			held = slices.Delete(held, 0, 1)
		}
		if !j.Quiet {
			say("STEP", st.Number())
		}
	}
	say("INFO", mustJSON(r.Info()))
	return nil
}

func (j viewJob) checkHeld(held []heldView) error {
	for _, v := range held {
		if err := checkArray(v.step, v.Data(), j.Elements); err != nil {
			return fmt.Errorf("of a held view: %w", err)
		}
	}
	return nil
}

// look views the array of a step, and ends the step; of every other one it takes a copy
// first. A step that began before the writer had a reader of the native plane is not in shared
// memory: it can be copied only.
func (j viewJob) look(ctx context.Context, st *step.Step) (held heldView, err error) {
	held.step = st.Number()
	v, err := step.Lookup[uint64](st, viewArray)
	if err != nil {
		return held, err
	}
	if held.step%2 == 1 {
		if err := j.get(ctx, v, held.step); err != nil {
			return held, err
		}
	}
	switch held.View, err = v.View(ctx, step.All); {
	case errors.Is(err, step.ErrNoView):
		err = j.get(ctx, v, held.step)
	case err == nil:
		err = checkArray(held.step, held.Data(), j.Elements)
	}
	if err != nil {
		return held, err
	}
	return held, st.End()
}

func (j viewJob) get(ctx context.Context, v step.Var[uint64], number uint64) error {
	data, err := v.Get(ctx, step.All, nil)
	if err != nil {
		return err
	}
	return checkArray(number, data, j.Elements)
}
