package testutil

import (
	"log/slog"
	"strings"
	"testing"
)

func TestLog(t *testing.T) {
	l, logger := NewLog(slog.LevelInfo)
	logger.Debug("too low")
	logger.Info("one", "n", 1)
	logger.Warn("two", "n", 2)
	logger.Warn("two", "n", 3)
	if line := l.Expect(t, "two"); !strings.Contains(line, "n=2") {
		t.Errorf("not the first that fits: %s", line)
	}
	if line := <-l.Lines(); !strings.HasSuffix(line, "level=WARN msg=two n=3\n") {
		t.Errorf("line %q", line)
	}
	select {
	case line := <-l.Lines():
		t.Errorf("one line too many: %q", line)
	default:
	}
	// What was taken is still in the text.
	if text := l.String(); strings.Count(text, "\n") != 3 || !strings.Contains(text, "msg=one n=1\n") || strings.Contains(text, "too low") {
		t.Errorf("text:\n%s", text)
	}
}

func TestLogAllWords(t *testing.T) {
	l, logger := NewLog(slog.LevelDebug)
	logger.Debug("connected", "rank", 1)
	logger.Debug("refused", "rank", 2)
	logger.Debug("refused", "rank", 1)
	if line := l.Expect(t, "level=DEBUG", "rank=1", "refused"); !strings.Contains(line, "refused rank=1") {
		t.Errorf("line %q", line)
	}
}

// TestLogNeverWaits: nobody takes a line, and all are kept.
func TestLogNeverWaits(t *testing.T) {
	l, logger := NewLog(slog.LevelInfo)
	for range 2 * maxLogLines {
		logger.Info("again")
	}
	if got := strings.Count(l.String(), "\n"); got != 2*maxLogLines {
		t.Errorf("%d lines", got)
	}
	if got := len(l.Lines()); got != maxLogLines {
		t.Errorf("%d lines to take", got)
	}
}
