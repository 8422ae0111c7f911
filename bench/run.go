package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
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
	log     io.Writer // progress
	self    []string  // command that starts this program
}

// warmup is the part of the measured time that goes before it: enough for
// connections, formats and pages to be there.
const warmup = 0.25

// startLimit is how long a pair may take beyond its time.
const startLimit = 60 * time.Second

// runner runs jobs.
type runner struct {
	config
	dir    string // for contact files; gone after the run
	peer   *peer  // nil: there is none
	number int    // of streams so far
}

// run measures everything and leaves nothing behind.
func run(ctx context.Context, c config) (*report, error) {
	dir, err := os.MkdirTemp("", "weft-bench-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	r := &runner{config: c, dir: dir}
	rep := &report{Machine: describeMachine(), Seconds: c.seconds}
	r.peer, err = makePeer(ctx, dir)
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case err != nil:
		rep.LeftOut = err.Error()
		fmt.Fprintf(c.log, "bench: NO ADIOS2 HERE: only Weft to Weft is measured, and there are no ratios: %v\n", err)
	default:
		rep.Machine.ADIOS2 = r.peer.version
	}
	jobs := plan(c.only, r.peer != nil)
	if len(jobs) == 0 {
		return nil, errNothing
	}
	return rep, r.measure(ctx, rep, jobs)
}

var errNothing = errors.New("bench: nothing to measure")

// measure fills the report.
func (r *runner) measure(ctx context.Context, rep *report, jobs []job) error {
	for _, j := range jobs {
		rep.Lines = append(rep.Lines, line{Row: j.row, Path: j.path})
	}
	for round := range r.rounds {
		load, err := measureLoad(ctx, rep.Machine.CPUs)
		if err != nil {
			return err
		}
		rep.Loads = append(rep.Loads, load)
		fmt.Fprintf(r.log, "round %d of %d%s\n", round+1, r.rounds, busyNote(load))
		for i, j := range jobs {
			s, err := r.pair(ctx, j)
			if err != nil {
				return fmt.Errorf("round %d, %v: %w", round+1, j, err)
			}
			s.Round = round
			rep.Lines[i].Samples = append(rep.Lines[i].Samples, s)
			fmt.Fprintf(r.log, "  %-52v %s\n", j, rateString(j.row, s.rate()))
		}
	}
	return nil
}

func busyNote(load float64) string {
	if load < busyLoad {
		return ""
	}
	return fmt.Sprintf(" (the machine was BUSY: %.2f processors)", load)
}

// pair runs one writer and one reader, of one rank or of several.
func (r *runner) pair(ctx context.Context, j job) (sample, error) {
	limit := startLimit + time.Duration((1+warmup)*r.seconds*float64(time.Second))
	ctx, stop := context.WithTimeout(ctx, limit)
	defer stop()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	r.number++
	a := roleArgs{
		name: filepath.Join(r.dir, fmt.Sprintf("s%d", r.number)), bytes: j.row.Bytes, queue: j.row.Queue,
		seconds: r.seconds, warmup: r.seconds * warmup, vars: j.row.vars(), access: j.row.Access,
	}
	var ends [2]end
	var started []*process
	for i, role := range []string{"writer", "reader"} {
		kind, ranks := j.path.Writer, j.row.writers()
		if i == 1 {
			kind, ranks = j.path.Reader, j.row.readers()
		}
		a.role = role
		commands, err := r.commands(ctx, kind, ranks, r.profiled(a, j))
		for _, cmd := range commands {
			var p *process
			if p, err = start(fmt.Sprintf("%s %s", kind, role), cmd); err != nil {
				break
			}
			ends[i], started = append(ends[i], p), append(started, p)
		}
		if err != nil {
			cancel()
			for _, p := range started {
				<-p.done
			}
			return sample{}, err
		}
	}
	err := all(ctx, cancel, started...)
	return collect(ends[0], ends[1], err)
}

// commands returns what runs one end: a command for each rank of Weft, or one.
func (r *runner) commands(ctx context.Context, k kind, ranks int, a roleArgs) ([]*exec.Cmd, error) {
	if k == adios2 {
		return []*exec.Cmd{r.peer.ranks(ctx, ranks, a.common()...)}, nil
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
		WriterCPU: w.cpu(), ReaderCPU: r.cpu(), WriterStep: ws.Steps,
		WriterMem: w.memory(), ReaderMem: r.memory(),
	}, nil
}
