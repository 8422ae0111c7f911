package sst_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weft-fabric/weft/internal/testutil"
	"github.com/weft-fabric/weft/internal/wire/sstmsg"
	"github.com/weft-fabric/weft/sst"
	"github.com/weft-fabric/weft/step"
)

// attachesAs is attaches for a reader of several ranks, which may say that it is
// Weft, and an observer. All its ranks are the one fake.
func attachesAs(t testing.TB, name string, ranks int, weft, observer bool) *fakeReader {
	t.Helper()
	r := dials(t, name)
	m := r.registration()
	for i := 1; i < ranks; i++ {
		m.CP = append(m.CP, sstmsg.CPReader{Contact: m.CP[0].Contact, ReaderID: fakeControl + int64(10*i)})
		m.Evpath = append(m.Evpath, sstmsg.EvpathReader{Contact: m.CP[0].Contact, ReaderID: fakeData + int64(10*i)})
	}
	q := &sstmsg.DPQuery{WriterID: r.stream, Condition: 1}
	if weft {
		q.Weft = 1
	}
	if observer {
		m.Observer = 1
	}
	r.sendAs(q, weft)
	hear[*sstmsg.DPQueryResponse](r.fake)
	r.sendAs(m, weft)
	_, r.response = hear[*sstmsg.WriterResponse](r.fake)
	r.activate()
	r.sendAs(q, weft) // its answer says that the activation has arrived
	hear[*sstmsg.DPQueryResponse](r.fake)
	return r
}

func (r *fakeReader) sendAs(m sstmsg.Message, weft bool) {
	r.t.Helper()
	f, parts, err := sstmsg.Encode(m, sstmsg.Options{Release: sstmsg.ReleaseMain, Weft: weft})
	if err != nil {
		r.t.Fatal(err)
	}
	r.sendRecord(f, parts)
}

// take waits for the next step and gives it back.
func (r *fakeReader) take() int64 {
	r.t.Helper()
	m := r.step()
	r.release(m.Step)
	return m.Step
}

// held waits until rank 0 keeps n steps.
func (c *crew) held(n int) sst.WriterInfo {
	c.t.Helper()
	var info sst.WriterInfo
	testutil.Eventually(c.t, fmt.Sprintf("%d steps are kept", n), func() bool {
		info = c.writers[0].Info()
		return info.Held == n
	})
	return info
}

// active waits until n readers have activated.
func (c *crew) active(n int) {
	c.t.Helper()
	testutil.Eventually(c.t, fmt.Sprintf("%d readers are active", n), func() bool {
		have := 0
		for _, r := range c.writers[0].Info().Readers {
			if r.Active {
				have++
			}
		}
		return have == n
	})
}

// blocked waits until a call of all ranks has come as far as the queue's policy
// lets it, and fails if that is to its end.
func (c *crew) blocked(what string, done <-chan []error) {
	c.t.Helper()
	testutil.Eventually(c.t, what+" waits", func() bool { return len(done) > 0 || sst.WaitsForRoom(c.writers[0]) })
	select {
	case errs := <-done:
		c.t.Fatalf("%s did not wait: %v", what, errs)
	default:
	}
}

// TestF04TwoCohorts is field report F04: with a count of 1 the second cohort is a
// late reader, with 2 both see the first step.
func TestF04TwoCohorts(t *testing.T) {
	const steps = 6
	for _, want := range []int{1, 2} {
		t.Run(fmt.Sprint("count ", want), func(t *testing.T) {
			c := &crew{t: t, name: streamName(t), part: 8}
			c.join(4)
			created := async(func() []error {
				return c.create(bounded(t), func(int) sst.WriterConfig {
					return sst.WriterConfig{Params: sst.Params{RendezvousReaderCount: count(want)}}
				})
			})
			awaitFile(t, c.name)
			a := attachesAs(t, c.name, 2, false, false)
			var b *sst.Reader
			if want == 2 {
				b = attach(t, c.name, sst.ReaderConfig{})
			}
			c.must(next(t, "Create", created))
			if want == 1 {
				c.step()
				b = attach(t, c.name, sst.ReaderConfig{})
			}
			if want == 2 {
				c.step()
			}
			first := int(a.step().Step) // which it keeps until the end
			for range steps - 1 + (2 - want) {
				c.step()
			}
			seen := async(func() []uint64 { return c.finish(b) })
			for n := 1; n < steps+(2-want); n++ {
				if m := a.step(); m.Step != int64(n) {
					t.Errorf("cohort A gets step %d, want %d", m.Step, n)
				}
			}
			hear[*sstmsg.WriterClose](a.fake)
			for n := range steps + (2 - want) {
				a.release(int64(n))
			}
			list := next(t, "cohort B", seen)
			if err := consecutive(list, list[0], steps+(2-want)-int(list[0])); err != nil || first != 0 || want == 2 && list[0] != 0 || list[0] > 1 {
				t.Errorf("A begins with step %d, B gets %v: %v", first, list, err)
			}
		})
	}
}

// TestF11Watermark is field report F11: the log names the slow reader, steps and
// bytes before memory runs out.
func TestF11Watermark(t *testing.T) {
	log, logger := testutil.NewLog(slog.LevelInfo)
	c := newCrew(t, 2, sst.WriterConfig{Session: newSession(t, sst.SessionConfig{Logger: logger}), Params: sst.Params{QueueWarnBytes: bytesOf(500)}})
	r := attaches(t, c.name)
	for range 4 { // of 2 * 64 bytes and more each
		c.step()
		r.step()
	}
	line := next(t, "line of log", log.Lines())
	for _, part := range []string{c.name, "steps=4", "bytes=512", "QueueLimit", "behind by"} {
		if !strings.Contains(line, part) {
			t.Errorf("%q does not name %s", line, part)
		}
	}
	info := c.held(4)
	if info.Queued != 512 || info.Policy.WarnBytes != 500 || len(info.Readers) != 1 || info.Readers[0].Held != 4 || info.Readers[0].HeldBytes != 512 {
		t.Errorf("%+v", info)
	}
	if d := cmp.Diff([]uint64{256, 256}, info.RankBytes); d != "" {
		t.Errorf("bytes of each rank:\n%s", d)
	}
	if !strings.Contains(line, info.Readers[0].Addr) {
		t.Errorf("%q does not name the reader %s", line, info.Readers[0].Addr)
	}
	for n := range int64(4) {
		r.release(n)
	}
	c.held(0)
	c.must(c.close())
	if n := strings.Count(log.String(), "take much memory"); n != 1 {
		t.Errorf("%d warnings", n)
	}
}

func bytesOf(n uint64) *uint64 { return &n }

// TestWarnBytesDefault is a share of the memory.
func TestWarnBytesDefault(t *testing.T) {
	w := create(t, streamName(t), sst.WriterConfig{})
	if got := w.Info().Policy.WarnBytes; runtime.GOOS == "linux" && got == 0 {
		t.Error("no watermark by default")
	}
	w = create(t, streamName(t), sst.WriterConfig{Params: sst.Params{QueueWarnBytes: bytesOf(0)}})
	if got := w.Info().Policy.WarnBytes; got != 0 {
		t.Errorf("warns at %d bytes, want never", got)
	}
}

// TestF12BlockAt is field report F12: with a limit of 1, two steps exist if End
// blocks, and one if BeginStep does.
func TestF12BlockAt(t *testing.T) {
	for at, most := range map[string]int{"EndStep": 2, "BeginStep": 1} {
		t.Run(at, func(t *testing.T) {
			c := newCrew(t, 3, sst.WriterConfig{Params: sst.Params{QueueLimit: 1, BlockAt: at}})
			r := attaches(t, c.name)
			c.step()
			r.step()
			if info := c.held(1); info.Policy.BlockAt != at || info.Policy.QueueLimit != 1 {
				t.Errorf("policy %+v", info.Policy)
			}
			steps := make([]*sst.WriterStep, 3)
			begun := async(func() []error {
				return c.all(func(rank int) (err error) {
					steps[rank], err = c.begin(bounded(t), rank)
					return err
				})
			})
			if most == 1 {
				c.blocked("BeginStep", begun)
				r.release(0)
				c.must(next(t, "BeginStep", begun))
				c.must(c.all(func(rank int) error { return steps[rank].End(bounded(t)) }))
			} else {
				c.must(next(t, "BeginStep", begun))
				ended := async(func() []error { return c.all(func(rank int) error { return steps[rank].End(bounded(t)) }) })
				c.blocked("End", ended)
				r.release(0)
				c.must(next(t, "End", ended))
			}
			if n := r.take(); n != 1 {
				t.Errorf("step %d", n)
			}
			c.must(c.close())
		})
	}
}

// TestBeginStepIsGivenUp ends a wait in BeginStep, and only that.
func TestBeginStepIsGivenUp(t *testing.T) {
	c := newCrew(t, 2, sst.WriterConfig{Params: sst.Params{QueueLimit: 1, BlockAt: "BeginStep"}})
	r := attaches(t, c.name)
	c.step()
	r.step()
	ctx, cancel := context.WithCancel(bounded(t))
	done := async(func() error { _, err := c.writers[1].BeginStep(ctx); return err })
	cancel()
	wants(t, "BeginStep", next(t, "BeginStep", done), context.Canceled)
	r.release(0)
	c.step()
	r.take()
	c.must(c.close())
}

// TestF13LimitBytes is field report F13: memory is bounded in bytes although steps
// differ in size.
func TestF13LimitBytes(t *testing.T) {
	c := newCrew(t, 2, sst.WriterConfig{Params: sst.Params{QueueLimitBytes: 10_000}})
	r := attaches(t, c.name)
	size := func(n uint64) {
		t.Helper()
		c.must(c.all(func(rank int) error { return c.vars[rank].SetShape(2 * n) }))
	}
	write := func(n uint64) <-chan []error {
		return async(func() []error {
			return c.all(func(rank int) error {
				st, err := c.writers[rank].BeginStep(bounded(t))
				if err != nil {
					return err
				}
				box := step.Box{Start: []uint64{uint64(rank) * n}, Count: []uint64{n}}
				if err := c.vars[rank].Put(st, box, make([]int64, n)); err != nil {
					return err
				}
				return st.End(bounded(t))
			})
		})
	}
	size(2000) // 32 000 bytes: more than the limit, but nothing waits
	c.must(next(t, "large step", write(2000)))
	r.step()
	if info := c.held(1); info.Queued != 32_000 || info.Policy.QueueLimitBytes != 10_000 {
		t.Errorf("%d bytes wait; %+v", info.Queued, info.Policy)
	}
	size(100)
	small := write(100)
	c.blocked("End", small)
	r.release(0)
	c.must(next(t, "small step", small))
	for range 5 { // 6 * 1600 bytes fit
		c.must(next(t, "small step", write(100)))
	}
	small = write(100)
	c.blocked("End", small)
	info := c.held(6)
	if d := cmp.Diff([]uint64{4800, 4800}, info.RankBytes); d != "" {
		t.Errorf("bytes of each rank:\n%s", d)
	}
	r.release(1)
	c.must(next(t, "small step", small))
	for n := range int64(6) {
		r.release(n + 2)
	}
	c.must(c.close())
}

// TestF15NoLoss is field report F15: Block loses nothing at any rate, and the
// counts agree.
func TestF15NoLoss(t *testing.T) {
	const steps = 300
	c := newCrew(t, 3, sst.WriterConfig{Params: sst.Params{QueueLimit: 2}})
	readers := []*sst.Reader{attach(t, c.name, sst.ReaderConfig{}), attach(t, c.name, sst.ReaderConfig{Params: sst.Params{SpeculativePreloadMode: "Off"}})}
	wrote := async(func() []error {
		return c.all(func(rank int) error {
			for range steps {
				if err := c.write(bounded(t), rank); err != nil {
					return err
				}
			}
			return nil
		})
	})
	var taken []<-chan error
	for _, r := range readers {
		taken = append(taken, async(func() error {
			for n := range uint64(steps) {
				st, err := r.BeginStep(bounded(t))
				if err != nil {
					return err
				}
				if st.Number() != n {
					return fmt.Errorf("step %d, want %d", st.Number(), n)
				}
				if err := errors.Join(verify(bounded(t), st), st.End()); err != nil {
					return err
				}
			}
			return nil
		}))
	}
	c.must(next(t, "writers", wrote))
	for _, w := range taken {
		if err := next(t, "reader", w); err != nil {
			t.Error(err)
		}
	}
	info := c.held(0)
	if info.NextStep != steps || info.Dropped != 0 || len(info.Readers) != 2 {
		t.Errorf("%+v", info)
	}
	for _, r := range info.Readers {
		if r.Sent != steps || r.Released != steps || r.Dropped != 0 || r.Lag != 0 || r.Held != 0 {
			t.Errorf("%+v", r)
		}
	}
	for rank, w := range c.writers {
		for i, r := range w.Info().Readers {
			if (r.Served == 0) != (r.Plane == "native") || r.Ranks != 1 || r.Addr == "" {
				t.Errorf("rank %d, reader %d: %+v", rank, i, r)
			}
		}
	}
	for _, r := range readers {
		if got := r.Info().Skipped; got != 0 {
			t.Errorf("a reader has skipped %d", got)
		}
		r.Close()
	}
	c.must(c.close())
}

// TestF17SlowReader is field report F17: under Discard a slow reader is told of
// what it misses, and the writer of the slow reader.
func TestF17SlowReader(t *testing.T) {
	told := make(chan sst.AttachedReader, 10)
	c := newCrew(t, 2, sst.WriterConfig{
		Params: sst.Params{QueueLimit: 2, QueueFullPolicy: "Discard", LagNotice: 3},
		OnLag:  func(r sst.AttachedReader) { told <- r },
	})
	r := attach(t, c.name, sst.ReaderConfig{})
	c.active(1)
	for range 8 {
		c.step()
	}
	got := next(t, "notice", told)
	if got.Lag != 4 || got.Held != 2 || got.Addr == "" {
		t.Errorf("%+v", got)
	}
	info := c.writers[0].Info()
	if info.Dropped != 6 || info.Readers[0].Dropped != 6 || info.Readers[0].Lag != 8 || info.Readers[0].Sent != 2 {
		t.Errorf("%+v", info)
	}
	for n := range uint64(2) {
		st, err := r.BeginStep(bounded(t))
		if err != nil {
			t.Fatal(err)
		}
		if st.Number() != n {
			t.Errorf("step %d", st.Number())
		}
		st.End()
	}
	c.held(0)
	c.step()
	st, err := r.BeginStep(bounded(t))
	if err != nil {
		t.Fatal(err)
	}
	if skipped := r.Info().Skipped; st.Number() != 8 || skipped != 6 {
		t.Errorf("step %d, %d skipped", st.Number(), skipped)
	}
	st.End()
	c.held(0)
	for range 6 { // it lags again
		c.step()
	}
	if got := next(t, "second notice", told); got.Lag != 4 {
		t.Errorf("%+v", got)
	}
	if n := len(told); n != 0 {
		t.Errorf("%d notices too many", n)
	}
	r.Close()
	c.must(c.close())
}

// TestF17Evicted detaches a reader that lags too much: a Weft reader is told why,
// and an ADIOS2 reader sees the end of its link.
func TestF17Evicted(t *testing.T) {
	for _, weft := range []bool{true, false} {
		t.Run(fmt.Sprint("weft ", weft), func(t *testing.T) {
			log, logger := testutil.NewLog(slog.LevelInfo)
			c := newCrew(t, 2, sst.WriterConfig{Session: newSession(t, sst.SessionConfig{Logger: logger}), Params: sst.Params{LagLimit: 3}})
			good := attach(t, c.name, sst.ReaderConfig{})
			slow := attachesAs(t, c.name, 1, weft, false)
			c.active(2)
			for n := range uint64(5) {
				c.step()
				st, err := good.BeginStep(bounded(t))
				if err != nil {
					t.Fatal(err)
				}
				if err := verify(bounded(t), st); err != nil || st.Number() != n {
					t.Errorf("step %d: %v", st.Number(), err)
				}
				st.End()
				testutil.Eventually(t, "the writer has the release", func() bool { return c.writers[0].Info().Readers[0].Released == int64(n)+1 })
			}
			if weft {
				for range 4 {
					slow.step()
				}
				if _, m := hear[*sstmsg.WriterClose](slow.fake); m.Code != sstmsg.CloseEvicted || !strings.Contains(m.Reason, "limit is 3") {
					t.Errorf("%+v", m)
				}
			} else {
				slow.dropped()
			}
			if line := next(t, "line of log", log.Lines()); !strings.Contains(line, "too slow") || !strings.Contains(line, "4 steps") {
				t.Errorf("the log says %q", line)
			}
			if n := len(c.held(0).Readers); n != 1 {
				t.Errorf("%d readers", n)
			}
			c.finish(good)
		})
	}
}

// TestF18RoundRobin is field report F18: one cohort alone is told, two take turns.
func TestF18RoundRobin(t *testing.T) {
	log, logger := testutil.NewLog(slog.LevelInfo)
	c := newCrew(t, 2, sst.WriterConfig{Session: newSession(t, sst.SessionConfig{Logger: logger}), Params: sst.Params{StepDistributionMode: "roundrobin"}})
	if got := c.writers[0].Info().Policy.Distribution; got != "RoundRobin" {
		t.Errorf("distribution %q", got)
	}
	a := attachesAs(t, c.name, 2, false, false)
	c.active(1)
	if got := a.response.Params.StepDistributionMode; got != 1 {
		t.Errorf("announced distribution %d", got)
	}
	c.step()
	if n := a.take(); n != 0 {
		t.Errorf("step %d", n)
	}
	if line := next(t, "line of log", log.Lines()); !strings.Contains(line, "RoundRobin") || !strings.Contains(line, c.name) {
		t.Errorf("the log says %q", line)
	}
	b := attaches(t, c.name)
	c.active(2)
	var got [2][]int64
	for range 6 {
		c.step()
	}
	for range 3 {
		got[0], got[1] = append(got[0], a.take()), append(got[1], b.take())
	}
	if !slices.Equal(got[0], []int64{1, 3, 5}) && !slices.Equal(got[0], []int64{2, 4, 6}) || got[0][0]+got[1][0] != 3 || got[0][2]+got[1][2] != 11 {
		t.Errorf("A gets %v, B gets %v", got[0], got[1])
	}
	c.must(c.close())
	if n := strings.Count(log.String(), "not to the ranks of one"); n != 1 {
		t.Errorf("said %d times", n)
	}
}

// TestF18OnDemand gives each step to the reader that asked first.
func TestF18OnDemand(t *testing.T) {
	c := newCrew(t, 2, sst.WriterConfig{Params: sst.Params{StepDistributionMode: "OnDemand"}})
	a, b := attaches(t, c.name), attaches(t, c.name)
	ask := func(r *fakeReader) { r.send(r.link, &sstmsg.ReaderRequestStep{WriterID: r.wsr()}) }
	c.step()
	c.step()
	ask(b)
	if n := b.take(); n != 0 {
		t.Errorf("step %d", n)
	}
	ask(a)
	if n := a.take(); n != 1 {
		t.Errorf("step %d", n)
	}
	ask(b)
	b.query() // so that it has asked
	ask(a)
	a.query()
	c.step()
	c.step()
	if n, m := b.take(), a.take(); n != 2 || m != 3 {
		t.Errorf("steps %d and %d", n, m)
	}
	c.must(c.close())
}

// TestF20Precious is field report F20: a reader that comes late gets the first
// step, then what goes on; all attributes; and what is kept in reserve.
func TestF20Precious(t *testing.T) {
	for _, kept := range []int{0, 2} {
		t.Run(fmt.Sprint("reserve ", kept), func(t *testing.T) {
			c := newCrew(t, 2, sst.WriterConfig{Params: sst.Params{FirstTimestepPrecious: true, ReserveQueueLimit: kept, QueueLimit: 3}})
			mesh, err := sst.Define[int64](c.writers[1], "mesh", step.GlobalArray(3))
			if err != nil {
				t.Fatal(err)
			}
			for n := range 10 {
				c.must(c.all(func(rank int) error {
					if err := c.writers[rank].SetAttribute(step.NewAttribute(fmt.Sprintf("a%d of %d", n, rank), int64(n))); err != nil {
						return err
					}
					st, err := c.begin(bounded(t), rank)
					if err != nil {
						return err
					}
					if rank == 1 && n == 0 {
						if err := mesh.Put(st, step.Box{Count: []uint64{3}}, []int64{7, 8, 9}); err != nil {
							return err
						}
					}
					return st.End(bounded(t))
				}))
			}
			if info := c.held(1 + kept); !info.Policy.FirstPrecious || info.Policy.Reserve != kept {
				t.Errorf("%+v", info.Policy)
			}
			for range 2 {
				r := attach(t, c.name, sst.ReaderConfig{})
				want := []uint64{0, 8, 9}[:1+kept]
				for _, n := range want {
					st, err := r.BeginStep(bounded(t))
					if err != nil {
						t.Fatal(err)
					}
					if st.Number() != n {
						t.Errorf("step %d, want %d", st.Number(), n)
					}
					if err := verify(bounded(t), st); err != nil {
						t.Error(err)
					}
					if n == 0 {
						got, err := step.Read[int64](bounded(t), st, "mesh")
						if d := cmp.Diff([]int64{7, 8, 9}, got); d != "" || err != nil {
							t.Errorf("mesh: %v\n%s", err, d)
						}
					}
					for k := range n + 1 {
						for rank := range 2 {
							if _, ok := st.Attribute(fmt.Sprintf("a%d of %d", k, rank)); !ok {
								t.Errorf("step %d: no attribute %d of rank %d", n, k, rank)
							}
						}
					}
					st.End()
				}
				r.Close()
			}
			r := attach(t, c.name, sst.ReaderConfig{})
			c.step()
			seen := c.finish(r)
			if len(seen) != 2+kept || seen[0] != 0 || seen[len(seen)-1] != 10 {
				t.Errorf("steps %v", seen)
			}
		})
	}
}

// TestWriterObserver looks without holding anybody up.
func TestWriterObserver(t *testing.T) {
	c := newCrew(t, 2, sst.WriterConfig{Params: sst.Params{QueueLimit: 1}})
	o := attachesAs(t, c.name, 1, true, true)
	for range 5 { // it takes nothing back, and nobody waits for it
		c.step()
	}
	info := c.writers[0].Info()
	if len(info.Readers) != 1 || !info.Readers[0].Observer || info.Readers[0].Release != "Weft" {
		t.Errorf("%+v", info.Readers)
	}
	if m := o.step(); m.Step != 0 {
		t.Errorf("step %d", m.Step)
	}
	c.must(c.close())
}

// TestRendezvousOfCohort waits on every rank until enough readers are there.
func TestRendezvousOfCohort(t *testing.T) {
	c := &crew{t: t, name: streamName(t), part: 8}
	c.join(3)
	created := async(func() []error {
		return c.create(bounded(t), func(int) sst.WriterConfig {
			return sst.WriterConfig{Params: sst.Params{RendezvousReaderCount: count(2)}}
		})
	})
	awaitFile(t, c.name)
	attachesAs(t, c.name, 1, true, true) // does not count
	a := attaches(t, c.name)
	a.query() // whose answer comes after whatever its activation has set off
	still(t, "Create", created)
	b := attaches(t, c.name)
	c.must(next(t, "Create", created))
	c.step()
	if n, m := a.take(), b.take(); n != 0 || m != 0 {
		t.Errorf("steps %d and %d", n, m)
	}
	c.must(c.close())
}
