package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
)

// writeMRTable writes the page of the results.
func writeMRTable(w io.Writer, r *mrReport) error {
	text := r.caption() + "\n" + r.judgement()
	if cells := r.cells(); len(cells) > 1 {
		text += "\n" + markdown(cells)
	}
	if cells := r.cardCells(); len(cells) > 1 {
		text += "\n" + cardCaption + "\n" + markdown(cells)
	}
	_, err := io.WriteString(w, text)
	return err
}

const (
	mrCaption = `An operation is Acquire and Release. "CPU" is the processor time of the whole process, the cache's goroutine, the garbage collector and the monitor's thread
included, by the operations of all goroutines; "wall" is the time of the run by the same. "Driver" is the processor time of the same loop without the cache, with one
goroutine. The registrar does nothing: it is the cache that is measured. Each buffer is a page of 4 KiB.

- *hit, own buffers*: each goroutine uses ten of its own over and over, among all entries, fewer if there are fewer; *ten buffers*: all goroutines the same ten, so that processors
  take each other's cache lines away; *any buffer*: at random of all. With many of these nothing that a hit reads lies in the processor's
  caches: it waits for memory about six times.
- *miss*: memory at the addresses of the entries of which nobody answers (for userfaultfd a memory file, somewhere else): it is looked up, not found, and registered for the one operation. Of *none* the cache is empty, too.
- *invalidate*: the memory becomes other memory, is found dead, and registered anew. Of an arena all entries die at once; an object of the heap is dropped, another
  one made and registered, and for as many as there are entries the garbage is collected once. Under userfaultfd the page is given back to the kernel.
- *insert*: the cache is full, another entry goes.

There is no peer in this table: libfabric's cache works only inside of providers for RDMA hardware, so nothing of it can be timed here.
`
	cardCaption = `What a hit saves: the registrar pins pages, with io_uring's fixed buffers, as a driver of a card does. Four buffers, one goroutine. Without anybody who answers (none) each
operation registers and deregisters.
`
)

// caption says what the numbers are and how far to trust them.
func (r *mrReport) caption() string {
	var b strings.Builder
	fmt.Fprintf(&b, "# Registrations\n\n`%s`\n\n%s\n\n", r.Command, r.Machine.place())
	b.WriteString(mrCaption)
	fmt.Fprintf(&b, "\n%s of %g s for each number, interleaved; median, least and greatest.\n", count(len(r.Loads), "round"), r.Seconds)
	b.WriteString(idleNote(r.Loads))
	for _, n := range r.Notes {
		fmt.Fprintf(&b, "**Left out**: %s\n", n)
	}
	return b.String()
}

// median of one of the numbers.
func (l mrLine) median(of func(mrSample) float64) float64 { return l.summary(of).Median }

func (l mrLine) summary(of func(mrSample) float64) summary {
	var v []float64
	for _, s := range l.Samples {
		v = append(v, of(s))
	}
	return summarize(v)
}

func sampleCPU(s mrSample) float64    { return s.CPU }
func sampleWall(s mrSample) float64   { return s.Wall }
func sampleAlone(s mrSample) float64  { return s.Alone }
func sampleAllocs(s mrSample) float64 { return s.Allocs }

// cells is the table without the card: a line for each operation of a stand.
func (r *mrReport) cells() [][]string {
	head := []string{"memory", "operation", "entries"}
	for _, g := range mrGoroutines {
		head = append(head, fmt.Sprintf("%s: CPU ns", count(g, "goroutine")), "min..max", "wall ns")
	}
	cells := [][]string{append(head, "driver ns", "allocations")}
	for _, l := range r.Lines {
		if l.Stand.Card || slices.ContainsFunc(cells[1:], func(c []string) bool { return slices.Equal(c[:3], l.names()) }) {
			continue
		}
		c := l.names()
		alone, allocs := "-", "-"
		for _, g := range mrGoroutines {
			m, ok := r.line(l.Stand, mrRow{l.Row.Op, g})
			if !ok || len(m.Samples) == 0 {
				c = append(c, "-", "-", "-")
				continue
			}
			cpu := m.summary(sampleCPU)
			c = append(c, digits(cpu.Median), digits(cpu.Min)+".."+digits(cpu.Max), digits(m.median(sampleWall)))
			if g == 1 {
				alone, allocs = digits(m.median(sampleAlone)), fmt.Sprintf("%.1f", m.median(sampleAllocs))
			}
		}
		cells = append(cells, append(c, alone, allocs))
	}
	return cells
}

// names are the first cells of a line.
func (l mrLine) names() []string {
	entries := fmt.Sprint(l.Stand.Entries)
	return []string{string(l.Stand.Kind), string(l.Row.Op), entries}
}

// line finds what was measured of a row.
func (r *mrReport) line(s mrStand, row mrRow) (mrLine, bool) {
	i := slices.IndexFunc(r.Lines, func(l mrLine) bool { return l.Stand == s && l.Row == row })
	if i < 0 {
		return mrLine{}, false
	}
	return r.Lines[i], true
}

// cardCells is the table with the card.
func (r *mrReport) cardCells() [][]string {
	cells := [][]string{{"buffer", "memory", "operation", "CPU us", "min..max", "wall us", "registering costs"}}
	for _, l := range r.Lines {
		if !l.Stand.Card || len(l.Samples) == 0 {
			continue
		}
		cpu, times := l.summary(sampleCPU), "-"
		if q, ok := r.saved(l); ok && l.Row.Op.hits() {
			times = digits(q) + " times as much"
		}
		op := "hit"
		if !l.Row.Op.hits() {
			op = "registered for each"
		}
		cells = append(cells, []string{
			sizeString(l.Stand.Size), string(l.Stand.Kind), op,
			digits(cpu.Median / 1e3), digits(cpu.Min/1e3) + ".." + digits(cpu.Max/1e3), digits(l.median(sampleWall) / 1e3), times,
		})
	}
	return cells
}

// saved is how much more it costs to register for each operation than a hit does, by processor time: the median of the rounds.
func (r *mrReport) saved(l mrLine) (float64, bool) {
	s := l.Stand
	s.Kind, s.Entries = mrNone, 0
	each, ok := r.line(s, mrRow{mrMiss, l.Row.Goroutines})
	var v []float64
	for _, a := range each.Samples {
		for _, b := range l.Samples {
			if a.Round == b.Round && b.CPU > 0 {
				v = append(v, a.CPU/b.CPU)
			}
		}
	}
	return summarize(v).Median, ok && len(v) > 0
}
