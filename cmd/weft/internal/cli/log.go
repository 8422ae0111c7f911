package cli

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
)

// newLogger returns a logger that writes what the libraries explain as lines
// "weft: message (key value, ...)".
func newLogger(w io.Writer) *slog.Logger { return slog.New(&lines{w: w, mu: new(sync.Mutex)}) }

// lines is a slog.Handler for people. It shows warnings and errors.
type lines struct {
	mu    *sync.Mutex
	w     io.Writer
	attrs []slog.Attr
}

func (*lines) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelWarn }

func (h *lines) Handle(_ context.Context, r slog.Record) error {
	var parts []string
	add := func(a slog.Attr) bool {
		parts = append(parts, fmt.Sprintf("%s %v", a.Key, a.Value))
		return true
	}
	for _, a := range h.attrs {
		add(a)
	}
	r.Attrs(add)
	text := "weft: " + r.Message
	if len(parts) > 0 {
		text += " (" + strings.Join(parts, ", ") + ")"
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	_, err := fmt.Fprintln(h.w, printable(text))
	return err
}

func (h *lines) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &lines{mu: h.mu, w: h.w, attrs: append(h.attrs[:len(h.attrs):len(h.attrs)], attrs...)}
}

func (h *lines) WithGroup(string) slog.Handler { return h }
