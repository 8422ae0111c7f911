package sst_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/weft-fabric/weft/internal/testutil"
	"github.com/weft-fabric/weft/internal/wire/sstmsg"
	"github.com/weft-fabric/weft/sst"
)

// TestStaleStreamNumber asks for a stream that has ended, over a link that other
// streams use: they must not notice, and the asker looks on (field report F05).
func TestStaleStreamNumber(t *testing.T) {
	ws, rs := quickSession(t), quickSession(t)
	lives := define(t, create(t, streamName(t), sst.WriterConfig{Session: ws}), 10)
	reader := attach(t, lives.w.Name(), sst.ReaderConfig{Session: rs})

	name := streamName(t)
	w := create(t, name, sst.WriterConfig{Session: ws})
	file, err := os.ReadFile(name + ".sst")
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name+".sst", file, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err = sst.Open(bounded(t), name, sst.ReaderConfig{Session: rs, Params: sst.Params{OpenTimeoutSecs: 1}})
	wants(t, "Open of a stream that has ended", err, sst.ErrStale)
	wants(t, "Open of a stream that has ended", err, sst.ErrTimeout)

	again := async(func() error { return takeOne(bounded(t), rs, name, 1) })
	if err := passOne(bounded(t), ws, name, 1); err != nil {
		t.Error(err)
	}
	if err := next(t, "reader of the new stream", again); err != nil {
		t.Error(err)
	}
	lives.must(t)
	done := async(lives.w.Close)
	if seen, err := drain(bounded(t), reader); err != nil || len(seen) != 1 {
		t.Errorf("the other stream: %v, %v", seen, err)
	}
	if err := next(t, "Close", done); err != nil {
		t.Error(err)
	}
}

// TestRegisterTooLate registers after the writer has ended.
func TestRegisterTooLate(t *testing.T) {
	for _, weft := range []int32{0, 1} {
		name := streamName(t)
		s := quickSession(t)
		w := create(t, name, sst.WriterConfig{Session: s})
		r := dials(t, name)
		f, parts, err := sstmsg.Encode(&sstmsg.DPQuery{WriterID: r.stream, Condition: 1, Weft: weft}, sstmsg.Options{Weft: weft != 0})
		if err != nil {
			t.Fatal(err)
		}
		r.sendRecord(f, parts)
		hear[*sstmsg.DPQueryResponse](r.fake)
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		r.send(r.link, r.registration())
		if weft == 0 {
			r.dropped()
			continue
		}
		if _, m := hear[*sstmsg.DPQueryResponse](r.fake); m.Condition != 2 || m.DataPlane != "ended" {
			t.Errorf("answer %+v", m)
		}
	}
}

// TestReaderNeverReleases bounds what a stuck reader costs (promise P2).
func TestReaderNeverReleases(t *testing.T) {
	name := streamName(t)
	x := define(t, create(t, name, sst.WriterConfig{CloseTimeout: 200 * time.Millisecond}), 10)
	r := attaches(t, name)
	x.must(t)
	r.step()
	start := time.Now()
	err := x.w.Close()
	if took := time.Since(start); took < 200*time.Millisecond || took > 2*time.Second {
		t.Errorf("a time-out of 200 ms took %v", took)
	}
	wants(t, "Close", err, sst.ErrTimeout)
	if _, m := hear[*sstmsg.WriterClose](r.fake); m.FinalStep != 0 {
		t.Errorf("%+v", m)
	}
	empty(t, name)
	within(t, time.Second, "Close again", func() {
		if err := x.w.Close(); err != nil {
			t.Errorf("Close again: %v", err)
		}
	})
}

// TestGetAfterWriterGaveUp fetches from a writer that has stopped to wait for
// us, over a link that stays: the fetch must end.
func TestGetAfterWriterGaveUp(t *testing.T) {
	name := streamName(t)
	x := define(t, create(t, name, sst.WriterConfig{CloseTimeout: 100 * time.Millisecond}), 10)
	r := attach(t, name, sst.ReaderConfig{Params: sst.Params{SpeculativePreloadMode: "Off"}})
	x.must(t)
	st, err := r.BeginStep(bounded(t))
	if err != nil {
		t.Fatal(err)
	}
	defer st.End()
	wants(t, "Close", x.w.Close(), sst.ErrTimeout)
	got := async(func() error { return verify(bounded(t), st) })
	if err := next(t, "Get", got); err == nil || errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Get: %v", err)
	}
}

// TestFinish can be given up and called again.
func TestFinish(t *testing.T) {
	name := streamName(t)
	x := define(t, create(t, name, sst.WriterConfig{}), 10)
	r := attaches(t, name)
	x.must(t)
	r.step()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	wants(t, "Finish", x.w.Finish(ctx), context.Canceled)
	hear[*sstmsg.WriterClose](r.fake)
	_, err := x.w.BeginStep(bounded(t))
	wants(t, "BeginStep after Finish", err, sst.ErrOrder)
	done := async(func() error { return x.w.Finish(bounded(t)) })
	r.release(0)
	if err := next(t, "Finish", done); err != nil {
		t.Error(err)
	}
	if err := x.w.Close(); err != nil {
		t.Error(err)
	}
}

// TestFinishWithDeadPeer wakes as the reader is lost.
func TestFinishWithDeadPeer(t *testing.T) {
	name := streamName(t)
	x := define(t, create(t, name, sst.WriterConfig{}), 10)
	r := attaches(t, name)
	x.must(t)
	r.step()
	done := async(x.w.Close)
	hear[*sstmsg.WriterClose](r.fake)
	r.link.Abort(errors.New("dead"))
	if err := next(t, "Close", done); err != nil {
		t.Error(err)
	}
}

// TestQueueIsFull blocks in End until something gives.
func TestQueueIsFull(t *testing.T) {
	name := streamName(t)
	x := define(t, create(t, name, sst.WriterConfig{Params: sst.Params{QueueLimit: 1}}), 10)
	r := attaches(t, name)
	x.must(t)
	r.step()

	ctx, cancel := context.WithCancel(t.Context())
	blocked := async(func() error { return x.write(ctx) })
	cancel()
	wants(t, "a step that is given up", next(t, "End", blocked), context.Canceled)

	blocked = async(func() error { return x.write(bounded(t)) })
	r.release(0)
	if err := next(t, "End", blocked); err != nil {
		t.Fatal(err)
	}
	if m := r.step(); m.Step != 1 {
		t.Errorf("step %d follows 0: the number of one that was given up is used again", m.Step)
	}
	blocked = async(func() error { return x.write(bounded(t)) })
	r.link.Abort(errors.New("dead"))
	if err := next(t, "End", blocked); err != nil {
		t.Error(err)
	}
	if err := x.w.Close(); err != nil {
		t.Error(err)
	}
}

// TestSessionClose ends whatever goes on in a session.
func TestSessionClose(t *testing.T) {
	s := newSession(t, sst.SessionConfig{})
	dir := t.TempDir()
	x := define(t, create(t, filepath.Join(dir, "full"), sst.WriterConfig{Session: s, Params: sst.Params{QueueLimit: 1}}), 10)
	r := attaches(t, x.w.Name())
	x.must(t)
	r.step()
	idle := attach(t, create(t, filepath.Join(dir, "idle"), sst.WriterConfig{}).Name(), sst.ReaderConfig{Session: s})
	waits := []<-chan error{
		async(func() error { return x.write(bounded(t)) }),
		async(func() error { _, err := idle.BeginStep(bounded(t)); return err }),
		async(func() error {
			_, err := sst.Create(bounded(t), filepath.Join(dir, "lonely"), sst.WriterConfig{Session: s})
			return err
		}),
		async(func() error {
			_, err := sst.Open(bounded(t), filepath.Join(dir, "missing"), sst.ReaderConfig{Session: s})
			return err
		}),
	}
	awaitFile(t, filepath.Join(dir, "lonely"))
	within(t, 10*time.Second, "Close", func() { s.Close() })
	for i, w := range waits {
		if err := next(t, fmt.Sprint("wait ", i), w); !isOrder(err) {
			t.Errorf("wait %d: %v", i, err)
		}
	}
	absent(t, filepath.Join(dir, "lonely.sst"))
	absent(t, x.w.Name()+".sst")
	_, err := sst.Create(bounded(t), filepath.Join(dir, "late"), sst.WriterConfig{Session: s})
	wants(t, "Create in a closed session", err, sst.ErrClosed)
	_, err = sst.Open(bounded(t), filepath.Join(dir, "idle"), sst.ReaderConfig{Session: s})
	wants(t, "Open in a closed session", err, sst.ErrClosed)
	_, err = x.w.BeginStep(bounded(t))
	wants(t, "BeginStep in a closed session", err, sst.ErrClosed)
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// TestHandshakeGoesOn cancels Open after the registration: the writer still gets
// its answer, and the session waits for that (docs/wire/sst.md §9.3).
func TestHandshakeGoesOn(t *testing.T) {
	for _, how := range []string{"cancel", "time-out", "session closes"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			p := newWriter(t, true)
			s := quickSession(t)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			open := async(func() error {
				_, err := sst.Open(ctx, p.name, sst.ReaderConfig{Session: s, Params: sst.Params{OpenTimeoutSecs: 2}})
				return err
			})
			reply, reg := p.answer("evpath")
			var closed <-chan error
			want := sst.ErrTimeout
			switch how {
			case "cancel":
				cancel()
				want = context.Canceled
			case "session closes":
				closed = async(s.Close)
				want = sst.ErrClosed
			}
			wants(t, "Open", next(t, "Open", open), want)
			if closed == nil {
				closed = async(s.Close)
			}
			// Nothing may be sent, and the link must stay, until the writer answers:
			// the activation has to be the first that comes after the registration.
			testutil.Eventually(t, "Close waits", func() bool { return len(closed) > 0 || sst.CloseWaits(s) })
			if len(closed) > 0 {
				t.Fatalf("the session closed while a writer depends on it: %v", <-closed)
			}
			reply(p.response(reg))
			hear[*sstmsg.ReaderActivate](p.fake)
			hear[*sstmsg.ReaderClose](p.fake)
			if err := next(t, "Close", closed); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestHandshakeGrace gives up on a writer that never answers.
func TestHandshakeGrace(t *testing.T) {
	p := newWriter(t, true)
	s := newSession(t, sst.SessionConfig{HandshakeGrace: 200 * time.Millisecond})
	ctx, cancel := context.WithCancel(t.Context())
	open := async(func() error {
		_, err := sst.Open(ctx, p.name, sst.ReaderConfig{Session: s})
		return err
	})
	p.answer("evpath")
	cancel()
	wants(t, "Open", next(t, "Open", open), context.Canceled)
	start := time.Now()
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if took := time.Since(start); took < 200*time.Millisecond || took > 5*time.Second {
		t.Errorf("a grace of 200 ms took %v", took)
	}
	p.dropped()
}

// TestOwnSessionEndsInBackground leaves no trace of a reader that gave up with
// its handshake under way, once the writer has answered.
func TestOwnSessionEndsInBackground(t *testing.T) {
	p := newWriter(t, true)
	fds, goroutines := usage(t)
	ctx, cancel := context.WithCancel(t.Context())
	open := async(func() error {
		_, err := sst.Open(ctx, p.name, sst.ReaderConfig{Params: sst.Params{NetworkInterface: "lo"}})
		return err
	})
	reply, reg := p.answer("evpath")
	cancel()
	wants(t, "Open", next(t, "Open", open), context.Canceled)
	reply(p.response(reg))
	hear[*sstmsg.ReaderActivate](p.fake)
	hear[*sstmsg.ReaderClose](p.fake)
	p.dropped()
	settled(t, fds, goroutines)
}

// TestSessionCloseRacesReaderClose closes a session while its readers say goodbye
// to an ADIOS2 writer with care, which the session waits for.
func TestSessionCloseRacesReaderClose(t *testing.T) {
	rnd := testutil.Rand(t)
	for range 6 {
		p := newWriter(t, false)
		s := newSession(t, sst.SessionConfig{})
		var readers []*sst.Reader
		for range 4 {
			open := async(func() error {
				r, err := sst.Open(bounded(t), p.name, sst.ReaderConfig{Session: s})
				readers = append(readers, r)
				return err
			})
			p.accept()
			if err := next(t, "Open", open); err != nil {
				t.Fatal(err)
			}
		}
		var closes []<-chan error
		for _, r := range readers {
			closes = append(closes, async(r.Close))
		}
		for range rnd.IntN(50) {
			runtime.Gosched()
		}
		closes = append(closes, async(s.Close))
		for range readers {
			hear[*sstmsg.ReaderClose](p.fake)
		}
		for i, c := range closes {
			if err := next(t, "Close", c); err != nil {
				t.Errorf("close %d: %v", i, err)
			}
		}
	}
}

// TestCloseIsIdempotent calls it from many sides.
func TestCloseIsIdempotent(t *testing.T) {
	name := streamName(t)
	w := create(t, name, sst.WriterConfig{})
	r := attach(t, name, sst.ReaderConfig{})
	var done []<-chan error
	for range 8 {
		done = append(done, async(r.Close), async(w.Close))
	}
	for _, d := range done {
		if err := next(t, "Close", d); err != nil {
			t.Error(err)
		}
	}
}

// TestCloseWakesReaders ends a wait for a step and a fetch, in this process.
func TestCloseWakesReaders(t *testing.T) {
	for _, mode := range []string{"On", "Off"} {
		t.Run("preload "+mode, func(t *testing.T) {
			p := newWriter(t, true)
			open := p.opens(t, sst.ReaderConfig{Params: sst.Params{SpeculativePreloadMode: mode}})
			reply, _ := p.accept()
			r := next(t, "Open", open).reader(t)
			m := p.aStep(t)
			if mode == "On" {
				m.PreloadMode = 1 // but the block never comes
			}
			reply(m)
			st, err := r.BeginStep(bounded(t))
			if err != nil {
				t.Fatal(err)
			}
			got := async(func() error { return verify(bounded(t), st) })
			if mode == "Off" {
				hear[*sstmsg.ReadRequest](p.fake)
			}
			closed := async(r.Close)
			if err := next(t, "Close", closed); err != nil {
				t.Error(err)
			}
			if err := next(t, "Get", got); err == nil || errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("Get: %v", err)
			}
			hear[*sstmsg.ReleaseTimestep](p.fake)
			hear[*sstmsg.ReaderClose](p.fake)
			st.End()
		})
	}
}
