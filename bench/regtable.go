package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
)

// Aims of the cache: what a hit may cost, in ns, and by how much it may grow with entries and goroutines.
const (
	hitAim  = 100
	flatAim = 1.5
)

// writeRegTable writes the report as Markdown that can be read as it is.
func writeRegTable(w io.Writer, r *regReport) error {
	text := r.caption()
	if cells := r.operations(); len(cells) > 1 {
		text += "\n" + markdown(cells)
	}
	if cells := r.sizes(); len(cells) > 1 {
		text += "\nWith the card of internal/pinnic, which pins pages by io_uring, one goroutine, us; copied: into a buffer that is registered.\n\n" + markdown(cells)
	}
	_, err := io.WriteString(w, text)
	return err
}

func (r *regReport) caption() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n\n", r.Machine.place())
	b.WriteString("The registration cache (internal/mrcache), one process; an operation is an Acquire and its Release of a buffer of one page. The registrar does nothing, so this is the cost of the\n")
	b.WriteString("cache: ns of processor time for each operation, with 1, 2 and 8 goroutines; median, least and greatest of " + count(len(r.Loads), "round") + ", interleaved. libfabric's cache is only active in providers for hardware, so there\n")
	b.WriteString("is no peer to time here.\n")
	b.WriteString(idleNote(r.Loads))
	for _, l := range r.LeftOut {
		fmt.Fprintf(&b, "**Left out**: %s\n", l)
	}
	for _, v := range r.verdicts() {
		b.WriteString(v + "\n")
	}
	return b.String()
}

// verdicts judge the hits of the kinds that have an aim.
func (r *regReport) verdicts() (list []string) {
	for _, kind := range []regKind{regArena, regHeap} {
		var v []float64
		allocs := 0.0
		for _, l := range r.Lines {
			if l.Row.Op == regHit && l.Row.Kind == kind && len(l.Samples) > 0 {
				v = append(v, l.cpu().Median)
				allocs = max(allocs, l.allocs())
			}
		}
		if len(v) == 0 {
			continue
		}
		least, most := slices.Min(v), slices.Max(v)
		met := func(is bool) string {
			if is {
				return "met"
			}
			return "NOT met"
		}
		list = append(list, fmt.Sprintf("Hit, %s: %.0f to %.0f ns, %.0f allocations: below %d ns %s, flat (within %.1f times, 10 to 100 000 entries, 1 to 8 goroutines) %s.",
			kind, least, most, allocs, hitAim, met(most < hitAim), flatAim, met(most <= flatAim*least)))
	}
	return list
}

func (l *regLine[R]) of(f func(regSample) float64) summary {
	var v []float64
	for _, s := range l.Samples {
		v = append(v, f(s))
	}
	return summarize(v)
}

func (l *regLine[R]) cpu() summary { return l.of(func(s regSample) float64 { return s.CPU }) }

// allocs is for each operation; what a measurement itself allocates is none.
func (l *regLine[R]) allocs() float64 {
	return l.of(func(s regSample) float64 { return s.Allocs }).Median
}

// operations are the cells of the first table.
func (r *regReport) operations() [][]string {
	cells := [][]string{{"operation", "kind", "entries"}}
	for _, g := range regGoroutines {
		cells[0] = append(cells[0], count(g, "goroutine"), "min..max")
	}
	cells[0] = append(cells[0], "allocations")
	var last regRow
	for _, l := range r.Lines {
		if len(l.Samples) == 0 {
			continue
		}
		if row := (regRow{l.Row.Op, l.Row.Kind, l.Row.Entries, 0}); row != last || len(cells) == 1 {
			last = row
			cells = append(cells, r.line(row))
		}
	}
	return cells
}

// line is a line of the table, with all numbers of goroutines.
func (r *regReport) line(row regRow) []string {
	c := []string{string(row.Op), string(row.Kind), fmt.Sprint(row.Entries)}
	allocs := "-"
	for _, g := range regGoroutines {
		row.Goroutines = g
		i := slices.IndexFunc(r.Lines, func(l *regLine[regRow]) bool { return l.Row == row && len(l.Samples) > 0 })
		if i < 0 {
			c = append(c, "-", "-")
			continue
		}
		q := r.Lines[i].cpu()
		c = append(c, digits(q.Median), digits(q.Min)+".."+digits(q.Max))
		allocs = fmt.Sprintf("%.0f", r.Lines[i].allocs())
	}
	return append(c, allocs)
}

// sizes are the cells of the second table.
func (r *regReport) sizes() [][]string {
	cells := [][]string{{"size"}}
	for _, way := range sizeWays() {
		cells[0] = append(cells[0], way)
	}
	for _, n := range regSizes {
		line, any := []string{sizeString(n)}, false
		for _, way := range sizeWays() {
			i := slices.IndexFunc(r.Sizes, func(l *regLine[sizeRow]) bool { return l.Row == sizeRow{way, n} && len(l.Samples) > 0 })
			if i < 0 {
				line = append(line, "-")
				continue
			}
			any = true
			line = append(line, digits(r.Sizes[i].cpu().Median/1000))
		}
		if any {
			cells = append(cells, line)
		}
	}
	return cells
}
