package main

import (
	"fmt"
	"regexp"
)

// regOp is what is done to a cache of registrations.
type regOp string

// The operations. Each is one Acquire and its Release.
const (
	regHit        regOp = "hit"           // of ten buffers that are used over and over, among all that are kept
	regRandom     regOp = "hit at random" // of all that are kept
	regInvalidate regOp = "invalidate"    // the memory becomes other memory, is found dead, and registered again
	regMiss       regOp = "miss"          // of what is not kept, while all that is kept is in use: it is looked for, proven, registered for once
	regInsert     regOp = "insert"        // of what is not kept, in a full cache: another one goes
)

var regOps = []regOp{regHit, regRandom, regInvalidate, regMiss, regInsert} // in the order in which they follow each other

// regKind is who answers for the memory.
type regKind string

// The kinds. Of an arena each buffer is one, up to maxArenas, else a page of one.
const (
	regArena     regKind = "arena"
	regHeap      regKind = "Go heap"
	regOwner     regKind = "owner"
	regUserfault regKind = "userfaultfd"
)

var (
	regKinds      = []regKind{regArena, regHeap, regOwner, regUserfault}
	regEntries    = []int{10, 1000, 100_000}
	regGoroutines = []int{1, 2, 8}
	regSizes      = []int{4 << 10, 64 << 10, 1 << 20}
)

// maxArenas is below what the kernel allows of mappings (vm.max_map_count).
const maxArenas = 10_000

// dies says whether single buffers can be made to go: objects of the Go heap die when the collector finds them.
func (k regKind) dies(entries int) bool {
	return k != regHeap && (k != regArena || entries <= maxArenas)
}

// regRow is a cell of the first table.
type regRow struct {
	Op         regOp   `json:"op"`
	Kind       regKind `json:"kind"`
	Entries    int     `json:"entries"`
	Goroutines int     `json:"goroutines"`
}

func (r regRow) String() string {
	return fmt.Sprintf("%s, %s, %d entries, %s", r.Op, r.Kind, r.Entries, count(r.Goroutines, "goroutine"))
}

// sizeRow is a cell of the second table: what is done with a buffer of some size.
type sizeRow struct {
	Way  string `json:"way"`
	Size int    `json:"size"`
}

// The ways besides hits of a kind.
const (
	wayOnce = "registered each time"
	wayCopy = "copied"
)

func sizeWays() []string {
	return []string{wayOnce, wayCopy, "hit, " + string(regArena), "hit, " + string(regHeap), "hit, " + string(regUserfault)}
}

func (r sizeRow) String() string { return fmt.Sprintf("%s, %s", r.Way, sizeString(r.Size)) }

// regSample is what was measured of a cell in a round.
type regSample struct {
	Round  int     `json:"round"`
	Ops    int64   `json:"ops"`
	CPU    float64 `json:"cpu"`    // ns of processor time for each operation
	Wall   float64 `json:"wall"`   // ns of each goroutine's time for each of its operations
	Allocs float64 `json:"allocs"` // for each operation
}

// regLine is a cell with its samples.
type regLine[R any] struct {
	Row     R           `json:"row"`
	Samples []regSample `json:"samples"`
}

// regSet is what shares a cache: all operations on one kind with a number of entries.
type regSet struct {
	kind    regKind
	entries int
	lines   []*regLine[regRow]
}

func (s regSet) String() string { return fmt.Sprintf("%s, %d entries", s.kind, s.entries) }

// regPlan lists what -only matches.
func regPlan(only *regexp.Regexp) (sets []regSet) {
	for _, kind := range regKinds {
		for _, n := range regEntries {
			s := regSet{kind: kind, entries: n}
			for _, op := range regOps {
				if op == regInvalidate && !kind.dies(n) {
					continue
				}
				for _, g := range regGoroutines {
					if r := (regRow{op, kind, n, g}); only.MatchString(r.String()) {
						s.lines = append(s.lines, &regLine[regRow]{Row: r})
					}
				}
			}
			if len(s.lines) > 0 {
				sets = append(sets, s)
			}
		}
	}
	return sets
}

// sizePlan lists what -only matches.
func sizePlan(only *regexp.Regexp) (lines []*regLine[sizeRow]) {
	for _, way := range sizeWays() {
		for _, n := range regSizes {
			if r := (sizeRow{way, n}); only.MatchString(r.String()) {
				lines = append(lines, &regLine[sizeRow]{Row: r})
			}
		}
	}
	return lines
}
