package main

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/weft-fabric/weft/internal/ping"
	"github.com/weft-fabric/weft/internal/sys"
)

// counters makes the counters of a test.
func counters(t *testing.T) []*os.File {
	t.Helper()
	files, err := newCounters()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeFiles(files) })
	return files
}

// Both sides in this process: the pauses pass, and are not part of what is said.
func TestBare(t *testing.T) {
	files := counters(t)
	a, b := sys.Counter(files[0].Fd()), sys.Counter(files[1].Fd())
	w := shmWork{Row: shmRow{Pause: 100 * time.Millisecond}, Iters: 3}
	served := make(chan error, 1)
	go func() { served <- bare{own: a, other: b}.serve(t.Context(), w) }()
	begun := time.Now()
	s, err := bare{own: b, other: a}.measure(t.Context(), w)
	took := time.Since(begun)
	if err != nil {
		t.Fatal(err)
	}
	if err := <-served; err != nil {
		t.Error(err)
	}
	if all := time.Duration(w.warm()+w.Iters) * w.Row.Pause; took < all {
		t.Errorf("all pauses of %v together took %v", all, took)
	}
	if s.Value <= 0 || s.Value*2 >= float64(w.Row.Pause.Microseconds()) || s.Local <= 0 || s.Peer <= 0 {
		t.Errorf("%+v", s)
	}
}

// The descriptors block, and the netpoller of the process that starts the others knows nothing of them.
func TestCountersBlock(t *testing.T) {
	for _, f := range counters(t) {
		if err := f.SetDeadline(time.Time{}); !errors.Is(err, os.ErrNoDeadline) {
			t.Errorf("%v", err)
		}
	}
}

// Each side ends with whoever started it, though nobody answers it any more.
func TestBareEnds(t *testing.T) {
	files := counters(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // it kills who stays
	defer cancel()
	r := &shmRunner{config: config{self: []string{self}}}
	for _, word := range []string{bareWord, barePeerWord} {
		cmd, err := r.process(ctx, word, shmWork{Row: shmRow{Metric: latency, Op: ping.Message, Pause: time.Microsecond}, Iters: 10}, "")
		if err != nil {
			t.Fatal(err)
		}
		cmd.ExtraFiles = files
		in, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if word == bareWord {
			_, err = sys.Counter(files[0].Fd()).Wait() // the first message
		} else {
			_, err = out.Read(make([]byte, 1))
		}
		if err != nil {
			t.Error(word, err)
		}
		if err := in.Close(); err != nil {
			t.Error(err)
		}
		if _, err := io.Copy(io.Discard, out); err != nil {
			t.Error(err)
		}
		exit, ok := errors.AsType[*exec.ExitError](cmd.Wait())
		if !ok || exit.ExitCode() != 1 {
			t.Errorf("%s: %v", word, exit)
		}
	}
}

// A descriptor that is none is an error, not a wait.
func TestBareBroken(t *testing.T) {
	files := counters(t)
	closed := sys.Counter(-1)
	w := shmWork{Iters: 1}
	if _, err := (bare{own: sys.Counter(files[0].Fd()), other: closed}).measure(t.Context(), w); err == nil {
		t.Error("wrote to nothing")
	}
	if err := (bare{own: closed, other: sys.Counter(files[0].Fd())}).serve(t.Context(), w); err == nil {
		t.Error("read from nothing")
	}
}
