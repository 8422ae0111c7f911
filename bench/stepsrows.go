package main

import (
	"fmt"
	"regexp"
	"strings"
)

// way is who does a step row, and by what plane and calls: the same software on both sides.
type way struct {
	By     kind   `json:"by"`
	Plane  plane  `json:"plane"`
	Access access `json:"access,omitempty"` // of Weft, and of bareMemory
}

func (w way) String() string {
	if w.By == adios2 {
		return fmt.Sprintf("%s, %s", w.By, w.Plane)
	}
	s := fmt.Sprintf("%s, %s", w.By, strings.Replace(string(w.Access), ", ", " → ", 1))
	if w.Plane == sockets {
		s += ", sockets"
	}
	return s
}

// ways in the order in which a round runs them.
var ways = []way{
	{weft, native, copying},
	{weft, native, viewing},
	{weft, native, inPlace},
	{By: adios2, Plane: ucx},
	{By: adios2, Plane: rdma},
	{By: adios2, Plane: sockets},
	{weft, sockets, copying},
	{bareMemory, nothing, copying},
	{bareMemory, nothing, viewing},
	{bareMemory, nothing, inPlace},
}

// stepsRows is what a run measures unless -only says otherwise. All have one reader. Not all values of the parameters
// are crossed: each has its rows, beside the plain ones.
var stepsRows = []row{
	{Bytes: 8, Queue: 1},
	{Bytes: 8, Queue: 16},
	{Bytes: 64 << 10, Queue: 1},
	{Bytes: 64 << 10, Queue: 16},
	{Bytes: 8 << 20, Queue: 1},
	{Bytes: 8 << 20, Queue: 16},
	{Bytes: 64 << 20, Queue: 1},
	{Bytes: 64 << 10, Queue: 1, Vars: 10},
	{Bytes: 64 << 10, Queue: 16, Vars: 1000},
	{Bytes: 8 << 20, Queue: 1, Vars: 10},
	{Bytes: 8 << 20, Queue: 1, Vars: 1000},
	{Bytes: 64 << 10, Queue: 16, Writers: 4},
	{Bytes: 8 << 20, Queue: 1, Writers: 4},
	{Bytes: 8 << 20, Queue: 16, Vars: 10, Writers: 4},
	{Bytes: 64 << 20, Queue: 1, Writers: 4},
}

// stepsJob is one row done in one way.
type stepsJob struct {
	row row
	way way
}

// String is what -only matches.
func (j stepsJob) String() string {
	return fmt.Sprintf("%s, %s, %s, queue %d, %v", sizeString(j.row.Bytes), count(j.row.vars(), "variable"), count(j.row.writers(), "writer"), j.row.Queue, j.way)
}

// job is what a runner runs.
func (j stepsJob) job() job {
	r := j.row
	r.Plane, r.Access = j.way.Plane, j.way.Access
	return job{r, path{j.way.By, j.way.By}}
}

// ours reports whether we do it ourselves.
func (j stepsJob) ours() bool { return j.way.By != adios2 }

// can reports whether the row can be done so. Bare memory has no names and no ranks; more variables of it are the same bytes.
func (j stepsJob) can() bool {
	return j.way.By != bareMemory || j.row.vars() == 1 && j.row.writers() == 1
}

// stepsPlan lists the jobs of a round: all ways of a row after each other.
func stepsPlan(only *regexp.Regexp, peers bool) (jobs []stepsJob) {
	for _, r := range stepsRows {
		for _, w := range ways {
			j := stepsJob{r, w}
			if j.can() && (peers || j.ours()) && only.MatchString(j.String()) {
				jobs = append(jobs, j)
			}
		}
	}
	return jobs
}
