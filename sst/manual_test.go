package sst_test

import (
	"context"
	"errors"
	"io"
	"net/netip"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/weft-fabric/weft/internal/testutil"
	"github.com/weft-fabric/weft/sst"
	"github.com/weft-fabric/weft/sst/cohort"
	"github.com/weft-fabric/weft/step"
)

func manualSession(t testing.TB) *sst.Session {
	return newSession(t, sst.SessionConfig{ManualProgress: true})
}

// TestManualReader: a session without goroutines reads a stream to its end, by views and
// copies, and the writer's socket is given up.
func TestManualReader(t *testing.T) {
	const steps = 40
	ws := quickSession(t)
	name := streamName(t)
	x := define(t, create(t, name, sst.WriterConfig{Session: ws, Params: sst.Params{QueueLimit: 2}}), viewValues)
	for round := range 3 { // in one session, and one of its own, then
		cfg := sst.ReaderConfig{Session: manualSession(t)}
		r := attach(t, name, cfg)
		for again := range 2 {
			if n := sst.Links(cfg.Session); n != 1 {
				t.Errorf("the session has %d links: the socket of the opening is not given up", n)
			}
			attachedBy(t, x.w, "native")
			written := async(func() error {
				for range steps {
					if err := x.write(bounded(t)); err != nil {
						return err
					}
				}
				return nil
			})
			for n := range steps {
				st, h := viewNext(t, r)
				h.intact(t, "looked at")
				if err := verify(bounded(t), st); err != nil {
					t.Fatal(err)
				}
				if n%2 == 0 {
					h.view.Release()
					st.End()
					continue
				}
				st.End()
				h.view.Release()
			}
			if err := next(t, "the steps", written); err != nil {
				t.Fatal(err)
			}
			if _, err := netip.ParseAddrPort(x.w.Info().Readers[0].Addr); err != nil {
				t.Error(err)
			}
			info := r.Info()
			if info.Carrier != "shm" || info.Plane != "native" || info.Writers[0].Requests != 0 {
				t.Errorf("%+v", info)
			}
			if round == 2 && again == 1 {
				break
			}
			if err := r.Close(); err != nil {
				t.Error(err)
			}
			if again == 0 {
				r = attach(t, name, cfg)
			}
		}
		if round == 2 {
			closed := async(x.w.Close)
			if _, err := r.BeginStep(bounded(t)); err != io.EOF {
				t.Errorf("got %v, want the end", err)
			}
			r.Close()
			if err := next(t, "Close of the writer", closed); err != nil {
				t.Error(err)
			}
		}
	}
}

// TestManualEnds: whatever ends a wait does so also where nobody but the wait takes in
// what comes.
func TestManualEnds(t *testing.T) {
	for what, c := range map[string]struct {
		end  func(x *numbers, r *sst.Reader, s, ws *sst.Session, cancel func())
		want []error
	}{
		"the reader is closed":  {func(_ *numbers, r *sst.Reader, _, _ *sst.Session, _ func()) { r.Close() }, []error{sst.ErrOrder}},
		"the session is closed": {func(_ *numbers, _ *sst.Reader, s, _ *sst.Session, _ func()) { s.Close() }, []error{sst.ErrOrder}},
		"the writer closes":     {func(x *numbers, _ *sst.Reader, _, _ *sst.Session, _ func()) { x.w.Close() }, []error{io.EOF}},
		"the writer aborts":     {func(x *numbers, _ *sst.Reader, _, _ *sst.Session, _ func()) { x.w.Abort(errors.New("no more")) }, []error{sst.ErrWriterFailed}},
		"the writer's session":  {func(_ *numbers, _ *sst.Reader, _, ws *sst.Session, _ func()) { ws.Close() }, []error{sst.ErrWriterFailed, io.EOF}},
		"the caller gives up":   {func(_ *numbers, _ *sst.Reader, _, _ *sst.Session, cancel func()) { cancel() }, []error{context.Canceled}},
	} {
		t.Run(what, func(t *testing.T) {
			ws, s := quickSession(t), manualSession(t)
			name := streamName(t)
			x := define(t, create(t, name, sst.WriterConfig{Session: ws}), 8)
			r := attach(t, name, sst.ReaderConfig{Session: s})
			attachedBy(t, x.w, "native")
			ctx, cancel := context.WithCancel(bounded(t))
			defer cancel()
			waited := async(func() error {
				_, err := r.BeginStep(ctx)
				return err
			})
			c.end(x, r, s, ws, cancel)
			err := next(t, "BeginStep", waited)
			if !slices.ContainsFunc(c.want, func(want error) bool { return errors.Is(err, want) }) {
				t.Errorf("got %v, want one of %v", err, c.want)
			}
		})
	}
}

// TestManualTwo: several readers of a session wait at the same time, and each gets all that
// is for it, whoever takes it in.
func TestManualTwo(t *testing.T) {
	const steps, readers = 30, 3
	ws, s := quickSession(t), manualSession(t)
	var ends []<-chan error
	for range readers {
		name := streamName(t)
		x := define(t, create(t, name, sst.WriterConfig{Session: ws, Params: sst.Params{QueueLimit: 1}}), 512)
		r := attach(t, name, sst.ReaderConfig{Session: s})
		ends = append(ends, async(func() error {
			for range steps {
				if err := x.write(bounded(t)); err != nil {
					return err
				}
			}
			return x.w.Close()
		}), async(func() error {
			n := 0
			for st, err := range r.Steps(bounded(t)) {
				if err != nil {
					return err
				}
				if err := verify(bounded(t), st); err != nil {
					return err
				}
				n++
			}
			if n != steps {
				t.Errorf("%d steps", n)
			}
			return r.Close()
		}))
	}
	for _, end := range ends {
		if err := next(t, "all steps", end); err != nil {
			t.Error(err)
		}
	}
}

// TestManualRefuses: what such a session is not for is refused before anybody hears of it.
func TestManualRefuses(t *testing.T) {
	s := manualSession(t)
	name := streamName(t)
	_, err := sst.Create(bounded(t), name, sst.WriterConfig{Session: s})
	wants(t, "a writer", err, sst.ErrParam)
	x := define(t, create(t, name, sst.WriterConfig{}), 8)
	_, err = sst.Open(bounded(t), name, sst.ReaderConfig{Session: s, Params: sst.Params{DataTransport: "evpath"}})
	wants(t, "sockets", err, sst.ErrPlane)
	for _, c := range cohort.Local(2) {
		if c.Rank() == 0 {
			defer c.Close()
			_, err = sst.Open(bounded(t), name, sst.ReaderConfig{Session: s, Cohort: c})
			wants(t, "two ranks", err, sst.ErrParam)
		}
	}
	denied := create(t, streamName(t), sst.WriterConfig{Session: newSession(t, sst.SessionConfig{NoSharedMemory: true})})
	_, err = sst.Open(bounded(t), denied.Name(), sst.ReaderConfig{Session: s})
	wants(t, "a writer without shared memory", err, sst.ErrPlane)
	if list := x.w.Info().Readers; slices.ContainsFunc(list, func(r sst.AttachedReader) bool { return r.Active }) {
		t.Errorf("%+v", list)
	}
}

// TestManualCancelled: an Open that is given up at any moment leaves no reader at the writer, and the session works on.
func TestManualCancelled(t *testing.T) {
	ws, s := quickSession(t), manualSession(t)
	name := streamName(t)
	x := define(t, create(t, name, sst.WriterConfig{Session: ws}), 8)
	opened := 0
	for i := range 120 {
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i)*15*time.Microsecond)
		r, err := sst.Open(ctx, name, sst.ReaderConfig{Session: s})
		cancel()
		if err == nil {
			opened++
			r.Close()
		}
	}
	t.Log("opened", opened)
	testutil.Eventually(t, "no reader is left", func() bool { return len(x.w.Info().Readers) == 0 })
	r := attach(t, name, sst.ReaderConfig{Session: s})
	x.must(t)
	takeStep(t, r)
	r.Close()
	within(t, 2*time.Second, "Close", func() { s.Close() })
}

// TestManualClosedAsleep: Close wakes a BeginStep that sleeps, also if the link stays for another reader.
func TestManualClosedAsleep(t *testing.T) {
	ws, s := quickSession(t), manualSession(t)
	name := streamName(t)
	x := define(t, create(t, name, sst.WriterConfig{Session: ws}), 8)
	r, other := attach(t, name, sst.ReaderConfig{Session: s}), attach(t, name, sst.ReaderConfig{Session: s})
	attachedBy(t, x.w, "native", "native")
	_ = other
	waited := async(func() error {
		_, err := r.BeginStep(context.Background())
		return err
	})
	testutil.Eventually(t, "BeginStep waits", func() bool { return sst.WaitsForStep(r) })
	for range 1000 { // it has only to lie down
		runtime.Gosched()
	}
	r.Close()
	select {
	case err := <-waited:
		t.Log(err)
	case <-time.After(5 * time.Second):
		t.Error("BeginStep sleeps on")
		s.Close()
	}
	// the other, too, while both share the link: its steps come
	x.must(t)
	takeStep(t, other)
}

// TestManualFarHeap: a block of writer rank 1 that lies in the heap would come over a
// socket: that is refused.
func TestManualFarHeap(t *testing.T) {
	c := newCrew(t, 2, sst.WriterConfig{})
	defer c.close()
	keeper := attach(t, c.name, sst.ReaderConfig{Params: sst.Params{DataTransport: "evpath", SpeculativePreloadMode: "Off"}}) // keeps the step
	attachedBy(t, c.writers[0], "evpath")
	c.step() // nobody looks at memory yet: it lies in the heap
	r := attach(t, c.name, sst.ReaderConfig{Session: manualSession(t)})
	st, err := r.BeginStep(bounded(t))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	read := async(func() error {
		_, err := step.Read[int64](ctx, st, "n")
		return err
	})
	select {
	case err = <-read:
	case <-time.After(5 * time.Second):
		t.Errorf("the read hangs, although the answer is here: %+v", r.Info().Writers[1])
		cancel()
		err = <-read
	}
	cancel()
	wants(t, "reading what comes over a socket", err, sst.ErrPlane)
	st.End()
	r.Close()
	keeper.Close()
}
