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
	"github.com/weft-fabric/weft/step"
)

// roleArgs is what a writer or reader process is told. An ADIOS2 one gets the
// same words, without the last two.
type roleArgs struct {
	role    string // "writer" or "reader"
	name    string // of the stream
	bytes   int
	queue   int
	seconds float64
	warmup  float64
	access  access // Weft only
	profile string // file for a CPU profile, or empty; Weft only
}

// common are the words that both kinds of process take.
func (a roleArgs) common() []string {
	f := func(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }
	return []string{a.role, a.name, strconv.Itoa(a.bytes), strconv.Itoa(a.queue), f(a.seconds), f(a.warmup)}
}

// words are those for a Weft process.
func (a roleArgs) words() []string {
	return append(append([]string{roleWord}, a.common()...), string(a.access), a.profile)
}

// roleWord is the first argument of a Weft process.
const roleWord = "role"

var errArgs = errors.New("bench: bad arguments of a role")

// parseRole undoes words, without the first.
func parseRole(w []string) (roleArgs, error) {
	if len(w) != 8 {
		return roleArgs{}, fmt.Errorf("%w: %d", errArgs, len(w))
	}
	a := roleArgs{role: w[0], name: w[1], access: access(w[6]), profile: w[7]}
	var errs [4]error
	a.bytes, errs[0] = strconv.Atoi(w[2])
	a.queue, errs[1] = strconv.Atoi(w[3])
	a.seconds, errs[2] = strconv.ParseFloat(w[4], 64)
	a.warmup, errs[3] = strconv.ParseFloat(w[5], 64)
	if err := errors.Join(errs[:]...); err != nil {
		return a, fmt.Errorf("%w: %w", errArgs, err)
	}
	if a.role != "writer" && a.role != "reader" || a.bytes < 8 {
		return a, fmt.Errorf("%w: %v", errArgs, w)
	}
	return a, nil
}

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

// writeStream writes steps for the given time.
func writeStream(ctx context.Context, a roleArgs) (said, error) {
	p := sst.Params{QueueLimit: a.queue, NetworkInterface: "lo"}
	w, err := sst.Create(ctx, a.name, sst.WriterConfig{Params: p})
	if err != nil {
		return said{}, err
	}
	defer w.Close()
	n := a.bytes / 8
	v, err := sst.Define[int64](w, "x", step.GlobalArray(uint64(n)))
	if err != nil {
		return said{}, err
	}
	out := stepWriter{w: w, v: v, box: step.Box{Start: []uint64{0}, Count: []uint64{uint64(n)}}, data: make([]int64, n), access: a.access}
	var s said
	limit := time.Duration((a.seconds + a.warmup) * float64(time.Second))
	for start := time.Now(); time.Since(start) < limit; s.Steps++ {
		if err := out.write(ctx, s.Steps); err != nil {
			return s, err
		}
	}
	return s, w.Close()
}

// stepWriter fills steps.
type stepWriter struct {
	w      *sst.Writer
	v      *sst.Variable[int64]
	box    step.Box
	data   []int64
	access access
}

func (o *stepWriter) write(ctx context.Context, number int64) error {
	st, err := o.w.BeginStep(ctx)
	if err != nil {
		return err
	}
	if o.access == inPlace {
		span, err := o.v.Span(st, o.box)
		if err != nil {
			return err
		}
		fill(span, number)
		return st.End(ctx)
	}
	fill(o.data, number)
	if err := o.v.Put(st, o.box, o.data); err != nil {
		return err
	}
	return st.End(ctx)
}

// readStream reads a stream to its end, and counts after the warm-up.
func readStream(ctx context.Context, a roleArgs) (said, error) {
	r, err := sst.Open(ctx, a.name, sst.ReaderConfig{Params: sst.Params{NetworkInterface: "lo", OpenTimeoutSecs: 30}})
	if err != nil {
		return said{}, err
	}
	defer r.Close()
	in := stepReader{data: make([]int64, a.bytes/8), access: a.access}
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

// stepReader reads steps and checks them.
type stepReader struct {
	data   []int64
	access access
	viewed bool
	bad    int64
}

func (i *stepReader) read(ctx context.Context, st *step.Step) error {
	v, err := step.Lookup[int64](st, "x")
	if err != nil {
		return err
	}
	if i.access == inPlace {
		view, err := v.View(ctx, step.All)
		if err == nil {
			i.viewed = true
			i.check(st, view.Data())
			view.Release()
			return nil
		}
		if !errors.Is(err, step.ErrNoView) {
			return err
		}
	}
	data, err := v.Get(ctx, step.All, i.data)
	if err != nil {
		return err
	}
	i.check(st, data)
	return nil
}

func (i *stepReader) check(st *step.Step, data []int64) {
	if len(data) != len(i.data) || sum(data) != expected(len(data), st.Number()) {
		i.bad++
	}
}
