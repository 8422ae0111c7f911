package sst

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// said collects what is logged.
type said struct {
	mu   sync.Mutex
	text strings.Builder
}

func (s *said) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(b)
}

func (s *said) begin(ctx context.Context, e *explainer, text string) *longWait {
	return e.begin(ctx, func() (string, []any) { return text, nil })
}

func newSaid(tidy bool) (*said, *explainer) {
	s := &said{}
	return s, &explainer{log: slog.New(slog.NewTextHandler(s, nil)), tidy: tidy}
}

// told returns how often each text was logged.
func (s *said) told(texts ...string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []string
	for _, t := range texts {
		out = append(out, fmt.Sprint(strings.Count(s.text.String(), "msg="+t)))
	}
	return strings.Join(out, " ")
}

// TestExplainer: each wait is explained once, after three seconds, whichever of those that
// share the timer end before.
func TestExplainer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, e := newSaid(false)
		ctx := t.Context()
		for range 1000 {
			s.begin(ctx, e, "short").end()
		}
		first := s.begin(ctx, e, "first")
		advance(time.Second)
		second := s.begin(ctx, e, "second")
		third := s.begin(ctx, e, "third")
		for want, after := range []time.Duration{2*time.Second - 1, 1, time.Second - 1} {
			advance(after)
			if got := s.told("short", "first", "second", "third"); got != fmt.Sprintf("0 %d 0 0", min(want, 1)) {
				t.Fatalf("step %d: %s", want, got)
			}
		}
		second.end()
		advance(1)
		if got := s.told("short", "first", "second", "third"); got != "0 1 0 1" {
			t.Fatal(got)
		}
		first.end()
		third.end()
		advance(time.Hour)
		again := s.begin(ctx, e, "again")
		advance(explainAfter)
		again.end()
		if got := s.told("short", "first", "second", "third", "again"); got != "0 1 0 1 1" {
			t.Fatal(got)
		}
	})
}

// TestExplainerTidy: without waits a tidy one leaves no timer that goes off.
func TestExplainerTidy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, e := newSaid(true)
		a, b := s.begin(t.Context(), e, "a"), s.begin(t.Context(), e, "b")
		a.end()
		if !e.armed {
			t.Error("a wait is left, and no timer")
		}
		b.end()
		if e.armed {
			t.Error("no wait is left, and a timer")
		}
		c := s.begin(t.Context(), e, "c")
		advance(explainAfter)
		c.end()
		if got := s.told("a", "b", "c"); got != "0 0 1" {
			t.Error(got)
		}
	})
}

// TestClosedSessionHasNoTimer: what was waited for in a session leaves nothing that goes off
// after its Close.
func TestClosedSessionHasNoTimer(t *testing.T) {
	s, err := NewSession(t.Context(), SessionConfig{ListenAddr: netip.MustParseAddrPort("127.0.0.1:0")})
	if err != nil {
		t.Fatal(err)
	}
	text := func() (string, []any) { return "", nil }
	s.waits.begin(t.Context(), text).end()
	late := s.waits.begin(t.Context(), text)
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if !s.waits.armed {
		t.Error("a wait is left, and no timer")
	}
	late.end()
	if s.waits.armed {
		t.Error("no wait is left, and a timer")
	}
}

// advance lets fake time pass, and what is due be done.
func advance(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

// TestExplainerAllocates: a wait that is over at once costs nothing but its text.
func TestExplainerAllocates(t *testing.T) {
	_, e := newSaid(false)
	text := func() (string, []any) { return "", nil }
	if n := testing.AllocsPerRun(100, func() { e.begin(t.Context(), text).end() }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}
