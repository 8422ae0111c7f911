package native

import (
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/weft-fabric/weft/internal/testutil"
)

// gate is a logger's destination that waits for a lock of the program.
type gate struct {
	mu   *sync.Mutex
	text strings.Builder
}

func (g *gate) Write(b []byte) (int, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.text.Write(b)
}

// Who logs never waits for the program's logger; what is said comes in order, with its attributes.
func TestLogIsDetached(t *testing.T) {
	var mu sync.Mutex
	g := &gate{mu: &mu}
	inner := slog.NewTextHandler(g, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}})
	h := detach(slog.New(inner))
	log := slog.New(h).With("a", 1).WithGroup("g")
	mu.Lock()
	log.Debug("nobody hears it")
	log.Info("one", "b", 2)
	log.Warn("two")
	mu.Unlock()
	h.say.wait()
	if want := "level=INFO msg=one a=1 g.b=2\nlevel=WARN msg=two a=1\n"; g.text.String() != want {
		t.Errorf("said %q, want %q", g.text.String(), want)
	}
	h.say.wait() // nothing is left
}

// What the provider has to say is heard by the time Close returns.
func TestLogOfTheProvider(t *testing.T) {
	log, logger := testutil.NewLog(slog.LevelDebug)
	f := open(t, Config{Logger: logger, Options: map[string]string{"disable": "eventfd"}})
	other := open(t, Config{})
	reach(t, f, other.Contact())
	if err := f.Close(); err != nil {
		t.Error(err)
	}
	t.Logf("said: %s", log)
}
