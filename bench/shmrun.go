package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/weft-fabric/weft/internal/ping"
)

// shmSample is what a job gave in one round. Processor time is in µs an operation, of pauses the
// processors that were busy.
type shmSample struct {
	Round int     `json:"round"`
	Value float64 `json:"value"` // in the unit of the row's metric
	Local float64 `json:"cpu_local"`
	Peer  float64 `json:"cpu_peer"`
}

// shmReport is all that a run found out.
type shmReport struct {
	Machine machine    `json:"machine"`
	Loads   []float64  `json:"loads"`
	Notes   []string   `json:"notes,omitempty"` // what is missing, and why
	Peers   []software `json:"peers"`           // with whom something is compared
	Lines   []shmLine  `json:"lines"`
}

// shmLine is one job in all rounds.
type shmLine struct {
	Row     shmRow      `json:"row"`
	By      software    `json:"by"`
	Samples []shmSample `json:"samples"`
	Failed  int         `json:"failed,omitempty"` // rounds in which a peer did not do it
}

// shmRunner runs jobs.
type shmRunner struct {
	config
	peers []libfabric
	most  int // operations of a row of Weft; 0: as many as suit it
}

// runShm measures the table of shared memory.
func runShm(ctx context.Context, c config) (*shmReport, error) {
	r := &shmRunner{config: c}
	rep := &shmReport{Machine: describeMachine()}
	r.peers, rep.Notes = findLibfabric(ctx)
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	for _, n := range rep.Notes {
		fmt.Fprintf(c.log, "bench: %s\n", n)
	}
	for _, p := range r.peers {
		rep.Peers = append(rep.Peers, p.name)
	}
	jobs := shmPlan(c.only, rep.Peers)
	if len(jobs) == 0 {
		return nil, errNothing
	}
	if slices.ContainsFunc(jobs, func(j shmJob) bool { return j.by == bareEventfd }) {
		rep.Peers = append(rep.Peers, bareEventfd)
	}
	return rep, r.measure(ctx, rep, jobs)
}

// measure fills the report. A peer that fails is noted: it may crash where Weft does not.
func (r *shmRunner) measure(ctx context.Context, rep *shmReport, jobs []shmJob) (err error) {
	for _, j := range jobs {
		rep.Lines = append(rep.Lines, shmLine{Row: j.row, By: j.by})
	}
	do := func(ctx context.Context, round, i int) (string, error) {
		s, err := r.job(ctx, jobs[i])
		if err != nil {
			return "", err
		}
		s.Round = round
		rep.Lines[i].Samples = append(rep.Lines[i].Samples, s)
		return valueString(jobs[i].row.Metric, s.Value), nil
	}
	forgive := func(i int, _ error) bool {
		if jobs[i].ours() {
			return false
		}
		rep.Lines[i].Failed++
		return true
	}
	rep.Loads, err = rounds[shmJob]{jobs, do, forgive}.run(ctx, r.config)
	return err
}

// jobLimit is how long one may take.
const jobLimit = 60 * time.Second

func (r *shmRunner) job(ctx context.Context, j shmJob) (shmSample, error) {
	ctx, cancel := context.WithTimeout(ctx, jobLimit)
	defer cancel()
	if !j.ours() {
		for _, p := range r.peers {
			if p.name == j.by {
				return p.pingpong(ctx, j.row)
			}
		}
	}
	w := shmWork{Row: j.row, Iters: j.row.iters(weftShm)}
	if r.most > 0 {
		w.Iters = min(w.Iters, r.most)
	}
	switch {
	case j.row.Metric.ofPause():
		return r.pause(ctx, w)
	case j.by == bareEventfd:
		return r.bare(ctx, w)
	}
	return r.pair(ctx, w, pingSides)
}

// shmSides are two processes that belong together.
type shmSides struct {
	what             string     // who they are
	measures, serves string     // their first arguments
	files            []*os.File // that both get
}

var pingSides = shmSides{what: string(weftShm), measures: pingWord, serves: pingPeerWord}

// bare runs both sides of a bare ping-pong.
func (r *shmRunner) bare(ctx context.Context, w shmWork) (shmSample, error) {
	files, err := newCounters()
	if err != nil {
		return shmSample{}, err
	}
	defer closeFiles(files)
	return r.pair(ctx, w, shmSides{string(bareEventfd), bareWord, barePeerWord, files})
}

// process makes the command of a Weft process.
func (r *shmRunner) process(ctx context.Context, word string, w shmWork, addr string) (*exec.Cmd, error) {
	b, err := json.Marshal(w)
	if err != nil {
		return nil, err
	}
	return command(ctx, r.self[0], append(r.self[1:len(r.self):len(r.self)], word, string(b), addr)...), nil
}

func (r *shmRunner) pause(ctx context.Context, w shmWork) (shmSample, error) {
	cmd, err := r.process(ctx, pauseWord, w, "")
	if err != nil {
		return shmSample{}, err
	}
	p, err := start("Weft", cmd)
	if err != nil {
		return shmSample{}, err
	}
	<-p.done
	return shmSaid(p)
}

// pair runs both sides.
func (r *shmRunner) pair(ctx context.Context, w shmWork, sides shmSides) (shmSample, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	anywhere := func(start func() error) error { return start() }
	here, there := anywhere, anywhere
	if w.Row.Pin != ping.Anywhere {
		local, peer, err := ping.CPUs(w.Row.Pin)
		if err != nil {
			return shmSample{}, err
		}
		here = func(start func() error) error { return ping.StartOn(local, start) }
		there = func(start func() error) error { return ping.StartOn(peer, start) }
	}
	server, addr, err := r.serve(ctx, w, sides, there)
	if err != nil {
		return shmSample{}, err
	}
	s, err := r.measureAt(ctx, w, sides, addr, here)
	cancel()
	_ = server.Wait() // it has served, or it was killed
	if errs := server.Stderr.(*strings.Builder).String(); err != nil && errs != "" {
		err = fmt.Errorf("%w\nthe serving side: %s", err, tail(errs, 10))
	}
	return s, err
}

// measureAt runs the side that measures.
func (r *shmRunner) measureAt(ctx context.Context, w shmWork, sides shmSides, addr string, place func(func() error) error) (shmSample, error) {
	cmd, err := r.process(ctx, sides.measures, w, addr)
	if err != nil {
		return shmSample{}, err
	}
	cmd.ExtraFiles = sides.files
	var p *process
	if err := place(func() (err error) { p, err = start(sides.what, cmd); return err }); err != nil {
		return shmSample{}, err
	}
	<-p.done
	return shmSaid(p)
}

// serve starts the side that serves, and waits for its address.
func (r *shmRunner) serve(ctx context.Context, w shmWork, sides shmSides, place func(func() error) error) (*exec.Cmd, string, error) {
	cmd, err := r.process(ctx, sides.serves, w, "")
	if err != nil {
		return nil, "", err
	}
	cmd.ExtraFiles = sides.files
	errs := new(strings.Builder)
	cmd.Stderr = errs
	if _, err := cmd.StdinPipe(); err != nil { // open as long as we live
		return nil, "", err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, "", err
	}
	if err := place(cmd.Start); err != nil {
		return nil, "", err
	}
	addr, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		return nil, "", fmt.Errorf("the serving side said no address: %w\n%s", errors.Join(err, cmd.Wait()), tail(errs.String(), 10))
	}
	return cmd, strings.TrimSpace(addr), nil
}

// shmSaid is the sample that a process says. It has ended.
func shmSaid(p *process) (shmSample, error) {
	var s shmSample
	if p.err != nil {
		return s, fmt.Errorf("%s: %w\n%s", p.what, p.err, tail(p.errs.String(), 10))
	}
	if err := json.Unmarshal(p.out.Bytes(), &s); err != nil {
		return s, fmt.Errorf("%s said %q: %w", p.what, p.out.String(), err)
	}
	return s, nil
}
