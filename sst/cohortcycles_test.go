package sst_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/weft-fabric/weft/internal/testutil"
	"github.com/weft-fabric/weft/internal/wire/sstmsg"
	"github.com/weft-fabric/weft/sst"
	"github.com/weft-fabric/weft/sst/cohort"
	"github.com/weft-fabric/weft/sst/internal/cp"
)

// flat runs f some times, then many times, and fails if anything has grown.
func flat(t *testing.T, f func()) {
	t.Helper()
	fds := func() int {
		list, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Skip("no /proc")
		}
		return len(list)
	}
	for range 15 {
		f()
	}
	before, goroutines, files := heap(), runtime.NumGoroutine(), fds()
	n := testutil.Count(t, 40, 200)
	for range n {
		f()
	}
	testutil.Eventually(t, "goroutines end", func() bool { return runtime.NumGoroutine() <= goroutines+2 })
	testutil.Eventually(t, "files are closed", func() bool { return fds() <= files+2 })
	testutil.Eventually(t, "memory is free, but for 2 MiB", func() bool { return int64(heap())-int64(before) <= 2<<20 })
}

// TestFlat goes through whole lives of streams, and through all kinds of early
// ends, again and again with the same sessions and cohorts: nothing grows.
func TestFlat(t *testing.T) {
	const ranks = 2
	name := filepath.Join(t.TempDir(), "s")
	for _, kind := range []string{"Local", "TCP"} {
		c := &crew{t: t, name: name, part: 64}
		if kind == "TCP" {
			c.joinTCP(ranks)
		} else {
			c.join(ranks)
		}
		readers := &crew{t: t, name: name}
		readers.join(ranks)
		ws, rs := []*sst.Session{quickSession(t), quickSession(t)}, []*sst.Session{quickSession(t), quickSession(t)}
		ctx := t.Context()
		each := func(f func(rank int) error) []error {
			errs := make([]error, ranks)
			g, _ := newGroup(ctx)
			for rank := range ranks {
				g.Go(func() error { errs[rank] = f(rank); return nil })
			}
			g.Wait()
			return errs
		}
		writer := func(ctx context.Context, rank int, change func(*sst.WriterConfig)) (*sst.Writer, error) {
			cfg := sst.WriterConfig{Session: ws[rank], Cohort: c.ranks[rank], CloseTimeout: patience, Params: sst.Params{RendezvousReaderCount: none()}}
			if change != nil {
				change(&cfg)
			}
			return sst.Create(ctx, name, cfg)
		}
		lives := map[string]func(){
			"whole": func() {
				g, _ := newGroup(ctx)
				for rank := range ranks {
					g.Go(func() error {
						w, err := writer(ctx, rank, func(c *sst.WriterConfig) { c.Params.RendezvousReaderCount = count(1) })
						if err != nil {
							return err
						}
						defer w.Close()
						x := define(t, w, 1000)
						for range 3 {
							if err := x.write(ctx); err != nil {
								return err
							}
						}
						return w.Close()
					})
					g.Go(func() error {
						r, err := sst.Open(ctx, name, sst.ReaderConfig{Session: rs[rank], Cohort: readers.ranks[rank]})
						if err != nil {
							return err
						}
						_, err = drain(ctx, r)
						return errors.Join(err, r.Close())
					})
				}
				if err := g.Wait(); err != nil {
					t.Error(err)
				}
			},
			"nobody comes": func() {
				short, cancel := context.WithTimeout(ctx, 2*time.Millisecond)
				defer cancel()
				each(func(rank int) error {
					w, err := writer(short, rank, func(c *sst.WriterConfig) { c.Params.RendezvousReaderCount = count(1) })
					if err == nil {
						w.Close()
					}
					return nil
				})
			},
			"ranks disagree": func() {
				each(func(rank int) error {
					w, err := writer(ctx, rank, func(c *sst.WriterConfig) { c.Params.QueueLimit = rank })
					if err == nil {
						t.Error("they agree")
						w.Close()
					}
					return nil
				})
			},
			"no writer": func() {
				short, cancel := context.WithTimeout(ctx, 2*time.Millisecond)
				defer cancel()
				each(func(rank int) error {
					r, err := sst.Open(short, name+"-none", sst.ReaderConfig{Session: rs[rank], Cohort: readers.ranks[rank]})
					if err == nil {
						r.Close()
					}
					return nil
				})
			},
			"steps that are given up": func() {
				each(func(rank int) error {
					w, err := writer(ctx, rank, nil)
					if err != nil {
						t.Error(err)
						return err
					}
					for i := range 5 {
						st, err := w.BeginStep(ctx)
						if err != nil {
							break
						}
						if i%ranks == rank {
							st.Abort()
						} else if err := st.End(ctx); err != nil && !errors.Is(err, sst.ErrStepAborted) {
							t.Error(err)
						}
					}
					return w.Close()
				})
			},
		}
		for what, life := range lives {
			t.Run(kind+": "+what, func(t *testing.T) { flat(t, life) })
		}
	}
}

// TestStuckOtherRank has a rank other than 0 that is there and says nothing more:
// calls of rank 0 end with their contexts, and its Close within its bound.
func TestStuckOtherRank(t *testing.T) {
	const soon = 50 * time.Millisecond
	name := streamName(t)
	cohorts := cohort.Local(2)
	ends := func(what string, f func(ctx context.Context) error) {
		t.Helper()
		within(t, time.Second+soon, what, func() {
			ctx, cancel := context.WithTimeout(t.Context(), soon)
			defer cancel()
			wants(t, what, f(ctx), context.DeadlineExceeded)
		})
	}
	badRankOf(t, cohorts[1], "writer "+name+".sst")
	ends("Create", func(ctx context.Context) error {
		_, err := sst.Create(ctx, name, sst.WriterConfig{Session: quickSession(t), Cohort: cohorts[0]})
		return err
	})
	absent(t, name+".sst")
	b := badRankOf(t, cohorts[1], "writer "+name+".sst")
	b.say(0, &cp.WriterHello{Ranks: 1, Contact: "nowhere", Params: "RendezvousReaderCount=0"})
	x := define(t, create(t, name, sst.WriterConfig{Cohort: cohorts[0], CloseTimeout: soon}), 4)
	ends("End", x.write)
	ends("End again", x.write)
	ends("Open", func(ctx context.Context) error { // it is not admitted everywhere
		_, err := sst.Open(ctx, name, sst.ReaderConfig{Session: newSession(t, sst.SessionConfig{HandshakeGrace: soon})})
		return err
	})
	ends("Finish", x.w.Finish)
	within(t, time.Second+soon, "Close", func() { wants(t, "Close", x.w.Close(), sst.ErrTimeout) })
	absent(t, name+".sst")

	x = define(t, create(t, name, sst.WriterConfig{Params: sst.Params{QueueLimit: 1, QueueFullPolicy: "Discard"}}), 4)
	cohorts = cohort.Local(2)
	badRankOf(t, cohorts[1], "reader "+name+".sst")
	ends("Open without hello", func(ctx context.Context) error {
		_, err := sst.Open(ctx, name, sst.ReaderConfig{Session: quickSession(t), Cohort: cohorts[0]})
		return err
	})
	b = badRankOf(t, cohorts[1], "reader "+name+".sst")
	b.say(0, &cp.ReaderHello{CP: sstmsg.CPReader{Contact: "nowhere", ReaderID: 1}, DP: sstmsg.EvpathReader{Contact: "nowhere", ReaderID: 2}, Params: "DataTransport=evpath"})
	r := attach(t, name, sst.ReaderConfig{Cohort: cohorts[0], CloseTimeout: soon, Params: sst.Params{DataTransport: "evpath"}})
	for range 3 {
		x.must(t) // the stuck rank keeps the first
	}
	takeStep(t, r)
	ends("BeginStep", func(ctx context.Context) error { _, err := r.BeginStep(ctx); return err })
	within(t, time.Second+soon, "Close of the reader", func() { wants(t, "Close", r.Close(), sst.ErrTimeout) })
	within(t, 5*time.Second, "Close", func() {
		if err := x.w.Close(); err != nil {
			t.Error(err)
		}
	})
}
