package sst_test

import (
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/weft-fabric/weft/internal/testutil"
	"github.com/weft-fabric/weft/internal/wire/cm"
	"github.com/weft-fabric/weft/sst"
)

// TestNameIsTaken: a writer that takes a name over says whose it was, and harms
// neither that writer nor its readers.
func TestNameIsTaken(t *testing.T) {
	t.Parallel()
	name := streamName(t)
	first := create(t, name, sst.WriterConfig{})
	x := define(t, first, 3)
	r := attach(t, name, sst.ReaderConfig{})
	x.must(t)
	stream, contact := readContact(t, name)
	addr, err := contact.Addr()
	if err != nil {
		t.Fatal(err)
	}
	log, logger := testutil.NewLog(slog.LevelInfo)
	second := create(t, name, sst.WriterConfig{Session: newSession(t, sst.SessionConfig{Logger: logger})})
	line := next(t, "line of log", log.Lines())
	for _, part := range []string{"level=WARN", "still running", name + ".sst", addr.String(), first.Stat().Stream, `"its steps"=1`, `"its readers"=1`, "another name"} {
		if !strings.Contains(line, part) {
			t.Errorf("%q does not name %s", line, part)
		}
	}
	if now, _ := readContact(t, name); now == stream {
		t.Error("the file is still that of the first")
	}
	done := async(first.Close)
	if seen, err := drain(bounded(t), r); err != nil || len(seen) != 1 {
		t.Errorf("the reader of the first: %v, %v", seen, err)
	}
	if err := next(t, "Close", done); err != nil {
		t.Error(err)
	}
	attach(t, name, sst.ReaderConfig{}) // the file is there
	if got := len(second.Info().Readers); got != 1 {
		t.Errorf("the second has %d readers", got)
	}
	if n := strings.Count(log.String(), "level=WARN"); n != 1 {
		t.Errorf("%d warnings: %s", n, log)
	}
}

// TestNameWasTaken: what lies there otherwise is told apart, and holds nobody up.
func TestNameWasTaken(t *testing.T) {
	t.Parallel()
	marked := func(t *testing.T, name string, addr net.Addr) {
		c, err := cm.NewContact(addr.(*net.TCPAddr).AddrPort(), 0x777)
		if err != nil {
			t.Fatal(err)
		}
		writeContact(t, name, 4711, c.WithMark())
	}
	for _, c := range []struct {
		what  string
		leave func(t *testing.T, name string)
		want  []string // in a warning; none means none
	}{
		{"nothing", func(*testing.T, string) {}, nil},
		{"gone", func(t *testing.T, name string) {
			ln := listening(t)
			ln.Close()
			marked(t, name, ln.Addr())
		}, nil},
		{"stopped", func(t *testing.T, name string) { marked(t, name, listening(t).Addr()) }, []string{"does not answer", "127.0.0.1:"}},
		{"ADIOS2", func(t *testing.T, name string) { newFake(t).publish(name, 4711, false) }, []string{"an ADIOS2 writer", "cannot be asked", "127.0.0.1:"}},
		{"nonsense", func(t *testing.T, name string) { writeText(t, name+".sst", "hello") }, []string{"no contact file"}},
	} {
		t.Run(c.what, func(t *testing.T) {
			t.Parallel()
			name := streamName(t)
			c.leave(t, name)
			log, logger := testutil.NewLog(slog.LevelInfo)
			s := newSession(t, sst.SessionConfig{Logger: logger})
			within(t, 3*time.Second, "Create", func() { create(t, name, sst.WriterConfig{Session: s}) })
			text := log.String()
			if warned := strings.Contains(text, "level="+slog.LevelWarn.String()); warned != (c.want != nil) {
				t.Errorf("the log has %q", text)
			}
			for _, part := range c.want {
				if !strings.Contains(text, part) {
					t.Errorf("%q does not say %q", text, part)
				}
			}
			attach(t, name, sst.ReaderConfig{})
		})
	}
}

// listening is who accepts connections, and never says a word.
func listening(t *testing.T) net.Listener {
	t.Helper()
	ln, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
	return ln
}
