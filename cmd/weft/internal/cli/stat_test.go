package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/weft-fabric/weft/internal/bpfixture"
	"github.com/weft-fabric/weft/sst"
	"github.com/weft-fabric/weft/step"
)

// aStat is a snapshot with something of everything.
func aStat(at time.Duration, steps uint64) sst.Stat {
	return sst.Stat{
		Time: time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC).Add(at), Stream: "0x1",
		WriterInfo: sst.WriterInfo{
			Path: "/run/sim.sst", Addr: "10.0.0.7:4711", Ranks: 3, Plane: "evpath", NextStep: steps, Held: 3, Bytes: 32_800_000, Queued: 24_600_000,
			Written: steps * 8_200_000, Dropped: 2, RankBytes: []uint64{8_200_000, 16_400_000, 0},
			Readers: []sst.AttachedReader{
				{Addr: "10.0.0.9:50001", Ranks: 4, Release: "2.12", Plane: "evpath", Carrier: "tcp", Active: true, Sent: 17, Released: 14, Lag: 4, Held: 3, HeldBytes: 24_600_000},
				{Addr: "10.0.0.10:5", Ranks: 1, Release: "Weft", Plane: "native", Carrier: "shm", Sent: 0, Dropped: 12345},
			},
		},
		Params: []sst.EffectiveParam{{Name: "QueueLimit", Value: "4", Set: true}, {Name: "QueueFullPolicy", Value: "Discard", Set: true}},
	}
}

func TestStatView(t *testing.T) {
	v := statView{name: "sim"}
	v.lines(aStat(0, 10))
	got := v.lines(aStat(2*time.Second, 30))
	want := []string{
		"stream   sim at 10.0.0.7:4711, 3 writer ranks, sockets (evpath)",
		"steps    30, 10.0/s, 2 dropped",
		"data     246.0 MB written, 82.0 MB/s",
		"queue    3 of 4 steps, 24.6 MB (Discard), 32.8 MB of memory here",
		"readers  2",
		"  ADDRESS         RELEASE  PLANE   CARRIER  RANKS  LAG  HELD    BYTES  SENT  DROPPED",
		"  10.0.0.9:50001  2.12     evpath  tcp          4    4     3  24.6 MB    17        0",
		"  10.0.0.10:5     Weft     native  shm          1    0     0      0 B     0    12345  opening",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}

	quiet := sst.Stat{WriterInfo: sst.WriterInfo{Addr: "a\x1b[31m:1", Ranks: 1, Plane: "pl\nane", Ending: true}, MoreReaders: 3}
	got = (&statView{name: "b\x07"}).lines(quiet)
	want = []string{
		`stream   b\a at a\x1b[31m:1, 1 writer rank, pl\nane`,
		"steps    0; no more come, readers take what is there",
		"data     0 B written",
		"queue    0 steps, 0 B, 0 B of memory here",
		"readers  3",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// Rates are those of the last ten seconds, and begin anew with another writer.
func TestStatRates(t *testing.T) {
	var h history
	at := func(s time.Duration, steps uint64) sst.Stat { return aStat(s*time.Second, steps) }
	if r := h.add(at(0, 0)); r != nil {
		t.Errorf("rates of nothing: %+v", r)
	}
	for s := time.Duration(1); s <= 30; s++ {
		steps := uint64(s)
		if s > 15 {
			steps = 15 + 3*(uint64(s)-15)
		}
		r := h.add(at(s, steps))
		if r == nil {
			t.Fatal("no rates")
		}
		if s <= 15 && r.Steps != 1 || s >= 27 && r.Steps != 3 {
			t.Errorf("after %d s: %+v", s, r)
		}
	}
	if r := h.add(at(29, 100)); r == nil || r.Steps <= 0 {
		t.Errorf("a clock that was set back a little: %+v", r)
	}
	if r := h.add(at(0, 100)); r != nil {
		t.Errorf("a clock that was set back: %+v", r)
	}
	other := at(31, 200)
	other.Stream = "0x2"
	if r := h.add(other); r != nil {
		t.Errorf("rates of two writers: %+v", r)
	}
	if r := ratesBetween(at(1, 5), at(2, 4)); r != nil {
		t.Errorf("steps that went back: %+v", r)
	}
}

// A terminal as far as screen uses one.
type terminal struct {
	width, height int
	rows          []string
	row           int
	writes        int
}

var sequence = regexp.MustCompile("^\x1b\\[([?0-9;]*)([A-Za-z])")

func (x *terminal) Write(b []byte) (int, error) {
	x.writes++
	n := len(b)
	col := 0
	for len(b) > 0 {
		if m := sequence.FindSubmatch(b); m != nil {
			b = b[len(m[0]):]
			switch string(m[2]) {
			case "A":
				up, _ := strconv.Atoi(string(m[1]))
				x.row = max(0, x.row-up)
			case "K":
				x.line()
				x.rows[x.row] = x.rows[x.row][:min(col, len(x.rows[x.row]))]
			case "J":
				x.line()
				if string(m[1]) == "2" {
					x.rows = nil
				} else {
					x.rows = x.rows[:x.row]
				}
			case "H":
				x.row = 0
			}
			continue
		}
		r, size := utf8.DecodeRune(b)
		b = b[size:]
		switch r {
		case '\n':
			x.line()
			x.row, col = x.row+1, 0
		case '\r':
			col = 0
		default:
			x.line()
			x.rows[x.row] = x.rows[x.row][:min(col, len(x.rows[x.row]))] + string(r)
			col = len(x.rows[x.row])
		}
	}
	return n, nil
}

func (x *terminal) line() {
	for x.row >= len(x.rows) {
		x.rows = append(x.rows, "")
	}
}

// Whatever was drawn before, the terminal shows the last drawing and nothing
// else, cut to its size, and a drawing is one write.
func TestScreen(t *testing.T) {
	for _, size := range [][2]int{{200, 50}, {80, 24}, {40, 10}, {20, 7}, {2, 3}, {1, 2}, {80, 0}} {
		x := &terminal{width: size[0], height: size[1]}
		s := screen{w: x, size: func() (int, int) { return x.width, x.height }}
		v := statView{name: "sim"}
		for i, readers := range []int{2, 0, 1, 2, 1} {
			st := aStat(time.Duration(i)*time.Second, uint64(i))
			st.Readers = st.Readers[:readers]
			lines := v.lines(st)
			if err := s.draw(lines); err != nil {
				t.Fatal(err)
			}
			if x.writes != i+1 {
				t.Fatalf("%d writes for %d drawings", x.writes, i+1)
			}
			rows := slices.DeleteFunc(slices.Clone(x.rows), func(r string) bool { return r == "" })
			if x.height > 1 && len(rows) >= x.height {
				t.Fatalf("%v: %d rows", size, len(rows))
			}
			for n, row := range rows {
				if utf8.RuneCountInString(row) >= max(x.width, 2) {
					t.Errorf("%v: %q is too wide", size, row)
				}
				if x.height > len(lines) && x.width > 100 && row != lines[n] {
					t.Errorf("%v: row %q, want %q", size, row, lines[n])
				}
			}
			if x.height == 0 && len(rows) != len(lines) {
				t.Errorf("%v: %d rows, want %d", size, len(rows), len(lines))
			}
		}
		x.width = 300
		if err := s.draw([]string{"a"}); err != nil || !slices.Equal(x.rows, []string{"a"}) {
			t.Errorf("%v: after a change of width: %q, %v", size, x.rows, err)
		}
	}
}

func TestScreenOutputFails(t *testing.T) {
	s := screen{w: openFull(t), size: func() (int, int) { return 80, 24 }}
	if err := s.draw([]string{"a"}); !isOutput(err) {
		t.Errorf("%v", err)
	}
}

func TestByteText(t *testing.T) {
	for n, want := range map[float64]string{0: "0 B", 999: "999 B", 1000: "1.0 kB", 1234567: "1.2 MB", 8e9: "8.0 GB", 1e30: "1000000000000.0 EB"} {
		if got := byteText(n); got != want {
			t.Errorf("%v: %q, want %q", n, got, want)
		}
	}
}

// The form that docs/cli.md promises.
func TestStatJSONForm(t *testing.T) {
	var b bytes.Buffer
	j := &statJSON{out: newOutput(&b), name: "sim"}
	if err := errors.Join(j.show(aStat(0, 10)), j.show(aStat(2*time.Second, 30))); err != nil {
		t.Fatal(err)
	}
	first, second, _ := strings.Cut(b.String(), "\n")
	const golden = `{"name":"sim","time":"2026-05-01T12:00:02Z","stream":"0x1","path":"/run/sim.sst","addr":"10.0.0.7:4711","rank":0,"size":0,"base":0,"own":0,` +
		`"ranks":3,"plane":"evpath","next_step":30,"held":3,"bytes":32800000,"queued":24600000,"written":246000000,"dropped":2,"ending":false,` +
		`"rank_bytes":[8200000,16400000,0],"readers":[` +
		`{"addr":"10.0.0.9:50001","ranks":4,"release":"2.12","plane":"evpath","carrier":"tcp","served":0,"active":true,"observer":false,"sent":17,"released":14,"dropped":0,` +
		`"lag":4,"held":3,"held_bytes":24600000},` +
		`{"addr":"10.0.0.10:5","ranks":1,"release":"Weft","plane":"native","carrier":"shm","served":0,"active":false,"observer":false,"sent":0,"released":0,"dropped":12345,` +
		`"lag":0,"held":0,"held_bytes":0}],` +
		`"policy":{"rendezvous":0,"queue_limit":0,"queue_limit_bytes":0,"queue_full_policy":"","block_at":"","reserve":0,"first_precious":false,` +
		`"distribution":"","registration":"","preload":false,"ask_from":0,"lag_notice":0,"lag_limit":0,"warn_bytes":0},` +
		`"more_readers":0,"params":[{"name":"QueueLimit","value":"4","set":true},{"name":"QueueFullPolicy","value":"Discard","set":true}],` +
		`"rates":{"seconds":2,"steps_per_second":10,"bytes_per_second":82000000}}` + "\n"
	if d := cmp.Diff(golden, second); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if !strings.HasSuffix(first, `"rates":null}`) {
		t.Errorf("the first has rates: %s", first)
	}
}

// aWriter is a stream that nobody reads, in a session that can be closed as if
// the process died.
func aWriter(t *testing.T, name string) (*sst.Writer, *sst.Session) {
	t.Helper()
	session, err := sst.NewSession(t.Context(), sst.SessionConfig{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { session.Close() })
	w, err := sst.Create(t.Context(), name, sst.WriterConfig{Session: session, Params: sst.Params{RendezvousReaderCount: new(int), QueueLimit: 4}})
	if err != nil {
		t.Fatal(err)
	}
	return w, session
}

func writeSteps(t *testing.T, w *sst.Writer, v *sst.Variable[int32], n int) {
	t.Helper()
	for range n {
		st, err := w.BeginStep(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(v.PutValue(st, 1), st.End(t.Context())); err != nil {
			t.Fatal(err)
		}
	}
}

func TestStatCommand(t *testing.T) {
	name := filepath.Join(t.TempDir(), "s")
	w, _ := aWriter(t, name)
	v, err := sst.Define[int32](w, "v", step.GlobalValue())
	if err != nil {
		t.Fatal(err)
	}
	writeSteps(t, w, v, 3)
	r := run(t.Context(), "stat", name)
	if r.code != exitOK || r.stderr != "" || !strings.Contains(r.stdout, "steps    3\n") || !strings.Contains(r.stdout, "queue    0 of 4 steps") {
		t.Errorf("%+v", r)
	}
	r = run(t.Context(), "stat", "--json", "--count", "2", "--interval", "50ms", name+".sst")
	lines := strings.Split(strings.TrimSpace(r.stdout), "\n")
	if r.code != exitOK || len(lines) != 2 {
		t.Fatalf("%+v", r)
	}
	var o statObject
	if err := json.Unmarshal([]byte(lines[1]), &o); err != nil || o.NextStep != 3 || o.Rates == nil || o.Name != name+".sst" {
		t.Errorf("%v: %s", err, lines[1])
	}
	if r := run(t.Context(), "params", name); r.code != exitOK || !strings.Contains(r.stdout, "QueueLimit") || !strings.Contains(r.stdout, "set\n") {
		t.Errorf("%+v", r)
	}
}

// watched is a terminal that tells of each drawing.
type watched struct {
	mu    sync.Mutex
	x     terminal
	drawn chan string
}

func newWatched() *watched {
	return &watched{x: terminal{width: 80, height: 24}, drawn: make(chan string, 1000)}
}

func (w *watched) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	n, err := w.x.Write(b)
	w.drawn <- strings.Join(w.x.rows, "\n")
	return n, err
}

// watch runs weft stat on a terminal.
func watch(ctx context.Context, name string) (w *watched, errs *bytes.Buffer, code <-chan int) {
	w, errs = newWatched(), &bytes.Buffer{}
	env := Env{Stdin: strings.NewReader(""), Stdout: w, Stderr: errs, Width: 80, Size: func() (int, int) { return 80, 24 }}
	done := make(chan int, 1)
	go func() { done <- Run(ctx, env, []string{"stat", "--interval", "50ms", name}) }()
	return w, errs, done
}

func (w *watched) until(t *testing.T, text string) {
	t.Helper()
	limit := time.After(time.Minute)
	for {
		select {
		case view := <-w.drawn:
			if strings.Contains(view, text) {
				return
			}
		case <-limit:
			t.Fatalf("%q is not shown", text)
		}
	}
}

func TestStatLive(t *testing.T) {
	end := func(t *testing.T, do func(name string, w *sst.Writer, s *sst.Session)) (int, string) {
		name := filepath.Join(t.TempDir(), "s")
		w, session := aWriter(t, name)
		v, err := sst.Define[int32](w, "v", step.GlobalValue())
		if err != nil {
			t.Fatal(err)
		}
		view, errs, code := watch(t.Context(), name)
		view.until(t, "steps    0")
		writeSteps(t, w, v, 5)
		view.until(t, "steps    5, ")
		do(name, w, session)
		return <-code, errs.String()
	}
	t.Run("ends", func(t *testing.T) {
		code, errs := end(t, func(_ string, w *sst.Writer, _ *sst.Session) {
			if err := w.Close(); err != nil {
				t.Error(err)
			}
		})
		if code != exitOK || !strings.Contains(errs, "the stream has ended") {
			t.Errorf("exit code %d, stderr %q", code, errs)
		}
	})
	t.Run("dies", func(t *testing.T) {
		code, errs := end(t, func(name string, _ *sst.Writer, s *sst.Session) {
			b, err := os.ReadFile(name + contactSuffix)
			if err != nil {
				t.Fatal(err)
			}
			// What a writer leaves behind that is killed.
			if err := errors.Join(os.WriteFile(name+".left", b, 0o600), s.Close(), os.Rename(name+".left", name+contactSuffix)); err != nil {
				t.Fatal(err)
			}
		})
		// A question may fall between the two.
		if code != exitFailed && !strings.Contains(errs, "has ended") || code == exitFailed && !strings.Contains(errs, "the writer is gone") {
			t.Errorf("exit code %d, stderr %q", code, errs)
		}
	})
	t.Run("interrupted", func(t *testing.T) {
		name := filepath.Join(t.TempDir(), "s")
		aWriter(t, name)
		ctx, cancel := context.WithCancelCause(t.Context())
		view, errs, code := watch(ctx, name)
		view.until(t, "steps")
		cancel(errInterrupted)
		if c := <-code; c != exitOK || errs.Len() > 0 {
			t.Errorf("exit code %d, stderr %q", c, errs)
		}
	})
}

// A writer that is killed is told of, with what that means.
func TestStatOfAKilledWriter(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(t.TempDir(), "s")
	cmd := exec.Command(self, "pipe", bpfixture.Extract(t, "main-nostats"), name)
	cmd.Args[0] = "weft" // see TestMain
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if r := run(ctx, "stat", "--timeout", "1m", name); r.code != exitOK {
		t.Error(r)
	}
	view, errs, code := watch(ctx, name)
	view.until(t, "steps    0")
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err == nil {
		t.Error("it was not killed")
	}
	if c := <-code; c != exitFailed || !strings.Contains(errs.String(), "the writer is gone, without having ended the stream: ") {
		t.Errorf("exit code %d, stderr %q", c, errs)
	}
}

// Programs are told of an interruption; a watcher that leaves is not.
func TestStatInterrupted(t *testing.T) {
	name := filepath.Join(t.TempDir(), "s")
	aWriter(t, name)
	ctx, cancel := context.WithCancelCause(t.Context())
	r, w := io.Pipe()
	var errs bytes.Buffer
	code := make(chan int, 1)
	go func() {
		code <- Run(ctx, Env{Stdout: w, Stderr: &errs}, []string{"stat", "--json", "--count", "0", "--interval", "50ms", name})
		w.Close()
	}()
	if err := json.NewDecoder(r).Decode(&statObject{}); err != nil {
		t.Fatal(err)
	}
	cancel(errInterrupted)
	if _, err := io.Copy(io.Discard, r); err != nil {
		t.Error(err)
	}
	if c := <-code; c != exitFailed || errs.String() != "weft: interrupted\n" {
		t.Errorf("exit code %d, stderr %q", c, errs.String())
	}
}

func TestCutText(t *testing.T) {
	for _, c := range []struct {
		width int
		want  string
	}{{0, "readers  zwölf"}, {100, "readers  zwölf"}, {15, "readers  zwölf"}, {14, "readers  zwö…"}, {9, "readers…"}, {2, "…"}, {1, "…"}} {
		if got := cutText("readers  zwölf", c.width); got != c.want {
			t.Errorf("%d: %q, want %q", c.width, got, c.want)
		}
	}
}
