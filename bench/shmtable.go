package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
)

// writeShmTable writes the report as Markdown that can be read as it is.
func writeShmTable(w io.Writer, r *shmReport) error {
	head := []string{"what", "operation", "size", "waiting", "Weft", "min..max", "CPU us/op"}
	for _, p := range r.Peers {
		head = append(head, string(p), "ratio", "min..max", "CPU us/op")
	}
	cells := [][]string{head}
	for _, l := range r.Lines {
		if l.By == weftShm {
			cells = append(cells, r.cells(l))
		}
	}
	_, err := io.WriteString(w, r.caption()+"\n"+markdown(cells))
	return err
}

// caption says what the numbers are and how far to trust them.
func (r *shmReport) caption() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n\n", r.Machine.place())
	b.WriteString("Shared memory, two processes. Weft's side is the work of `weft ping`, libfabric's is fi_pingpong with provider shm;\n")
	b.WriteString("each side has a processor of its own where it is not said to be one core; latency is half a round trip: the mean of a round where libfabric has such a test, which says a mean, else the median. fi_pingpong has no test of reads, writes and views, none with several messages outstanding, and cannot sleep: \"-\".\n")
	fmt.Fprintf(&b, "%s, interleaved; median, least and greatest. The ratio is that of each round, ours to theirs. CPU is that of both sides, Weft's\nwith its warming up, libfabric's with the start of its processes and with tries of the client that came too early; of a pause the processors busy.\n", count(len(r.Loads), "round"))
	if i := slices.IndexFunc(r.Lines, func(l shmLine) bool { return l.Row.asleep() }); i >= 0 {
		fmt.Fprintf(&b, "Asleep: before each message there is a pause of %v, which is not part of the latency, so the receiver sleeps. It is compared with a %s: two\nprocesses that do the same, pauses and warming up included, but carry nothing; in each a thread blocks in a read that the other one's write ends.\n", r.Lines[i].Row.Pause, bareEventfd)
	}
	b.WriteString(idleNote(r.Loads))
	for _, n := range r.Notes {
		first, _, _ := strings.Cut(n, "\n")
		fmt.Fprintf(&b, "**Left out**: %s\n", first)
	}
	for _, l := range r.Lines {
		if l.Failed > 0 {
			fmt.Fprintf(&b, "%s failed in %s: %v\n", l.By, count(l.Failed, "round"), l.Row)
		}
	}
	return b.String()
}

// cells is one line of the table, with what the peers did of the same row.
func (r *shmReport) cells(l shmLine) []string {
	size, op := "-", "-"
	if !l.Row.Metric.ofPause() {
		size, op = sizeString(l.Row.Size), string(l.Row.Op)
		if l.Row.Single {
			op += ", one at a time"
		}
	}
	ours := summarize(l.values())
	c := []string{
		string(l.Row.Metric), op, size, l.Row.waiting(),
		valueString(l.Row.Metric, ours.Median), valueRange(ours), l.cpu(),
	}
	for _, p := range r.Peers {
		their, ok := r.line(l.Row, p)
		if !ok || len(their.Samples) == 0 {
			c = append(c, "-", "-", "-", "-")
			continue
		}
		q := summarize(shmRatios(l.Samples, their.Samples))
		c = append(c, valueString(l.Row.Metric, summarize(their.values()).Median), ratioString(q.Median), ratioString(q.Min)+".."+ratioString(q.Max), their.cpu())
	}
	return c
}

// line finds what somebody did of a row.
func (r *shmReport) line(row shmRow, by software) (shmLine, bool) {
	for _, l := range r.Lines {
		if l.Row == row && l.By == by {
			return l, true
		}
	}
	return shmLine{}, false
}

func (l *shmLine) values() (v []float64) {
	for _, s := range l.Samples {
		v = append(v, s.Value)
	}
	return v
}

// cpu is the processor time of both sides.
func (l *shmLine) cpu() string {
	var local, peer []float64
	for _, s := range l.Samples {
		local, peer = append(local, s.Local), append(peer, s.Peer)
	}
	if l.Row.Metric.ofPause() {
		return digits(summarize(local).Median)
	}
	return digits(summarize(local).Median) + ", " + digits(summarize(peer).Median)
}

// shmRatios compares the samples of each round that has both.
func shmRatios(ours, theirs []shmSample) (v []float64) {
	for _, a := range ours {
		for _, b := range theirs {
			if a.Round == b.Round && b.Value > 0 {
				v = append(v, a.Value/b.Value)
			}
		}
	}
	return v
}

func valueString(m metric, v float64) string { return digits(v) + " " + m.unit() }

func valueRange(s summary) string { return digits(s.Min) + ".." + digits(s.Max) }

// digits shows three that count, as far as there are.
func digits(v float64) string {
	switch {
	case v < 1:
		return fmt.Sprintf("%.3f", v)
	case v < 10:
		return fmt.Sprintf("%.2f", v)
	case v < 100:
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.0f", v)
}
