package sst_test

import (
	"context"
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/weft-fabric/weft/sst"
	"github.com/weft-fabric/weft/sst/cohort"
	"github.com/weft-fabric/weft/step"
)

// crew is the writers of one stream, ranks of a cohort in this process, which
// write the variable that numbers writes: rank r its r-th part of it.
type crew struct {
	t       testing.TB
	name    string
	ranks   []cohort.Cohort
	writers []*sst.Writer
	vars    []*sst.Variable[int64]
	part    int
}

// newCrew creates a stream of n ranks. Every rank has the configuration, and a
// session of its own unless that has one.
func newCrew(t testing.TB, n int, cfg sst.WriterConfig) *crew {
	t.Helper()
	return newCrewOver(t, (*crew).join, n, cfg)
}

// carriers are how ranks can be joined: what they say goes its own way in each.
var carriers = map[string]func(*crew, int){"Local": (*crew).join, "TCP": (*crew).joinTCP}

// newCrewOver is newCrew with ranks that are joined so.
func newCrewOver(t testing.TB, join func(*crew, int), n int, cfg sst.WriterConfig) *crew {
	t.Helper()
	c := &crew{t: t, name: streamName(t), part: 8}
	if cfg.Params.RendezvousReaderCount == nil {
		cfg.Params.RendezvousReaderCount = none()
	}
	join(c, n)
	for rank, err := range c.create(bounded(t), func(int) sst.WriterConfig { return cfg }) {
		if err != nil {
			t.Fatalf("rank %d: %v", rank, err)
		}
	}
	return c
}

// join makes the cohort.
func (c *crew) join(n int) {
	c.ranks = cohort.Local(n)
	for _, r := range c.ranks {
		c.t.Cleanup(func() { r.Close() })
	}
}

// joinTCP makes the cohort of processes that are all this one.
func (c *crew) joinTCP(n int) {
	c.t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		c.t.Fatal(err)
	}
	c.ranks = make([]cohort.Cohort, n)
	c.must(c.all(func(rank int) (err error) {
		cfg := cohort.TCPConfig{Root: l.Addr().String(), Rank: rank, Size: n, Token: "a token that is long enough for a test"}
		if rank == 0 {
			cfg.Listener = l
		}
		c.ranks[rank], err = cohort.TCP(bounded(c.t), cfg)
		return err
	}))
	for _, r := range c.ranks {
		c.t.Cleanup(func() { r.Close() })
	}
}

// create creates the stream on all ranks at once.
func (c *crew) create(ctx context.Context, cfg func(rank int) sst.WriterConfig) []error {
	n := len(c.ranks)
	c.writers, c.vars = make([]*sst.Writer, n), make([]*sst.Variable[int64], n)
	return c.all(func(rank int) error {
		cfg := cfg(rank)
		cfg.Cohort = c.ranks[rank]
		if cfg.Session == nil {
			cfg.Session = quickSession(c.t)
		}
		if cfg.CloseTimeout == 0 {
			cfg.CloseTimeout = patience
		}
		w, err := sst.Create(ctx, c.name, cfg)
		if err != nil {
			return err
		}
		c.writers[rank] = w
		c.t.Cleanup(func() { w.Close() })
		c.vars[rank], err = sst.Define[int64](w, "n", step.GlobalArray(uint64(n*c.part)))
		return err
	})
}

// all calls f for each rank at once, and returns what they returned.
func (c *crew) all(f func(rank int) error) []error {
	c.t.Helper()
	waits := make([]<-chan error, len(c.ranks))
	for rank := range c.ranks {
		waits[rank] = async(func() error { return f(rank) })
	}
	errs := make([]error, len(waits))
	for rank, w := range waits {
		select {
		case errs[rank] = <-w:
		case <-time.After(patience):
			c.t.Fatalf("rank %d hangs; the others: %v", rank, errs)
		}
	}
	return errs
}

// must fails the test if one of errs is not nil.
func (c *crew) must(errs []error) {
	c.t.Helper()
	for rank, err := range errs {
		if err != nil {
			c.t.Fatalf("rank %d: %v", rank, err)
		}
	}
}

// wants fails the test unless each rank has the error.
func (c *crew) wants(what string, errs []error, want error) {
	c.t.Helper()
	for rank, err := range errs {
		wants(c.t, fmt.Sprintf("%s of rank %d", what, rank), err, want)
	}
}

// put puts a rank's part, even ranks through a span.
func (c *crew) put(rank int, st *sst.WriterStep) error {
	box := step.Box{Start: []uint64{uint64(rank * c.part)}, Count: []uint64{uint64(c.part)}}
	data := make([]int64, c.part)
	var err error
	if rank%2 == 0 {
		if data, err = c.vars[rank].Span(st, box); err != nil {
			return err
		}
	}
	for i := range data {
		data[i] = int64(st.Number())<<20 + int64(rank*c.part+i)
	}
	if rank%2 == 0 {
		return nil
	}
	return c.vars[rank].Put(st, box, data)
}

// write makes one step on one rank.
func (c *crew) write(ctx context.Context, rank int) error {
	st, err := c.begin(ctx, rank)
	if err != nil {
		return err
	}
	return st.End(ctx)
}

// begin begins a step on one rank, and puts its part.
func (c *crew) begin(ctx context.Context, rank int) (*sst.WriterStep, error) {
	st, err := c.writers[rank].BeginStep(ctx)
	if err != nil {
		return nil, err
	}
	return st, c.put(rank, st)
}

// step publishes one step.
func (c *crew) step() {
	c.t.Helper()
	c.must(c.all(func(rank int) error { return c.write(bounded(c.t), rank) }))
}

// close closes all ranks.
func (c *crew) close() []error {
	c.t.Helper()
	return c.all(func(rank int) error { return c.writers[rank].Close() })
}

// finish closes all ranks while a reader takes what there is.
func (c *crew) finish(r *sst.Reader) []uint64 {
	c.t.Helper()
	taken := async(func() []error { return c.close() })
	seen, err := drain(bounded(c.t), r)
	if err != nil {
		c.t.Error(err)
	}
	c.must(next(c.t, "Close", taken))
	return seen
}
