package main

import (
	"fmt"
	"io"
	"strings"
)

// stepsColumns of the table. CPU and memory are those of writer and reader.
var stepsColumns = []string{"step", "vars", "writers", "queue", "by", "GB/s", "steps/s", "min..max", "ratio", "min..max", "CPU", "memory", "note"}

// writeStepsTable writes the report as Markdown that can be read as it is.
func writeStepsTable(w io.Writer, r *stepsReport) error {
	cells := [][]string{stepsColumns}
	for _, l := range r.Lines {
		if !r.missing(l.Way) {
			cells = append(cells, r.cells(l))
		}
	}
	_, err := io.WriteString(w, r.caption()+"\n"+markdown(cells))
	return err
}

// caption says what the numbers are and how far to trust them.
func (r *stepsReport) caption() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n\n", r.Machine)
	b.WriteString("Steps within the node; the writers fill, the one reader sums and checks, every byte. Each rank is a process.\n")
	b.WriteString("Weft shares memory (DataTransport=native) where it does not say sockets. ADIOS2 has RDMA with FABRIC_PROVIDER=shm and FABRIC_IFACE=shm, UCX with UCX_TLS=shm,self,\nSST_UCX_PROGRESS_THREAD=1 and UCX_POSIX_USE_PROC_LINK=n, and WAN, which is sockets; both of its ends see the same /dev/shm.\n")
	b.WriteString("Bare is the bound of the machine: two processes that share memory for the steps, and wait for each other by counters there, at which each looks for a while before it sleeps (eventfd). They fill, copy, sum\nand check as the others do, but have no protocol, no metadata, and no way to go on when something fails. Several variables or writers would be the same bytes, so such rows have none.\n")
	fmt.Fprintf(&b, "%s of %g s for each line, interleaved; median, least and greatest. The ratio is that of each round, to the plane of ADIOS2 that has the highest median in the row.\n",
		count(len(r.Loads), "round"), r.Seconds)
	b.WriteString("CPU is the processor time of all ranks of the writer, and of the reader, after the warm-up: s/GB, of small steps us a step. Memory is the most that one process had\nresident (VmHWM), writer and reader; what both share counts for both.\n")
	b.WriteString(idleNote(r.Loads))
	for _, m := range r.Missing {
		fmt.Fprintf(&b, "%v does not work here: %s\n", m.Way, m.Why)
	}
	if r.LeftOut != "" {
		first, _, _ := strings.Cut(r.LeftOut, "\n")
		fmt.Fprintf(&b, "**No ADIOS2 here, so there are no ratios**: %s\n", first)
	}
	return b.String()
}

// cells is one line of the table.
func (r *stepsReport) cells(l stepsLine) []string {
	c := []string{sizeString(l.Row.Bytes), fmt.Sprint(l.Row.vars()), fmt.Sprint(l.Row.writers()), fmt.Sprint(l.Row.Queue), l.Way.String()}
	switch {
	case l.Failed != "":
		return append(c, "-", "-", "-", "-", "-", "-", "-", "does not work here: "+l.Failed)
	case len(l.Samples) == 0:
		return append(c, "-", "-", "-", "-", "-", "-", "-", "no step after the warm-up")
	}
	own := summarize(rates(l.Samples))
	c = append(c, gbString(own.Median*float64(l.Row.Bytes)/1e9), digits(own.Median), digits(own.Min)+".."+digits(own.Max))
	if best, ok := r.best(l.Row); ok {
		q := summarize(ratios(l.Samples, best.Samples))
		c = append(c, ratioString(q.Median), ratioString(q.Min)+".."+ratioString(q.Max))
	} else {
		c = append(c, "-", "-")
	}
	c = append(c, l.costs()...)
	if l.Way.Access != copying && l.Way.By == weft && !l.viewed() {
		return append(c, "no view: get")
	}
	return append(c, "")
}

// best is the line of ADIOS2 that is fastest in a row.
func (r *stepsReport) best(row row) (best stepsLine, ok bool) {
	most := 0.0
	for _, l := range r.Lines {
		if m := summarize(rates(l.Samples)).Median; l.Row == row && l.Way.By == adios2 && m > most {
			best, most, ok = l, m, true
		}
	}
	return best, ok
}

// viewed reports whether the reader read in place in each round.
func (l stepsLine) viewed() bool {
	for _, s := range l.Samples {
		if !s.Viewed {
			return false
		}
	}
	return true
}

// costs are processor time and memory, of writers and of the reader.
func (l stepsLine) costs() []string {
	if l.Row.large() {
		return (line{Row: l.Row, Samples: l.Samples}).costs()
	}
	var writer, reader []float64
	for _, s := range l.Samples {
		w, r := s.perGB(l.Row.Bytes)
		us := float64(l.Row.Bytes) / 1e9 * 1e6
		writer, reader = append(writer, w*us), append(reader, r*us)
	}
	memory := (line{Row: l.Row, Samples: l.Samples}).costs()[1]
	return []string{digits(summarize(writer).Median) + ", " + digits(summarize(reader).Median) + " us", memory}
}

// gbString shows what is large and what is small.
func gbString(v float64) string {
	if v < 0.1 {
		return fmt.Sprintf("%.2g", v)
	}
	return fmt.Sprintf("%.2f", v)
}
