package interop

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"testing"
	"time"

	"github.com/weft-fabric/weft/internal/testutil"
	"github.com/weft-fabric/weft/interop/zoo"
	"github.com/weft-fabric/weft/sst"
)

// A reader that goes away while it is opening hangs or crashes a real writer if
// it does it the wrong way (docs/wire/sst.md §9.3). These tests make Weft readers
// go away at random moments, and then let another reader take the stream to its
// end: the writer must go on, serve it, and exit in order.

// victimSpan is how long victims live at most: opening and some steps.
const victimSpan = 500 * time.Millisecond

// errVictim is the cause with which victims are cancelled.
var errVictim = errors.New("the victim's time is up")

// TestSoakReaderLeavesADIOS2Writer is acceptance line 11.
func TestSoakReaderLeavesADIOS2Writer(t *testing.T) {
	rounds := testutil.Count(t, 12, 200)
	rng := testutil.Rand(t)
	for i := range rounds {
		after := time.Duration(rng.Int64N(int64(victimSpan)))
		rendezvous := i % 2 // 1: the writer waits in Open; 0: it runs already
		how := []string{"cancel", "time-out", "close the session"}[i/2%3]
		t.Run(fmt.Sprintf("%d/rendezvous %d, %s after %v", i, rendezvous, how, after), func(t *testing.T) {
			dir := t.TempDir()
			w := ADIOS2Writer(t, WriterOptions{
				Stream: Stream{Dir: dir, StepDelay: 25 * time.Millisecond, Params: map[string]string{"RendezvousReaderCount": fmt.Sprint(rendezvous)}, Vars: []string{"array/"}},
				Steps:  80,
			})
			name := filepath.Join(dir, "zoo")
			w.Expect("OPENING")
			leaveAfter(t, name, how, after)
			survive(t, name, 80)
			w.OK()
		})
	}
}

// leaveAfter opens a reader and makes it go away in one of several ways.
func leaveAfter(t *testing.T, name, how string, after time.Duration) {
	t.Helper()
	s, err := sst.NewSession(t.Context(), sst.SessionConfig{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	switch how {
	case "cancel":
		defer time.AfterFunc(after, func() { cancel(errVictim) }).Stop()
	case "time-out":
		var stop context.CancelFunc
		ctx, stop = context.WithTimeoutCause(ctx, after, errVictim)
		defer stop()
	case "close the session":
		defer time.AfterFunc(after, func() { s.Close() }).Stop()
	}
	err = readUntilError(ctx, s, name)
	if err != nil && !errors.Is(err, errVictim) && !errors.Is(err, sst.ErrClosed) && !errors.Is(err, sst.ErrOrder) {
		t.Errorf("the victim ended with %v", err)
	}
}

// readUntilError reads all steps that it gets.
func readUntilError(ctx context.Context, s *sst.Session, name string) error {
	r, err := sst.Open(ctx, name, sst.ReaderConfig{Session: s})
	if err != nil {
		return err
	}
	defer r.Close()
	for st, err := range r.Steps(ctx) {
		if err != nil {
			return err
		}
		if _, err := StepJSON(ctx, st); err != nil {
			return err
		}
	}
	return nil
}

// survive reads the rest of a stream: without a gap, right, and to the end.
func survive(t *testing.T, name string, steps int) {
	t.Helper()
	got := readZoo(t.Context(), t, name, sst.Params{}, zoo.Check{From: zoo.ADIOS2Stream, Prefixes: []string{"array/"}, AttributesMayMiss: true})
	if len(got) == 0 || got[len(got)-1] != steps-1 {
		t.Fatalf("the next reader saw steps %v, want the last ones up to %d", got, steps-1)
	}
	for i, n := range got {
		if n != got[0]+i {
			t.Fatalf("the next reader saw steps %v: a gap", got)
		}
	}
}
