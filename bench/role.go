package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/pprof"
	"strconv"
	"time"

	"github.com/weft-fabric/weft/sst"
	"github.com/weft-fabric/weft/sst/cohort"
	"github.com/weft-fabric/weft/step"
)

// roleArgs is what a writer or reader process is told. An ADIOS2 one gets the
// same words, without the last ones.
type roleArgs struct {
	role    string // "writer" or "reader"
	name    string // of the stream
	bytes   int
	queue   int
	seconds float64
	warmup  float64
	vars    int

	// Weft only.
	access      access
	profile     string // file for a CPU profile, or empty
	rank, ranks int
	meet        meeting // with more than one rank
}

// common are the words that both kinds of process take.
func (a roleArgs) common() []string {
	f := func(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }
	return []string{a.role, a.name, strconv.Itoa(a.bytes), strconv.Itoa(a.queue), f(a.seconds), f(a.warmup), strconv.Itoa(a.vars)}
}

// words are those for a Weft process.
func (a roleArgs) words() []string {
	return append(append([]string{roleWord}, a.common()...), string(a.access), a.profile, strconv.Itoa(a.rank), strconv.Itoa(a.ranks), a.meet.root, a.meet.token)
}

// roleWord is the first argument of a Weft process.
const roleWord = "role"

var errArgs = errors.New("bench: bad arguments of a role")

// parseRole undoes words, without the first.
func parseRole(w []string) (roleArgs, error) {
	if len(w) != 13 {
		return roleArgs{}, fmt.Errorf("%w: %d", errArgs, len(w))
	}
	a := roleArgs{role: w[0], name: w[1], access: access(w[7]), profile: w[8], meet: meeting{w[11], w[12]}}
	var errs [7]error
	a.bytes, errs[0] = strconv.Atoi(w[2])
	a.queue, errs[1] = strconv.Atoi(w[3])
	a.seconds, errs[2] = strconv.ParseFloat(w[4], 64)
	a.warmup, errs[3] = strconv.ParseFloat(w[5], 64)
	a.vars, errs[4] = strconv.Atoi(w[6])
	a.rank, errs[5] = strconv.Atoi(w[9])
	a.ranks, errs[6] = strconv.Atoi(w[10])
	if err := errors.Join(errs[:]...); err != nil {
		return a, fmt.Errorf("%w: %w", errArgs, err)
	}
	if a.role != "writer" && a.role != "reader" || a.vars < 1 || a.bytes < 8*a.vars || a.ranks < 1 || a.rank < 0 || a.rank >= a.ranks {
		return a, fmt.Errorf("%w: %v", errArgs, w)
	}
	return a, nil
}

// elements is the length of each variable; share the part of it that is this
// rank's.
func (a roleArgs) elements() int { return a.bytes / 8 / a.vars }

func (a roleArgs) share() step.Box {
	n, rank, ranks := uint64(a.elements()), uint64(a.rank), uint64(a.ranks)
	from := n * rank / ranks
	return step.Box{Start: []uint64{from}, Count: []uint64{n*(rank+1)/ranks - from}}
}

// cohort connects this rank with the others.
func (a roleArgs) cohort(ctx context.Context) (cohort.Cohort, error) {
	if a.ranks == 1 {
		return cohort.Solo(), nil
	}
	return cohort.TCP(ctx, cohort.TCPConfig{Root: a.meet.root, Rank: a.rank, Size: a.ranks, Token: a.meet.token})
}

// variable is the name of variable k.
func variable(k int) string { return "x" + strconv.Itoa(k) }

// said is the last line that a process says, as JSON.
type said struct {
	Steps   int64   `json:"steps"`
	Bad     int64   `json:"bad"` // steps whose sum was wrong
	Seconds float64 `json:"seconds"`
	Viewed  bool    `json:"viewed,omitempty"`
}

// runRole is the main of a Weft process.
func runRole(ctx context.Context, w []string) error {
	a, err := parseRole(w)
	if err != nil {
		return err
	}
	if a.profile != "" {
		stop, err := profileTo(a.profile)
		if err != nil {
			return err
		}
		defer stop()
	}
	work := readStream
	if a.role == "writer" {
		work = writeStream
	}
	s, err := work(ctx, a)
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(s)
}

func profileTo(file string) (stop func(), err error) {
	f, err := os.Create(file)
	if err != nil {
		return nil, err
	}
	if err := pprof.StartCPUProfile(f); err != nil {
		_ = f.Close()
		return nil, err
	}
	return func() {
		pprof.StopCPUProfile()
		_ = f.Close()
	}, nil
}

// watchStdin ends ctx with whoever started us: the kernel closes the pipe,
// however that process ended.
func watchStdin(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	return ctx, cancel
}

// writeStream writes steps for the given time, which rank 0 measures: it closes,
// and the step that others have begun does not come about.
func writeStream(ctx context.Context, a roleArgs) (said, error) {
	c, err := a.cohort(ctx)
	if err != nil {
		return said{}, err
	}
	defer c.Close()
	p := sst.Params{QueueLimit: a.queue, NetworkInterface: "lo"}
	w, err := sst.Create(ctx, a.name, sst.WriterConfig{Params: p, Cohort: c})
	if err != nil {
		return said{}, err
	}
	defer w.Close()
	out, err := newStepWriter(w, a)
	if err != nil {
		return said{}, err
	}
	var s said
	limit := time.Duration((a.seconds + a.warmup) * float64(time.Second))
	for start := time.Now(); a.rank > 0 || time.Since(start) < limit; s.Steps++ {
		err := out.write(ctx, s.Steps)
		if a.rank > 0 && errors.Is(err, sst.ErrStepAborted) {
			break
		}
		if err != nil {
			return s, err
		}
	}
	return s, w.Close()
}

// stepWriter fills steps.
type stepWriter struct {
	w      *sst.Writer
	vars   []*sst.Variable[int64]
	box    step.Box
	data   []int64
	access access
}

func newStepWriter(w *sst.Writer, a roleArgs) (*stepWriter, error) {
	out := &stepWriter{w: w, box: a.share(), access: a.access}
	for k := range a.vars {
		v, err := sst.Define[int64](w, variable(k), step.GlobalArray(uint64(a.elements())))
		if err != nil {
			return nil, err
		}
		out.vars = append(out.vars, v)
	}
	out.data = make([]int64, a.vars*out.count())
	return out, nil
}

func (o *stepWriter) count() int { return int(o.box.Count[0]) }

func (o *stepWriter) write(ctx context.Context, number int64) error {
	st, err := o.w.BeginStep(ctx)
	if err != nil {
		return err
	}
	for k, v := range o.vars {
		if err := o.put(st, v, k, number+int64(o.box.Start[0])); err != nil {
			return err
		}
	}
	return st.End(ctx)
}

// put puts variable k, whose first element is first.
func (o *stepWriter) put(st *sst.WriterStep, v *sst.Variable[int64], k int, first int64) error {
	if o.access == inPlace {
		span, err := v.Span(st, o.box)
		if err != nil {
			return err
		}
		fill(span, first)
		return nil
	}
	part := o.data[k*o.count() : (k+1)*o.count()]
	fill(part, first)
	return v.Put(st, o.box, part)
}

// readStream reads a stream to its end, and counts after the warm-up.
func readStream(ctx context.Context, a roleArgs) (said, error) {
	co, err := a.cohort(ctx)
	if err != nil {
		return said{}, err
	}
	defer co.Close()
	r, err := sst.Open(ctx, a.name, sst.ReaderConfig{Params: sst.Params{NetworkInterface: "lo", OpenTimeoutSecs: 30}, Cohort: co})
	if err != nil {
		return said{}, err
	}
	defer r.Close()
	in := newStepReader(a)
	c := clock{warmup: time.Duration(a.warmup * float64(time.Second))}
	for st, err := range r.Steps(ctx) {
		if err == nil {
			err = in.read(ctx, st)
		}
		if err == nil {
			err = st.End()
		}
		if err != nil {
			return said{}, err
		}
		c.tick(time.Now())
	}
	return said{Steps: c.steps, Bad: in.bad, Seconds: c.to.Sub(c.from).Seconds(), Viewed: in.viewed}, r.Close()
}

// clock counts the steps whose end it is told, and the time that they took. The
// first steps, for as long as warmup, only start it.
type clock struct {
	warmup          time.Duration
	start, from, to time.Time
	steps           int64
}

func (c *clock) tick(now time.Time) {
	if c.start.IsZero() {
		c.start = now
	}
	switch {
	case !c.from.IsZero():
		c.steps++
		c.to = now
	case now.Sub(c.start) >= c.warmup:
		c.from, c.to = now, now
	}
}

// stepReader reads this rank's share of steps and checks it.
type stepReader struct {
	box    step.Box
	vars   int
	data   []int64
	access access
	viewed bool
	bad    int64
}

func newStepReader(a roleArgs) *stepReader {
	in := &stepReader{box: a.share(), vars: a.vars, access: a.access}
	in.data = make([]int64, a.vars*in.count())
	return in
}

func (i *stepReader) count() int { return int(i.box.Count[0]) }

// read reads all variables: each where it arrived, if that is asked for and
// possible, else all with one batch of requests, as ADIOS2 does.
func (i *stepReader) read(ctx context.Context, st *step.Step) error {
	if i.access == inPlace {
		done, err := i.view(ctx, st)
		if done || err != nil {
			return err
		}
	}
	gets := make([]step.Get, i.vars)
	for k := range gets {
		v, err := step.Lookup[int64](st, variable(k))
		if err != nil {
			return err
		}
		gets[k] = v.Into(i.box, i.part(k))
	}
	if err := st.Fetch(ctx, gets...); err != nil {
		return err
	}
	good := true
	for k := range gets {
		good = i.right(st, i.part(k)) && good
	}
	i.note(good)
	return nil
}

func (i *stepReader) part(k int) []int64 { return i.data[k*i.count() : (k+1)*i.count()] }

// view reads in place; it returns false if the plane has no view to give.
func (i *stepReader) view(ctx context.Context, st *step.Step) (bool, error) {
	good := true
	for k := range i.vars {
		v, err := step.Lookup[int64](st, variable(k))
		if err != nil {
			return false, err
		}
		view, err := v.View(ctx, i.box)
		if errors.Is(err, step.ErrNoView) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		good = i.right(st, view.Data()) && good
		view.Release()
	}
	i.viewed = true
	i.note(good)
	return true, nil
}

// right checks one variable.
func (i *stepReader) right(st *step.Step, data []int64) bool {
	return len(data) == i.count() && sum(data) == expected(len(data), st.Number()+i.box.Start[0])
}

// note counts a step that is wrong.
func (i *stepReader) note(good bool) {
	if !good {
		i.bad++
	}
}
