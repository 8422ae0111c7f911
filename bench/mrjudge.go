package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// The aims.
const (
	hitAim  = 100.0 // ns of processor time of a hit: of arenas and of the Go heap, at any number of entries and goroutines
	flatAim = 1.25  // the most expensive of these hits by the cheapest, of one goroutine: more share the processors' caches, if not a core
)

// userfaultBudget is what a hit may cost of memory that userfaultfd answers for, in ns of processor time by bytes. A hit asks the kernel twice, at
// Acquire and at Release; a bare call was measured at 0.5 to 1.3 us for 4 KiB, and 21 to 23 us for 1 MiB.
var userfaultBudget = map[int]float64{mrPage: 3e3, cardLarge: 50e3}

// judgement says what was aimed at, and whether it is met.
func (r *mrReport) judgement() string {
	var list []string
	for _, k := range []mrKind{mrArena, mrHeap} {
		list = append(list, r.judgeHits(k)...)
	}
	for _, size := range []int{mrPage, cardLarge} {
		list = append(list, r.judgeUserfault(size)...)
	}
	list = append(list, r.judgeAllocs()...)
	if len(list) == 0 {
		return ""
	}
	return "Aims, by processor time:\n\n- " + strings.Join(list, "\n- ") + "\n"
}

// measured lists the lines that match and have samples.
func (r *mrReport) measured(match func(mrLine) bool) (list []mrLine) {
	for _, l := range r.Lines {
		if len(l.Samples) > 0 && match(l) {
			list = append(list, l)
		}
	}
	return list
}

// extremes are the lines with the least and the greatest processor time.
func extremes(list []mrLine) (least, most mrLine) {
	by := func(a, b mrLine) int { return cmp.Compare(a.median(sampleCPU), b.median(sampleCPU)) }
	return slices.MinFunc(list, by), slices.MaxFunc(list, by)
}

// judgeHits judges the hits of a kind: under the aim, and flat.
func (r *mrReport) judgeHits(k mrKind) (list []string) {
	for _, op := range []mrOp{mrOwn, mrTen, mrAny} {
		lines := r.measured(func(l mrLine) bool { return !l.Stand.Card && l.Stand.Kind == k && l.Row.Op == op })
		if len(lines) == 0 {
			continue
		}
		least, most := extremes(lines)
		text := fmt.Sprintf("%s, %s: %s. Under %g ns: %s", k, op, spread(least, most, 1, "ns"), hitAim, verdict(most.median(sampleCPU) < hitAim))
		if lines = slices.DeleteFunc(lines, func(l mrLine) bool { return l.Row.Goroutines > 1 }); len(lines) > 0 {
			least, most = extremes(lines)
			from, to := least.median(sampleCPU), most.median(sampleCPU)
			text += fmt.Sprintf(". Flat over the entries, %s to %s ns with one goroutine, at most %g times: %s", digits(from), digits(to), flatAim, verdict(to <= flatAim*from))
		}
		list = append(list, text)
	}
	return list
}

// verdict is in bold, so that nobody has to look for it.
func verdict(met bool) string {
	if met {
		return "**met**"
	}
	return "**not met**"
}

// spread says where the most is spent, and how much of it without the cache.
func spread(least, most mrLine, unit float64, name string) string {
	return fmt.Sprintf("%s to %s %s, most with %d entries and %s (the driver alone: %s)", digits(least.median(sampleCPU)/unit), digits(most.median(sampleCPU)/unit), name,
		most.Stand.Entries, count(most.Row.Goroutines, "goroutine"), digits(most.median(sampleAlone)/unit))
}

// judgeUserfault judges the hits that ask the kernel.
func (r *mrReport) judgeUserfault(size int) []string {
	lines := r.measured(func(l mrLine) bool { return l.Stand.Kind == mrUserfault && l.Stand.Size == size && l.Row.Op.hits() })
	if len(lines) == 0 {
		return nil
	}
	var list []string
	budget := userfaultBudget[size]
	alone := func(l mrLine) bool { return l.Row.Goroutines == 1 }
	if one := slices.DeleteFunc(slices.Clone(lines), func(l mrLine) bool { return !alone(l) }); len(one) > 0 {
		least, most := extremes(one)
		list = append(list, fmt.Sprintf("%s, hit, %s: %s. Its own budget, since it asks the kernel twice, %g us: %s", mrUserfault, sizeString(size), spread(least, most, 1e3, "us"),
			budget/1e3, verdict(most.median(sampleCPU) <= budget)))
	}
	if more := slices.DeleteFunc(lines, alone); len(more) > 0 {
		least, most := extremes(more)
		list = append(list, fmt.Sprintf("%s, hit, %s: %s; goroutines wait for each other in the kernel, which locks the address space for such a question: no budget", mrUserfault, sizeString(size),
			spread(least, most, 1e3, "us")))
	}
	return list
}

// judgeAllocs looks for hits that allocate. What the goroutines of the driver take is less than one in a hundred.
func (r *mrReport) judgeAllocs() []string {
	lines := r.measured(func(l mrLine) bool { return l.Row.Op.hits() })
	if len(lines) == 0 {
		return nil
	}
	worst := 0.0
	for _, l := range lines {
		worst = max(worst, l.summary(sampleAllocs).Max)
	}
	if worst < 0.01 {
		return []string{"hits allocate nothing: **met**"}
	}
	return []string{fmt.Sprintf("hits allocate nothing: **not met**, up to %.2f each", worst)}
}
