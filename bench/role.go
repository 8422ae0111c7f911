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
	plane   plane

	// Weft only.
	access      access
	profile     string // file for a CPU profile, or empty
	rank, ranks int
	blocks      int     // that each rank puts of each variable
	local       int     // ranks in this process, which is the whole writer if it is more than one
	meet        meeting // with more than one rank
}

// common are the words that both kinds of process take.
func (a roleArgs) common() []string {
	f := func(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }
	return []string{a.role, a.name, strconv.Itoa(a.bytes), strconv.Itoa(a.queue), f(a.seconds), f(a.warmup), strconv.Itoa(a.vars), string(a.plane)}
}

// words are those for a Weft process.
func (a roleArgs) words() []string {
	return append(append([]string{roleWord}, a.common()...), string(a.access), a.profile,
		strconv.Itoa(a.rank), strconv.Itoa(a.ranks), strconv.Itoa(a.blocks), strconv.Itoa(a.local), a.meet.root, a.meet.token)
}

// roleWord is the first argument of a Weft process.
const roleWord = "role"

var errArgs = errors.New("bench: bad arguments of a role")

// parseRole undoes words, without the first.
func parseRole(w []string) (roleArgs, error) {
	if len(w) != 16 {
		return roleArgs{}, fmt.Errorf("%w: %d", errArgs, len(w))
	}
	a := roleArgs{role: w[0], name: w[1], plane: plane(w[7]), access: access(w[8]), profile: w[9], meet: meeting{w[14], w[15]}}
	var errs [9]error
	a.bytes, errs[0] = strconv.Atoi(w[2])
	a.queue, errs[1] = strconv.Atoi(w[3])
	a.seconds, errs[2] = strconv.ParseFloat(w[4], 64)
	a.warmup, errs[3] = strconv.ParseFloat(w[5], 64)
	a.vars, errs[4] = strconv.Atoi(w[6])
	a.rank, errs[5] = strconv.Atoi(w[10])
	a.ranks, errs[6] = strconv.Atoi(w[11])
	a.blocks, errs[7] = strconv.Atoi(w[12])
	a.local, errs[8] = strconv.Atoi(w[13])
	if err := errors.Join(errs[:]...); err != nil {
		return a, fmt.Errorf("%w: %w", errArgs, err)
	}
	if a.role != "writer" && a.role != "reader" || a.vars < 1 || a.bytes < 8*a.vars || a.ranks < 1 || a.rank < 0 || a.rank >= a.ranks || a.blocks < 1 || a.local < 1 || a.local > 1 && a.ranks > 1 {
		return a, fmt.Errorf("%w: %v", errArgs, w)
	}
	return a, nil
}

// elements is the length of each variable; share the part of it that is this
// rank's.
func (a roleArgs) elements() int { return a.bytes / 8 / a.vars }

func (a roleArgs) share() step.Box {
	return part(step.Box{Start: []uint64{0}, Count: []uint64{uint64(a.elements())}}, a.rank, a.ranks)
}

// parts are the blocks of the share.
func (a roleArgs) parts() (list []step.Box) {
	for i := range a.blocks {
		list = append(list, part(a.share(), i, a.blocks))
	}
	return list
}

// part is one of n parts of a box.
func part(b step.Box, i, n int) step.Box {
	from, to := b.Count[0]*uint64(i)/uint64(n), b.Count[0]*uint64(i+1)/uint64(n)
	return step.Box{Start: []uint64{b.Start[0] + from}, Count: []uint64{to - from}}
}

// params are the engine parameters that both sides have.
func (a roleArgs) params() sst.Params {
	return sst.Params{NetworkInterface: "lo", DataTransport: string(a.plane)}
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
	Steps   int64   `json:"steps"`   // after the warm-up
	Bad     int64   `json:"bad"`     // steps whose sum was wrong, of all
	Seconds float64 `json:"seconds"` // that these steps took
	CPU     float64 `json:"cpu"`     // seconds of processor time that they took, in all threads
	Memory  uint64  `json:"memory"`  // the most bytes that were resident (VmHWM)
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
	s, err := a.work()(ctx, a)
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(s)
}

// work is what the role does.
func (a roleArgs) work() func(context.Context, roleArgs) (said, error) {
	switch {
	case a.plane == nothing:
		return bareStream
	case a.role == "writer":
		return writeStream
	}
	return readStream
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

// stepWriter fills steps.
type stepWriter struct {
	w      *sst.Writer
	vars   []*sst.Variable[int64]
	box    step.Box   // of this rank
	parts  []step.Box // of it, the blocks
	data   []int64
	access access
}

func newStepWriter(w *sst.Writer, a roleArgs) (*stepWriter, error) {
	out := &stepWriter{w: w, box: a.share(), parts: a.parts(), access: a.access}
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
	for k := range o.vars {
		for _, b := range o.parts {
			if err := o.put(st, k, b, number); err != nil {
				return err
			}
		}
	}
	return st.End(ctx)
}

// put puts a block of variable k in step number.
func (o *stepWriter) put(st *sst.WriterStep, k int, b step.Box, number int64) error {
	first := number + int64(b.Start[0])
	if o.access == inPlace {
		span, err := o.vars[k].Span(st, b)
		if err != nil {
			return err
		}
		fill(span, first)
		return nil
	}
	from := k*o.count() + int(b.Start[0]-o.box.Start[0])
	data := o.data[from : from+int(b.Count[0])]
	fill(data, first)
	return o.vars[k].Put(st, b, data)
}

// readStream reads a stream to its end, and counts after the warm-up.
func readStream(ctx context.Context, a roleArgs) (said, error) {
	co, err := a.cohort(ctx)
	if err != nil {
		return said{}, err
	}
	defer co.Close()
	p := a.params()
	p.OpenTimeoutSecs = 30
	r, err := sst.Open(ctx, a.name, sst.ReaderConfig{Params: p, Cohort: co})
	if err != nil {
		return said{}, err
	}
	defer r.Close()
	in := newStepReader(a)
	c := a.clock()
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
	s, err := c.said()
	s.Bad, s.Viewed = in.bad, in.viewed
	return s, errors.Join(err, r.Close())
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
	if i.access != copying {
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
		good = right(st, i.box, i.part(k)) && good
	}
	i.note(good)
	return nil
}

func (i *stepReader) part(k int) []int64 { return i.data[k*i.count() : (k+1)*i.count()] }

// view reads in place, a block after the other; it returns false if the plane has no view to give.
func (i *stepReader) view(ctx context.Context, st *step.Step) (bool, error) {
	good := true
	for k := range i.vars {
		v, err := step.Lookup[int64](st, variable(k))
		if err != nil {
			return false, err
		}
		for n := range v.NumBlocks() {
			b := overlap(i.box, v.Block(n).Box)
			if b.Count[0] == 0 {
				continue
			}
			view, err := v.View(ctx, b)
			if errors.Is(err, step.ErrNoView) {
				return false, nil
			}
			if err != nil {
				return false, err
			}
			good = right(st, b, view.Data()) && good
			view.Release()
		}
	}
	i.viewed = true
	i.note(good)
	return true, nil
}

// overlap is what two boxes have in common, maybe nothing.
func overlap(a, b step.Box) step.Box {
	from := max(a.Start[0], b.Start[0])
	to := max(from, min(a.Start[0]+a.Count[0], b.Start[0]+b.Count[0]))
	return step.Box{Start: []uint64{from}, Count: []uint64{to - from}}
}

// right checks the elements of a box.
func right(st *step.Step, b step.Box, data []int64) bool {
	return len(data) == int(b.Count[0]) && sum(data) == expected(len(data), st.Number()+b.Start[0])
}

// note counts a step that is wrong.
func (i *stepReader) note(good bool) {
	if !good {
		i.bad++
	}
}
