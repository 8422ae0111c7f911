package ping

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weft-fabric/weft/fabric"
)

// spoken is a handler that calls said with each message.
type spoken struct {
	slog.Handler
	said func(string)
}

func (s spoken) Enabled(context.Context, slog.Level) bool { return true }
func (s spoken) Handle(_ context.Context, r slog.Record) error {
	s.said(r.Message)
	return nil
}

// An endpoint that is there, and no weft ping: after three seconds a line says what is waited for, once.
func TestSilentPeer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		silent, err := open(t.Context(), Config{Provider: "loop"}, fabric.Tagged)
		if err != nil {
			t.Fatal(err)
		}
		defer silent.close()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		begun := time.Now()
		var lines []string
		log := slog.New(spoken{slog.DiscardHandler, func(s string) {
			if d := time.Since(begun); d < 3*time.Second || d > 5*time.Second {
				t.Errorf("said after %v", d)
			}
			lines = append(lines, s)
		}})
		err = Measure(ctx, Config{Provider: "loop", Logger: log}, Work{Sizes: []int{8}}, silent.ep.Address(), nil)
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		if len(lines) != 1 || !strings.Contains(lines[0], "answer at "+string(silent.ep.Address())) || !strings.Contains(lines[0], "Ctrl-C") {
			t.Errorf("%q", lines)
		}
	})
}

// A listener that nobody joins says so.
func TestLonelyListener(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		var lines []string
		log := slog.New(spoken{slog.DiscardHandler, func(s string) { lines = append(lines, s) }})
		var at fabric.Address
		err := Serve(ctx, Config{Provider: "loop", Logger: log}, func(a fabric.Address) error { at = a; return nil })
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		if len(lines) != 1 || !strings.Contains(lines[0], "waiting for a weft ping --connect '"+string(at)+"'") {
			t.Errorf("%q", lines)
		}
	})
}

// A peer that stops in the middle of a phase is named, with the phase.
func TestStoppedPeer(t *testing.T) {
	for _, op := range Ops {
		synctest.Test(t, func(t *testing.T) {
			stopped, err := open(t.Context(), Config{Provider: "loop"}, fabric.Tagged)
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			var lines []string
			log := slog.New(spoken{slog.DiscardHandler, func(s string) { lines = append(lines, s) }})
			if err := stopped.listen(ctx); err != nil {
				t.Fatal(err)
			}
			end := make(chan error, 1)
			go func() {
				end <- Measure(ctx, Config{Provider: "loop", Logger: log}, Work{Op: op, Sizes: []int{8}, Iters: 5}, stopped.ep.Address(), nil)
			}()
			if _, err := stopped.hear(ctx, hello); err != nil {
				t.Fatal(err)
			}
			if err := stopped.say(ctx, control{Verb: welcome}); err != nil {
				t.Fatal(err)
			}
			if err := <-end; !errors.Is(err, context.DeadlineExceeded) {
				t.Error(err)
			}
			if len(lines) != 1 || !strings.Contains(lines[0], string(stopped.ep.Address())) || !strings.Contains(lines[0], "to prepare the latency phase of 5 times "+string(op)+" of 8 bytes") {
				t.Errorf("%q", lines)
			}
			if err := stopped.close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// What goes on is no wait, however long it takes.
func TestWatchMoves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var said atomic.Int32
		w := newWatch(slog.New(spoken{slog.DiscardHandler, func(string) { said.Add(1) }}))
		w.wait(func() string { return "it" })
		tick := time.NewTicker(2500 * time.Millisecond)
		defer tick.Stop()
		for range 10 {
			<-tick.C
			w.moved()
		}
		if said.Load() != 0 {
			t.Errorf("said %d times", said.Load())
		}
		<-time.After(time.Minute)
		w.moved()
		<-time.After(time.Minute)
		if w.close(); said.Load() != 2 {
			t.Errorf("two waits are told %d times", said.Load())
		}
	})
}

// Whoever comes while another one is served is told so, again and again, and the measurement goes on.
func TestBusy(t *testing.T) {
	for _, op := range []Op{Message, View} {
		at := make(chan fabric.Address, 1)
		end := make(chan error, 1)
		go func() {
			end <- Serve(t.Context(), Config{Provider: "loop"}, func(a fabric.Address) error { at <- a; return nil })
		}()
		addr := <-at
		c := Config{Provider: "loop"}
		work := Work{Op: op, Sizes: []int{8, 100}, Iters: 20}
		err := Measure(t.Context(), c, work, addr, func(Result) error {
			for range 2 {
				if err := Measure(t.Context(), c, work, addr, nil); !errors.Is(err, errNo) || !strings.Contains(err.Error(), "busy with another") {
					t.Errorf("%s: the second one: %v", op, err)
				}
			}
			return nil
		})
		if served := <-end; err != nil || served != nil {
			t.Errorf("%s: %v; served: %v", op, err, served)
		}
	}
}

// Both sides need the same --pin: else the numbers are of neither.
func TestPinDiffers(t *testing.T) {
	for _, c := range [][2]Pin{{Same, Apart}, {Same, Anywhere}, {Anywhere, Apart}} {
		_, measured, served := pair(t.Context(), Config{Provider: "loop", Pin: c[0]}, Config{Provider: "loop", Pin: c[1]}, Work{Sizes: []int{8}, Iters: 2})
		if !errors.Is(served, errPin) || !errors.Is(measured, errNo) || !strings.Contains(measured.Error(), "same --pin: "+c[0].word()+" for the one that connects") {
			t.Errorf("%q: measured: %v; served: %v", c, measured, served)
		}
	}
}

// A wrong name or address is a wrong setting; what goes wrong while it runs is none.
func TestWrongSetting(t *testing.T) {
	if err := Serve(t.Context(), Config{Provider: "loop", Name: "a/b"}, nil); !errors.Is(err, ErrConfig) {
		t.Errorf("name: %v", err)
	}
	if err := Measure(t.Context(), Config{Provider: "loop"}, Work{Sizes: []int{8}}, "loop://a/b", nil); !errors.Is(err, ErrConfig) || !errors.Is(err, fabric.ErrInvalid) {
		t.Errorf("address: %v", err)
	}
	_, measured, _ := pair(t.Context(), Config{Provider: "loop"}, Config{Provider: "loop", Pin: Same}, Work{Sizes: []int{8}})
	if errors.Is(measured, ErrConfig) {
		t.Errorf("running: %v", measured)
	}
}
