package sst_test

import (
	"log/slog"
	"strings"
	"testing"

	"github.com/weft-fabric/weft/internal/testutil"
	"github.com/weft-fabric/weft/sst"
)

// TestNoticesAreBounded: what a reader is told of steps that it does not get is
// bounded, too. One that does not read is dropped before it fills the memory, with a
// line that says why; the stream goes on, and a reader that reads gets everything.
func TestNoticesAreBounded(t *testing.T) {
	for what, observer := range map[string]bool{"discarded": false, "observer": true} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			log, logger := testutil.NewLog(slog.LevelInfo)
			name := streamName(t)
			x := define(t, create(t, name, sst.WriterConfig{
				Params:  sst.Params{QueueLimit: 1, QueueFullPolicy: "Discard"},
				Session: newSession(t, sst.SessionConfig{Logger: logger}),
			}), 1)
			r := attachesAs(t, name, 1, observer, observer)
			testutil.Eventually(t, "it is active", func() bool { i := x.w.Info(); return len(i.Readers) == 1 && i.Readers[0].Active })
			r.deafen()
			steps := 0
			for ; len(x.w.Info().Readers) > 0; steps++ {
				if steps > 600_000 {
					t.Fatal("the reader is still there")
				}
				x.must(t)
			}
			if steps < 1<<16 {
				t.Errorf("dropped after %d steps", steps)
			}
			if line := next(t, "line of log", log.Lines()); !strings.Contains(line, "does not read from its connection") {
				t.Errorf("the log says %q", line)
			}
			testutil.Eventually(t, "the memory is free", func() bool { i := x.w.Info(); return i.Held == 0 })
			honest := attach(t, name, sst.ReaderConfig{})
			x.must(t)
			done := async(x.w.Close)
			if seen, err := drain(bounded(t), honest); err != nil || len(seen) != 1 {
				t.Errorf("%v, %v", seen, err)
			}
			if err := next(t, "Close", done); err != nil {
				t.Error(err)
			}
		})
	}
}
