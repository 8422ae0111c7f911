package main

import (
	"fmt"
	"regexp"
	"slices"
)

// mrKind is a kind of memory that is registered.
type mrKind string

const (
	mrArena     mrKind = "arena"
	mrHeap      mrKind = "heap"
	mrOwner     mrKind = "owner"
	mrUserfault mrKind = "userfaultfd" // memory without an owner, of which that monitor answers
	mrNone      mrKind = "none"        // of which nobody does
)

// mrOp is what is done with the cache.
type mrOp string

const (
	mrOwn        mrOp = "hit, own buffers" // ten of each goroutine, used over and over
	mrTen        mrOp = "hit, ten buffers" // used over and over by all goroutines
	mrAny        mrOp = "hit, any buffer"  // at random, of all
	mrMiss       mrOp = "miss"
	mrInsert     mrOp = "insert"
	mrInvalidate mrOp = "invalidate"
)

// hits reports whether it is a hit.
func (o mrOp) hits() bool { return o == mrOwn || o == mrTen || o == mrAny }

// mrStand is a cache that holds something: on it several rows are measured.
type mrStand struct {
	Card    bool   `json:"card,omitempty"` // the registrar pins; else it does nothing
	Kind    mrKind `json:"kind"`
	Size    int    `json:"size"` // of each buffer, in bytes
	Entries int    `json:"entries"`
}

func (s mrStand) String() string {
	by := ""
	if s.Card {
		by = ", card"
	}
	return fmt.Sprintf("%s, %s, %d entries%s", s.Kind, sizeString(s.Size), s.Entries, by)
}

// mrRow is what is measured on a stand.
type mrRow struct {
	Op         mrOp `json:"op"`
	Goroutines int  `json:"goroutines"`
}

func (r mrRow) String() string { return fmt.Sprintf("%s, %s", r.Op, count(r.Goroutines, "goroutine")) }

// mrJob is a stand with its rows.
type mrJob struct {
	mrStand

	rows []mrRow
}

const (
	mrPage    = 4 << 10 // a buffer of the rows without the card
	cardKept  = 4       // buffers of those with it: what anybody may pin
	tenKept   = 10      // buffers that are used over and over
	cardLarge = 1 << 20
)

var (
	mrEntries    = []int{tenKept, 1000, 100_000}
	mrGoroutines = []int{1, 2, 8}
)

// rows of a stand, in the order in which they are measured: what takes entries out comes last.
func (s mrStand) rows() (list []mrRow) {
	ops := []mrOp{mrOwn, mrTen, mrAny, mrMiss, mrInsert, mrInvalidate}
	goroutines := mrGoroutines
	switch {
	case s.Card:
		ops, goroutines = []mrOp{mrAny}, mrGoroutines[:1]
		if s.Kind == mrNone {
			ops = []mrOp{mrMiss}
		}
	case s.Kind == mrNone:
		ops = []mrOp{mrMiss}
	case s.Entries <= tenKept:
		ops = slices.DeleteFunc(ops, func(o mrOp) bool { return o == mrAny })
	}
	for _, o := range ops {
		for _, g := range goroutines {
			list = append(list, mrRow{o, g})
		}
	}
	return list
}

// mrStands lists the stands.
func mrStands() (list []mrStand) {
	for _, k := range []mrKind{mrArena, mrHeap, mrOwner, mrUserfault} {
		for _, n := range mrEntries {
			list = append(list, mrStand{Kind: k, Size: mrPage, Entries: n})
		}
	}
	list = append(list, mrStand{Kind: mrNone, Size: mrPage})
	for _, size := range []int{mrPage, cardLarge} {
		for _, k := range []mrKind{mrNone, mrArena, mrHeap, mrOwner, mrUserfault} {
			s := mrStand{Card: true, Kind: k, Size: size, Entries: cardKept}
			if k == mrNone {
				s.Entries = 0
			}
			list = append(list, s)
		}
	}
	return list
}

// mrPlan lists the jobs of a round: what -only matches, as "arena, 4 KiB, 1000 entries, hit, ten buffers, 2 goroutines".
func mrPlan(only *regexp.Regexp) (jobs []mrJob) {
	for _, s := range mrStands() {
		j := mrJob{mrStand: s}
		for _, r := range s.rows() {
			if only.MatchString(fmt.Sprintf("%v, %v", s, r)) {
				j.rows = append(j.rows, r)
			}
		}
		if len(j.rows) > 0 {
			jobs = append(jobs, j)
		}
	}
	return jobs
}
