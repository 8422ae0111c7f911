package sst_test

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weft-fabric/weft/internal/testutil"
	"github.com/weft-fabric/weft/internal/wire/cm"
	"github.com/weft-fabric/weft/internal/wire/sstmsg"
	"github.com/weft-fabric/weft/sst"
)

// leaveStale leaves the contact file of a writer that is gone without a word.
func leaveStale(t *testing.T, name string) {
	t.Helper()
	ln, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := ln.Addr().(*net.TCPAddr).AddrPort()
	ln.Close()
	c, err := cm.NewContact(addr, 0x12345)
	if err != nil {
		t.Fatal(err)
	}
	writeContact(t, name, 4711, c)
}

// TestF01StaleFile is field report F01: a dead address counts as not there yet.
func TestF01StaleFile(t *testing.T) {
	t.Run("a new writer comes", func(t *testing.T) {
		name := streamName(t)
		leaveStale(t, name)
		log, logger := testutil.NewLog(slog.LevelInfo)
		r := async(func() *sst.Reader {
			return attach(t, name, sst.ReaderConfig{Session: newSession(t, sst.SessionConfig{Logger: logger})})
		})
		x := define(t, create(t, name, sst.WriterConfig{Params: sst.Params{RendezvousReaderCount: count(1)}}), 1)
		x.must(t)
		done := async(x.w.Close)
		if err := drains(bounded(t), next(t, "reader", r), 0, 1); err != nil {
			t.Errorf("%v; log:\n%s", err, log)
		}
		if err := next(t, "Close", done); err != nil {
			t.Error(err)
		}
	})
	t.Run("nobody comes", func(t *testing.T) {
		name := streamName(t)
		leaveStale(t, name)
		start := time.Now()
		_, err := sst.Open(bounded(t), name, sst.ReaderConfig{Session: quickSession(t), Params: sst.Params{OpenTimeoutSecs: 1}})
		if took := time.Since(start); took < time.Second || took > 2*time.Second {
			t.Errorf("a time-out of 1 s took %v", took)
		}
		wants(t, "Open", err, sst.ErrStale)
		wants(t, "Open", err, sst.ErrTimeout)
		if se, ok := errors.AsType[*sst.Error](err); !ok || se.Op != "open" || !se.Timeout() || !strings.Contains(err.Error(), "old") {
			t.Errorf("%v does not say how old the file is", err)
		}
	})
}

// TestStaleIsFinal: who does not want to wait for a new writer hears at once that
// there is none, and where nobody is; a file that is missing is waited for.
func TestStaleIsFinal(t *testing.T) {
	name := streamName(t)
	leaveStale(t, name)
	_, contact := readContact(t, name)
	addr, err := contact.Addr()
	if err != nil {
		t.Fatal(err)
	}
	within(t, 3*time.Second, "Open", func() {
		_, err := sst.Open(bounded(t), name, sst.ReaderConfig{Session: quickSession(t), FailStale: true})
		wants(t, "Open", err, sst.ErrStale)
		for _, part := range []string{name + ".sst", "a writer that is gone", addr.String(), "old)"} {
			if err != nil && !strings.Contains(err.Error(), part) {
				t.Errorf("%v does not mention %s", err, part)
			}
		}
	})
	other := streamName(t)
	r := async(func() *sst.Reader { return attach(t, other, sst.ReaderConfig{FailStale: true}) })
	create(t, other, sst.WriterConfig{Params: sst.Params{RendezvousReaderCount: count(1)}})
	next(t, "reader", r)
}

// TestStaleIsExplained: a wait for a writer that is gone says so, for how long it
// goes on, and what is at fault (promise P7).
func TestStaleIsExplained(t *testing.T) {
	t.Parallel()
	name := streamName(t)
	leaveStale(t, name)
	log, logger := testutil.NewLog(slog.LevelInfo)
	ctx, cancel := context.WithCancel(bounded(t))
	done := async(func() error {
		_, err := sst.Open(ctx, name, sst.ReaderConfig{Session: newSession(t, sst.SessionConfig{Logger: logger})})
		return err
	})
	line := next(t, "line of log", log.Lines())
	for _, part := range []string{name + ".sst", "a writer that is gone", "waiting for a new one", "127.0.0.1:", "for another"} {
		if !strings.Contains(line, part) {
			t.Errorf("%q does not name %s", line, part)
		}
	}
	cancel()
	wants(t, "Open", next(t, "Open", done), context.Canceled)
}

// TestStaleIsLeftAlone: whoever has the port of a dead writer by now is not
// knocked at with every look at the file; a new file is tried.
func TestStaleIsLeftAlone(t *testing.T) {
	t.Parallel()
	name := streamName(t)
	ln, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	knocks := make(chan struct{}, 64)
	served := make(chan struct{})
	go func() {
		defer close(served)
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			conn.Close()
			knocks <- struct{}{}
		}
	}()
	c, err := cm.NewContact(ln.Addr().(*net.TCPAddr).AddrPort(), 0x777)
	if err != nil {
		t.Fatal(err)
	}
	writeContact(t, name, 4711, c)
	start := time.Now()
	opened := async(func() error {
		_, err := sst.Open(bounded(t), name, sst.ReaderConfig{Session: quickSession(t)})
		return err
	})
	for range 5 {
		next(t, "knock", knocks)
	}
	if took := time.Since(start); took < 1200*time.Millisecond {
		t.Errorf("five attempts within %v", took)
	}
	p := newFake(t)
	p.publish(name, 4711, true)
	l, q := hear[*sstmsg.DPQuery](p)
	p.send(l, &sstmsg.DPQueryResponse{Condition: q.Condition, DataPlane: "nothing"})
	wants(t, "Open", next(t, "Open", opened), sst.ErrPlane)
	ln.Close()
	<-served
}

// TestF02NoStream is field report F02.
func TestF02NoStream(t *testing.T) {
	name := filepath.Join(t.TempDir(), "a.bp")
	create(t, filepath.Join(filepath.Dir(name), "a2.bp"), sst.WriterConfig{})
	_, err := sst.Open(bounded(t), name, sst.ReaderConfig{Session: quickSession(t), Params: sst.Params{OpenTimeoutSecs: 1}})
	wants(t, "Open", err, sst.ErrNoStream)
	wants(t, "Open", err, sst.ErrTimeout)
	for _, part := range []string{"a.bp.sst", "a2"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%v does not mention %s", err, part)
		}
	}
	missing := filepath.Join(t.TempDir(), "no", "such", "folder")
	_, err = sst.Open(bounded(t), missing, sst.ReaderConfig{Session: quickSession(t), Params: sst.Params{OpenTimeoutSecs: 1}})
	wants(t, "Open", err, sst.ErrNoStream)
	if !strings.Contains(err.Error(), "folder does not exist") {
		t.Errorf("%v does not say that the folder is missing", err)
	}
}

func TestSuffixMeansNothing(t *testing.T) {
	for _, c := range []struct{ writer, reader string }{{"x", "x.sst"}, {"y.sst", "y"}} {
		dir := t.TempDir()
		x := define(t, create(t, filepath.Join(dir, c.writer), sst.WriterConfig{}), 1)
		r := attach(t, filepath.Join(dir, c.reader), sst.ReaderConfig{})
		x.must(t)
		done := async(x.w.Close)
		if seen, err := drain(bounded(t), r); err != nil || len(seen) != 1 {
			t.Errorf("writer %s, reader %s: %v, %v", c.writer, c.reader, seen, err)
		}
		if err := next(t, "Close", done); err != nil {
			t.Error(err)
		}
	}
}

func TestOpenIsCancelled(t *testing.T) {
	name := streamName(t)
	reason := errors.New("changed my mind")
	ctx, cancel := context.WithCancelCause(bounded(t))
	done := async(func() error {
		_, err := sst.Open(ctx, name, sst.ReaderConfig{Session: quickSession(t)})
		return err
	})
	cancel(reason)
	wants(t, "Open", next(t, "Open", done), reason)
}

// TestF03NoReader is field report F03: a wait says what it waits for, and ends
// when it is told to.
func TestF03NoReader(t *testing.T) {
	name := streamName(t)
	log, logger := testutil.NewLog(slog.LevelInfo)
	s := newSession(t, sst.SessionConfig{Logger: logger})
	ctx, cancel := context.WithCancel(bounded(t))
	done := async(func() error {
		_, err := sst.Create(ctx, name, sst.WriterConfig{Session: s})
		return err
	})
	line := next(t, "line of log", log.Lines())
	for _, part := range []string{name, "have=0", "want=1", "RendezvousReaderCount"} {
		if !strings.Contains(line, part) {
			t.Errorf("%q does not name %s", line, part)
		}
	}
	within(t, time.Second, "Create", func() {
		cancel()
		wants(t, "Create", next(t, "Create", done), context.Canceled)
	})
	empty(t, name)
	within(t, time.Second, "Create that waits for nobody", func() { create(t, name, sst.WriterConfig{}) })
}

// TestF08NoContactFile is field report F08.
func TestF08NoContactFile(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "no", "s")
	within(t, 2*time.Second, "Create", func() {
		_, err := sst.Create(bounded(t), missing, sst.WriterConfig{})
		wants(t, "Create in a missing folder", err, os.ErrNotExist)
		if err == nil || !strings.Contains(err.Error(), missing) {
			t.Errorf("%v does not name the path", err)
		}
	})
	if os.Geteuid() == 0 {
		t.Log("the superuser can write everywhere: no read-only folder tried")
		return
	}
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o555); err != nil {
		t.Fatal(err)
	}
	_, err := sst.Create(bounded(t), filepath.Join(dir, "s"), sst.WriterConfig{})
	wants(t, "Create in a read-only folder", err, os.ErrPermission)
}

// TestF09FirstStep is field report F09.
func TestF09FirstStep(t *testing.T) {
	t.Run("count 1", func(t *testing.T) {
		name := streamName(t)
		wrote := async(func() error {
			w, err := sst.Create(bounded(t), name, sst.WriterConfig{Session: quickSession(t)})
			if err != nil {
				return err
			}
			x := define(t, w, 1)
			for range 5 {
				if err := x.write(bounded(t)); err != nil {
					return err
				}
			}
			return w.Close()
		})
		if err := drains(bounded(t), attach(t, name, sst.ReaderConfig{}), 0, 5); err != nil {
			t.Error(err)
		}
		if err := next(t, "writer", wrote); err != nil {
			t.Error(err)
		}
	})
	t.Run("count 0", func(t *testing.T) {
		name := streamName(t)
		x := define(t, create(t, name, sst.WriterConfig{}), 1)
		for range 3 {
			x.must(t)
		}
		r := attach(t, name, sst.ReaderConfig{})
		for range 4 {
			x.must(t)
		}
		done := async(x.w.Close)
		if got := r.Info().FirstStep; got != 3 {
			t.Errorf("told that the first step is %d, want 3", got)
		}
		if err := drains(bounded(t), r, 3, 4); err != nil {
			t.Error(err)
		}
		if err := next(t, "Close", done); err != nil {
			t.Error(err)
		}
	})
}

// TestAnotherProcessAnswers keeps our mouth shut towards a process that has
// taken the port of a dead writer: a real one crashes on a wrong stream number.
func TestAnotherProcessAnswers(t *testing.T) {
	name := streamName(t)
	p := newFake(t)
	addr, err := p.cm.Contact().Addr()
	if err != nil {
		t.Fatal(err)
	}
	c, err := cm.NewContact(addr, 0x777)
	if err != nil {
		t.Fatal(err)
	}
	writeContact(t, name, 4711, c)
	_, err = sst.Open(bounded(t), name, sst.ReaderConfig{Session: quickSession(t), Params: sst.Params{OpenTimeoutSecs: 1}})
	wants(t, "Open", err, sst.ErrStale)
	select {
	case h := <-p.got:
		t.Errorf("a %s was sent to a stranger", sstmsg.Name(h.msg))
	default:
	}
}

// TestSilentListener accepts connections and never says a word.
func TestSilentListener(t *testing.T) {
	name := streamName(t)
	ln, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	c, err := cm.NewContact(ln.Addr().(*net.TCPAddr).AddrPort(), 0x777)
	if err != nil {
		t.Fatal(err)
	}
	writeContact(t, name, 4711, c)
	start := time.Now()
	_, err = sst.Open(bounded(t), name, sst.ReaderConfig{Session: quickSession(t), Params: sst.Params{OpenTimeoutSecs: 1}})
	if took := time.Since(start); took > 2*time.Second {
		t.Errorf("a time-out of 1 s took %v", took)
	}
	wants(t, "Open", err, sst.ErrTimeout)
	if errors.Is(err, sst.ErrStale) {
		t.Errorf("a writer that is stopped is called gone: %v", err)
	}
}

// TestGarbageListener answers every connection with something else.
func TestGarbageListener(t *testing.T) {
	name := streamName(t)
	ln, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan struct{})
	go func() {
		defer close(served)
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			conn.Write([]byte("SSH-2.0-OpenSSH_9.9\r\n and then some more bytes to fill a header"))
			conn.Close()
		}
	}()
	c, err := cm.NewContact(ln.Addr().(*net.TCPAddr).AddrPort(), 0x777)
	if err != nil {
		t.Fatal(err)
	}
	writeContact(t, name, 4711, c)
	_, err = sst.Open(bounded(t), name, sst.ReaderConfig{Session: quickSession(t), Params: sst.Params{OpenTimeoutSecs: 1}})
	wants(t, "Open", err, sst.ErrStale)
	ln.Close()
	<-served
}

// TestContactNonsense gives up at once where waiting cannot help.
func TestContactNonsense(t *testing.T) {
	name := streamName(t)
	open := func() error {
		_, err := sst.Open(bounded(t), name, sst.ReaderConfig{Session: quickSession(t)})
		return err
	}
	within(t, 2*time.Second, "Open", func() {
		if err := os.WriteFile(name+".sst", []byte("%PDF-1.7"), 0o600); err != nil {
			t.Fatal(err)
		}
		wants(t, "a file of another kind", open(), sst.ErrContact)
		writeContact(t, name, 1, cm.Contact{{Atom: cm.AtomIPPort, Kind: cm.KindInt32, Int: 7}})
		wants(t, "no address", open(), cm.ErrNoAddress)
		c, err := cm.NewContact(netip.MustParseAddrPort("127.0.0.1:7"), 1)
		if err != nil {
			t.Fatal(err)
		}
		writeContact(t, name, 1, append(c, cm.Attr{Atom: cm.AtomTransport, Kind: cm.KindString, Text: "enet"}))
		wants(t, "a transport we lack", open(), cm.ErrNoAddress)
		os.Remove(name + ".sst")
		if err := os.Mkdir(name+".sst", 0o700); err != nil {
			t.Fatal(err)
		}
		wants(t, "a folder", open(), sst.ErrContact)
	})
}
