package interop

import (
	"context"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
	"time"

	"github.com/weft-fabric/weft/interop/zoo"
	"github.com/weft-fabric/weft/sst"
	"github.com/weft-fabric/weft/sst/cohort"
	"github.com/weft-fabric/weft/step"
)

// errMismatch says that what was read is not what the table says.
var errMismatch = errors.New("mismatch")

// rankReader is one rank of a Weft reader of the zoo: every rank reads every
// variable whole, and its share of dimension 0, as peers/reader.py does. It says
// the same, but OPENING first, "STEP n" for each step and rank in place of JSON, and
// "INFO {json}" before it closes.
type rankReader struct {
	name    string
	o       ReaderOptions
	cohort  cohort.Cohort
	ctl     member
	session *sst.Session // nil: one of its own
	inside  bool         // a writer's process
	seen    []int
	wrong   bool
}

// say writes a line that tells whose it is.
func (r *rankReader) say(words ...any) {
	if r.inside {
		words = append([]any{"INSIDE"}, words...)
	}
	say(words...)
}

func (r *rankReader) run(ctx context.Context) error {
	p, err := sst.ParseParams(r.o.Params)
	if err != nil {
		return err
	}
	r.say("OPENING", r.name)
	if r.session == nil {
		s, end, err := r.o.session(ctx, p, r.cohort.Rank(), false)
		if err != nil {
			return err
		}
		defer end()
		r.session = s
	}
	reader, err := sst.Open(ctx, r.name, readerConfig(r.session, p, r.cohort, r.o))
	if err != nil {
		return err
	}
	defer reader.Close()
	r.say("READY")
	for r.o.StopAfter == 0 || len(r.seen) < r.o.StopAfter {
		more, err := r.step(ctx, reader)
		if err != nil {
			return err
		}
		if !more {
			break
		}
	}
	if r.o.Steps > 0 && len(r.seen) != r.o.Steps {
		r.mismatch("saw %d steps, must be %d", len(r.seen), r.o.Steps)
	}
	r.say("SKIPPED", reader.Info().Skipped)
	r.say("INFO", mustJSON(reader.Info()))
	if err := reader.Close(); err != nil {
		return err
	}
	if r.wrong {
		return errMismatch
	}
	r.say(fmt.Sprintf("OK steps=%d", len(r.seen)))
	return nil
}

// step takes one step; it returns false at the end.
func (r *rankReader) step(ctx context.Context, reader *sst.Reader) (bool, error) {
	limit := r.o.Timeout
	if limit == 0 {
		limit = time.Minute
	}
	bounded, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	st, err := reader.BeginStep(bounded)
	if errors.Is(err, io.EOF) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if err := r.read(ctx, st); err != nil {
		return false, err
	}
	r.say("STEP", st.Number())
	stop := r.o.StepWait && !r.ctl.passNext()
	r.ctl.pause(r.o.StepDelay)
	return !stop && !r.ctl.leaving(), st.End()
}

// read reads and checks a step. Only what failed is an error, not what is wrong.
func (r *rankReader) read(ctx context.Context, st *step.Step) error {
	n := int(st.Number())
	if len(r.seen) > 0 && n != r.seen[len(r.seen)-1]+1 && !(r.o.Gaps && n > r.seen[len(r.seen)-1]) || len(r.seen) == 0 && n != 0 && !r.o.Late && !r.o.Gaps {
		r.mismatch("step %d after %v", n, r.seen)
	}
	r.seen = append(r.seen, n)
	got, err := StepJSON(ctx, st)
	if err != nil {
		return err
	}
	if _, err := r.check().Step(got); err != nil {
		r.mismatch("%v", err)
	}
	return r.readShares(ctx, st)
}

func (r *rankReader) check() zoo.Check { return r.o.check() }

// check is what a Weft reader with these options must see.
func (o ReaderOptions) check() zoo.Check {
	c := zoo.Check{Ranks: max(o.WriterRanks, 1), From: zoo.ADIOS2Stream, Prefixes: o.Vars, NoAttributes: o.NoAttributes, AttributesMayMiss: o.Late && !o.WeftWriter}
	switch {
	case o.WeftWriter:
		c.From = zoo.Weft
	case o.Piped:
		c.From = zoo.ADIOS2File
	}
	return c
}

// readShares reads this rank's part of dimension 0 of every array: of none where
// there are more ranks than rows.
func (r *rankReader) readShares(ctx context.Context, st *step.Step) error {
	size, rank := uint64(r.cohort.Size()), uint64(r.cohort.Rank())
	if size == 1 {
		return nil
	}
	for _, v := range st.Variables() {
		if v.Kind().IsValue() && v.Kind() != step.LocalValueKind || v.Kind() == step.LocalArrayKind {
			continue
		}
		shape, whole, ok := zoo.Expect(v.Name(), int(st.Number()), max(r.o.WriterRanks, 1))
		if !ok || len(shape) == 0 {
			continue
		}
		lo, hi := shape[0]*rank/size, shape[0]*(rank+1)/size
		box := step.Box{Start: make([]uint64, len(shape)), Count: append([]uint64{hi - lo}, shape[1:]...)}
		box.Start[0] = lo
		got, err := v.Any(ctx, box)
		if err != nil {
			return fmt.Errorf("%s %v: %w", v.Name(), box, err)
		}
		row := uint64(1)
		for _, d := range shape[1:] {
			row *= d
		}
		want := reflect.ValueOf(whole).Slice(int(lo*row), int(hi*row)).Interface()
		if !reflect.DeepEqual(elementsJSON(got), elementsJSON(want)) {
			r.mismatch("%s %v is %v, must be %v", v.Name(), box, got, want)
		}
	}
	return nil
}

func (r *rankReader) mismatch(format string, args ...any) {
	r.wrong = true
	text := strings.ReplaceAll(fmt.Sprintf(format, args...), "\n", "; ")
	r.say("MISMATCH rank", r.cohort.Rank(), text)
}
