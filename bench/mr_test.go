package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weft-fabric/weft/internal/mrcache"
	"github.com/weft-fabric/weft/internal/testutil"
)

// The table has what the aims are about.
func TestMRPlan(t *testing.T) {
	for want, rows := range map[string]int{
		"": 4*(3*6*3-3) + 3 + 10,
		"(arena|heap|owner|userfaultfd), 4 KiB, (10|1000|100000) entries, hit, ten buffers, [128] goroutines?": 36,
		"(arena|heap|owner|userfaultfd), 4 KiB, (10|1000|100000) entries, hit, own buffers, [128] goroutines?": 36,
		"(arena|heap|owner|userfaultfd), 4 KiB, (1000|100000) entries, hit, any buffer, [128] goroutines?":     24,
		".* (10|1000|100000) entries, (miss|insert|invalidate), [128] goroutines?":                             108,
		"none, 4 KiB, 0 entries, miss, [128] goroutines?":                                                      3,
		".*, (4 KiB|1 MiB), 4 entries, card, hit, any buffer, 1 goroutine":                                     8,
		"none, (4 KiB|1 MiB), 0 entries, card, miss, 1 goroutine":                                              2,
		"no such row": 0,
	} {
		only, got := regexp.MustCompile("^"+want+"$"), 0
		if want == "" {
			only = regexp.MustCompile("")
		}
		for _, j := range mrPlan(only) {
			got += len(j.rows)
		}
		if got != rows {
			t.Errorf("%q: %d rows, want %d", want, got, rows)
		}
	}
	if _, err := runMR(t.Context(), config{only: regexp.MustCompile("no such row"), log: io.Discard}); !errors.Is(err, errNothing) {
		t.Error(err)
	}
}

// measureMR measures what matches, for moments.
func measureMR(t *testing.T, only, profile string) *mrReport {
	t.Helper()
	c := config{rounds: 2, seconds: 0.01, profile: profile, only: regexp.MustCompile(only), log: io.Discard}
	rep, err := runMR(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	return rep
}

// TestMRRows measures each operation with each kind of memory. That it was that one the run itself checks.
func TestMRRows(t *testing.T) {
	for only, needs := range map[string]mrStand{
		"^(arena|heap|owner|none).* (0|10) entries, .* 1 goroutine$|(arena|heap), 4 KiB, 1000 entries, hit, .* 2 goroutines": {},
		"^userfaultfd, 4 KiB, 10 entries, .* 1 goroutine$":                                                                   {Kind: mrUserfault},
		"^(none|arena), .*, card":  {Card: true},
		"^userfaultfd, .*, card, ": {Card: true, Kind: mrUserfault},
	} {
		t.Run(only, func(t *testing.T) {
			testutil.Require(t, testutil.Capability{Name: "userfaultfd, or pinned memory", Fixed: true, Probe: func() error { return missingMR(needs) }})
			rep := measureMR(t, only, "")
			if len(rep.Lines) == 0 || len(rep.Loads) != 2 || len(rep.Notes) > 0 {
				t.Fatalf("%d lines, %d loads, %v", len(rep.Lines), len(rep.Loads), rep.Notes)
			}
			for _, l := range rep.Lines {
				if len(l.Samples) != 2 {
					t.Errorf("%v, %v: %d samples", l.Stand, l.Row, len(l.Samples))
				}
				for i, s := range l.Samples {
					if s.Round != i || s.CPU <= 0 || s.Wall <= 0 || l.Row.Op.hits() && s.Allocs > 0.05 {
						t.Errorf("%v, %v: %+v", l.Stand, l.Row, s)
					}
				}
			}
			if b, err := json.Marshal(rep); err != nil || !strings.Contains(string(b), `"goroutines":1`) {
				t.Errorf("%v %s", err, b)
			}
		})
	}
}

func TestMRProfile(t *testing.T) {
	dir := t.TempDir()
	measureMR(t, "^owner, 4 KiB, 10 entries, miss, 1 goroutine$", dir)
	if files, err := os.ReadDir(dir); err != nil || len(files) != 1 || files[0].Name() != "owner-4-kib-10-entries.prof" {
		t.Errorf("%v %v", files, err)
	}
}

// TestMRDrive has operations in turn, at random, and one that fails.
func TestMRDrive(t *testing.T) {
	s := new(mrSet)
	var got []int
	w := mrWork{n: 3, turn: &s.inserted, do: func(i int) error { got = append(got, i); return nil }}
	for range 2 { // the turn goes on
		if tally, err := w.run(t.Context(), 1, 0); err != nil || tally.ops < 1 {
			t.Errorf("%+v %v", tally, err)
		}
	}
	if !slices.Equal(got[:2], []int{0, 1}) {
		t.Errorf("%v", got)
	}
	broken := errors.New("broken")
	w = mrWork{n: 3, do: func(i int) error {
		if i == 2 {
			return broken
		}
		return nil
	}}
	if _, err := w.run(t.Context(), 4, time.Hour); !errors.Is(err, broken) {
		t.Error(err)
	}
	w.do = func(int) error { return nil }
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(broken)
	if _, err := w.run(ctx, 2, time.Hour); !errors.Is(err, broken) {
		t.Error(err)
	}
	if err := notRemapped(mrcache.ErrRemapped); err != nil {
		t.Error(err)
	}
	if err := notRemapped(broken); !errors.Is(err, broken) {
		t.Error(err)
	}
}

func TestMRCheck(t *testing.T) {
	for _, c := range []struct {
		op   mrOp
		hits uint64 // of 100
		good bool
	}{
		{mrTen, 100, true},
		{mrAny, 95, true},
		{mrAny, 94, false},
		{mrMiss, 0, true},
		{mrInsert, 20, true},
		{mrInvalidate, 21, false},
	} {
		if err := c.op.check(mrcache.Stats{Hits: 7}, mrcache.Stats{Hits: 7 + c.hits}, 100); (err == nil) != c.good {
			t.Errorf("%s, %d hits: %v", c.op, c.hits, err)
		}
	}
}

// mrExample is a line whose processor times are such, in ns.
func mrExample(s mrStand, op mrOp, goroutines int, cpu ...float64) mrLine {
	l := mrLine{Stand: s, Row: mrRow{op, goroutines}}
	for i, v := range cpu {
		l.Samples = append(l.Samples, mrSample{Round: i, CPU: v, Wall: v + 1, Alone: v / 10})
	}
	return l
}

func exampleMR() *mrReport {
	few, many := mrStand{Kind: mrArena, Size: mrPage, Entries: 10}, mrStand{Kind: mrArena, Size: mrPage, Entries: 100_000}
	asks := mrStand{Kind: mrUserfault, Size: mrPage, Entries: 10}
	card := func(k mrKind, size, n int) mrStand { return mrStand{Card: true, Kind: k, Size: size, Entries: n} }
	r := &mrReport{
		Command: "go run ./bench -table registrations",
		Machine: machine{CPU: "Example CPU", CPUs: 2, Kernel: "6.1", Arch: "amd64", Go: "go1.26.8"},
		Seconds: 0.15,
		Loads:   []float64{0, 0.01, 0.05},
		Notes:   []string{"something is missing"},
		Lines: []mrLine{
			mrExample(few, mrTen, 1, 46, 47, 45), mrExample(few, mrTen, 2, 50, 47, 49), mrExample(few, mrTen, 8, 48, 48, 48),
			mrExample(few, mrInsert, 1, 480, 500, 490),
			mrExample(many, mrTen, 1, 46, 47, 45), mrExample(many, mrAny, 8, 350, 300, 400),
			mrExample(asks, mrTen, 1, 900, 1000, 950), mrExample(asks, mrTen, 8, 3000, 3100, 3200),
			mrExample(card(mrNone, cardLarge, 0), mrMiss, 1, 15e3, 15e3, 16e3),
			mrExample(card(mrArena, cardLarge, cardKept), mrAny, 1, 45, 44, 46),
			mrExample(card(mrUserfault, cardLarge, cardKept), mrAny, 1, 17e3, 17e3, 17e3),
		},
	}
	for i := range r.Lines[3].Samples {
		r.Lines[3].Samples[i].Allocs = 2
	}
	return r
}

func TestMRTable(t *testing.T) {
	var b strings.Builder
	if err := writeMRTable(&b, exampleMR()); err != nil {
		t.Fatal(err)
	}
	testutil.Golden(t, "registrations.md", []byte(b.String()))
}

func TestMRJudgement(t *testing.T) {
	r := exampleMR()
	r.Lines[0].Samples[1].Allocs = 1
	if got := r.judgement(); !strings.Contains(got, "hits allocate nothing: **not met**, up to 1.00 each") {
		t.Error(got)
	}
	if got := (&mrReport{}).judgement(); got != "" {
		t.Error(got)
	}
}
