package sst_test

import (
	"log/slog"
	"strings"
	"testing"

	"github.com/weft-fabric/weft/internal/testutil"
	"github.com/weft-fabric/weft/internal/wire/sstmsg"
	"github.com/weft-fabric/weft/sst"
	"github.com/weft-fabric/weft/sst/internal/native"
	"github.com/weft-fabric/weft/step"
)

// refusal is why a session shares no memory.
type refusal struct {
	name string
	cfg  sst.SessionConfig
	fail string // calls of the kernel
	says string
}

var refusals = []refusal{
	{"switch", sst.SessionConfig{NoSharedMemory: true}, "", "NoSharedMemory"},
	{"memfd", sst.SessionConfig{}, "memfd", "too many open files"},
	{"fallocate", sst.SessionConfig{}, "fallocate", "cannot allocate memory"},
}

// session returns one that is refused shared memory, and its log.
func (x refusal) session(t testing.TB) (*sst.Session, *testutil.Log) {
	t.Helper()
	log, logger := testutil.NewLog(slog.LevelInfo)
	x.cfg.Logger = logger
	s := newSession(t, x.cfg)
	if x.fail != "" {
		sst.ShareMemory(s, native.Config{Options: map[string]string{"fail": x.fail}})
	}
	return s, log
}

// onceSaid fails unless exactly one line of a closed session's log speaks of memory, and
// has the words.
func onceSaid(t testing.TB, log *testutil.Log, words ...string) {
	t.Helper()
	var lines []string
	for line := range strings.Lines(log.String()) {
		if strings.Contains(line, "memory") {
			lines = append(lines, line)
		}
	}
	if len(lines) != 1 {
		t.Errorf("%d lines, want one:\n%s", len(lines), log)
		return
	}
	for _, w := range words {
		if !strings.Contains(lines[0], w) {
			t.Errorf("%q is not said: %s", w, lines[0])
		}
	}
}

// TestNativeRefused: a side that has no shared memory uses sockets from the first step on,
// for several streams, and says why, once.
func TestNativeRefused(t *testing.T) {
	for _, why := range refusals {
		for _, side := range []string{"writer", "reader", "both"} {
			t.Run(why.name+" "+side, func(t *testing.T) {
				s, log := why.session(t)
				ws, rs := s, s
				switch side {
				case "writer":
					rs = quickSession(t)
				case "reader":
					ws = quickSession(t)
				}
				for range 2 {
					name := streamName(t)
					x := define(t, create(t, name, sst.WriterConfig{Session: ws}), 1000)
					r := attach(t, name, sst.ReaderConfig{Session: rs})
					attachedBy(t, x.w, "evpath")
					for range 3 {
						x.must(t)
						takeStep(t, r)
					}
					if err := readBy(r, "evpath"); err != nil {
						t.Error(err)
					}
					if said := r.Info().PlaneWhy; side == "reader" && !why.cfg.NoSharedMemory && !strings.Contains(said, why.says) {
						t.Errorf("the reader says %q", said)
					}
					r.Close()
				}
				s.Close()
				onceSaid(t, log, "sockets", why.says)
			})
		}
	}
}

// TestNativeForced: a side that is told to share memory, and cannot, says why.
func TestNativeForced(t *testing.T) {
	for _, why := range refusals {
		for _, word := range []string{"native", "shm"} {
			t.Run(why.name+" "+word, func(t *testing.T) {
				params := sst.Params{DataTransport: word}
				s, _ := why.session(t)
				name := streamName(t)
				_, err := sst.Create(bounded(t), name, sst.WriterConfig{Session: s, Params: sst.Params{DataTransport: word, RendezvousReaderCount: none()}})
				refused(t, "Create", err, word, why.says)
				empty(t, name)
				create(t, name, sst.WriterConfig{})
				_, err = sst.Open(bounded(t), name, sst.ReaderConfig{Session: s, Params: params})
				refused(t, "Open", err, word, why.says)
			})
		}
	}
}

// refused fails unless there is no plane, and the error has the words.
func refused(t testing.TB, what string, err error, words ...string) {
	t.Helper()
	wants(t, what, err, sst.ErrPlane)
	for _, w := range words {
		if err != nil && !strings.Contains(err.Error(), w) {
			t.Errorf("%s: %q is not said: %v", what, w, err)
		}
	}
}

// TestNativeForcedApart: sides that are told different things name both, and the cure.
func TestNativeForcedApart(t *testing.T) {
	for _, c := range []struct{ writer, reader, cure string }{
		{"evpath", "native", "leave the engine parameter DataTransport out in this reader"},
		{"WAN", "shm", `set it to "native" in the writer`},
		{"native", "evpath", "leave the engine parameter DataTransport out in the writer"},
		{"shm", "WAN", `set it to "native" in this reader`},
	} {
		t.Run(c.writer+" "+c.reader, func(t *testing.T) {
			name := streamName(t)
			w := create(t, name, sst.WriterConfig{Params: sst.Params{DataTransport: c.writer}})
			_, err := sst.Open(bounded(t), name, sst.ReaderConfig{Session: quickSession(t), Params: sst.Params{DataTransport: c.reader}})
			refused(t, "Open", err, `"evpath"`, `native`, c.cure)
			if n := len(w.Info().Readers); n != 0 {
				t.Errorf("%d readers have registered", n)
			}
		})
	}
	t.Run("alike", func(t *testing.T) {
		name := streamName(t)
		x := define(t, create(t, name, sst.WriterConfig{Params: sst.Params{DataTransport: "native"}}), 10)
		r := attach(t, name, sst.ReaderConfig{Params: sst.Params{DataTransport: "shm"}})
		x.must(t)
		takeStep(t, r)
		if err := readBy(r, "native"); err != nil {
			t.Error(err)
		}
	})
}

// TestNativeForcedTowardsADIOS2: a reader that knows sockets only is told of the plane that
// there is, and leaves: nothing becomes of it.
func TestNativeForcedTowardsADIOS2(t *testing.T) {
	name := streamName(t)
	x := define(t, create(t, name, sst.WriterConfig{Params: sst.Params{DataTransport: "native"}}), 10)
	r := attach(t, name, sst.ReaderConfig{})
	p := dials(t, name)
	p.send(p.link, &sstmsg.DPQuery{WriterID: p.stream, Condition: 1})
	if _, m := hear[*sstmsg.DPQueryResponse](p.fake); m.DataPlane != "native" {
		t.Errorf("the plane is %q", m.DataPlane)
	}
	p.link.Close()
	x.must(t)
	takeStep(t, r)
	attachedBy(t, x.w, "native")
}

// TestNativeFailsMidway: no memory can be shared any more in the middle of a stream. The
// steps go on, in the heap, with all of their values, and the log says it once.
func TestNativeFailsMidway(t *testing.T) {
	for _, fail := range []string{"memfd", "fallocate"} {
		t.Run(fail, func(t *testing.T) {
			log, logger := testutil.NewLog(slog.LevelInfo)
			ws := newSession(t, sst.SessionConfig{Logger: logger})
			sst.ShareMemory(ws, native.Config{Options: map[string]string{"fail": fail + "@6-"}})
			name := streamName(t)
			// Steps that grow, while the reader keeps the newest ones, want more each time.
			x := define(t, create(t, name, sst.WriterConfig{Session: ws}), viewValues)
			r := attach(t, name, sst.ReaderConfig{})
			for n := range 8 {
				x.n = viewValues / 8 << n
				if err := x.v.SetShape(uint64(x.n)); err != nil {
					t.Fatal(err)
				}
				x.must(t)
				st, err := r.BeginStep(bounded(t))
				if err != nil {
					t.Fatal(err)
				}
				if err := r.Retain(st); err != nil {
					t.Fatal(err)
				}
				if err := verify(bounded(t), st); err != nil {
					t.Fatal(err)
				}
			}
			w := r.Info().Writers[0]
			if w.Copied == 0 || w.Requests == 0 {
				t.Errorf("not both ways were used: %+v", w)
			}
			r.Close()
			x.w.Close()
			ws.Close()
			onceSaid(t, log, "no shared memory for a step", "sockets")
		})
	}
}

// TestNativeFailsForAWhile: when memory can be shared again, the next steps are looked at
// again.
func TestNativeFailsForAWhile(t *testing.T) {
	ws := quickSession(t)
	sst.ShareMemory(ws, native.Config{Options: map[string]string{"fail": "memfd@6-7"}})
	name := streamName(t)
	x := define(t, create(t, name, sst.WriterConfig{Session: ws}), viewValues)
	r := attach(t, name, sst.ReaderConfig{})
	asked := func() int64 { return r.Info().Writers[0].Requests }
	var open []*step.Step
	take := func() {
		t.Helper()
		x.must(t)
		st, err := r.BeginStep(bounded(t))
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Retain(st); err != nil {
			t.Fatal(err)
		}
		if err := verify(bounded(t), st); err != nil {
			t.Fatal(err)
		}
		open = append(open, st)
	}
	for n := 0; asked() == 0; n++ { // more memory for each, until there is none
		if n == 100 {
			t.Fatal("there is always enough")
		}
		take()
	}
	for n := asked(); ; n = asked() {
		if take(); asked() == n {
			break
		}
		if len(open) > 200 {
			t.Fatal("no step is looked at any more")
		}
	}
	for _, st := range open {
		st.End()
	}
	r.Close()
}
