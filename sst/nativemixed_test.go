package sst_test

import (
	"cmp"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/weft-fabric/weft/internal/testutil"
	"github.com/weft-fabric/weft/internal/wire/sstmsg"
	"github.com/weft-fabric/weft/sst"
	"github.com/weft-fabric/weft/step"
)

// TestNativeMixed: one rank of a reader, or of a writer, shares no memory. What it reads, or
// wrote, goes through sockets, and the rest is looked at.
func TestNativeMixed(t *testing.T) {
	without := sst.SessionConfig{NoSharedMemory: true}
	for _, c := range []struct {
		name          string
		writer, apart int // ranks without, -1: none
	}{{"reader rank", -1, 1}, {"reader's rank 0", -1, 0}, {"writer rank", 1, -1}, {"both", 1, 1}} {
		t.Run(c.name, func(t *testing.T) {
			log, logger := testutil.NewLog(slog.LevelInfo)
			w := &crew{t: t, name: streamName(t), part: 1000}
			w.join(3)
			w.must(w.create(bounded(t), func(rank int) sst.WriterConfig {
				cfg := sst.WriterConfig{Params: sst.Params{RendezvousReaderCount: none()}}
				if rank == c.writer {
					cfg.Session = newSession(t, without)
				}
				return cfg
			}))
			x := local(t, 2)
			for rank := range x.sessions {
				x.sessions[rank] = newSession(t, sst.SessionConfig{NoSharedMemory: rank == c.apart, Logger: logger})
			}
			for rank, err := range x.open(bounded(t), w.name, all(sst.ReaderConfig{})) {
				if err != nil {
					t.Fatalf("rank %d: %v", rank, err)
				}
			}
			want := "mixed"
			if c.apart == 0 { // whether shared memory is asked for rank 0 says
				want = "evpath"
			}
			w.active(1)
			attachedBy(t, w.writers[0], want)
			for range 5 {
				w.step()
				x.each(t, func(_ int, r *sst.Reader) error {
					st, err := r.BeginStep(bounded(t))
					if err != nil {
						return err
					}
					defer st.End()
					return verify(bounded(t), st)
				})
			}
			for rank, r := range x.readers {
				info := r.Info()
				if info.Plane != want {
					t.Errorf("reader rank %d reads by %q, want %q", rank, info.Plane, want)
				}
				for i, from := range info.Writers {
					looks := rank != c.apart && i != c.writer && want == "mixed"
					if looks != (from.Copied > 0) || looks != (from.Requests == 0) {
						t.Errorf("reader rank %d, writer rank %d: %+v", rank, i, from)
					}
				}
			}
			closed := async(func() []error { return w.close() })
			x.close(t)
			w.must(next(t, "Close", closed))
			for _, s := range x.sessions {
				s.Close()
			}
			if text := log.String(); !strings.Contains(text, "sockets") {
				t.Errorf("the log says nothing of it: %s", text)
			}
		})
	}
}

// TestNativeForcedMixed: a reader that wants shared memory and nothing else says which of
// its ranks cannot have it, and why; the writer goes on.
func TestNativeForcedMixed(t *testing.T) {
	name := streamName(t)
	define(t, create(t, name, sst.WriterConfig{}), 10).must(t)
	for apart := range 3 {
		x := local(t, 3)
		x.sessions[apart] = newSession(t, sst.SessionConfig{NoSharedMemory: true})
		for rank, err := range x.open(bounded(t), name, all(sst.ReaderConfig{Params: sst.Params{DataTransport: "native"}})) {
			refused(t, fmt.Sprintf("rank %d", rank), err, "NoSharedMemory")
			if rank != apart && !strings.Contains(fmt.Sprint(err), fmt.Sprintf("rank %d", apart)) {
				t.Errorf("rank %d does not name rank %d: %v", rank, apart, err)
			}
		}
	}
	t.Run("of a writer", func(t *testing.T) {
		w := &crew{t: t, name: streamName(t), part: 8}
		w.join(2)
		w.must(w.create(bounded(t), func(rank int) sst.WriterConfig {
			return sst.WriterConfig{Session: newSession(t, sst.SessionConfig{NoSharedMemory: rank == 1}), Params: sst.Params{RendezvousReaderCount: none()}}
		}))
		_, err := sst.Open(bounded(t), w.name, sst.ReaderConfig{Session: quickSession(t), Params: sst.Params{DataTransport: "native"}})
		refused(t, "Open", err, "writer rank 1", "shares no memory")
		w.step()
		w.must(w.close())
	})
}

// TestNativeComesAndGoes: steps lie in memory that is shared as long as somebody looks at
// it, from the step on that begins after his coming, and in the heap before and after.
func TestNativeComesAndGoes(t *testing.T) {
	s, name := quickSession(t), streamName(t)
	x := define(t, create(t, name, sst.WriterConfig{Session: s}), viewValues)
	old := attachesPushed(t, name) // a reader of sockets, to which steps are pushed
	push := func() {
		t.Helper()
		m := next(t, "block", old.got).msg.(*sstmsg.Preload)
		wantNumbers(t, m.Step, m.Data)
		old.take()
	}
	arenaUnused := func(when string) {
		t.Helper()
		testutil.Eventually(t, when+", nothing is in arenas", func() bool { return used(s) <= base })
	}
	x.must(t)
	push()
	arenaUnused("before anybody looks")
	for range 2 {
		st, err := x.w.BeginStep(bounded(t)) // in the heap
		if err != nil {
			t.Fatal(err)
		}
		testutil.Eventually(t, "the steps before were given back", func() bool { return x.w.Info().Held == 0 })
		r := attach(t, name, sst.ReaderConfig{}) // else it would get one of them
		data := make([]int64, viewValues)
		for i := range data {
			data[i] = int64(st.Number())<<20 + int64(i)
		}
		if err := cmp.Or(x.v.Put(st, step.Box{Count: []uint64{viewValues}}, data), st.End(bounded(t))); err != nil {
			t.Fatal(err)
		}
		push()
		takeStep(t, r)
		if w := r.Info().Writers[0]; w.Requests != 1 || w.Copied != 0 || w.Pushes != 0 {
			t.Errorf("of the step that had begun: %+v", w)
		}
		for range 3 {
			x.must(t)
			push()
			takeStep(t, r)
		}
		if w := r.Info().Writers[0]; w.Requests != 1 || w.Copied != 3*8*viewValues || w.Pushes != 0 {
			t.Errorf("of the steps after it: %+v", w)
		}
		x.must(t) // one that the reader goes without taking
		push()
		r.Close()
		testutil.Eventually(t, "the reader has gone", func() bool { return len(x.w.Info().Readers) == 1 })
		x.must(t)
		push()
		arenaUnused("when nobody looks any more")
	}
}
