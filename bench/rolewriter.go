package main

import (
	"context"
	"errors"
	"time"

	"github.com/weft-fabric/weft/sst"
	"github.com/weft-fabric/weft/sst/cohort"
)

// writeStream writes steps for the given time, as one rank, or as all.
func writeStream(ctx context.Context, a roleArgs) (said, error) {
	if a.local > 1 {
		return writeLocal(ctx, a)
	}
	c, err := a.cohort(ctx)
	if err != nil {
		return said{}, err
	}
	defer c.Close()
	return writeRank(ctx, a, sst.WriterConfig{Cohort: c})
}

// writeLocal writes as all ranks of a cohort in this process. Rank 0 tells of all: what it says of the process is said
// of them.
func writeLocal(ctx context.Context, a roleArgs) (said, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	session, err := sst.NewSession(ctx, sst.SessionConfig{NetworkInterface: "lo"})
	if err != nil {
		return said{}, err
	}
	defer session.Close()
	var first said
	errs := make(chan error)
	for rank, c := range cohort.Local(a.local) {
		a := a
		a.rank, a.ranks = rank, a.local
		go func() {
			s, err := writeRank(ctx, a, sst.WriterConfig{Cohort: c, Session: session})
			err = errors.Join(err, c.Close())
			if rank == 0 {
				first = s
			}
			errs <- err
		}()
	}
	for range a.local {
		if err := <-errs; err != nil {
			cancel(err)
		}
	}
	return first, context.Cause(ctx)
}

// writeRank writes as one rank. Rank 0 measures the time: it closes, and the step that others have begun does not
// come about.
func writeRank(ctx context.Context, a roleArgs, config sst.WriterConfig) (said, error) {
	config.Params = a.params()
	config.Params.QueueLimit = a.queue
	w, err := sst.Create(ctx, a.name, config)
	if err != nil {
		return said{}, err
	}
	defer w.Close()
	out, err := newStepWriter(w, a)
	if err != nil {
		return said{}, err
	}
	c := a.clock()
	limit := time.Duration((a.seconds + a.warmup) * float64(time.Second))
	for start, number := time.Now(), int64(0); a.rank > 0 || time.Since(start) < limit; number++ {
		err := out.write(ctx, number)
		if a.rank > 0 && errors.Is(err, sst.ErrStepAborted) {
			break
		}
		if err != nil {
			return said{}, err
		}
		c.tick(time.Now())
	}
	s, err := c.said()
	return s, errors.Join(err, w.Close())
}
