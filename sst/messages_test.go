package sst_test

import (
	"log/slog"
	"strings"
	"testing"

	"github.com/weft-fabric/weft/internal/testutil"
	"github.com/weft-fabric/weft/sst"
)

// TestMessageOfParams says what either rank has, where the defaults have no text.
func TestMessageOfParams(t *testing.T) {
	for rank, want := range []string{`it has only defaults, rank 0 has "QueueLimit=3"`, `it has "QueueLimit=3", rank 0 has only defaults`} {
		c := &crew{t: t, name: streamName(t)}
		c.join(2)
		errs := c.create(bounded(t), func(r int) sst.WriterConfig {
			if r == rank {
				return sst.WriterConfig{Params: sst.Params{QueueLimit: 3}}
			}
			return sst.WriterConfig{}
		})
		c.wants("Create", errs, sst.ErrParam)
		for r, err := range errs {
			if err != nil && !strings.Contains(err.Error(), want) {
				t.Errorf("rank %d: %v does not say %q", r, err, want)
			}
		}
	}
}

// TestMessageOfAbort says once that a step was given up, and by whom.
func TestMessageOfAbort(t *testing.T) {
	c := newCrew(t, 2, sst.WriterConfig{})
	st, err := c.writers[1].BeginStep(bounded(t))
	if err != nil {
		t.Fatal(err)
	}
	st.Abort()
	err = c.write(bounded(t), 0)
	wants(t, "End", err, sst.ErrStepAborted)
	if text := err.Error(); strings.Count(text, "step given up") != 1 || !strings.Contains(text, "step 0: step given up by rank 1 of the writer") {
		t.Errorf("%s", text)
	}
	c.must(c.close())
}

// TestMessageOfDeadRank does not blame a reader, and says of no stream that has
// failed that it goes on.
func TestMessageOfDeadRank(t *testing.T) {
	log, logger := testutil.NewLog(slog.LevelInfo)
	s := newSession(t, sst.SessionConfig{Logger: logger})
	c := newCrew(t, 2, sst.WriterConfig{Session: s})
	r := attach(t, c.name, sst.ReaderConfig{})
	c.ranks[1].Close()
	_, err := r.BeginStep(bounded(t))
	wants(t, "BeginStep", err, sst.ErrWriterFailed)
	if err != nil && strings.Contains(err.Error(), "our") {
		t.Errorf("%v: whose?", err)
	}
	c.close()
	s.Close()
	if text := log.String(); strings.Contains(text, "goes on") || strings.Contains(text, "reader failed") {
		t.Errorf("%s", text)
	}
}

// TestMessageOfForgottenClose says what a writer that left without Close did not do.
func TestMessageOfForgottenClose(t *testing.T) {
	p := newWriter(t, true)
	open := p.opens(t, sst.ReaderConfig{})
	p.accept()
	r := next(t, "Open", open).reader(t)
	p.cm.Close()
	_, err := r.BeginStep(bounded(t))
	wants(t, "BeginStep", err, sst.ErrWriterFailed)
	if err != nil && !strings.Contains(err.Error(), "its connection ended before it closed the stream") {
		t.Error(err)
	}
}

// TestMessageOfParamWords says what there is to choose from, and what it is about.
func TestMessageOfParamWords(t *testing.T) {
	for name, want := range map[string]string{
		"DataTransport":        "must be Auto, WAN, evpath, native or shm (data plane to use and no other: native or shm is",
		"StepDistributionMode": "must be AllToAll, RoundRobin or OnDemand (",
	} {
		_, err := sst.ParseParams(map[string]string{name: "RDMA"})
		wants(t, name, err, sst.ErrParam)
		if err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not say %q", err, want)
		}
	}
}
