package main

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// columns of the table. "Ours" is the path of the line, "theirs" ADIOS2 → ADIOS2.
// CPU is seconds for each GB, memory the most of one process, each as writer and
// reader.
var columns = []string{"step", "ranks", "vars", "queue", "Weft's API", "path", "ours", "min..max", "theirs", "ratio", "min..max", "CPU s/GB", "memory"}

// writeTable writes the report as Markdown that can be read as it is.
func writeTable(w io.Writer, r *report) error {
	cells := [][]string{columns}
	for _, l := range r.Lines {
		cells = append(cells, r.cells(l))
	}
	_, err := io.WriteString(w, r.caption()+"\n"+markdown(cells))
	return err
}

// markdown is a table, whose first line are its heads.
func markdown(cells [][]string) string {
	var b strings.Builder
	for i, line := range align(cells) {
		b.WriteString(line)
		if i == 0 {
			b.WriteString(rule(line))
		}
	}
	return b.String()
}

// caption says what the numbers are and how far to trust them.
func (r *report) caption() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n\n", r.Machine)
	fmt.Fprintf(&b, "Steps over TCP on the loopback interface, the writers fill, the readers sum and check; ranks are writers x readers, each a process.\n")
	fmt.Fprintf(&b, "%s of %g s for each path, interleaved; median, least and greatest. The ratio is that of each round, ours to theirs (ADIOS2 → ADIOS2).\n",
		count(len(r.Loads), "round"), r.Seconds)
	b.WriteString(idleNote(r.Loads))
	if r.LeftOut != "" {
		first, _, _ := strings.Cut(r.LeftOut, "\n")
		fmt.Fprintf(&b, "**No ADIOS2 here, so only Weft → Weft was measured**: %s\n", first)
	}
	return b.String()
}

// idleNote says whether the machine was idle before the rounds.
func idleNote(loads []float64) string {
	if n := busyRounds(loads); n > 0 {
		return fmt.Sprintf("**The machine was busy before %d of %d rounds**: do not trust these numbers.\n", n, len(loads))
	}
	return "The machine was idle before each round.\n"
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// cells is one line of the table.
func (r *report) cells(l line) []string {
	api := string(l.Row.Access)
	if !l.Path.needs(weft) {
		api = "-"
	} else if l.Row.Access == inPlace && l.Path.Reader == weft && !l.viewed() {
		api = "span, get" // the plane had no view to give
	}
	c := []string{
		sizeString(l.Row.Bytes), fmt.Sprintf("%dx%d", l.Row.writers(), l.Row.readers()), fmt.Sprint(l.Row.vars()),
		fmt.Sprint(l.Row.Queue), api, l.Path.String(),
	}
	ours := summarize(rates(l.Samples))
	c = append(c, rateString(l.Row, ours.Median), rangeString(l.Row, ours))
	other, ok := r.theirs(l)
	if !ok {
		return append(append(c, "-", "-", "-"), l.costs()...)
	}
	q := summarize(ratios(l.Samples, other.Samples))
	theirs := summarize(rates(other.Samples))
	c = append(c, rateString(l.Row, theirs.Median), ratioString(q.Median), ratioString(q.Min)+".."+ratioString(q.Max))
	return append(c, l.costs()...)
}

// costs are processor time and memory, of writers and of readers.
func (l line) costs() []string {
	var cpu, mem [2][]float64
	for _, s := range l.Samples {
		w, r := s.perGB(l.Row.Bytes)
		cpu[0], cpu[1] = append(cpu[0], w), append(cpu[1], r)
		mem[0] = append(mem[0], float64(s.WriterMem))
		mem[1] = append(mem[1], float64(s.ReaderMem))
	}
	time := "-"
	if l.Row.large() {
		time = fmt.Sprintf("%.2f, %.2f", summarize(cpu[0]).Median, summarize(cpu[1]).Median)
	}
	const mib = 1 << 20
	return []string{time, fmt.Sprintf("%.0f, %.0f MiB", summarize(mem[0]).Median/mib, summarize(mem[1]).Median/mib)}
}

// ratioString shows two digits that count, also of a ratio that is a disaster.
func ratioString(q float64) string {
	if q > 0 && q < 0.1 {
		return fmt.Sprintf("%.2g", q)
	}
	return fmt.Sprintf("%.2f", q)
}

// rateString shows steps a second as what the row is about: GB/s (10^9 bytes)
// for large steps.
func rateString(r row, rate float64) string {
	if r.large() {
		return fmt.Sprintf("%.2f GB/s", rate*float64(r.Bytes)/1e9)
	}
	return fmt.Sprintf("%.0f /s", rate)
}

func rangeString(r row, s summary) string {
	if r.large() {
		gb := float64(r.Bytes) / 1e9
		return fmt.Sprintf("%.2f..%.2f", s.Min*gb, s.Max*gb)
	}
	return fmt.Sprintf("%.0f..%.0f", s.Min, s.Max)
}

// align pads the cells of a column to one width, counted in characters.
func align(cells [][]string) []string {
	var width []int
	for _, c := range cells {
		for i, s := range c {
			if i == len(width) {
				width = append(width, 0)
			}
			width[i] = max(width[i], utf8.RuneCountInString(s))
		}
	}
	var lines []string
	for _, c := range cells {
		var b strings.Builder
		for i, s := range c {
			b.WriteString("| " + s + strings.Repeat(" ", width[i]-utf8.RuneCountInString(s)+1))
		}
		lines = append(lines, b.String()+"|\n")
	}
	return lines
}

// rule is the line under the heads.
func rule(heads string) string {
	return strings.Map(func(c rune) rune {
		if c == '|' || c == '\n' {
			return c
		}
		return '-'
	}, heads)
}
