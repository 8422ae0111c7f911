package main

import (
	"fmt"
	"regexp"
	"slices"
	"time"

	"github.com/weft-fabric/weft/internal/ping"
)

// metric is what a row of the table of shared memory is about.
type metric string

const (
	latency   metric = "latency"           // µs, half a round trip
	bandwidth metric = "bandwidth"         // GB/s
	rate      metric = "rate"              // million operations a second
	pauseMax  metric = "GC pause, longest" // µs, in which the world stood still
	pauseP99  metric = "GC pause, p99"     // the same
)

// unit of the metric's values.
func (m metric) unit() string {
	switch m {
	case bandwidth:
		return "GB/s"
	case rate:
		return "M/s"
	case latency, pauseMax, pauseP99:
	}
	return "us"
}

// ofPause reports whether it is about the garbage collector.
func (m metric) ofPause() bool { return m == pauseMax || m == pauseP99 }

// shmRow is one line of the table of shared memory.
type shmRow struct {
	Metric metric    `json:"metric"`
	Op     ping.Op   `json:"op,omitempty"` // of pauses: none
	Size   int       `json:"size"`
	Wait   ping.Wait `json:"wait,omitempty"`
	Pin    ping.Pin  `json:"pin,omitempty"`
	Single bool      `json:"single,omitempty"` // bandwidth: one operation at a time, as fi_pingpong has it
	Idle   bool      `json:"idle,omitempty"`   // of pauses: nobody waits for anything
	// Latency: nothing is done for so long before each operation, so that who sleeps while it waits is asleep.
	Pause  time.Duration `json:"pause_ns,omitempty"`
	Manual bool          `json:"manual,omitempty"` // progress
}

// asleep reports whether the receiver sleeps when an operation begins.
func (r shmRow) asleep() bool { return r.Pause > 0 && r.Wait == ping.Sleep }

// waiting is the row's way to wait in words.
func (r shmRow) waiting() string {
	s := map[ping.Wait]string{ping.Spin: "spinning", ping.Sleep: "sleeping", ping.Ladder: "spin, then sleep"}[r.Wait]
	if r.Metric.ofPause() && r.Idle {
		s = "not waiting"
	}
	if r.asleep() {
		s = "asleep"
	}
	if r.Manual {
		s += ", manual progress"
	}
	if r.Pin == ping.Same {
		s += ", one core"
	}
	return s
}

// String names the row; -only matches it, followed by the software.
func (r shmRow) String() string {
	if r.Metric.ofPause() {
		return fmt.Sprintf("%s, %s", r.Metric, r.waiting())
	}
	op := string(r.Op)
	if r.Single {
		op += ", one at a time"
	}
	return fmt.Sprintf("%s, %s, %s, %s", r.Metric, op, sizeString(r.Size), r.waiting())
}

// peered reports whether fi_pingpong has such a test: it sends messages to and fro,
// and polls.
func (r shmRow) peered() bool {
	return r.Op == ping.Message && (r.Single || r.Metric == latency && r.Wait != ping.Sleep)
}

// iters is how often the operation is done in a round: for about a tenth of a second. Of
// pauses it is the number of collections.
func (r shmRow) iters(k software) int {
	const pauses = 200
	if r.Metric.ofPause() {
		return pauses
	}
	const slowly = 100 // libfabric with both sides on one core takes milliseconds
	const pausing = time.Second
	switch {
	case r.Pause > 0:
		return int(pausing / r.Pause)
	case r.Pin == ping.Same && k != weftShm:
		return slowly
	case r.Wait == ping.Sleep || r.Pin == ping.Same:
		return 5000
	}
	const volume, most, least = 2 << 30, 200_000, 20
	return min(max(volume/max(r.Size, 1), least), most)
}

// shmRows lists the rows.
func shmRows() []shmRow {
	var list []shmRow
	for _, how := range []shmRow{{Wait: ping.Spin, Pin: ping.Apart}, {Wait: ping.Sleep, Pin: ping.Apart}, {Pin: ping.Same}} {
		for _, size := range []int{8, 1 << 10, 4 << 10, 64 << 10} {
			list = append(list, shmRow{Metric: latency, Op: ping.Message, Size: size, Wait: how.Wait, Pin: how.Pin})
		}
	}
	for _, manual := range []bool{false, true} {
		list = append(list, shmRow{Metric: latency, Op: ping.Message, Size: 8, Wait: ping.Sleep, Pin: ping.Apart, Pause: time.Millisecond, Manual: manual})
	}
	sizes := []int{4 << 10, 64 << 10, 1 << 20, 64 << 20}
	for _, size := range sizes {
		list = append(list, shmRow{Metric: bandwidth, Op: ping.Message, Size: size, Wait: ping.Spin, Pin: ping.Apart, Single: true})
	}
	for _, op := range []ping.Op{ping.Message, ping.Read, ping.Write, ping.View} {
		for _, size := range sizes {
			list = append(list, shmRow{Metric: bandwidth, Op: op, Size: size, Wait: ping.Spin, Pin: ping.Apart})
		}
	}
	list = append(list, shmRow{Metric: rate, Op: ping.Message, Size: 8, Wait: ping.Spin, Pin: ping.Apart})
	for _, m := range []metric{pauseMax, pauseP99} {
		list = append(list, shmRow{Metric: m, Idle: true}, shmRow{Metric: m, Wait: ping.Sleep}, shmRow{Metric: m}, shmRow{Metric: m, Wait: ping.Spin})
	}
	return list
}

// software is who does the work of a row: Weft, a release of libfabric, or nobody but the kernel.
type software string

const weftShm software = "Weft"

// shmJob is one row done by one software.
type shmJob struct {
	row shmRow
	by  software
}

func (j shmJob) String() string { return fmt.Sprintf("%v, %s", j.row, j.by) }

// ours reports whether we do it ourselves.
func (j shmJob) ours() bool { return j.by == weftShm || j.by == bareEventfd }

// can reports whether the software has such a test.
func (j shmJob) can() bool {
	switch j.by {
	case weftShm:
		return true
	case bareEventfd:
		return j.row.asleep()
	}
	return j.row.peered()
}

// shmPlan lists the jobs of a round: all software of a row after each other.
func shmPlan(only *regexp.Regexp, peers []software) []shmJob {
	var jobs []shmJob
	for _, r := range shmRows() {
		for _, by := range slices.Concat([]software{weftShm}, peers, []software{bareEventfd}) {
			j := shmJob{r, by}
			if j.can() && only.MatchString(j.String()) {
				jobs = append(jobs, j)
			}
		}
	}
	return jobs
}
