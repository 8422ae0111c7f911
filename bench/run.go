package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// config is what a run was asked for.
type config struct {
	table   string
	rounds  int
	seconds float64 // of each pair, after warming up
	only    *regexp.Regexp
	profile string    // folder for CPU profiles of Weft processes, or empty
	docs    string    // folder of the documentation, or empty: of growth
	command string    // that we were started with
	log     io.Writer // progress
	self    []string  // command that starts this program
}

// warmup is the part of the measured time that goes before it: enough for
// connections, formats and pages to be there.
const warmup = 0.25

// startLimit is how long a pair may take beyond its time, where every pair works.
const startLimit = 60 * time.Second

// runner runs jobs.
type runner struct {
	config
	dir    string        // for contact files; gone after the run
	peer   *peer         // nil: there is none
	number int           // of streams so far
	limit  time.Duration // that a pair may take beyond its time; 0 means startLimit
}

// newRunner makes a runner, with ADIOS2 if it is wanted. leftOut is why there is none. What it makes goes with close.
func newRunner(ctx context.Context, c config, peers bool) (r *runner, leftOut string, err error) {
	dir, err := os.MkdirTemp("", "weft-bench-")
	if err != nil {
		return nil, "", err
	}
	r = &runner{config: c, dir: dir}
	if peers {
		r.peer, err = makePeer(ctx, dir)
	}
	if ctx.Err() != nil {
		r.close()
		return nil, "", context.Cause(ctx)
	}
	if err != nil {
		fmt.Fprintf(c.log, "bench: NO ADIOS2 HERE: only Weft to Weft is measured, and there are no ratios: %v\n", err)
		return r, err.Error(), nil
	}
	return r, "", nil
}

// close removes what the runner has made.
func (r *runner) close() {
	_ = os.RemoveAll(r.dir)
	if r.peer != nil {
		r.peer.close()
	}
}

// describe is the machine, with its ADIOS2.
func (r *runner) describe() machine {
	m := describeMachine()
	if r.peer != nil {
		m.ADIOS2 = r.peer.version
	}
	return m
}

// run measures everything and leaves nothing behind.
func run(ctx context.Context, c config) (*report, error) {
	r, leftOut, err := newRunner(ctx, c, true)
	if err != nil {
		return nil, err
	}
	defer r.close()
	rep := &report{Machine: r.describe(), Seconds: c.seconds, LeftOut: leftOut}
	jobs := plan(c.only, r.peer != nil)
	if len(jobs) == 0 {
		return nil, errNothing
	}
	return rep, r.measure(ctx, rep, jobs)
}

var (
	errNothing = errors.New("bench: nothing to measure")
	errHangs   = errors.New("bench: a pair hangs")
)

// measure fills the report.
func (r *runner) measure(ctx context.Context, rep *report, jobs []job) (err error) {
	for _, j := range jobs {
		rep.Lines = append(rep.Lines, line{Row: j.row, Path: j.path})
	}
	do := func(ctx context.Context, round, i int) (string, error) {
		s, err := r.pair(ctx, jobs[i])
		if err != nil {
			return "", err
		}
		s.Round = round
		rep.Lines[i].Samples = append(rep.Lines[i].Samples, s)
		return rateString(jobs[i].row, s.rate()), nil
	}
	rep.Loads, err = rounds[job]{jobs: jobs, do: do}.run(ctx, r.config)
	return err
}

// pair runs one writer and one reader, of one rank or of several.
func (r *runner) pair(ctx context.Context, j job) (sample, error) {
	limit := cmp.Or(r.limit, startLimit) + time.Duration((1+warmup)*r.seconds*float64(time.Second))
	ctx, stop := context.WithTimeoutCause(ctx, limit, fmt.Errorf("%w: not done after %v", errHangs, limit))
	defer stop()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	r.number++
	a := roleArgs{
		name: filepath.Join(r.dir, fmt.Sprintf("s%d", r.number)), bytes: j.row.Bytes, queue: j.row.Queue,
		seconds: r.seconds, warmup: r.seconds * warmup, vars: j.row.vars(), plane: j.row.plane(), access: j.row.Access,
	}
	var files []*os.File
	if j.path.needs(bareMemory) {
		var err error
		if files, err = a.bareFiles(); err != nil {
			return sample{}, err
		}
		defer closeFiles(files)
	}
	ends, err := r.startEnds(ctx, j, a, files)
	started := slices.Concat(ends[:]...)
	if err != nil {
		cancel(err)
		for _, p := range started {
			<-p.done
		}
		return sample{}, context.Cause(ctx)
	}
	return collect(ends[0], ends[1], all(ctx, cancel, started...))
}

// startEnds starts the writer and the reader, which get the files. After an error some of them run.
func (r *runner) startEnds(ctx context.Context, j job, a roleArgs, files []*os.File) (ends [2]end, err error) {
	for i, role := range []string{"writer", "reader"} {
		kind, ranks := j.path.Writer, j.row.writers()
		if i == 1 {
			kind, ranks = j.path.Reader, j.row.readers()
		}
		a.role, a.blocks, a.local = role, 1, 1
		if i == 0 {
			a.blocks, a.local = j.row.blocks(), j.row.local()
		}
		commands, err := r.commands(ctx, kind, ranks, r.profiled(a, j))
		if err != nil {
			return ends, err
		}
		for _, cmd := range commands {
			cmd.ExtraFiles = files
			p, err := start(fmt.Sprintf("%s %s", kind, role), cmd)
			if err != nil {
				return ends, err
			}
			ends[i] = append(ends[i], p)
		}
	}
	return ends, nil
}

// commands returns what runs one end: a command for each rank of Weft, or one.
func (r *runner) commands(ctx context.Context, k kind, ranks int, a roleArgs) ([]*exec.Cmd, error) {
	if k == adios2 {
		cmd := r.peer.ranks(ctx, ranks, a.common()...)
		cmd.Env = append(cmd.Environ(), a.plane.env()...)
		return []*exec.Cmd{cmd}, nil
	}
	m, err := newMeeting(ranks)
	if err != nil {
		return nil, err
	}
	var list []*exec.Cmd
	for rank := range ranks {
		a.rank, a.ranks, a.meet = rank, ranks, m
		if rank > 0 {
			a.profile = "" // one of rank 0 tells enough
		}
		list = append(list, command(ctx, r.self[0], append(r.self[1:len(r.self):len(r.self)], a.words()...)...))
	}
	return list, nil
}

// profiled sets the file of a CPU profile, if they are wanted. A later round
// replaces it.
func (r *runner) profiled(a roleArgs, j job) roleArgs {
	if r.profile != "" {
		name := strings.NewReplacer(" ", "", ",", "-", "→", "-").Replace(j.String())
		a.profile = filepath.Join(r.profile, fmt.Sprintf("%s-%s.prof", name, a.role))
	}
	return a
}

// collect makes the sample of a pair that has ended; why is the reason if it was
// stopped.
func collect(w, r end, why error) (sample, error) {
	if err := errors.Join(w.plane(), r.plane()); err != nil {
		return sample{}, err
	}
	ws, werr := w.said()
	rs, rerr := r.said()
	switch {
	case werr != nil || rerr != nil:
		return sample{}, errors.Join(why, werr, rerr)
	case rs.Bad > 0:
		return sample{}, fmt.Errorf("%w: %d steps of %d", errWrong, rs.Bad, rs.Steps)
	case rs.Steps == 0:
		return sample{}, fmt.Errorf("%w: no step came after the warm-up; use more -seconds", errNothing)
	}
	return sample{
		Steps: rs.Steps, Seconds: rs.Seconds, Viewed: rs.Viewed,
		WriterCPU: ws.CPU, ReaderCPU: rs.CPU, WriterStep: ws.Steps,
		WriterMem: ws.Memory, ReaderMem: rs.Memory,
	}, nil
}
