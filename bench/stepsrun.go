package main

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"
)

// stepsReport is all that a run of the step rows found out.
type stepsReport struct {
	Machine machine      `json:"machine"`
	Seconds float64      `json:"seconds"`
	Loads   []float64    `json:"loads"`
	LeftOut string       `json:"left_out,omitempty"`
	Missing []missingWay `json:"missing,omitempty"`
	Lines   []stepsLine  `json:"lines"`
}

// missingWay is one that a peer has no plane for, in whatever row.
type missingWay struct {
	Way way    `json:"way"`
	Why string `json:"why"` // in one line
}

// stepsLine is one way of one row, in all rounds.
type stepsLine struct {
	Row     row      `json:"row"`
	Way     way      `json:"way"`
	Samples []sample `json:"samples"`
	Failed  string   `json:"failed,omitempty"` // why a peer does not do it, in one line
}

// hangLimit is how long a pair may take beyond its time, where a plane may hang: the slowest start is that of mpirun.
const hangLimit = 20 * time.Second

// runSteps measures the table of steps.
func runSteps(ctx context.Context, c config) (*stepsReport, error) {
	r, leftOut, err := newRunner(ctx, c, true)
	if err != nil {
		return nil, err
	}
	defer r.close()
	r.limit = hangLimit
	if r.peer != nil {
		if err := r.peer.share(); err != nil {
			return nil, err
		}
	}
	rep := &stepsReport{Machine: r.describe(), Seconds: c.seconds, LeftOut: leftOut}
	jobs := stepsPlan(c.only, r.peer != nil)
	if len(jobs) == 0 {
		return nil, errNothing
	}
	return rep, r.measureSteps(ctx, rep, jobs)
}

// measureSteps fills the report. A round in which no step came has no sample. A peer that fails in a row is not asked again for it; one that has not got a plane, for
// no row of that plane.
func (r *runner) measureSteps(ctx context.Context, rep *stepsReport, jobs []stepsJob) (err error) {
	for _, j := range jobs {
		rep.Lines = append(rep.Lines, stepsLine{Row: j.row, Way: j.way})
	}
	do := func(ctx context.Context, round, i int) (string, error) {
		if rep.failed(i) {
			return "failed before", nil
		}
		s, err := r.pair(ctx, jobs[i].job())
		if err != nil {
			return "", err
		}
		s.Round = round
		rep.Lines[i].Samples = append(rep.Lines[i].Samples, s)
		return rateString(jobs[i].row, s.rate()), nil
	}
	forgive := func(i int, err error) bool {
		switch {
		case errors.Is(err, errNothing): // slow, or the machine has other things to do: it may be better in another round
			return true
		case jobs[i].ours():
			return false
		}
		rep.fail(i, err)
		return true
	}
	rep.Loads, err = rounds[stepsJob]{jobs, do, forgive}.run(ctx, r.config)
	return err
}

// fail notes that a peer did not do line i, or that it has not got the plane for it. What it did in earlier rounds does not count.
func (r *stepsReport) fail(i int, err error) {
	first, _, _ := strings.Cut(err.Error(), "\n")
	why, way := strings.TrimPrefix(first, "bench: "), r.Lines[i].Way
	if !errors.Is(err, errPlane) {
		r.Lines[i].Failed, r.Lines[i].Samples = why, nil
		return
	}
	r.Missing = append(r.Missing, missingWay{way, why})
	for k := range r.Lines {
		if r.Lines[k].Way == way {
			r.Lines[k].Samples = nil
		}
	}
}

// missing reports whether a peer has not got the plane of a way.
func (r *stepsReport) missing(w way) bool {
	return slices.ContainsFunc(r.Missing, func(m missingWay) bool { return m.Way == w })
}

// failed reports whether line i is not to be done again.
func (r *stepsReport) failed(i int) bool { return r.Lines[i].Failed != "" || r.missing(r.Lines[i].Way) }
