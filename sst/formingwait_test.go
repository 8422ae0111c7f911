package sst_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/weft-fabric/weft/internal/testutil"
	"github.com/weft-fabric/weft/sst"
	"github.com/weft-fabric/weft/sst/cohort"
)

// TestFewRanksExplain: while a stream of many ranks forms, rank 0 says what it waits
// for, and rank 1 if that may be rank 0; not each of the many.
func TestFewRanksExplain(t *testing.T) {
	const ranks = 8
	writer := func(ctx context.Context, name string, c cohort.Cohort, s *sst.Session) error {
		w, err := sst.Create(ctx, name, sst.WriterConfig{Cohort: c, Session: s})
		if err == nil {
			w.Close()
		}
		return err
	}
	reader := func(ctx context.Context, name string, c cohort.Cohort, s *sst.Session) error {
		r, err := sst.Open(ctx, name, sst.ReaderConfig{Cohort: c, Session: s})
		if err == nil {
			r.Close()
		}
		return err
	}
	for what, x := range map[string]struct {
		begin   func(context.Context, string, cohort.Cohort, *sst.Session) error
		missing int // rank; -1 none
		want    []string
	}{
		"writer without readers":     {writer, -1, []string{"waiting for readers"}},
		"writer without rank 5":      {writer, 5, []string{"waiting for ranks\"=[5]", "waiting for rank 0, and"}},
		"writer without rank 0":      {writer, 0, []string{"waiting for rank 0, and"}},
		"reader without a writer":    {reader, -1, []string{"waiting for the writer's contact file", "waiting for rank 0 of the reader"}},
		"reader without rank 0":      {reader, 0, []string{"waiting for rank 0 of the reader"}},
		"reader without rank 5 only": {reader, 5, []string{"waiting for the writer's contact file", "waiting for rank 0 of the reader"}},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			log, logger := testutil.NewLog(slog.LevelInfo)
			name := streamName(t)
			ctx, cancel := context.WithCancelCause(bounded(t))
			enough := errors.New("enough")
			var ends []<-chan error
			for rank, c := range cohort.Local(ranks) {
				t.Cleanup(func() { c.Close() })
				if rank != x.missing {
					s := newSession(t, sst.SessionConfig{Logger: logger})
					ends = append(ends, async(func() error { return x.begin(ctx, name, c, s) }))
				}
			}
			for range x.want {
				next(t, "line of log", log.Lines())
			}
			select {
			case line := <-log.Lines():
				t.Errorf("one line too many: %q", line)
			case <-time.After(300 * time.Millisecond): // all began at the same time
			}
			text := log.String()
			for _, want := range x.want {
				if strings.Count(text, want) != 1 {
					t.Errorf("not once %q: %s", want, text)
				}
			}
			cancel(enough)
			for _, end := range ends {
				if err := next(t, "end", end); err == nil {
					t.Error("a rank got through")
				}
			}
		})
	}
}
