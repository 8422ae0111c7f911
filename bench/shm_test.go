package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weft-fabric/weft/fabric"
	"github.com/weft-fabric/weft/internal/ping"
	"github.com/weft-fabric/weft/internal/testutil"
)

// The table has what the aims are about.
func TestShmPlan(t *testing.T) {
	peers := []software{"libfabric 1.17.0", "libfabric 2.1.0"}
	for want, jobs := range map[string]int{
		"latency, message, 8 B, spinning":                                       3,
		"latency, message, 64 KiB, spinning":                                    3,
		"latency, message, 8 B, sleeping":                                       1,
		"latency, message, 8 B, asleep":                                         1,
		"latency, message, 8 B, asleep, bare eventfd":                           1,
		"latency, message, 8 B, asleep(, manual progress)?(, bare eventfd)?":    4,
		".*bare eventfd":                                                        2,
		"latency, message, 8 B, spin, then sleep, one core":                     3,
		"bandwidth, message, one at a time, 64 MiB, spinning":                   3,
		"bandwidth, (message|read|write|view), 4 KiB, spinning":                 4,
		"bandwidth, (message|read|write|view), 64 MiB, spinning":                4,
		"rate, message, 8 B, spinning":                                          1,
		"GC pause, (longest|p99), (not waiting|sleeping|spinning|spin, then.*)": 8,
	} {
		re := regexp.MustCompile("^(" + want + ")(, (Weft|libfabric.*))?$")
		if n := len(shmPlan(re, peers)); n != jobs {
			t.Errorf("%s: %d jobs instead of %d", want, n, jobs)
		}
	}
	for _, j := range shmPlan(regexp.MustCompile(""), nil) {
		if !j.ours() || j.by == bareEventfd && !j.row.asleep() {
			t.Errorf("without peers: %v", j)
		}
	}
	if n := len(shmPlan(regexp.MustCompile(""), peers)) * 5; n > 400 {
		t.Errorf("%d jobs of a second take too long", n)
	}
	for _, r := range shmRows() {
		for _, by := range append(peers, weftShm) {
			if n := r.iters(by); n < 20 || n > 200_000 {
				t.Errorf("%v, %s: %d iterations", r, by, n)
			}
		}
	}
}

// Rows in which the receiver sleeps have pauses, a side of each on a processor of its own, and are there for both modes of
// progress; what the processes are told has it all.
func TestShmAsleep(t *testing.T) {
	modes := make(map[fabric.Progress]int)
	for _, r := range shmRows() {
		w := shmWork{Row: r, Iters: r.iters(weftShm)}
		work, c := w.work(), w.config()
		if !r.asleep() {
			if work.Pause != 0 || c.Progress != fabric.Auto {
				t.Errorf("%v: %+v, %+v", r, work, c)
			}
			continue
		}
		modes[c.Progress]++
		if work.Pause != time.Millisecond || work.Only != ping.Latency || c.Wait != ping.Sleep || r.Pin != ping.Apart {
			t.Errorf("%v: %+v, %+v", r, work, c)
		}
		if all := time.Duration(w.Iters+w.warm()) * work.Pause; all > 2*time.Second {
			t.Errorf("%v: pauses of %v", r, all)
		}
	}
	if modes[fabric.Auto] != 1 || modes[fabric.Manual] != 1 {
		t.Errorf("%v", modes)
	}
}

const exampleOutput = `server bytes   #sent   #ack     total       time     MB/sec    usec/xfer   Mxfers/sec
server 64k     100     =100     12m         0.72s      0.01    3598.08       0.00
server exit 0
server 0m0.000000s 0m0.010000s
server 0m0.250000s 0m0.070000s
client bytes   #sent   #ack     total       time     MB/sec    usec/xfer   Mxfers/sec
client 64k     100     =100     12m         0.72s   1500.50      40.25       0.02
client 0m0.000000s 0m0.000000s
client 1m0.240s 0m0.060s
`

func TestParsePingpong(t *testing.T) {
	row := shmRow{Metric: latency, Op: ping.Message, Size: 64 << 10}
	got, err := parsePingpong(exampleOutput, row, 100)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(shmSample{Value: 40.25, Local: 60.3 * 1e6 / 200, Peer: 0.32 * 1e6 / 200}, got); d != "" {
		t.Error(d)
	}
	row.Metric = bandwidth
	if got, err := parsePingpong(exampleOutput, row, 100); err != nil || got.Value != 1.5005 {
		t.Errorf("%+v, %v", got, err)
	}
	for _, bad := range []string{
		"", "client \n", strings.ReplaceAll(exampleOutput, "1500.50", "0.00"), strings.ReplaceAll(exampleOutput, "40.25", "nan"),
		strings.ReplaceAll(exampleOutput, "client", "server"), strings.ReplaceAll(exampleOutput, "1500.50", "1.2.3"),
		strings.ReplaceAll(exampleOutput, "1m0.240s", "1m0.2.40s"),
	} {
		if got, err := parsePingpong(bad, row, 100); !errors.Is(err, errPingpong) {
			t.Errorf("%q: %+v, %v", bad, got, err)
		}
	}
}

// fakeLibfabric puts a program with the interface of fi_pingpong, and fi_info, in front of the path.
func fakeLibfabric(t *testing.T, version, pingpong string) {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"fi_pingpong": "#!/bin/sh\n" + pingpong, "fi_info": "#!/bin/sh\necho 'fi_info: " + version + "'; echo 'libfabric: " + version + "'\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	t.Chdir(dir) // outside of the module: no root
}

func TestLibfabric(t *testing.T) {
	fakeLibfabric(t, "9.8.7", `
case "$*" in
*" 127.0.0.1")
	if [ ! -e tried ]; then touch tried; exit 1; fi # the server is not there yet
	echo 'bytes   #sent   #ack     total       time     MB/sec    usec/xfer   Mxfers/sec'
	echo '8       100     =100     1.5k        0.72s      0.00       0.11       0.00'
esac
`)
	list, notes := findLibfabric(t.Context())
	if len(list) != 1 || list[0].name != "libfabric 9.8.7" || len(notes) != 1 {
		t.Fatalf("%v, %q", list, notes)
	}
	for _, pin := range []ping.Pin{ping.Anywhere, ping.Same, ping.Apart} {
		s, err := list[0].pingpong(t.Context(), shmRow{Metric: latency, Op: ping.Message, Size: 8, Pin: pin})
		if err != nil || s.Value != 0.11 || s.Local < 0 || s.Peer < 0 {
			t.Errorf("%+v, %v", s, err)
		}
	}
}

func TestNoLibfabric(t *testing.T) {
	fakeLibfabric(t, "", "exit 1")
	if list, notes := findLibfabric(t.Context()); len(list) != 0 || len(notes) != 2 {
		t.Errorf("%v, %q", list, notes)
	}
}

// measureShm runs rows that match, with processes.
func measureShm(t *testing.T, only string, peers ...libfabric) *shmReport {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	r := &shmRunner{config: config{rounds: 2, only: regexp.MustCompile(only), log: io.Discard, self: []string{self}}, peers: peers, most: 50}
	rep := &shmReport{Machine: describeMachine()}
	for _, p := range peers {
		rep.Peers = append(rep.Peers, p.name)
	}
	if err := r.measure(t.Context(), rep, shmPlan(r.only, rep.Peers)); err != nil {
		t.Fatal(err)
	}
	return rep
}

func TestShmRows(t *testing.T) {
	// A peer that fails is noted, and does not end the run.
	broken := libfabric{"libfabric 0", func(ctx context.Context, _ ...string) *exec.Cmd { return command(ctx, "false") }}
	rep := measureShm(t, "^(latency, message, 8 B, (sleeping|asleep)|latency, message, 8 B, spin.*one core|bandwidth, view, 64 KiB|GC pause, longest, not waiting|GC pause, p99, sleeping)", broken)
	if len(rep.Lines) != 10 || len(rep.Loads) != 2 {
		t.Fatalf("%d lines, %d loads", len(rep.Lines), len(rep.Loads))
	}
	for _, l := range rep.Lines {
		if l.By == broken.name {
			if l.Failed != 2 || len(l.Samples) != 0 {
				t.Errorf("%+v", l)
			}
			continue
		}
		for i, s := range l.Samples {
			if s.Round != i || s.Value <= 0 || s.Local <= 0 || l.Row.Metric == latency && s.Peer <= 0 || len(l.Samples) != 2 {
				t.Errorf("%v: %+v", l.Row, s)
			}
		}
	}
	b, err := json.Marshal(rep)
	if err != nil || !strings.Contains(string(b), `"metric":"latency"`) {
		t.Errorf("%v %s", err, b)
	}
	var text strings.Builder
	if err := writeShmTable(&text, rep); err != nil || !strings.Contains(text.String(), "libfabric 0 failed in 2 rounds: latency, message, 8 B") {
		t.Errorf("%v\n%s", err, &text)
	}
}

// A side that does not start is an error with its reason.
func TestShmSideFails(t *testing.T) {
	w := shmWork{Row: shmRow{Metric: latency, Op: ping.Message, Size: 8}, Iters: 10}
	for name, script := range map[string]string{
		"server": `echo no such thing >&2; exit 3`,
		"client": `case $1 in ping-peer) echo shm://x; exec cat;; *) echo no such thing >&2; exit 3;; esac`,
		"both":   `case $1 in ping-peer) echo no such thing >&2; echo shm://x; exec cat;; *) exit 3;; esac`,
		"talk":   `case $1 in ping-peer) echo shm://x; exec cat;; *) echo no such thing;; esac`,
	} {
		r := &shmRunner{config: config{self: []string{"/bin/sh", "-c", script, "x"}}}
		if _, err := r.pair(t.Context(), w, pingSides); err == nil || !strings.Contains(err.Error(), "no such thing") {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, args := range [][]string{{pingWord}, {pingWord, "{", ""}, {pauseWord, "x", ""}} {
		if err := shmMain(t.Context(), args); !errors.Is(err, errArgs) {
			t.Errorf("%q: %v", args, err)
		}
	}
}

// A row that has a peer is compared as the peer does it, by a mean.
func TestShmMean(t *testing.T) {
	r := ping.Result{Latency: ping.Distribution{Min: 1, Median: 2, P99: 50}, OpsPerS: 250_000, MBPerS: 3000}
	for row, want := range map[shmRow]float64{
		{Metric: latency, Op: ping.Message, Wait: ping.Spin}:                 4,
		{Metric: latency, Op: ping.Message}:                                  4,
		{Metric: latency, Op: ping.Message, Wait: ping.Sleep}:                2,
		{Metric: bandwidth, Op: ping.Message, Wait: ping.Spin, Single: true}: 3,
		{Metric: rate, Op: ping.Message, Wait: ping.Spin}:                    0.25,
	} {
		w := shmWork{Row: row, Iters: 10}
		if got := w.sample(r); got.Value != want {
			t.Errorf("%v: %v, want %v", row, got.Value, want)
		}
	}
}

// exampleShm has round numbers.
func exampleShm() *shmReport {
	of := func(values ...float64) (list []shmSample) {
		for i, v := range values {
			list = append(list, shmSample{Round: i, Value: v, Local: 0.25, Peer: 12})
		}
		return list
	}
	small := shmRow{Metric: latency, Op: ping.Message, Size: 8, Wait: ping.Spin}
	one := shmRow{Metric: latency, Op: ping.Message, Size: 8, Pin: ping.Same}
	large := shmRow{Metric: bandwidth, Op: ping.Message, Size: 1 << 20, Wait: ping.Spin, Single: true}
	asleep := shmRow{Metric: latency, Op: ping.Message, Size: 8, Wait: ping.Sleep, Pause: 2 * time.Millisecond}
	manual := asleep
	manual.Manual = true
	view := shmRow{Metric: bandwidth, Op: ping.View, Size: 64 << 20, Wait: ping.Spin}
	old, recent := software("libfabric 1.17.0"), software("libfabric 2.1.0")
	return &shmReport{
		Machine: machine{CPU: "Example CPU", CPUs: 2, Kernel: "6.1", Arch: "amd64", Go: "go1.26.8"},
		Loads:   []float64{0, 0.01, 0.05},
		Peers:   []software{old, recent, bareEventfd},
		Notes:   []string{"something is missing\nmore"},
		Lines: []shmLine{
			{Row: small, By: weftShm, Samples: of(0.06, 0.07, 0.065)},
			{Row: small, By: old, Samples: of(0.12, 0.14, 0.1)},
			{Row: small, By: recent, Samples: of(0.11, 0.10, 0.12)},
			{Row: one, By: weftShm, Samples: of(3, 2, 4)},
			{Row: one, By: old, Samples: of(4000, 4000, 4000)},
			{Row: one, By: recent, Failed: 3},
			{Row: asleep, By: weftShm, Samples: of(30, 40, 20)},
			{Row: asleep, By: bareEventfd, Samples: of(20, 20, 20)},
			{Row: manual, By: weftShm, Samples: of(30, 30, 30)},
			{Row: large, By: weftShm, Samples: of(20, 22, 24)},
			{Row: large, By: recent, Samples: of(10, 11, 12)},
			{Row: view, By: weftShm, Samples: of(30, 30, 30)},
			{Row: shmRow{Metric: pauseMax, Idle: true}, By: weftShm, Samples: of(100, 200, 150)},
			{Row: shmRow{Metric: pauseP99, Wait: ping.Spin}, By: weftShm, Samples: of(500)},
		},
	}
}

func TestShmTable(t *testing.T) {
	var b strings.Builder
	if err := writeShmTable(&b, exampleShm()); err != nil {
		t.Fatal(err)
	}
	testutil.Golden(t, "shm.md", []byte(b.String()))
}

func TestShmCaption(t *testing.T) {
	r := exampleShm()
	r.Loads[1] = 1
	got := r.caption()
	for _, want := range []string{"busy before 1 of 3 rounds", "**Left out**: something is missing\n", "libfabric 2.1.0 failed in 3 rounds"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
}

func TestDigits(t *testing.T) {
	for v, want := range map[float64]string{0: "0.000", 0.0654: "0.065", 1.234: "1.23", 23.45: "23.4", 4321: "4321"} {
		if got := digits(v); got != want {
			t.Errorf("%v: %q, want %q", v, got, want)
		}
	}
}
