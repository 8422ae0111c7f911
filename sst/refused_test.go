package sst_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/weft-fabric/weft/sst"
)

// TestF07ReaderRankRefused is field report F07 for a cohort: where the
// configuration of one rank is refused, every rank hears at once of whom and why.
func TestF07ReaderRankRefused(t *testing.T) {
	for what, wrong := range map[string]sst.ReaderConfig{
		"QueueLimit":       {Params: sst.Params{QueueLimit: 3}}, // of the writer
		"no-such-mode":     {Params: sst.Params{SpeculativePreloadMode: "no-such-mode"}},
		"NetworkInterface": {Params: sst.Params{NetworkInterface: "no-such-interface"}},
	} {
		for rank := range 3 {
			t.Run(fmt.Sprintf("%s at rank %d", what, rank), func(t *testing.T) {
				c := local(t, 3)
				began := time.Now()
				errs := c.open(bounded(t), streamName(t), func(r int) sst.ReaderConfig {
					if r == rank {
						return wrong
					}
					return sst.ReaderConfig{}
				})
				for r, err := range errs {
					if !errors.Is(err, sst.ErrParam) || !strings.Contains(err.Error(), what) || r != rank && !strings.Contains(err.Error(), fmt.Sprint("rank ", rank)) {
						t.Errorf("rank %d: %v", r, err)
					}
					if at, ok := sst.ErrorRank(err); r != rank && (!ok || at != rank) || r == rank && ok && at != rank {
						t.Errorf("rank %d: %v is of rank %d, %v", r, err, at, ok)
					}
				}
				if took := time.Since(began); took > 5*time.Second {
					t.Errorf("took %v", took)
				}
			})
		}
	}
}

// TestReaderRankCancelled: a rank that is cancelled before it has begun leaves its
// own seat, and the others open without it. Without rank 0 nobody does.
func TestReaderRankCancelled(t *testing.T) {
	over, cancel := context.WithCancelCause(t.Context())
	why := errors.New("not needed")
	cancel(why)
	for rank := range 3 {
		t.Run(fmt.Sprint("rank ", rank), func(t *testing.T) {
			name := streamName(t)
			c := local(t, 3)
			read := func(r int) error {
				ctx := bounded(t)
				if r == rank {
					ctx = over
				}
				reader, err := sst.Open(ctx, name, sst.ReaderConfig{Session: c.sessions[r], Cohort: c.cohorts[r], Params: sst.Params{OpenTimeoutSecs: 10}})
				if r == rank {
					if !errors.Is(err, why) {
						return fmt.Errorf("the rank itself: %w", err)
					}
					return nil
				}
				if rank == 0 {
					if err == nil || !strings.Contains(err.Error(), "rank 0") {
						return fmt.Errorf("without rank 0: %w", err)
					}
					return nil
				}
				if err != nil {
					return err
				}
				defer reader.Close()
				seen, err := drain(bounded(t), reader)
				if err == nil && len(seen) == 0 {
					err = errors.New("no step")
				}
				return err
			}
			waits := make([]<-chan error, 3)
			for r := range 3 {
				waits[r] = async(func() error { return read(r) })
			}
			wrote := async(func() error {
				if rank == 0 {
					return nil
				}
				return writeOne(t, name)
			})
			for r, w := range waits {
				if err := next(t, "Open", w); err != nil {
					t.Errorf("rank %d: %v", r, err)
				}
			}
			if err := next(t, "the writer", wrote); err != nil {
				t.Error(err)
			}
		})
	}
}

// writeOne writes a stream of one step for one reader.
func writeOne(t *testing.T, name string) error {
	w, err := sst.Create(bounded(t), name, sst.WriterConfig{Session: quickSession(t), Params: sst.Params{RendezvousReaderCount: count(1)}})
	if err != nil {
		return err
	}
	defer w.Close()
	return define(t, w, 10).write(bounded(t))
}
