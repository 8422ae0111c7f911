package sst_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/weft-fabric/weft/sst"
	"github.com/weft-fabric/weft/sst/cohort"
	"github.com/weft-fabric/weft/step"
)

// strict is a cohort that takes no long messages.
type strict struct{ cohort.Cohort }

type strictChannel struct{ cohort.Channel }

func (s strict) Join(name string, h cohort.Handler) (cohort.Channel, error) {
	ch, err := s.Cohort.Join(name, h)
	return strictChannel{ch}, err
}

func (s strictChannel) Send(to int, msg []byte) error {
	if len(msg) > 2000 {
		return fmt.Errorf("%w: %d bytes", cohort.ErrLimit, len(msg))
	}
	return s.Channel.Send(to, msg)
}

// TestMessageThatCannotBeSent: a rank that cannot be told what it has to know is
// as good as lost, and nobody waits for it.
func TestMessageThatCannotBeSent(t *testing.T) {
	long := step.NewAttribute("a", strings.Repeat("long ", 1000))
	t.Run("reader", func(t *testing.T) {
		name := streamName(t)
		w := create(t, name, sst.WriterConfig{})
		if err := w.SetAttribute(long); err != nil {
			t.Fatal(err)
		}
		x := define(t, w, 10)
		c := local(t, 2)
		for i := range c.cohorts {
			c.cohorts[i] = strict{c.cohorts[i]}
		}
		for rank, err := range c.open(bounded(t), name, all(sst.ReaderConfig{})) {
			if err != nil {
				t.Fatalf("rank %d: %v", rank, err)
			}
		}
		x.must(t)
		c.each(t, func(_ int, r *sst.Reader) error {
			if _, err := drain(bounded(t), r); !errors.Is(err, sst.ErrRankFailed) {
				return fmt.Errorf("ended with %w", err)
			}
			return nil
		})
		c.close(t)
	})
	t.Run("writer", func(t *testing.T) {
		c := &crew{t: t, name: streamName(t), part: 8}
		c.join(2)
		for i := range c.ranks {
			c.ranks[i] = strict{c.ranks[i]}
		}
		c.must(c.create(bounded(t), func(int) sst.WriterConfig {
			return sst.WriterConfig{Params: sst.Params{RendezvousReaderCount: none()}}
		}))
		if err := c.writers[1].SetAttribute(long); err != nil {
			t.Fatal(err)
		}
		c.wants("End", c.all(func(rank int) error { return c.write(bounded(t), rank) }), sst.ErrRankFailed)
	})
}

// TestCohortClosedUnderStream: a program that closes the cohort before the stream
// gets an error from every wait, on every rank.
func TestCohortClosedUnderStream(t *testing.T) {
	for early := range 3 {
		t.Run(fmt.Sprint("reader rank ", early), func(t *testing.T) {
			name := streamName(t)
			create(t, name, sst.WriterConfig{})
			c := attachRanks(t, name, 3, sst.ReaderConfig{})
			done := async(func() error {
				c.each(t, func(_ int, r *sst.Reader) error {
					if _, err := r.BeginStep(bounded(t)); !errors.Is(err, sst.ErrRankFailed) {
						return fmt.Errorf("ended with %w", err)
					}
					return nil
				})
				return nil
			})
			c.cohorts[early].Close()
			next(t, "BeginStep", done)
		})
		t.Run(fmt.Sprint("writer rank ", early), func(t *testing.T) {
			c := newCrew(t, 3, sst.WriterConfig{})
			begun := make(chan struct{}, 3)
			done := async(func() []error {
				return c.all(func(rank int) error {
					st, err := c.begin(bounded(t), rank)
					begun <- struct{}{}
					if err != nil || rank == 2 { // who does not end the step
						return err
					}
					return st.End(bounded(t))
				})
			})
			for range 3 {
				next(t, "BeginStep", begun)
			}
			c.ranks[early].Close()
			errs := next(t, "End", done)
			c.wants("End", errs[:2], sst.ErrRankFailed)
		})
	}
}
