package sst_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weft-fabric/weft/internal/testutil"
	"github.com/weft-fabric/weft/internal/wire/sstmsg"
	"github.com/weft-fabric/weft/sst"
	"github.com/weft-fabric/weft/sst/cohort"
	"github.com/weft-fabric/weft/step"
)

// TestWriterCohort writes with several ranks, pushed and asked for, with a
// session for each rank and with one for all.
func TestWriterCohort(t *testing.T) {
	const steps = 12
	for _, n := range []int{1, 2, 3, 5} {
		for _, mode := range []string{"On", "Off"} {
			for _, shared := range []bool{false, true} {
				t.Run(fmt.Sprintf("%d ranks, preload %s, shared %v", n, mode, shared), func(t *testing.T) {
					cfg := sst.WriterConfig{Params: sst.Params{QueueLimit: 2, StatsLevel: 1}}
					if shared {
						cfg.Session = quickSession(t)
					}
					c := newCrew(t, n, cfg)
					r := attach(t, c.name, sst.ReaderConfig{Params: sst.Params{SpeculativePreloadMode: mode}})
					if got := r.Info().Ranks; got != n {
						t.Errorf("the reader sees %d ranks, want %d", got, n)
					}
					wrote := async(func() []error {
						return c.all(func(rank int) error {
							for range steps {
								if err := c.write(bounded(t), rank); err != nil {
									return err
								}
							}
							return c.writers[rank].Close()
						})
					})
					if err := drains(bounded(t), r, 0, steps); err != nil {
						t.Error(err)
					}
					c.must(next(t, "writers", wrote))
					empty(t, c.name)
				})
			}
		}
	}
}

// TestWriterCohortTCP writes with ranks that are connected as processes are, over
// and over with one cohort, and loses one of them at last.
func TestWriterCohortTCP(t *testing.T) {
	c := &crew{t: t, name: streamName(t), part: 8}
	c.joinTCP(3)
	start := func() {
		c.must(c.create(bounded(t), func(int) sst.WriterConfig {
			return sst.WriterConfig{CloseTimeout: 2 * time.Second, Params: sst.Params{RendezvousReaderCount: none(), QueueLimit: 2}}
		}))
	}
	for round := range 5 {
		start()
		r := attach(t, c.name, sst.ReaderConfig{Params: sst.Params{SpeculativePreloadMode: []string{"On", "Off"}[round%2]}})
		wrote := async(func() []error {
			return c.all(func(rank int) error {
				for range 10 {
					if err := c.write(bounded(t), rank); err != nil {
						return err
					}
				}
				return c.writers[rank].Close()
			})
		})
		if err := drains(bounded(t), r, 0, 10); err != nil {
			t.Error(err)
		}
		c.must(next(t, "writers", wrote))
		empty(t, c.name)
	}
	start()
	waits := []<-chan error{async(func() error { return c.write(bounded(t), 0) }), async(func() error { return c.write(bounded(t), 1) })}
	c.ranks[2].Close()
	for rank, w := range waits {
		wants(t, fmt.Sprint("End of rank ", rank), next(t, "End", w), sst.ErrRankFailed)
	}
	c.close()
}

// TestWriterCohortRanks lets processes stand for several writer ranks, and for
// none.
func TestWriterCohortRanks(t *testing.T) {
	own := []int{2, 0, 3, 1}
	c := &crew{t: t, name: streamName(t), part: 1}
	c.join(len(own))
	c.must(c.create(bounded(t), func(rank int) sst.WriterConfig {
		ranks := own[rank]
		if ranks == 0 {
			ranks = sst.NoRanks
		}
		return sst.WriterConfig{Ranks: ranks, Params: sst.Params{RendezvousReaderCount: none()}}
	}))
	r := attach(t, c.name, sst.ReaderConfig{})
	vars := make([]*sst.Variable[int64], len(own))
	c.must(c.all(func(rank int) (err error) {
		if vars[rank], err = sst.Define[int64](c.writers[rank], "local", step.LocalArray(1)); err != nil {
			return err
		}
		st, err := c.writers[rank].BeginStep(bounded(t))
		if err != nil {
			return err
		}
		for i := range own[rank] {
			global := int64(c.writers[rank].Info().Base + i)
			if err := vars[rank].Put(st.Rank(i), step.Box{Count: []uint64{2}}, []int64{global, -global}); err != nil {
				return err
			}
		}
		if err := vars[rank].Put(st.Rank(own[rank]), step.Box{Count: []uint64{2}}, []int64{0, 0}); err == nil {
			t.Errorf("rank %d puts as a rank that it does not stand for", rank)
		}
		return st.End(bounded(t))
	}))
	st, err := r.BeginStep(bounded(t))
	if err != nil {
		t.Fatal(err)
	}
	v, err := step.Lookup[int64](st, "local")
	if err != nil {
		t.Fatal(err)
	}
	for i, b := range v.Blocks() {
		if b.Rank != i {
			t.Errorf("block %d is of rank %d", i, b.Rank)
		}
	}
	if n := len(v.Blocks()); n != 6 {
		t.Errorf("%d blocks, want 6", n)
	}
	st.End()
	for rank, base := range []int{0, 2, 2, 5} {
		if got := c.writers[rank].Info(); got.Base != base || got.Own != own[rank] || got.Ranks != 6 || got.Rank != rank || got.Size != len(own) {
			t.Errorf("rank %d: %+v", rank, got)
		}
	}
	if err := c.writers[1].SetAttribute(step.NewAttribute("a", int64(1))); !errors.Is(err, sst.ErrOrder) {
		t.Errorf("an attribute of nobody: %v", err)
	}
	if d := cmp.Diff([]uint64(nil), c.finish(r)); d != "" {
		t.Error(d)
	}
}

// TestF08AllRanks is field report F08 for a cohort: nobody waits for readers that
// cannot find the stream.
func TestF08AllRanks(t *testing.T) {
	c := &crew{t: t, name: filepath.Join(t.TempDir(), "no", "s")}
	c.join(3)
	within(t, 5*time.Second, "Create", func() {
		errs := c.create(bounded(t), func(int) sst.WriterConfig { return sst.WriterConfig{} })
		c.wants("Create", errs, os.ErrNotExist)
		for rank, err := range errs {
			if err != nil && !strings.Contains(err.Error(), c.name) {
				t.Errorf("rank %d: %v does not name the path", rank, err)
			}
		}
	})
}

// TestWriterCohortDisagrees has one rank that cannot begin, or wants something else.
func TestWriterCohortDisagrees(t *testing.T) {
	for what, wrong := range map[string]struct {
		cfg  sst.WriterConfig
		want error
		text string
	}{
		"bad value":          {sst.WriterConfig{Params: sst.Params{QueueLimit: -1}}, sst.ErrParam, "QueueLimit"},
		"parameter of other": {sst.WriterConfig{Params: sst.Params{OpenTimeoutSecs: 1}}, sst.ErrParam, "OpenTimeoutSecs"},
		"other value":        {sst.WriterConfig{Params: sst.Params{QueueLimit: 3}}, sst.ErrParam, "QueueLimit=3"},
		"other order":        {sst.WriterConfig{ColumnMajor: true}, sst.ErrParam, "IsRowMajor=0"},
		"too many ranks":     {sst.WriterConfig{Ranks: 1 << 30}, sst.ErrParam, "ranks"},
		"no such interface":  {sst.WriterConfig{Params: sst.Params{DataInterface: "no-such-interface"}}, sst.ErrParam, "no-such-interface"},
	} {
		for rank := range 3 {
			if rank == 0 && (what == "other value" || what == "other order") {
				continue // the others are the odd ones then, which reads differently
			}
			t.Run(fmt.Sprintf("%s at rank %d", what, rank), func(t *testing.T) {
				t.Parallel()
				c := &crew{t: t, name: streamName(t)}
				c.join(3)
				errs := c.create(bounded(t), func(r int) sst.WriterConfig {
					if r == rank {
						return wrong.cfg
					}
					return sst.WriterConfig{}
				})
				c.wants("Create", errs, wrong.want)
				for r, err := range errs {
					if err != nil && (!strings.Contains(err.Error(), wrong.text) || r != rank && !strings.Contains(err.Error(), fmt.Sprint("rank ", rank))) {
						t.Errorf("rank %d: %v names neither rank %d nor %q", r, err, rank, wrong.text)
					}
					if at, ok := sst.ErrorRank(err); r != rank && (!ok || at != rank) {
						t.Errorf("rank %d: %v is of rank %d, %v", r, err, at, ok)
					}
				}
				empty(t, c.name)
			})
		}
	}
	c := &crew{t: t, name: streamName(t)}
	c.join(2)
	c.wants("Create without ranks at rank 0", c.create(bounded(t), func(r int) sst.WriterConfig { return sst.WriterConfig{Ranks: sst.NoRanks * (1 - min(r, 1))} }), sst.ErrParam)
}

// TestWriterCohortDiesInCreate has a rank die while all wait, for each other or for
// readers.
func TestWriterCohortDiesInCreate(t *testing.T) {
	for _, rank := range []int{0, 1, 2} {
		for _, missing := range []bool{false, true} {
			t.Run(fmt.Sprintf("rank %d, one missing %v", rank, missing), func(t *testing.T) {
				t.Parallel()
				name := streamName(t)
				ranks := cohort.Local(4)
				dead, bury := context.WithCancel(bounded(t))
				waits := map[int]<-chan error{}
				for k, r := range ranks {
					if missing && k == 3 {
						break
					}
					ctx := bounded(t)
					if k == rank {
						ctx = dead
					}
					cfg := sst.WriterConfig{Cohort: r, Session: quickSession(t)}
					waits[k] = async(func() error { _, err := sst.Create(ctx, name, cfg); return err })
				}
				if !missing {
					awaitFile(t, name)
				}
				ranks[rank].Close()
				for k, w := range waits {
					if k != rank {
						wants(t, fmt.Sprint("Create of rank ", k), next(t, "Create", w), sst.ErrRankFailed)
					}
				}
				bury()
				if err := next(t, "Create", waits[rank]); !isErr(err, context.Canceled) && !isErr(err, cohort.ErrClosed) && !isErr(err, sst.ErrRankFailed) {
					t.Errorf("Create of the dead: %v", err)
				}
				for _, r := range ranks {
					r.Close()
				}
				empty(t, name)
			})
		}
	}
}

// TestWriterCohortGivesUpCreate cancels the context of one rank.
func TestWriterCohortGivesUpCreate(t *testing.T) {
	for rank := range 3 {
		c := &crew{t: t, name: streamName(t)}
		c.join(3)
		reason, cancel := context.WithCancelCause(bounded(t))
		c.writers = make([]*sst.Writer, 3)
		why := errors.New("changed my mind")
		errs := async(func() []error {
			return c.all(func(r int) error {
				ctx := bounded(t)
				if r == rank {
					ctx = reason
				}
				_, err := sst.Create(ctx, c.name, sst.WriterConfig{Cohort: c.ranks[r], Session: quickSession(t)})
				return err
			})
		})
		awaitFile(t, c.name)
		cancel(why)
		for r, err := range next(t, "Create", errs) {
			if err == nil || !strings.Contains(err.Error(), why.Error()) {
				t.Errorf("rank %d: %v does not say %q", r, err, why)
			}
		}
		empty(t, c.name)
	}
}

// TestWriterCohortAbort has one rank give a step up, before the others end it and
// after. What came with the lost step, formats and attributes, is not lost.
func TestWriterCohortAbort(t *testing.T) {
	for _, rank := range []int{0, 1, 2} {
		for _, late := range []bool{false, true} {
			t.Run(fmt.Sprintf("rank %d, late %v", rank, late), func(t *testing.T) {
				t.Parallel()
				c := newCrew(t, 3, sst.WriterConfig{})
				r := attach(t, c.name, sst.ReaderConfig{})
				gone := make(chan struct{})
				errs := c.all(func(k int) error {
					if err := c.writers[k].SetAttribute(step.NewAttribute(fmt.Sprint("of", k), int64(k))); err != nil {
						return err
					}
					st, err := c.begin(bounded(t), k)
					if err != nil {
						return err
					}
					if k != rank {
						if late {
							<-gone
						}
						return st.End(bounded(t))
					}
					if !late { // the others are at End by now, or on the way
						for range 1000 {
							runtime.Gosched()
						}
					}
					st.Abort()
					close(gone)
					return nil
				})
				for k, err := range errs {
					switch {
					case k == rank && err != nil:
						t.Errorf("rank %d: %v", k, err)
					case k != rank:
						wants(t, fmt.Sprint("End of rank ", k), err, sst.ErrStepAborted)
						if err != nil && !strings.Contains(err.Error(), fmt.Sprint("rank ", rank)) {
							t.Errorf("%v does not name rank %d", err, rank)
						}
					}
				}
				c.step()
				st, err := r.BeginStep(bounded(t))
				if err != nil {
					t.Fatal(err)
				}
				if st.Number() != 0 {
					t.Errorf("step %d: the number of the one that was given up is used again", st.Number())
				}
				if err := verify(bounded(t), st); err != nil {
					t.Error(err)
				}
				for k := range 3 {
					if _, ok := st.Attribute(fmt.Sprint("of", k)); !ok {
						t.Errorf("no attribute of rank %d", k)
					}
				}
				st.End()
				c.finish(r)
			})
		}
	}
}

// TestWriterCohortEndCancelled ends a step whose other part never comes.
func TestWriterCohortEndCancelled(t *testing.T) {
	for _, rank := range []int{0, 1} {
		c := newCrew(t, 2, sst.WriterConfig{})
		r := attach(t, c.name, sst.ReaderConfig{})
		other, err := c.begin(bounded(t), 1-rank)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(bounded(t))
		st, err := c.begin(ctx, rank)
		if err != nil {
			t.Fatal(err)
		}
		ended := async(func() error { return st.End(ctx) })
		cancel()
		err = next(t, "End", ended)
		wants(t, "End", err, context.Canceled)
		wants(t, "End", err, sst.ErrStepAborted)
		err = other.End(bounded(t))
		wants(t, "End of the other", err, sst.ErrStepAborted)
		wants(t, "End of the other", err, context.Canceled)
		wants(t, "another End of it", other.End(bounded(t)), sst.ErrOrder)
		c.step()
		if err := consecutive(c.finish(r), 0, 1); err != nil {
			t.Error(err)
		}
	}
}

// TestWriterCohortExplains says which rank has not ended a step.
func TestWriterCohortExplains(t *testing.T) {
	log, logger := testutil.NewLog(slog.LevelInfo)
	c := newCrew(t, 3, sst.WriterConfig{Session: newSession(t, sst.SessionConfig{Logger: logger})})
	done := async(func() error { return c.write(bounded(t), 0) })
	also := async(func() error { return c.write(bounded(t), 2) })
	for {
		line := next(t, "line of log", log.Lines())
		if strings.Contains(line, "waiting for ranks") && strings.Contains(line, "[1]") {
			break
		}
	}
	if err := c.write(bounded(t), 1); err != nil {
		t.Error(err)
	}
	for _, d := range []<-chan error{done, also} {
		if err := next(t, "End", d); err != nil {
			t.Error(err)
		}
	}
	c.must(c.close())
}

// TestWriterRankDies ends a stream whose rank is gone: everywhere, with an error
// that names it, and for the reader, which must not take it for a normal end.
func TestWriterRankDies(t *testing.T) {
	for _, rank := range []int{0, 1, 2} {
		for _, where := range []string{"BeginStep", "End", "Finish", "Close"} {
			t.Run(fmt.Sprintf("rank %d, others in %s", rank, where), func(t *testing.T) {
				t.Parallel()
				c := &crew{t: t, name: streamName(t), part: 8}
				c.join(3)
				c.must(c.create(bounded(t), func(k int) sst.WriterConfig {
					cfg := sst.WriterConfig{Params: sst.Params{QueueLimit: 1, BlockAt: "BeginStep", RendezvousReaderCount: none()}}
					if k == rank {
						cfg.CloseTimeout = 100 * time.Millisecond // the dead hear nothing of their death
					}
					return cfg
				}))
				r, w := attaches(t, c.name), attachesAs(t, c.name, 1, true, false)
				c.active(2)
				if where != "End" {
					c.step()
					r.step()
					w.step()
				}
				var lost []<-chan error
				for k := range 3 {
					if k == rank {
						continue
					}
					lost = append(lost, async(func() error {
						switch where {
						case "Finish":
							return c.writers[k].Finish(bounded(t))
						case "Close":
							return c.writers[k].Close()
						}
						return c.write(bounded(t), k)
					}))
				}
				for range 1000 {
					runtime.Gosched()
				}
				c.ranks[rank].Close()
				for _, l := range lost {
					err := next(t, where, l)
					wants(t, where, err, sst.ErrRankFailed)
					if err != nil && !strings.Contains(err.Error(), fmt.Sprint("rank ", rank)) {
						t.Errorf("%v does not name rank %d", err, rank)
					}
				}
				for k := range 3 {
					if k != rank {
						_, err := c.writers[k].BeginStep(bounded(t))
						if where == "Close" {
							if !isErr(err, sst.ErrRankFailed) && !isOrder(err) {
								t.Errorf("BeginStep afterwards: %v", err)
							}
						} else {
							wants(t, "BeginStep afterwards", err, sst.ErrRankFailed)
						}
					}
				}
				if rank != 0 {
					r.dropped() // no WriterClose: that would be a normal end
					if _, m := hear[*sstmsg.WriterClose](w.fake); m.Code != sstmsg.CloseFailed || !strings.Contains(m.Reason, fmt.Sprint("rank ", rank)) {
						t.Errorf("%+v", m)
					}
				}
				within(t, 5*time.Second, "Close", func() { c.close() })
			})
		}
	}
}

// TestWriterRankCloses closes one rank while the others go on: their step cannot
// come about, and the end comes when all have closed.
func TestWriterRankCloses(t *testing.T) {
	for _, rank := range []int{0, 1} {
		c := newCrew(t, 2, sst.WriterConfig{})
		r := attach(t, c.name, sst.ReaderConfig{})
		c.step()
		closed := async(c.writers[rank].Close)
		err := error(nil)
		for err == nil { // a step that was begun before could only wait
			err = c.write(bounded(t), 1-rank)
		}
		wants(t, "End", err, sst.ErrStepAborted)
		if !strings.Contains(err.Error(), fmt.Sprintf("rank %d", rank)) {
			t.Errorf("%v does not name rank %d", err, rank)
		}
		taken := async(func() error { _, err := drain(bounded(t), r); return err })
		if err := c.writers[1-rank].Close(); err != nil {
			t.Error(err)
		}
		if err := next(t, "Close", closed); err != nil {
			t.Error(err)
		}
		if err := next(t, "reader", taken); err != nil {
			t.Error(err)
		}
		empty(t, c.name)
	}
}

// TestWriterCohortCloseTimeout bounds the wait for a rank that never closes.
func TestWriterCohortCloseTimeout(t *testing.T) {
	for _, rank := range []int{0, 1} {
		c := newCrew(t, 2, sst.WriterConfig{CloseTimeout: 100 * time.Millisecond})
		within(t, 5*time.Second, "Close", func() {
			wants(t, "Close", c.writers[rank].Close(), sst.ErrTimeout)
		})
		_, err := c.writers[1-rank].BeginStep(bounded(t))
		for err == nil { // it may take a moment to hear of it
			_, err = c.writers[1-rank].BeginStep(bounded(t))
			if isErr(err, sst.ErrOrder) {
				err = nil
			}
		}
		wants(t, "BeginStep of the other", err, sst.ErrTimeout)
	}
}

// TestWriterCohortSessionCloses is the end of a rank's session: a loss to the others.
func TestWriterCohortSessionCloses(t *testing.T) {
	c := &crew{t: t, name: streamName(t), part: 8}
	c.join(3)
	sessions := []*sst.Session{quickSession(t), quickSession(t), quickSession(t)}
	c.must(c.create(bounded(t), func(rank int) sst.WriterConfig {
		return sst.WriterConfig{Session: sessions[rank], Params: sst.Params{RendezvousReaderCount: none()}}
	}))
	ended := async(func() error { return c.write(bounded(t), 0) })
	sessions[2].Close()
	wants(t, "End at rank 0", next(t, "End", ended), sst.ErrRankFailed)
	_, err := c.writers[2].BeginStep(bounded(t))
	wants(t, "BeginStep at rank 2", err, sst.ErrClosed)
	wants(t, "Close at rank 1", c.writers[1].Close(), sst.ErrRankFailed)
	within(t, 2*time.Second, "Close again", func() {
		if err := c.writers[1].Close(); err != nil {
			t.Error(err)
		}
	})
	c.writers[0].Close()
	empty(t, c.name)
}

// TestWriterCohortReaderDies frees what a reader held, on every rank.
func TestWriterCohortReaderDies(t *testing.T) {
	c := newCrew(t, 3, sst.WriterConfig{Params: sst.Params{QueueLimit: 2}})
	for range 20 {
		r := attaches(t, c.name)
		c.step()
		r.step()
		c.step()
		r.link.Abort(errors.New("dead"))
		c.step() // has room once the reader is gone
	}
	for rank, w := range c.writers {
		testutil.Eventually(t, "no reader, no step", func() bool { return w.Info().Held == 0 && len(w.Info().Readers) == 0 })
		if got := w.Info().Bytes; got != 0 {
			t.Errorf("rank %d keeps %d bytes", rank, got)
		}
	}
	c.must(c.close())
}

// TestWriterCohortPushToNobody drops a reader that one rank cannot push to.
func TestWriterCohortPushToNobody(t *testing.T) {
	c := newCrew(t, 3, sst.WriterConfig{})
	r := dials(t, c.name)
	r.query()
	m := r.registration()
	m.SpecPreload = 1
	m.Evpath[0].Contact = "" // rank 0 has a link; the others would have to dial
	r.send(r.link, m)
	_, r.response = hear[*sstmsg.WriterResponse](r.fake)
	if n := len(r.response.CP); n != 3 {
		t.Fatalf("%d ranks", n)
	}
	r.activate()
	r.query()
	c.step()
	r.dropped()
	c.must(c.close())
}

// TestOpeningReaderIsTold ends a stream while a reader is about to activate: a
// Weft reader is told, an ADIOS2 reader sees the end of its link.
func TestOpeningReaderIsTold(t *testing.T) {
	for _, weft := range []bool{true, false} {
		c := newCrew(t, 2, sst.WriterConfig{CloseTimeout: 100 * time.Millisecond})
		r := dials(t, c.name)
		q := &sstmsg.DPQuery{WriterID: r.stream, Condition: 1}
		if weft {
			q.Weft = 1
		}
		r.sendAs(q, weft)
		hear[*sstmsg.DPQueryResponse](r.fake)
		r.register()
		for rank, err := range c.close() {
			wants(t, fmt.Sprintf("weft %v: Close of rank %d", weft, rank), err, sst.ErrTimeout)
		}
		if !weft {
			r.dropped()
		} else if _, m := hear[*sstmsg.WriterClose](r.fake); m.Code != sstmsg.CloseFailed || m.ReaderID != fakeControl {
			t.Errorf("%+v", m)
		}
	}
}

// TestConflictsAreTold: parameters that contradict each other are told by rank 0
// alone, and the stream works.
func TestConflictsAreTold(t *testing.T) {
	log, logger := testutil.NewLog(slog.LevelInfo)
	c := newCrew(t, 3, sst.WriterConfig{Session: newSession(t, sst.SessionConfig{Logger: logger}), Params: sst.Params{QueueLimit: 2, LagLimit: 9}})
	if text := log.String(); strings.Count(text, "LagLimit=9") != 1 || !strings.Contains(text, "QueueLimit=2") || !strings.Contains(text, "stream=") {
		t.Errorf("the log has %q", text)
	}
	c.step()
	c.must(c.close())
}
