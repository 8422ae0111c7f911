package testutil

import (
	"bytes"
	"strings"
	"sync"
)

// transcript is what a process has said, by lines.
type transcript struct {
	mu       sync.Mutex
	lines    []line
	taken    int           // lines that next has passed
	finished bool          // nothing more will come
	news     chan struct{} // closed, and replaced, when something has come
}

type line struct {
	text  string
	isErr bool // it came from stderr
}

func (t *transcript) add(l line) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lines = append(t.lines, l)
	close(t.news)
	t.news = make(chan struct{})
}

func (t *transcript) finish() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.finished = true
	close(t.news)
}

// next returns the next line of stdout; or a channel that is closed when it is worth to ask again;
// or, at the end, neither.
func (t *transcript) next() (string, bool, <-chan struct{}) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for t.taken < len(t.lines) {
		l := t.lines[t.taken]
		t.taken++
		if !l.isErr {
			return l.text, true, nil
		}
	}
	if t.finished {
		return "", false, nil
	}
	return "", false, t.news
}

func (t *transcript) text(want func(line) bool) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	var b strings.Builder
	for _, l := range t.lines {
		if want(l) {
			b.WriteString(l.text + "\n")
		}
	}
	return b.String()
}

// lineWriter cuts a stream into lines. One goroutine at a time uses it: the command's copier, and
// after it flush.
type lineWriter struct {
	to      *transcript
	isErr   bool
	partial []byte
}

func (w *lineWriter) Write(b []byte) (int, error) {
	n := len(b)
	for {
		head, rest, found := bytes.Cut(b, []byte{'\n'})
		w.partial = append(w.partial, head...)
		if !found {
			return n, nil
		}
		w.to.add(line{string(w.partial), w.isErr})
		w.partial, b = w.partial[:0], rest
	}
}

// flush adds a last line that has no newline.
func (w *lineWriter) flush() {
	if len(w.partial) > 0 {
		w.to.add(line{string(w.partial), w.isErr})
		w.partial = nil
	}
}
