package cli

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weft-fabric/weft/internal/bpfixture"
)

// result is what a command did.
type result struct {
	code           int
	stdout, stderr string
}

// lockedBuffer is what a terminal is to a command: a wait that explains itself may
// write at the same time as the command does.
type lockedBuffer struct {
	lockedWriter
	b bytes.Buffer
}

func newLockedBuffer() *lockedBuffer {
	l := &lockedBuffer{}
	l.w = &l.b
	return l
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func run(ctx context.Context, args ...string) result {
	out, errs := newLockedBuffer(), newLockedBuffer()
	code := Run(ctx, Env{Stdin: strings.NewReader(""), Stdout: out, Stderr: errs}, args)
	return result{code, out.String(), errs.String()}
}

// F91 and the exit codes of docs/cli.md.
func TestExitCodes(t *testing.T) {
	dir := t.TempDir()
	file := func(name, content string) string {
		p := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(p), 0o755), os.WriteFile(p, []byte(content), 0o600)); err != nil {
			t.Fatal(err)
		}
		return p
	}
	file("empty.bp/md.idx", "")
	file("noindex.bp/readme", "")
	cut := bpfixture.Extract(t, "main-append-3then2ranks")
	if err := os.Truncate(filepath.Join(cut, "md.idx"), 500); err != nil {
		t.Fatal(err)
	}
	good := bpfixture.Extract(t, "main-nostats")
	headless := bpfixture.Extract(t, "main-shapes-3ranks")
	if err := os.Remove(filepath.Join(headless, "data.0")); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		args []string
		code int
		text string
	}{
		{"good", []string{"ls", good}, exitOK, ""},
		{"missing", []string{"ls", filepath.Join(dir, "nothere")}, exitUsage, "no such file or stream"},
		{"missing, others there", []string{"ls", filepath.Join(dir, "empty")}, exitUsage, "there are: "},
		{"missing folder", []string{"ls", filepath.Join(dir, "no", "x")}, exitUsage, "its folder does not exist"},
		{"empty", []string{"ls", filepath.Join(dir, "empty.bp")}, exitUsage, "empty dataset"},
		{"folder", []string{"dump", filepath.Join(dir, "noindex.bp")}, exitUsage, "not a BP5 file"},
		{"text", []string{"dump", file("text", "hello")}, exitUsage, "not a BP5 file"},
		{"broken contact file", []string{"ls", "--timeout", "1s", file("x.sst", "hello")}, exitUsage, "not a contact file"},
		{"incomplete", []string{"dump", "--json", cut}, exitUsage, "incomplete: "},
		{"incomplete, listed", []string{"ls", cut}, exitUsage, "whole steps"},
		{"no such step in time", []string{"dump", "--timeout", "10ms", filepath.Join(dir, "nothere")}, exitUsage, "after 10ms"},
		{"pattern", []string{"dump", "-v", "[", good}, exitUsage, "syntax error"},
		{"slice", []string{"dump", "--start", "a", good}, exitUsage, `"a" is no whole number`},
		{"slices", []string{"dump", "--start", "1", "--count", "1,1", good}, exitUsage, "--start has 1 dimensions, --count has 2"},
		{"negative", []string{"dump", "--steps", "-1", good}, exitUsage, "not negative"},
		{"negative count", []string{"dump", "--count", "-2", good}, exitUsage, "is no number of elements"},
		{"unknown command", []string{"nosuch"}, exitUsage, "unknown command"},
		{"unknown topic", []string{"help", "lst"}, exitUsage, "did you mean ls?"},
		{"unknown shell", []string{"completion", "tcsh"}, exitUsage, "there is one for bash"},
		{"no unit", []string{"ls", "--timeout", "5", good}, exitUsage, "as in 5s"},
		{"index", []string{"ls", filepath.Join(good, "md.idx")}, exitUsage, "give the folder"},
		{"contact file without suffix", []string{"ls", file("contact", "#ADIOS2-SST v0\n")}, exitUsage, "rename it"},
		{"parameter of readers", []string{"pipe", good, filepath.Join(dir, "s"), "--param", "OpenTimeoutSecs=1"}, exitUsage, "parameter of the reader"},
		{"no data", []string{"dump", headless}, exitFailed, "data.0"},
		{"no data for pipe", []string{"pipe", headless, filepath.Join(dir, "s"), "--param", "RendezvousReaderCount=0"}, exitFailed, "data.0"},
		{"target without folder", []string{"pipe", good, filepath.Join(dir, "no", "x")}, exitFailed, "no such file"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := run(t.Context(), c.args...)
			if r.code != c.code || !strings.Contains(r.stderr, c.text) {
				t.Errorf("exit code %d, want %d; stderr %q, want %q", r.code, c.code, r.stderr, c.text)
			}
			if r.stderr != "" && !strings.HasPrefix(r.stderr, "weft: ") {
				t.Errorf("stderr %q does not begin with the program's name", r.stderr)
			}
		})
	}
}

// The whole steps of a dataset that was cut off are shown before the error.
func TestIncompleteShowsWholeSteps(t *testing.T) {
	p := bpfixture.Extract(t, "main-append-3then2ranks")
	idx := filepath.Join(p, "md.idx")
	info, err := os.Stat(idx)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(idx, info.Size()-1); err != nil {
		t.Fatal(err)
	}
	r := run(t.Context(), "dump", "--json", p)
	if n := strings.Count(r.stdout, "\n"); n != 3 || r.code != exitUsage || !strings.Contains(r.stderr, "incomplete: 3 whole steps") {
		t.Errorf("%d steps, exit code %d, stderr %q", n, r.code, r.stderr)
	}
	if r := run(t.Context(), "ls", p); !strings.Contains(r.stdout, "3*{__}") {
		t.Errorf("ls: %q", r.stdout)
	}
}

func TestCancelled(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errInterrupted)
	for _, args := range [][]string{
		{"dump", bpfixture.Extract(t, "main-nostats")},
		{"ls", bpfixture.Extract(t, "main-nostats")},
		{"dump", "--follow", filepath.Join(t.TempDir(), "x")},
		{"pipe", bpfixture.Extract(t, "main-nostats"), filepath.Join(t.TempDir(), "x")},
	} {
		if r := run(ctx, args...); r.code != exitFailed || r.stderr != "weft: interrupted\n" {
			t.Errorf("%q: exit code %d, stderr %q", args, r.code, r.stderr)
		}
	}
}

// openFull opens the device that is always full; every Linux has it.
func openFull(t *testing.T) *os.File {
	t.Helper()
	f, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

// A full disk, or a reader of the output that has gone, ends the dump.
func TestOutputFails(t *testing.T) {
	for _, form := range [][]string{{"dump"}, {"dump", "--json"}, {"ls"}} {
		full := openFull(t)
		var errs bytes.Buffer
		code := Run(t.Context(), Env{Stdout: full, Stderr: &errs}, append(form, bpfixture.Extract(t, "main-shapes-3ranks")))
		if code != exitFailed || !strings.Contains(errs.String(), "no space left") {
			t.Errorf("%q: exit code %d, stderr %q", form, code, errs.String())
		}
	}
}

// Large arrays are read in chunks; the text is the same, and memory stays
// bounded.
func TestDumpOfALargeArray(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "s")
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	const rows, cols = 1250, 4000
	done := make(chan error, 1)
	go func() { done <- writeLarge(ctx, dir, rows, cols) }()
	r := run(ctx, "dump", "--json", "--timeout", "30s", dir)
	if err := <-done; err != nil || r.code != exitOK {
		t.Fatalf("writer %v, exit code %d, stderr %q", err, r.code, r.stderr)
	}
	data := between(r.stdout, `"data":[`, `]`)
	if n := strings.Count(data, ",") + 1; n != rows*cols {
		t.Errorf("%d elements, want %d", n, rows*cols)
	}
	if !strings.HasPrefix(data, "0,1,2,") || !strings.HasSuffix(data, ",4999998,4999999") {
		t.Errorf("ends of the data: %.20s", data)
	}
}

func between(s, from, to string) string {
	_, s, _ = strings.Cut(s, from)
	s, _, _ = strings.Cut(s, to)
	return s
}

func ramp64(n int) []byte {
	b := make([]byte, 0, 8*n)
	for i := range n {
		b = binary.LittleEndian.AppendUint64(b, uint64(i))
	}
	return b
}
