package main

import (
	"context"
	"fmt"
	"math"
	"regexp"
)

// curve is how the cost of a step grows with the number of one thing.
type curve struct {
	Name string `json:"curve"` // of the file of its plot, too
	Item string `json:"item"`  // in words
	What string `json:"what"`  // a step is
	At   []int  `json:"-"`
	row  func(n int) row
}

// itemBytes is what each item carries: little, so that it is the item that costs.
const itemBytes = 64

var curves = []curve{
	{
		"variables", "variable", "one writer rank puts n variables, the reader gets all of them with one Fetch",
		[]int{1, 10, 100, 1000, 10000},
		func(n int) row { return row{Vars: n} },
	},
	{
		"blocks", "block", "one writer rank puts n blocks of one array, the reader gets it whole",
		[]int{1, 10, 100, 1000, 10000},
		func(n int) row { return row{Blocks: n} },
	},
	{
		"ranks", "writer rank", "n writer ranks in one process (cohort.Local) put a block each of one array, the reader gets it whole",
		[]int{1, 4, 16, 64},
		func(n int) row { return row{Local: n} },
	},
}

// job of the point at n.
func (c curve) job(n int) job {
	r := c.row(n)
	r.Bytes, r.Queue, r.Access, r.Plane = n*itemBytes, 1, copying, native
	return job{r, path{weft, weft}}
}

// point is a step of n items, in all rounds.
type point struct {
	N       int      `json:"n"`
	Samples []sample `json:"samples"`
}

// times are the seconds of a step.
func (p point) times() (v []float64) {
	for _, s := range p.Samples {
		v = append(v, 1/s.rate())
	}
	return v
}

// perItem is the median time for each item, in seconds.
func (p point) perItem() float64 { return summarize(p.times()).Median / float64(p.N) }

// growthCurve is what was measured of a curve.
type growthCurve struct {
	curve

	Points []point `json:"points"`
}

// growthReport is all that a run found out.
type growthReport struct {
	Command string        `json:"command"`
	Machine machine       `json:"machine"`
	Seconds float64       `json:"seconds"`
	Loads   []float64     `json:"loads"`
	Curves  []growthCurve `json:"curves"`
}

// tolerance is the power that growth may be above linear: caches fill, so that a thousandth item costs a little more than the
// first. From one power of ten to the next an item may cost 1.26 times as much.
const tolerance = 0.1

// growths are the ratios of the cost for each item from each point to the next.
func growths(points []point) (v []float64) {
	for i := 1; i < len(points); i++ {
		v = append(v, points[i].perItem()/points[i-1].perItem())
	}
	return v
}

// worst finds the interval of points in which growth is steepest: it ends at point i, and goes with this power of n.
func worst(points []point) (i int, power float64) {
	power = math.Inf(-1)
	for k, g := range growths(points) {
		if p := 1 + math.Log(g)/math.Log(float64(points[k+1].N)/float64(points[k].N)); p > power {
			i, power = k+1, p
		}
	}
	return i, power
}

// verdict judges a curve.
func (c growthCurve) verdict() string {
	if !c.drawn() {
		return "one point is no curve"
	}
	i, power := worst(c.Points)
	from, to := c.Points[i-1].N, c.Points[i].N
	if power <= 1+tolerance {
		return fmt.Sprintf("linear or better: steepest from %d to %d, as n^%.2f", from, to, power)
	}
	return fmt.Sprintf("worse than linear from %d to %d: as n^%.2f", from, to, power)
}

// runGrowth measures the curves.
func runGrowth(ctx context.Context, c config) (*growthReport, error) {
	r, _, err := newRunner(ctx, c, false)
	if err != nil {
		return nil, err
	}
	defer r.close()
	rep := &growthReport{Command: c.command, Machine: r.describe(), Seconds: c.seconds, Curves: growthPlan(c.only)}
	if len(rep.Curves) == 0 {
		return nil, errNothing
	}
	return rep, r.measureGrowth(ctx, rep)
}

// growthPlan lists what -only matches of the points, as "100 variables".
func growthPlan(only *regexp.Regexp) (list []growthCurve) {
	for _, c := range curves {
		g := growthCurve{curve: c}
		for _, n := range c.At {
			if only.MatchString(count(n, c.Item)) {
				g.Points = append(g.Points, point{N: n})
			}
		}
		if len(g.Points) > 0 {
			list = append(list, g)
		}
	}
	return list
}

// growthJob is one point of a curve.
type growthJob struct {
	curve curve
	*point
}

func (j growthJob) String() string { return count(j.N, j.curve.Item) }

// measureGrowth fills the report.
func (r *runner) measureGrowth(ctx context.Context, rep *growthReport) (err error) {
	var jobs []growthJob
	for _, c := range rep.Curves {
		for i := range c.Points {
			jobs = append(jobs, growthJob{c.curve, &c.Points[i]})
		}
	}
	do := func(ctx context.Context, round, i int) (string, error) {
		j := jobs[i]
		s, err := r.pair(ctx, j.curve.job(j.N))
		if err != nil {
			return "", err
		}
		s.Round = round
		j.Samples = append(j.Samples, s)
		return timeString(1 / s.rate()), nil
	}
	rep.Loads, err = rounds[growthJob]{jobs: jobs, do: do}.run(ctx, r.config)
	return err
}
