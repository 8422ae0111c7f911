package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/weft-fabric/weft/internal/mrcache"
)

// mrSample is a row in one round: what one operation took, Acquire and Release together.
type mrSample struct {
	Round  int     `json:"round"`
	CPU    float64 `json:"cpu"`    // ns of processor time, of the whole process
	Wall   float64 `json:"wall"`   // ns: the time of the run, by the operations of all goroutines
	Alone  float64 `json:"alone"`  // ns of processor time without the cache
	Allocs float64 `json:"allocs"` // allocations
}

// mrLine is a row in all rounds.
type mrLine struct {
	Stand   mrStand    `json:"stand"`
	Row     mrRow      `json:"row"`
	Samples []mrSample `json:"samples"`
}

// mrReport is all that a run found out.
type mrReport struct {
	Command string    `json:"command"`
	Machine machine   `json:"machine"`
	Seconds float64   `json:"seconds"`
	Loads   []float64 `json:"loads"`
	Notes   []string  `json:"notes,omitempty"` // what is missing, and why
	Lines   []mrLine  `json:"lines"`
}

// runMR measures the table of registrations, in this process.
func runMR(ctx context.Context, c config) (*mrReport, error) {
	rep := &mrReport{Command: c.command, Machine: describeMachine(), Seconds: c.seconds}
	var jobs []mrJob
	for _, j := range mrPlan(c.only) {
		if err := missingMR(j.mrStand); err != nil {
			rep.note(err.Error())
			continue
		}
		jobs = append(jobs, j)
	}
	for _, n := range rep.Notes {
		fmt.Fprintf(c.log, "bench: left out: %s\n", n)
	}
	if len(jobs) == 0 {
		return nil, errNothing
	}
	return rep, c.measureMR(ctx, rep, jobs)
}

func (r *mrReport) note(n string) {
	if !slices.Contains(r.Notes, n) {
		r.Notes = append(r.Notes, n)
	}
}

// measureMR fills the report.
func (c config) measureMR(ctx context.Context, rep *mrReport, jobs []mrJob) (err error) {
	first := make([]int, len(jobs)) // where the lines of a job begin
	for i, j := range jobs {
		first[i] = len(rep.Lines)
		for _, r := range j.rows {
			rep.Lines = append(rep.Lines, mrLine{Stand: j.mrStand, Row: r})
		}
	}
	do := func(ctx context.Context, round, i int) (string, error) {
		stop, err := c.profileMR(jobs[i].mrStand)
		if err != nil {
			return "", err
		}
		defer stop()
		samples, err := jobs[i].measure(ctx, c.seconds)
		var said []string
		for k, s := range samples {
			s.Round = round
			l := &rep.Lines[first[i]+k]
			l.Samples = append(l.Samples, s)
			said = append(said, digits(s.CPU))
		}
		return strings.Join(said, " ") + " ns", err
	}
	rep.Loads, err = rounds[mrJob]{jobs: jobs, do: do}.run(ctx, c)
	return err
}

var notInNames = regexp.MustCompile(`[^a-z0-9]+`)

// profileMR profiles the work on a stand, if that is wanted. A later round overwrites an earlier one.
func (c config) profileMR(s mrStand) (stop func(), err error) {
	if c.profile == "" {
		return func() {}, nil
	}
	name := notInNames.ReplaceAllString(strings.ToLower(s.String()), "-")
	return profileTo(filepath.Join(c.profile, name+".prof"))
}

// measure sets the stand up and measures its rows: first the driver alone, while there is no cache that could hear of anything.
func (j mrJob) measure(ctx context.Context, seconds float64) (samples []mrSample, err error) {
	t, err := newMRSet(j.mrStand)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, t.close()) }()
	d := time.Duration(seconds * float64(time.Second))
	short := time.Duration(float64(d) * warmup)
	samples = make([]mrSample, len(j.rows))
	for i, r := range j.rows {
		tally, err := t.work(r.Op, alone).run(ctx, r.Goroutines, short)
		if err != nil {
			return nil, err
		}
		samples[i].Alone = tally.sample().CPU
	}
	if err := t.fill(); err != nil {
		return nil, err
	}
	for i, r := range j.rows {
		s, err := t.measure(ctx, r, short, d)
		if err != nil {
			return nil, fmt.Errorf("%v: %w", r, err)
		}
		s.Alone = samples[i].Alone
		samples[i] = s
	}
	return samples, nil
}

// sample is what one operation took.
func (t mrTally) sample() mrSample {
	n := float64(t.ops)
	return mrSample{CPU: float64(t.cpu) / n, Wall: float64(t.wall) / n, Allocs: float64(t.allocs) / n}
}

// mrTries is how often a row is measured when it did not do what it should: goroutines that are stopped in the middle are overtaken.
const mrTries = 5

// measure is one row, after warming up.
func (t *mrSet) measure(ctx context.Context, r mrRow, short, d time.Duration) (s mrSample, err error) {
	var other error
	for range mrTries {
		if r.Op == mrInvalidate {
			err = t.refill()
		}
		w := t.work(r.Op, t.through)
		if err == nil {
			_, err = w.run(ctx, r.Goroutines, short)
		}
		if err != nil {
			return mrSample{}, err
		}
		before := t.cache.stats()
		tally, err := w.run(ctx, r.Goroutines, d)
		if err != nil {
			return mrSample{}, err
		}
		if other = r.Op.check(before, t.cache.stats(), tally.ops); other == nil {
			return tally.sample(), nil
		}
	}
	return mrSample{}, other
}

var errOther = errors.New("bench: something else was measured")

// check looks whether operations were what they are called, but for one hit in twenty, since a monitor may be in doubt for a moment, and one of the
// others in five: goroutines overtake each other, and so the one that has a buffer die.
func (o mrOp) check(before, after mrcache.Stats, ops int64) error {
	hits := after.Hits - before.Hits
	if want := o.hits(); want && hits*20 < uint64(ops)*19 || !want && hits*5 > uint64(ops) {
		return fmt.Errorf("%w: of %d operations %d were hits", errOther, ops, hits)
	}
	return nil
}
