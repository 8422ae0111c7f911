package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

// stepsReport is all that a run of the step rows found out.
type stepsReport struct {
	Machine machine     `json:"machine"`
	Seconds float64     `json:"seconds"`
	Loads   []float64   `json:"loads"`
	LeftOut string      `json:"left_out,omitempty"`
	Lines   []stepsLine `json:"lines"`
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
func (r *runner) measureSteps(ctx context.Context, rep *stepsReport, jobs []stepsJob) error {
	for _, j := range jobs {
		rep.Lines = append(rep.Lines, stepsLine{Row: j.row, Way: j.way})
	}
	for round := range r.rounds {
		load, err := r.begin(ctx, round)
		if err != nil {
			return err
		}
		rep.Loads = append(rep.Loads, load)
		for i, j := range jobs {
			if rep.Lines[i].Failed != "" {
				continue
			}
			s, err := r.pair(ctx, j.job())
			switch {
			case ctx.Err() != nil:
				return context.Cause(ctx)
			case errors.Is(err, errNothing): // slow, or the machine has other things to do: it may be better in another round
				fmt.Fprintf(r.log, "  %-60v %v\n", j, err)
			case err != nil && j.way.By == weft:
				return fmt.Errorf("round %d, %v: %w", round+1, j, err)
			case err != nil:
				rep.fail(i, err)
				fmt.Fprintf(r.log, "  %-60v FAILED: %v\n", j, err)
			default:
				s.Round = round
				rep.Lines[i].Samples = append(rep.Lines[i].Samples, s)
				fmt.Fprintf(r.log, "  %-60v %s\n", j, rateString(j.row, s.rate()))
			}
		}
	}
	return nil
}

// fail notes that a peer did not do line i. What it did in earlier rounds does not count.
func (r *stepsReport) fail(i int, err error) {
	why, _, _ := strings.Cut(err.Error(), "\n")
	for k := range r.Lines {
		l := &r.Lines[k]
		if k == i || errors.Is(err, errPlane) && l.Way == r.Lines[i].Way {
			l.Failed, l.Samples = strings.TrimPrefix(why, "bench: "), nil
		}
	}
}
