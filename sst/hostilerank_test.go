package sst_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/weft-fabric/weft/internal/testutil"
	"github.com/weft-fabric/weft/internal/wire/sstmsg"
	"github.com/weft-fabric/weft/sst"
	"github.com/weft-fabric/weft/sst/cohort"
	"github.com/weft-fabric/weft/sst/internal/cp"
)

// badRank is a rank of a cohort that says what the test tells it to.
type badRank struct {
	ch   cohort.Channel
	got  chan cp.Message
	lost chan error
}

func (b *badRank) Message(_ int, msg []byte) {
	if m, err := cp.ParseMessage(msg); err == nil {
		select {
		case b.got <- m:
		default:
		}
	}
}

func (b *badRank) Lost(_ int, err error) {
	select {
	case b.lost <- err:
	default:
	}
}

func badRankOf(t *testing.T, c cohort.Cohort, channel string) *badRank {
	t.Helper()
	b := &badRank{got: make(chan cp.Message, 4096), lost: make(chan error, 1)}
	ch, err := c.Join(channel, b)
	if err != nil {
		t.Fatal(err)
	}
	b.ch = ch
	t.Cleanup(func() { ch.Close() })
	return b
}

func (b *badRank) say(to int, m cp.Message) { _ = b.ch.Send(to, cp.AppendMessage(nil, m)) }

// badMessages are what a rank of another version, or with a bug, may say at any
// moment.
func badMessages(rng *rand.Rand) []byte {
	n, m := rng.Int64N(6)-1, rng.Int64N(6)-1
	if rng.IntN(8) == 0 {
		n = 1<<63 - 1 - rng.Int64N(2)
	}
	one := []sstmsg.Block{{Data: sstmsg.ByteBlob([]byte("no metadata"))}}
	junk := []sstmsg.FormatBlock{{ID: sstmsg.ByteBlob(make([]byte, 12)), Body: sstmsg.ByteBlob([]byte("no format"))}}
	plane := []string{"native", "evpath", "mixed", "none"}[rng.IntN(4)]
	list := []cp.Message{
		&cp.WriterHello{Ranks: 1, Contact: "no contact"}, &cp.WriterHello{Ranks: int(n)},
		&cp.Contribute{Try: n, Metadata: one, Attributes: []sstmsg.Blob{nil}, Bytes: []uint64{1 << 63}},
		&cp.Contribute{Try: n, Formats: junk, Metadata: one, Attributes: []sstmsg.Blob{one[0].Data}, Bytes: []uint64{8}},
		&cp.Contribute{}, &cp.Withdraw{Try: n}, &cp.Admitted{Reader: cp.ReaderKey(n), Control: []int64{0}, Data: []int64{-1}},
		&cp.PushFailed{Reader: cp.ReaderKey(n)}, &cp.Finished{}, &cp.Welcome{Base: int(n), Ranks: int(m)}, &cp.Started{}, &cp.Go{Try: n},
		&cp.Verdict{Try: n, Step: m, Outcome: cp.Outcome(rng.IntN(3))}, &cp.Admit{Reader: cp.ReaderKey(n), Ranks: []sstmsg.EvpathReader{{Contact: "nowhere"}}},
		&cp.Admit{Reader: cp.ReaderKey(n), Ranks: []sstmsg.EvpathReader{{Contact: "nowhere"}}, Weft: true, Plane: plane}, &cp.Replane{Reader: cp.ReaderKey(n), Plane: plane},
		&cp.WriterHello{Ranks: 1, Contact: "x", Native: "no contact"}, &cp.Contribute{Try: n, Metadata: one, Attributes: []sstmsg.Blob{nil}, Bytes: []uint64{8}, Native: one},
		&cp.TryRoutes{Try: n, Contacts: make([]string, rng.IntN(3))}, &cp.TryRoutes{Try: n, Contacts: []string{"no contact", ""}},
		&cp.Routed{Try: n, Native: int(m), Total: int(n)}, &cp.Routed{Try: 1, Native: rng.IntN(2), Total: 1}, &cp.Left{Looks: []int64{n, m}},
		&cp.StepTo{Index: n, Msg: &sstmsg.TimestepMetadata{Step: m, Metadata: one, Native: one}},
		&cp.ReaderOpened{Plane: plane, Response: &sstmsg.WriterResponse{
			Params: &sstmsg.Params{MarshalMethod: sstmsg.MarshalBP5},
			CP:     make([]sstmsg.CPWriter, 1), Evpath: make([]sstmsg.EvpathWriter, 1), Native: make([]sstmsg.NativeWriter, 1),
		}},
		&cp.Dismiss{Reader: cp.ReaderKey(n)}, &cp.Push{Reader: cp.ReaderKey(n), Step: m}, &cp.Free{Step: n}, &cp.Drained{},
		&cp.ReaderHello{Params: "other"}, &cp.ReaderHello{}, &cp.Ask{Index: n}, &cp.Released{Step: n}, &cp.Locked{}, &cp.Left{},
		&cp.ReaderOpened{}, &cp.ReaderOpened{Response: &sstmsg.WriterResponse{}},
		&cp.ReaderOpened{Response: &sstmsg.WriterResponse{
			Params: &sstmsg.Params{MarshalMethod: sstmsg.MarshalBP5},
			CP:     make([]sstmsg.CPWriter, 2), Evpath: make([]sstmsg.EvpathWriter, 2),
		}},
		&cp.StepTo{Index: n}, &cp.StepTo{Index: n, Msg: &sstmsg.TimestepMetadata{Step: m, Metadata: one, Formats: junk, PreloadMode: int32(m)}},
		&cp.StepTo{Index: m, Msg: &sstmsg.TimestepMetadata{Step: m, Metadata: make([]sstmsg.Block, 3), PreloadMode: 1}},
		&cp.StreamEnd{}, &cp.WriterGone{}, &cp.StreamFailed{},
	}
	if i := rng.IntN(len(list) + 3); i < len(list) {
		return cp.AppendMessage(nil, list[i])
	}
	b := make([]byte, rng.IntN(40))
	for i := range b {
		b[i] = byte(rng.Uint32())
	}
	return b
}

// storm says anything for a while.
func (b *badRank) storm(rng *rand.Rand, to, n int) {
	for range n {
		_ = b.ch.Send(to, badMessages(rng))
	}
}

// stormUntil says anything, and something for each word that it hears, until the
// honest rank is done, which has to be soon. heard is called for each word, too.
func (b *badRank) stormUntil(t *testing.T, what string, rng *rand.Rand, to int, done <-chan error, heard func()) {
	t.Helper()
	b.storm(rng, to, rng.IntN(10))
	start := time.Now()
	for {
		select {
		case err := <-done:
			if took := time.Since(start); took > 3*time.Second {
				t.Errorf("%s: %v, %v", what, took, err)
			}
			return
		case <-b.got:
			b.storm(rng, to, 1)
			heard()
		case <-time.After(patience):
			t.Fatalf("%s: the honest rank hangs", what)
		}
	}
}

// writerAt is a rank that creates, writes some steps and closes, whatever comes.
// Each call has a context that ends, and has to return with it.
func writerAt(t *testing.T, name string, c cohort.Cohort) error {
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	w, err := sst.Create(ctx, name, sst.WriterConfig{Session: quickSession(t), Cohort: c, CloseTimeout: 100 * time.Millisecond, Params: sst.Params{RendezvousReaderCount: none(), QueueLimit: 2}})
	if err != nil {
		return err
	}
	defer w.Close()
	x := define(t, w, 4)
	for range 3 {
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		err := x.write(ctx)
		cancel()
		if err != nil && !errors.Is(err, sst.ErrStepAborted) {
			return err
		}
	}
	return w.Close()
}

// TestSoakHostileRankOfWriter puts a rank among the writers that says anything: as
// another rank to rank 0, and as rank 0 to another rank. The honest rank gets
// errors, and every call ends.
func TestSoakHostileRankOfWriter(t *testing.T) {
	rng := testutil.Rand(t)
	for round := range testutil.Count(t, 20, 3000) {
		name := streamName(t)
		cohorts := cohort.Local(2)
		bad := round % 2
		b := badRankOf(t, cohorts[bad], "writer "+name+".sst")
		if rng.IntN(4) > 0 { // far enough that there is a stream
			if bad == 1 {
				b.say(0, &cp.WriterHello{Ranks: 1, Contact: "x"})
			} else {
				b.say(1, &cp.Welcome{Base: 1, Ranks: 2})
				b.say(1, &cp.Started{})
			}
		}
		done := async(func() error { return writerAt(t, name, cohorts[1-bad]) })
		b.stormUntil(t, fmt.Sprint("round ", round), rng, 1-bad, done, func() {})
		for _, c := range cohorts {
			c.Close()
		}
		absent(t, name+".sst")
	}
}

// TestSoakHostileRankOfReader does the same among readers, of an honest writer that
// must not notice.
func TestSoakHostileRankOfReader(t *testing.T) {
	rng := testutil.Rand(t)
	name := streamName(t)
	x := define(t, create(t, name, sst.WriterConfig{Params: sst.Params{QueueLimit: 3, QueueFullPolicy: "Discard"}}), 4)
	for round := range testutil.Count(t, 20, 3000) {
		cohorts := cohort.Local(2)
		bad := round % 2
		b := badRankOf(t, cohorts[bad], "reader "+name+".sst")
		contact := x.w.Info().Addr
		if rng.IntN(4) > 0 {
			if bad == 1 {
				b.say(0, &cp.ReaderHello{Params: "", CP: sstmsg.CPReader{Contact: contact, ReaderID: 5}, DP: sstmsg.EvpathReader{Contact: contact, ReaderID: 6}})
			} else {
				b.say(1, &cp.ReaderOpened{Plane: "evpath", Response: &sstmsg.WriterResponse{
					Params: &sstmsg.Params{MarshalMethod: sstmsg.MarshalBP5},
					CP:     []sstmsg.CPWriter{{Contact: "nobody"}}, Evpath: make([]sstmsg.EvpathWriter, 1),
				}})
			}
		}
		done := async(func() error {
			ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
			defer cancel()
			r, err := sst.Open(ctx, name, sst.ReaderConfig{Session: quickSession(t), Cohort: cohorts[1-bad], CloseTimeout: 100 * time.Millisecond})
			if err != nil {
				return err
			}
			defer r.Close()
			for range 3 {
				st, err := r.BeginStep(ctx)
				if err != nil {
					return err
				}
				_ = verify(ctx, st)
				r.Retain(st)
				st.End()
				r.Info()
				r.WriterParams()
			}
			return r.Close()
		})
		b.stormUntil(t, fmt.Sprint("round ", round), rng, 1-bad, done, func() { x.must(t) })
		for _, c := range cohorts {
			c.Close()
		}
	}
	testutil.Eventually(t, "no reader is left", func() bool { return len(x.w.Info().Readers) == 0 })
	if held := x.w.Info().Held; held != 0 {
		t.Errorf("%d steps are held", held)
	}
}

// TestStuckRankZero has a rank whose rank 0 is there but says nothing more: each
// call ends with its context, and goes on when rank 0 does.
func TestStuckRankZero(t *testing.T) {
	const soon = 50 * time.Millisecond
	name := streamName(t)
	cohorts := cohort.Local(2)
	badRankOf(t, cohorts[0], "writer "+name+".sst")
	ends := func(what string, f func(ctx context.Context) error) {
		t.Helper()
		within(t, time.Second+soon, what, func() {
			ctx, cancel := context.WithTimeout(t.Context(), soon)
			defer cancel()
			wants(t, what, f(ctx), context.DeadlineExceeded)
		})
	}
	ends("Create", func(ctx context.Context) error {
		_, err := sst.Create(ctx, name, sst.WriterConfig{Session: quickSession(t), Cohort: cohorts[1]})
		return err
	})
	b := badRankOf(t, cohorts[0], "writer "+name+".sst")
	b.say(1, &cp.Welcome{Base: 1, Ranks: 2})
	b.say(1, &cp.Started{})
	x := define(t, create(t, name, sst.WriterConfig{Cohort: cohorts[1], CloseTimeout: soon}), 4)
	ends("End", x.write)
	ends("BeginStep", x.write)
	b.say(1, &cp.Verdict{Try: 0, Step: 0})
	next(t, "", async(func() error { // the verdict opens the way
		st, err := x.w.BeginStep(bounded(t))
		if err != nil || st.Number() != 1 {
			t.Errorf("the next step: %+v, %v", st, err)
			return err
		}
		st.Abort()
		return nil
	}))
	b.say(1, &cp.Verdict{Try: 1, Step: 1, Outcome: cp.Aborted})
	ends("a second End", x.write)
	ends("Finish", x.w.Finish)
	within(t, time.Second+soon, "Close", func() { wants(t, "Close", x.w.Close(), sst.ErrTimeout) })
}

// TestStuckRankZeroOfReader is the same for a reader.
func TestStuckRankZeroOfReader(t *testing.T) {
	const soon = 50 * time.Millisecond
	cohorts := cohort.Local(2)
	badRankOf(t, cohorts[0], "reader s.sst")
	within(t, time.Second+soon, "Open", func() {
		ctx, cancel := context.WithTimeout(t.Context(), soon)
		defer cancel()
		_, err := sst.Open(ctx, "s", sst.ReaderConfig{Session: quickSession(t), Cohort: cohorts[1]})
		wants(t, "Open", err, context.DeadlineExceeded)
	})
	b := badRankOf(t, cohorts[0], "reader s.sst")
	go func() { // nobody is opened before it has said hello
		select {
		case <-b.got:
		case <-t.Context().Done():
		}
		b.say(1, &cp.ReaderOpened{Plane: "evpath", Response: &sstmsg.WriterResponse{
			Params: &sstmsg.Params{MarshalMethod: sstmsg.MarshalBP5}, CP: make([]sstmsg.CPWriter, 1), Evpath: make([]sstmsg.EvpathWriter, 1),
		}})
	}()
	r := attach(t, "s", sst.ReaderConfig{Cohort: cohorts[1], CloseTimeout: soon})
	within(t, time.Second+soon, "BeginStep", func() {
		ctx, cancel := context.WithTimeout(t.Context(), soon)
		defer cancel()
		_, err := r.BeginStep(ctx)
		wants(t, "BeginStep", err, context.DeadlineExceeded)
	})
	within(t, time.Second+soon, "Close", func() { r.Close() })
}
