package cli

import (
	"bytes"
	"context"
	"io"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/weft-fabric/weft/internal/bpfixture"
)

// A rank whose others do not come says so, as docs/launching.md promises, and
// where it looks.
func TestLonelyRankExplains(t *testing.T) {
	begins := []string{"weft: interrupted: cohort: rank 0 at ", "weft: interrupted: cohort: rank 1 of 2 "}
	ends := []string{" waited for rank 1 of 2", " does not reach rank 0: "}
	file := bpfixture.Extract(t, "main-nostats")
	for rank, want := range []string{"weft: cohort: rank 0 waits for other ranks to connect (missing rank 1 of 2, ", "weft: rank 1: cohort: waits for rank 0 to answer ("} {
		t.Run(want, func(t *testing.T) {
			t.Parallel() // three seconds each
			dir := t.TempDir()
			ctx, cancel := context.WithCancelCause(t.Context())
			lines := watchLines(want, func() { cancel(errInterrupted) })
			env := Env{Stdout: io.Discard, Stderr: lines, Environ: []string{"WEFT_RANK=" + string(rune('0'+rank)), "WEFT_SIZE=2"}}
			code := Run(ctx, env, []string{"pipe", file, filepath.Join(dir, "s")})
			text := lines.String()
			if code != exitFailed || strings.Count(text, want) != 1 {
				t.Errorf("exit code %d, stderr %q", code, text)
			}
			said := strings.Split(strings.TrimSpace(text), "\n")
			if last := said[len(said)-1]; !strings.HasPrefix(last, begins[rank]) || !strings.Contains(last, ends[rank]) || strings.Count(last, "interrupted") != 1 {
				t.Errorf("the last line %q does not say what was waited for", last)
			}
			if rank == 1 && !strings.Contains(text, dir) {
				t.Errorf("%q does not say in which folder", text)
			}
		})
	}
}

// watchedLines is an output that reports the first time that it holds a text.
type watchedLines struct {
	mu   sync.Mutex
	b    bytes.Buffer
	text string
	seen func()
}

func watchLines(text string, seen func()) *watchedLines { return &watchedLines{text: text, seen: seen} }

func (w *watchedLines) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	n, err := w.b.Write(p)
	if strings.Contains(w.b.String(), w.text) {
		w.seen()
	}
	return n, err
}

func (w *watchedLines) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.b.String()
}
