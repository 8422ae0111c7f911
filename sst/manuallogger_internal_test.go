package sst

import (
	"context"
	"log/slog"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/weft-fabric/weft/fabric"
	_ "github.com/weft-fabric/weft/prov/shm"
	"github.com/weft-fabric/weft/sst/internal/native"
)

// asking is a logger's handler that asks the reader at its leisure.
type asking struct{ handle func() }

func (a asking) Enabled(context.Context, slog.Level) bool { return true }
func (a asking) Handle(_ context.Context, r slog.Record) error {
	if r.Message == "the provider speaks" {
		a.handle()
	}
	return nil
}
func (a asking) WithAttrs([]slog.Attr) slog.Handler { return a }
func (a asking) WithGroup(string) slog.Handler      { return a }

// TestManualLoggerAsks: the logger, which Close of the session waits for, may ask a
// reader that is being closed.
func TestReviewLoggerAsks(t *testing.T) {
	var r *Reader
	var s *Session
	a := asking{func() {
		<-s.gone // Close waits for us
		go r.Close()
		for range 10_000 {
			r.Info()
			runtime.Gosched()
		}
	}}
	ws, err := NewSession(t.Context(), SessionConfig{NetworkInterface: "lo"})
	if err != nil {
		t.Fatal(err)
	}
	if s, err = NewSession(t.Context(), SessionConfig{NetworkInterface: "lo", ManualProgress: true, Logger: slog.New(a)}); err != nil {
		t.Fatal(err)
	}
	var log *slog.Logger
	ShareMemory(s, native.Config{Open: func(c fabric.DomainConfig) (*fabric.Domain, error) {
		log = c.Logger
		infos, err := fabric.Discover(t.Context(), fabric.Hints{Provider: "shm"})
		if err != nil {
			return nil, err
		}
		return fabric.OpenDomain(infos[0], c)
	}})
	name := filepath.Join(t.TempDir(), "s")
	w, err := Create(t.Context(), name, WriterConfig{Session: ws, Params: Params{RendezvousReaderCount: new(int)}})
	if err != nil {
		t.Fatal(err)
	}
	if r, err = Open(t.Context(), name, ReaderConfig{Session: s}); err != nil {
		t.Fatal(err)
	}
	log.Warn("the provider speaks")
	closed := make(chan struct{})
	go func() { s.Close(); close(closed) }()
	select {
	case <-closed:
	case <-time.After(10 * time.Second):
		t.Fatal("Close of the session hangs")
	}
	w.Close()
	ws.Close()
}
