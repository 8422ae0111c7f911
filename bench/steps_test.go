package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/weft-fabric/weft/internal/testutil"
)

// The aims ask for these.
func TestStepsPlan(t *testing.T) {
	everything := regexp.MustCompile("")
	all := stepsPlan(everything, true)
	if len(all) != 7*10+8*7 {
		t.Errorf("%d jobs", len(all))
	}
	for _, want := range []string{
		"8 B, 1 variable, 1 writer, queue 16, Weft, put → get, sockets",
		"64 KiB, 1000 variables, 1 writer, queue 16, ADIOS2, UCX",
		"8 MiB, 1 variable, 1 writer, queue 1, Weft, put → view",
		"8 MiB, 10 variables, 4 writers, queue 16, ADIOS2, RDMA",
		"64 MiB, 1 variable, 1 writer, queue 1, Weft, span → view",
		"64 MiB, 1 variable, 4 writers, queue 1, ADIOS2, WAN",
		"64 MiB, 1 variable, 1 writer, queue 1, bare, span → view",
		"8 B, 1 variable, 1 writer, queue 16, bare, put → view",
	} {
		if n := len(stepsPlan(regexp.MustCompile("^"+want+"$"), true)); n != 1 {
			t.Errorf("%s: %d jobs", want, n)
		}
	}
	for _, j := range stepsPlan(everything, false) {
		if !j.ours() {
			t.Errorf("without peers: %v", j)
		}
	}
	for _, j := range all {
		if a := j.job(); a.row.Bytes < 8*a.row.vars()*a.row.writers() || a.path != (path{j.way.By, j.way.By}) || a.row.plane() != j.way.Plane {
			t.Errorf("%v: %+v", j, a)
		}
		if j.way.By == bareMemory && (j.row.vars() > 1 || j.row.writers() > 1) {
			t.Errorf("%v", j)
		}
	}
}

// exampleSteps has round numbers, a plane that is not there and one that is slow.
func exampleSteps() *stepsReport {
	of := func(viewed bool, steps ...int64) (list []sample) {
		for i, n := range steps {
			list = append(list, sample{
				Round: i, Steps: n, Seconds: 1, Viewed: viewed, WriterStep: n, WriterCPU: 0.5, ReaderCPU: 0.25,
				WriterMem: 40 << 20, ReaderMem: 30 << 20,
			})
		}
		return list
	}
	big, small := row{Bytes: 8 << 20, Queue: 1, Vars: 10, Writers: 4}, row{Bytes: 8, Queue: 16}
	r := &stepsReport{
		Machine: machine{CPU: "Example CPU", CPUs: 2, Kernel: "6.1", Arch: "amd64", Go: "go1.26.8", ADIOS2: "2.10.2"},
		Seconds: 1.5,
		Loads:   []float64{0, 0.05, 0.01},
		Lines: []stepsLine{
			{Row: big, Way: ways[0], Samples: of(false, 600, 500, 700)},
			{Row: big, Way: ways[1], Samples: of(true, 800, 900, 1000)},
			{Row: big, Way: ways[2], Samples: of(false, 800, 900, 1000)},
			{Row: big, Way: ways[3], Samples: of(false, 300, 250, 350)},
			{Row: big, Way: ways[4]},
			{Row: big, Way: ways[5], Samples: of(false, 200, 300, 250)},
			{Row: big, Way: ways[6]},
			{Row: small, Way: ways[0], Samples: of(false, 30000, 10000, 20000)},
			{Row: small, Way: ways[4], Samples: of(false, 100)},
			{Row: small, Way: ways[5]},
			{Row: small, Way: ways[9], Samples: of(true, 2_000_000, 1_000_000, 3_000_000)},
		},
	}
	r.fail(4, fmt.Errorf("%w: ADIOS2 writer says: DataPlane \"rdma\" is not available\nmore", errPlane))
	r.fail(9, fmt.Errorf("%w: not done after 3s\nmore", errHangs))
	return r
}

func TestStepsTable(t *testing.T) {
	var b strings.Builder
	if err := writeStepsTable(&b, exampleSteps()); err != nil {
		t.Fatal(err)
	}
	testutil.Golden(t, "steps.md", []byte(b.String()))
}

// Weft's rows, by real processes: several ranks, several variables, in all ways.
func TestStepsOfWeft(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	r := &runner{config: config{rounds: 1, seconds: 0.3, log: io.Discard, self: []string{self}}, dir: t.TempDir()}
	rep := &stepsReport{Machine: describeMachine()}
	jobs := stepsPlan(regexp.MustCompile("^64 KiB, (10 variables|.*4 writers)"), false)
	if len(jobs) != 8 {
		t.Fatalf("%d jobs", len(jobs))
	}
	if err := r.measureSteps(t.Context(), rep, jobs); err != nil {
		t.Fatal(err)
	}
	for _, l := range rep.Lines {
		for _, s := range l.Samples { // on a busy machine there may be none
			if s.Steps < 1 || s.WriterMem < 1<<20 || s.ReaderMem < 1<<20 || l.Way.Plane == native && l.viewed() != (l.Way.Access != copying) {
				t.Errorf("%v, %v: %+v", l.Row, l.Way, s)
			}
		}
	}
}

// A peer that fails is a line that says so; one that hangs is ended.
func TestStepsPeerFails(t *testing.T) {
	for name, c := range map[string]struct {
		script, want string
		rows         int
	}{
		"crash":  {`case $1 in writer) echo first >&2; echo second >&2; exit 5;; *) exec cat;; esac`, "ADIOS2 writer: exit status 5: first", 1},
		"hang":   {`exec cat`, "a pair hangs: not done after 1", 1},
		"refuse": {`echo 'Warning:  Perferred DataPlane "rdma" is not available.'; echo '{"steps":5,"seconds":1}'`, `no such data plane: ADIOS2 writer says: DataPlane "rdma" is not available`, 2},
	} {
		t.Run(name, func(t *testing.T) {
			script := t.TempDir() + "/root.sh"
			text := "#!/bin/sh\nwhile [ \"$1\" != -- ]; do shift; done\nshift 2\n" + c.script + "\n"
			if err := os.WriteFile(script, []byte(text), 0o700); err != nil {
				t.Fatal(err)
			}
			r := &runner{config: config{rounds: 2, seconds: 0.01, log: io.Discard}, dir: t.TempDir(), peer: &peer{script: script}, limit: 1}
			if name != "hang" {
				r.limit = startLimit
			}
			rep := &stepsReport{}
			jobs := []stepsJob{{row{Bytes: 8, Queue: 1}, ways[4]}, {row{Bytes: 64, Queue: 1}, ways[4]}}[:c.rows]
			if err := r.measureSteps(t.Context(), rep, jobs); err != nil {
				t.Fatal(err)
			}
			var said []string
			for _, m := range rep.Missing {
				said = append(said, m.Why)
			}
			for _, l := range rep.Lines {
				if l.Failed != "" {
					said = append(said, l.Failed)
				}
				if len(l.Samples) > 0 {
					t.Errorf("%d samples", len(l.Samples))
				}
			}
			if len(said) != 1 || !strings.HasPrefix(said[0], c.want) {
				t.Errorf("%q", said)
			}
		})
	}
}

// A row that was done before its plane was found missing is no line to compare with.
func TestStepsMissing(t *testing.T) {
	r := exampleSteps()
	r.fail(3, fmt.Errorf("%w: gone", errPlane))
	if best, ok := r.best(r.Lines[0].Row); !ok || best.Way != ways[5] {
		t.Errorf("%+v", best)
	}
	var b strings.Builder
	if err := writeStepsTable(&b, r); err != nil || strings.Count(b.String(), ways[3].String()) != 1 || strings.Count(b.String(), ways[4].String()) != 1 {
		t.Errorf("%v\n%s", err, &b)
	}
}

func TestLastObject(t *testing.T) {
	for in, want := range map[string]string{
		"":                "",
		"hello\n":         "hello",
		"{\"steps\":1}\n": `{"steps":1}`,
		"noise\n{\"steps\":1}\n[1] mpool.c:54 UCX  WARN\n": `{"steps":1}`,
		"{\"steps\":1}\n{\"steps\":2}":                     `{"steps":2}`,
	} {
		if got := lastObject(in); got != want {
			t.Errorf("%q: %q", in, got)
		}
	}
}

func TestPlaneRefused(t *testing.T) {
	p := &process{what: "ADIOS2 reader"}
	p.errs.WriteString("one\nWarning:  Perferred DataPlane \"ucx\" is not available.\n")
	if err := (end{p}).plane(); !errors.Is(err, errPlane) || !strings.Contains(err.Error(), `ADIOS2 reader says: DataPlane "ucx" is not available`) {
		t.Error(err)
	}
	if err := (end{&process{}}).plane(); err != nil {
		t.Error(err)
	}
}
