package sst_test

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"runtime"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/weft-fabric/weft/internal/testutil"
	"github.com/weft-fabric/weft/internal/wire/cm"
	"github.com/weft-fabric/weft/internal/wire/sstmsg"
	"github.com/weft-fabric/weft/sst"
	"github.com/weft-fabric/weft/step"
)

// TestSessionCloseRacesOpen closes a session at every moment of an opening:
// Open must come back, with one result or the other.
func TestSessionCloseRacesOpen(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	name := streamName(t)
	create(t, name, sst.WriterConfig{})
	for range 100 {
		s, err := sst.NewSession(t.Context(), sst.SessionConfig{NetworkInterface: "lo", Logger: quiet})
		if err != nil {
			t.Fatal(err)
		}
		opened := async(func() error {
			_, err := sst.Open(bounded(t), name, sst.ReaderConfig{Session: s})
			return err
		})
		for range rnd.IntN(1000) {
			runtime.Gosched()
		}
		closed := async(s.Close)
		if err := next(t, "Open", opened); err != nil {
			wants(t, "Open", err, sst.ErrClosed)
		}
		if err := next(t, "Close", closed); err != nil {
			t.Error(err)
		}
	}
}

// TestCloseWhileFilling closes a writer while its step is being filled and
// ended by another goroutine, as the handler of a signal does.
func TestCloseWhileFilling(t *testing.T) {
	for range 20 {
		x := define(t, create(t, streamName(t), sst.WriterConfig{}), 1000)
		started := make(chan struct{})
		filled := async(func() error {
			for first := true; ; first = false {
				err := x.write(t.Context())
				if first {
					close(started)
				}
				if err != nil {
					return err
				}
			}
		})
		<-started
		if err := x.w.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
		err := next(t, "writing", filled)
		if !errors.Is(err, sst.ErrClosed) && !errors.Is(err, sst.ErrOrder) && !errors.Is(err, step.ErrStepOpen) {
			t.Errorf("writing: %v", err)
		}
	}
}

// TestCloseWhileEndWaits closes a writer whose End waits for a reader.
func TestCloseWhileEndWaits(t *testing.T) {
	name := streamName(t)
	w := create(t, name, sst.WriterConfig{Params: sst.Params{QueueLimit: 1}, CloseTimeout: 100 * time.Millisecond})
	x := define(t, w, 10)
	r := attaches(t, name)
	x.must(t)
	r.step()
	ended := async(func() error { return x.write(bounded(t)) })
	testutil.Eventually(t, "End waits for room", func() bool { return sst.WaitsForRoom(w) })
	wants(t, "Close", w.Close(), sst.ErrTimeout)
	if err := next(t, "End", ended); !errors.Is(err, sst.ErrClosed) && !errors.Is(err, sst.ErrOrder) {
		t.Errorf("End: %v", err)
	}
}

// silent publishes a stream of a writer that shakes hands and then stands still,
// as a process that was stopped does.
func silent(t *testing.T, name string) {
	const id = 77
	ln, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	contact, err := cm.NewContact(netip.MustParseAddrPort(ln.Addr().String()), id)
	if err != nil {
		t.Fatal(err)
	}
	writeContact(t, name, 4711, contact)
	var wg sync.WaitGroup
	over := make(chan struct{})
	t.Cleanup(func() { ln.Close(); close(over); wg.Wait() })
	wg.Go(func() {
		conn, err := ln.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		r := cm.NewReader(conn, cm.ReaderConfig{})
		_, err1 := r.Preamble()
		_, err2 := r.Handshake()
		_, err3 := conn.Write(cm.Handshake{Version: cm.HandshakeVersion, FormatServer: cm.SelfHosted, ID: id, Answer: true}.Append(nil))
		if err := errors.Join(err1, err2, err3); err != nil {
			t.Error(err)
		}
		<-over
	})
}

// TestOpenTimesOutInTime has a peer that answers nothing, and does not even
// close: the time-out must hold all the same, to within a second (promise P7).
func TestOpenTimesOutInTime(t *testing.T) {
	name := streamName(t)
	silent(t, name)
	start := time.Now()
	_, err := sst.Open(bounded(t), name, sst.ReaderConfig{Params: sst.Params{OpenTimeoutSecs: 1, NetworkInterface: "lo"}})
	if took := time.Since(start); took > 2*time.Second {
		t.Errorf("a time-out of 1 s took %v", took)
	}
	wants(t, "Open", err, sst.ErrTimeout)
}

// TestContactFileIsPipe has a pipe where the contact file should be. To open it
// would block for ever.
func TestContactFileIsPipe(t *testing.T) {
	name := streamName(t)
	if err := syscall.Mkfifo(name+".sst", 0o600); err != nil {
		t.Fatal(err)
	}
	within(t, 5*time.Second, "Open", func() {
		_, err := sst.Open(bounded(t), name, sst.ReaderConfig{Session: quickSession(t)})
		wants(t, "Open", err, sst.ErrContact)
	})
}

// TestContactFileBecomesPipe has the file replaced while the writer runs.
func TestContactFileBecomesPipe(t *testing.T) {
	name := streamName(t)
	w := create(t, name, sst.WriterConfig{})
	if err := os.Remove(name + ".sst"); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(name+".sst", 0o600); err != nil {
		t.Fatal(err)
	}
	within(t, 5*time.Second, "Close", func() {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	})
	if _, err := os.Lstat(name + ".sst"); err != nil {
		t.Error(err)
	}
}

// TestSecondBeginStepEnds bounds a BeginStep that waits for another one.
func TestSecondBeginStepEnds(t *testing.T) {
	name := streamName(t)
	create(t, name, sst.WriterConfig{})
	r := attach(t, name, sst.ReaderConfig{})
	ctx, cancel := context.WithCancel(bounded(t))
	first := async(func() error { _, err := r.BeginStep(bounded(t)); return err })
	second := async(func() error { _, err := r.BeginStep(ctx); return err })
	third := async(func() error { _, err := r.BeginStep(ctx); return err })
	cancel()
	wants(t, "second", next(t, "second BeginStep", second), context.Canceled)
	wants(t, "third", next(t, "third BeginStep", third), context.Canceled)
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	if err := next(t, "first BeginStep", first); err == nil {
		t.Error("the first BeginStep got a step of nobody")
	}
}

// TestStrangerAnswers has somebody else than the writer answer an opening, who
// can connect to us but has seen nothing of it.
func TestStrangerAnswers(t *testing.T) {
	name := streamName(t)
	p := newFake(t)
	p.publish(name, 4711, false)
	session := quickSession(t)
	opened := async(func() error {
		r, err := sst.Open(bounded(t), name, sst.ReaderConfig{Session: session})
		if err == nil {
			err = r.Close()
		}
		return err
	})
	l, q := hear[*sstmsg.DPQuery](p)
	p.send(l, &sstmsg.DPQueryResponse{Condition: q.Condition, DataPlane: "evpath"})
	_, reg := hear[*sstmsg.ReaderRegister](p)

	contact, err := cm.ParseContact(reg.CP[0].Contact)
	if err != nil {
		t.Fatal(err)
	}
	s := newFake(t)
	sl, err := s.cm.Dial(t.Context(), contact)
	if err != nil {
		t.Fatal(err)
	}
	for c := range int32(50) {
		s.send(sl, &sstmsg.DPQueryResponse{Condition: c, DataPlane: "ended"})
		s.send(sl, &sstmsg.WriterResponse{Condition: c})
	}
	s.send(sl, &sstmsg.DPQuery{WriterID: 1}) // for which the connection is dropped: all is read then
	s.dropped()

	p.send(l, &sstmsg.WriterResponse{
		Condition: reg.Condition, Params: &sstmsg.Params{MarshalMethod: sstmsg.MarshalBP5},
		CP: []sstmsg.CPWriter{{Contact: p.cm.Contact().String(), WriterID: 42}}, Evpath: []sstmsg.EvpathWriter{{Contact: "p", WriterID: 43}},
	})
	if _, m := hear[*sstmsg.ReaderActivate](p); m.WriterID != 42 {
		t.Errorf("activated %+v", m)
	}
	if err := next(t, "Open", opened); err != nil {
		t.Error(err)
	}
}

// TestCurious has a logger that asks the writer about itself, when a reader fails.
func TestCurious(t *testing.T) {
	var w *sst.Writer
	asked := make(chan struct{}, 16)
	log := slog.New(curious(func() {
		w.Info()
		asked <- struct{}{}
	}))
	name := streamName(t)
	w = create(t, name, sst.WriterConfig{Session: newSession(t, sst.SessionConfig{Logger: log})})
	r := attaches(t, name)
	testutil.Eventually(t, "a reader is there", func() bool { return len(w.Info().Readers) > 0 })
	r.link.Abort(nil)
	next(t, "question of the logger", asked)
}

// curious is a slog.Handler that calls a function.
type curious func()

func (curious) Enabled(context.Context, slog.Level) bool    { return true }
func (f curious) Handle(context.Context, slog.Record) error { f(); return nil }
func (f curious) WithAttrs([]slog.Attr) slog.Handler        { return f }
func (f curious) WithGroup(string) slog.Handler             { return f }
