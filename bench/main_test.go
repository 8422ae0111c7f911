package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/weft-fabric/weft/internal/testutil"
)

// TestMain lets the test binary stand for the program: the runner under test
// starts it with the arguments of a role.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && (os.Args[1] == roleWord || isShmWord(os.Args[1])) {
		os.Exit(mainCode(context.Background(), os.Args[1:], os.Stdout, os.Stderr))
	}
	testutil.Main(m)
}

func TestFlags(t *testing.T) {
	c, asJSON, err := parseFlags([]string{"-rounds", "3", "-seconds", "0.5", "-only", "8 B", "-json"}, io.Discard)
	if err != nil || !asJSON || c.rounds != 3 || c.seconds != 0.5 || c.only.String() != "8 B" {
		t.Errorf("%+v %v %v", c, asJSON, err)
	}
	for _, bad := range [][]string{
		{"-rounds", "-1"}, {"-seconds", "-1"}, {"-seconds", "NaN"}, {"-seconds", "61"}, {"-only", "("}, {"word"}, {"-nothing"},
		{"-table", "shm", "-seconds", "1"}, {"-table", "shm", "-cpuprofile", "x"}, {"-seconds", "1.2", "-table", "shm"}, {"-table", "fast"},
		{"-docs", "x"}, {"-table", "growth", "-docs", "x", "-json"},
	} {
		if _, _, err := parseFlags(bad, io.Discard); !errors.Is(err, errUsage) {
			t.Errorf("%v: %v", bad, err)
		}
		if code := mainCode(t.Context(), bad, io.Discard, io.Discard); code != exitUsage {
			t.Errorf("%v: exit %d", bad, code)
		}
	}
	if c, _, err := parseFlags([]string{"-table", "shm", "-rounds", "2", "-json"}, io.Discard); err != nil || c.table != shmTable || c.rounds != 2 {
		t.Errorf("%+v %v", c, err)
	}
	for table, u := range tables {
		if c, _, err := parseFlags([]string{"-table", table}, io.Discard); err != nil || c.rounds != u.rounds || c.seconds != u.seconds {
			t.Errorf("%s: %d rounds of %v s, %v", table, c.rounds, c.seconds, err)
		}
	}
	if code := mainCode(t.Context(), []string{"-h"}, io.Discard, io.Discard); code != 0 {
		t.Errorf("-h: exit %d", code)
	}
}

// The default runs must stay below these minutes: time measured, and 0.7 seconds for
// each start.
func TestDefaultIsBounded(t *testing.T) {
	everything := regexp.MustCompile("")
	points := 0
	for _, c := range growthPlan(everything) {
		points += len(c.Points)
	}
	registrations := 0
	for _, j := range mrPlan(everything) {
		registrations += len(j.rows)
	}
	for table, x := range map[string]struct{ pairs, minutes int }{
		socketsTable: {len(plan(everything, true)), 10},
		stepsTable:   {len(stepsPlan(everything, true)), 15},
		growthTable:  {points, 3},
		mrTable:      {registrations, 10}, // in fact half of it: nothing is started
	} {
		c, _, err := parseFlags([]string{"-table", table}, io.Discard)
		if err != nil {
			t.Fatal(err)
		}
		if s := float64(x.pairs*c.rounds) * ((1+warmup)*c.seconds + 0.7); s > float64(60*x.minutes) {
			t.Errorf("%s: %d pairs take %.0f s", table, x.pairs*c.rounds, s)
		}
	}
}

func TestInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var out bytes.Buffer
	if code := mainCode(ctx, []string{"-rounds", "1"}, &out, io.Discard); code != exitInterrupted || out.Len() > 0 {
		t.Errorf("exit %d, said %q", code, out.String())
	}
}

// measure runs the Weft rows that match, with child processes.
func measure(t *testing.T, only string, profile string, seconds float64) *report {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	r := &runner{
		config: config{rounds: 2, seconds: seconds, only: regexp.MustCompile(only), profile: profile, log: io.Discard, self: []string{self}},
		dir:    t.TempDir(),
	}
	rep := &report{Machine: describeMachine(), Seconds: seconds}
	err = r.measure(t.Context(), rep, plan(r.only, false))
	if errors.Is(err, errNothing) && seconds < 8 { // the machine has other things to do
		return measure(t, only, profile, 3*seconds)
	}
	if err != nil {
		t.Fatal(err)
	}
	return rep
}

func TestWeftRows(t *testing.T) {
	profile := t.TempDir()
	rep := measure(t, "^8 B, queue ., put, get, Weft", profile, 0.2)
	if len(rep.Lines) != 2 || len(rep.Loads) != 2 {
		t.Fatalf("%d lines, %d loads", len(rep.Lines), len(rep.Loads))
	}
	for _, l := range rep.Lines {
		for i, s := range l.Samples {
			if s.Round != i || s.Steps < 1 || s.rate() <= 0 || s.WriterStep < 1 || s.WriterCPU <= 0 || s.ReaderCPU <= 0 || s.WriterMem < 1<<20 || s.ReaderMem < 1<<20 {
				t.Errorf("%v: %+v", l.Row, s)
			}
		}
	}
	files, err := os.ReadDir(profile)
	if err != nil || len(files) != 4 {
		t.Errorf("%d profiles, %v", len(files), err)
	}
	b, err := json.Marshal(rep)
	if err != nil || !strings.Contains(string(b), `"writer":"Weft"`) {
		t.Errorf("%v %s", err, b)
	}
}

// Several ranks, several variables.
func TestWeftRanks(t *testing.T) {
	rep := measure(t, "4x2 ranks|100 variables", "", 1)
	if len(rep.Lines) != 2 {
		t.Fatalf("%d lines", len(rep.Lines))
	}
	for _, l := range rep.Lines {
		for _, s := range l.Samples {
			if w, r := s.perGB(l.Row.Bytes); s.Steps < 1 || w <= 0 || r <= 0 {
				t.Errorf("%v: %+v", l.Row, s)
			}
		}
	}
}

// One end that fails must end the other, and be named.
func TestEndFails(t *testing.T) {
	r := &runner{config: config{seconds: 0.05, self: []string{"/bin/sh", "-c", `case $2 in writer) exec cat;; *) echo no such thing >&2; exit 5;; esac`, "x"}}, dir: t.TempDir()}
	_, err := r.pair(t.Context(), job{rows[0], path{weft, weft}})
	if err == nil || !strings.Contains(err.Error(), "Weft reader") || !strings.Contains(err.Error(), "no such thing") {
		t.Errorf("error %v", err)
	}
}

func TestNoProgram(t *testing.T) {
	r := &runner{config: config{seconds: 0.05, self: []string{"/no/such/program"}}, dir: t.TempDir()}
	if _, err := r.pair(t.Context(), job{rows[0], path{weft, weft}}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("error %v", err)
	}
}

func TestCollect(t *testing.T) {
	side := func(out string, err error) end {
		p := &process{what: "end", err: err}
		p.out.WriteString(out)
		return end{p}
	}
	if _, err := collect(side(`{"steps":5}`, nil), side(`{"steps":4,"bad":1,"seconds":1}`, nil), nil); !errors.Is(err, errWrong) {
		t.Errorf("wrong data: %v", err)
	}
	if _, err := collect(side(`{"steps":5}`, nil), side(`{"steps":0}`, nil), nil); !errors.Is(err, errNothing) {
		t.Errorf("no steps: %v", err)
	}
	if _, err := collect(side(`{"steps":5}`, nil), side("hello", nil), nil); err == nil {
		t.Error("nonsense was taken")
	}
	broken := errors.New("broken")
	if _, err := collect(side("", broken), side(`{"steps":1}`, nil), nil); !errors.Is(err, broken) {
		t.Errorf("failed end: %v", err)
	}
}
