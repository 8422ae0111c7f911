package cli

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weft-fabric/weft/internal/bpfixture"
	"github.com/weft-fabric/weft/internal/wire/cm"
)

// staleStream leaves the contact file of a writer that is gone, and tells its
// address.
func staleStream(t *testing.T) (name, addr string) {
	t.Helper()
	ln, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	at := ln.Addr().(*net.TCPAddr).AddrPort()
	ln.Close()
	c, err := cm.NewContact(at, 0x12345)
	if err != nil {
		t.Fatal(err)
	}
	name = filepath.Join(t.TempDir(), "sim")
	if err := os.WriteFile(name+contactSuffix, []byte("#ADIOS2-SST v0\n0x1267:"+c.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return name, at.String()
}

// A contact file whose writer is gone is no stream: nothing is waited for unless
// that was asked for, and stderr says what is there and who does not answer.
func TestWriterIsGone(t *testing.T) {
	out := filepath.Join(t.TempDir(), "out")
	for _, args := range [][]string{{"ls"}, {"ls", "--observe=false"}, {"dump"}, {"pipe"}, {"params", "--attach"}} {
		name, addr := staleStream(t)
		args = append(args, name)
		if args[0] == "pipe" {
			args = append(args, out, "-P", "RendezvousReaderCount=0")
		}
		start := time.Now()
		r := run(t.Context(), args...)
		if took := time.Since(start); took > 3*time.Second {
			t.Errorf("%q took %v", args, took)
		}
		if r.code != exitFailed {
			t.Errorf("%q: exit code %d", args, r.code)
		}
		for _, part := range []string{"weft: ", name + contactSuffix, "a writer that is gone", addr} {
			if !strings.Contains(r.stderr, part) {
				t.Errorf("%q: stderr %q does not say %q", args, r.stderr, part)
			}
		}
	}
	if _, err := os.Stat(out + contactSuffix); err == nil {
		t.Error("pipe left a stream without a source")
	}
}

// A wait that somebody asked for goes on, explains itself, and ends with a new
// writer or with the time.
func TestWriterIsGoneAndWaitedFor(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"dump", "--timeout", "4s"}, {"ls", "-P", "OpenTimeoutSecs=4"}} {
		t.Run(args[0], func(t *testing.T) {
			t.Parallel()
			name, _ := staleStream(t)
			start := time.Now()
			r := run(t.Context(), append(args, name)...)
			if took := time.Since(start); r.code != exitFailed || took < 4*time.Second || took > 5*time.Second {
				t.Errorf("exit code %d after %v: %s", r.code, took, r.stderr)
			}
			if !strings.Contains(r.stderr, "waiting for a new one to replace it") || !strings.Contains(r.stderr, "for another 1s") {
				t.Errorf("stderr %q does not explain the wait", r.stderr)
			}
		})
	}
}

// What follows is started before its source, often: it waits for the next writer.
func TestFollowWaitsForANewWriter(t *testing.T) {
	t.Parallel()
	name, _ := staleStream(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	dumped := make(chan result, 1)
	go func() { dumped <- run(ctx, "dump", "--follow", name) }()
	if p := run(ctx, "pipe", bpfixture.Extract(t, "main-nostats"), name); p.code != exitOK {
		t.Errorf("pipe: exit code %d, stderr %q", p.code, p.stderr)
	}
	if d := <-dumped; d.code != exitOK || d.stdout == "" {
		t.Errorf("dump: exit code %d, stderr %q", d.code, d.stderr)
	}
}
