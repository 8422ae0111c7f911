package testutil

import (
	"bytes"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// maxLogLines is how many lines of a Log can wait for somebody to take them.
const maxLogLines = 1024

// Log collects what is logged, and tells of each line. Its methods are safe for
// concurrent use.
type Log struct {
	lines chan string
	mu    sync.Mutex
	text  bytes.Buffer
}

// NewLog returns an empty Log and the logger that writes to it what is at level or
// above, in slog's text form.
func NewLog(level slog.Level) (*Log, *slog.Logger) {
	l := &Log{lines: make(chan string, maxLogLines)}
	return l, slog.New(slog.NewTextHandler((*logWriter)(l), &slog.HandlerOptions{Level: level}))
}

// Lines gives each line once, in order. If nobody takes them, what goes beyond a
// thousand is in String only: logging never waits.
func (l *Log) Lines() <-chan string { return l.lines }

// String returns all that was logged.
func (l *Log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// Expect takes lines until one holds all the words, and returns it. It fails the
// test if that takes too long.
func (l *Log) Expect(t testing.TB, words ...string) string {
	t.Helper()
	timeout := time.NewTimer(pollLimit)
	defer timeout.Stop()
	for {
		select {
		case line := <-l.lines:
			if !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(line, w) }) {
				return line
			}
		case <-timeout.C:
			t.Fatalf("no line with %q in the log:\n%s", words, l)
		}
	}
}

// logWriter is a Log as its handler sees it.
type logWriter Log

// Write takes in one line.
func (w *logWriter) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	select {
	case w.lines <- string(b):
	default:
	}
	return w.text.Write(b)
}
