package main

import (
	"cmp"
	"fmt"
	"regexp"
)

// kind is the software at one end of a stream. There is also bareMemory.
type kind string

const (
	weft   kind = "Weft"
	adios2 kind = "ADIOS2"
)

// path is who writes and who reads.
type path struct {
	Writer kind `json:"writer"`
	Reader kind `json:"reader"`
}

// String is the path as the table shows it.
func (p path) String() string { return fmt.Sprintf("%s → %s", p.Writer, p.Reader) }

// needs reports whether the path has an end of kind k.
func (p path) needs(k kind) bool { return p.Writer == k || p.Reader == k }

// base is the path that the others are compared with.
var base = path{adios2, adios2}

// paths in the order in which a round runs them. The two ends of the comparison
// that matters most are neighbours.
var paths = []path{{weft, adios2}, {adios2, weft}, {weft, weft}, base}

// access is how Weft's application reaches its arrays. ADIOS2's SST engine has
// but one way, and always uses that.
type access string

const (
	// copying is what ADIOS2 programs do: Put and Get of arrays that the
	// application owns.
	copying access = "put, get"
	// viewing copies into the step, and reads where the data are.
	viewing access = "put, view"
	// inPlace computes into the step's memory and reads where the data are,
	// as far as the data plane can.
	inPlace access = "span, view"
)

// plane is how data get from the writer to the reader: a value of DataTransport, or no plane at all.
type plane string

const (
	sockets plane = "WAN"    // of both
	native  plane = "native" // of Weft
	rdma    plane = "RDMA"   // of ADIOS2: by libfabric
	ucx     plane = "UCX"    // of ADIOS2
	nothing plane = "none"   // of bareMemory
)

// env is what programs of ADIOS2 need in their environment so that the plane works within a node.
func (p plane) env() []string {
	switch p {
	case rdma:
		return []string{"FABRIC_PROVIDER=shm", "FABRIC_IFACE=shm"}
	case ucx:
		return []string{"UCX_TLS=shm,self", "SST_UCX_PROGRESS_THREAD=1", "UCX_POSIX_USE_PROC_LINK=n"}
	case sockets, native, nothing:
	}
	return nil
}

// row is one line of work.
type row struct {
	Bytes  int    `json:"bytes"` // of a step, of all ranks together
	Queue  int    `json:"queue"` // QueueLimit
	Access access `json:"access"`
	// Writers and Readers are ranks, each a process; 0 means 1.
	Writers int `json:"writers,omitempty"`
	Readers int `json:"readers,omitempty"`
	// Vars is the number of variables that make up a step; 0 means 1.
	Vars int `json:"vars,omitempty"`
	// Plane is the data plane; "" means sockets.
	Plane plane `json:"plane,omitempty"`
	// Blocks is the number of blocks that each writer rank puts of each variable; 0 means
	// 1. Local is the number of ranks in one writer process; 0 means 1. Both are Weft's.
	Blocks int `json:"blocks,omitempty"`
	Local  int `json:"local,omitempty"`
}

func (r row) writers() int { return max(r.Writers, 1) }
func (r row) readers() int { return max(r.Readers, 1) }
func (r row) vars() int    { return max(r.Vars, 1) }
func (r row) blocks() int  { return max(r.Blocks, 1) }
func (r row) local() int   { return max(r.Local, 1) }
func (r row) plane() plane { return cmp.Or(r.Plane, sockets) }

// rows is what a run measures unless -only says otherwise.
var rows = []row{
	{Bytes: 8 << 20, Queue: 1, Access: copying},
	{Bytes: 8 << 20, Queue: 1, Access: inPlace},
	{Bytes: 64 << 20, Queue: 1, Access: copying},
	{Bytes: 8, Queue: 1, Access: copying},
	{Bytes: 8, Queue: 4, Access: copying},
	{Bytes: 8 << 20, Queue: 1, Access: copying, Writers: 2, Readers: 2},
	{Bytes: 8 << 20, Queue: 1, Access: copying, Writers: 4, Readers: 2},
	{Bytes: 8 << 20, Queue: 1, Access: copying, Vars: 100},
	{Bytes: 8 << 20, Queue: 1, Access: copying, Vars: 1000},
}

// String names the row; -only matches it, followed by the path.
func (r row) String() string {
	s := fmt.Sprintf("%s, queue %d, %s", sizeString(r.Bytes), r.Queue, r.Access)
	if r.writers() > 1 || r.readers() > 1 {
		s += fmt.Sprintf(", %dx%d ranks", r.writers(), r.readers())
	}
	if r.vars() > 1 {
		s += fmt.Sprintf(", %d variables", r.vars())
	}
	return s
}

// large reports whether the row is about bytes rather than about steps.
func (r row) large() bool { return r.Bytes >= 64<<10 }

// sizeString is a number of bytes in the largest unit that divides it.
func sizeString(n int) string {
	units := []string{"B", "KiB", "MiB", "GiB"}
	u := 0
	for u < len(units)-1 && n >= 1024 && n%1024 == 0 {
		n /= 1024
		u++
	}
	return fmt.Sprintf("%d %s", n, units[u])
}

// job is one path of one row.
type job struct {
	row  row
	path path
}

func (j job) String() string { return fmt.Sprintf("%v, %v", j.row, j.path) }

// plan lists the jobs of a round. Without peers those that need them are left
// out; without a base there are no ratios.
func plan(only *regexp.Regexp, peers bool) []job {
	var jobs []job
	for _, r := range rows {
		for _, p := range paths {
			j := job{r, p}
			if (peers || !p.needs(adios2)) && only.MatchString(j.String()) {
				jobs = append(jobs, j)
			}
		}
	}
	return jobs
}
