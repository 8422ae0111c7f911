package ping

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weft-fabric/weft/fabric"
	"github.com/weft-fabric/weft/fabric/provider"
	"github.com/weft-fabric/weft/internal/testutil"
	"github.com/weft-fabric/weft/prov/loop"
)

func TestMain(m *testing.M) { testutil.Main(m) }

// pair runs both sides in this process, and returns the results, and the error of each side.
func pair(ctx context.Context, local, peer Config, w Work) (list []Result, measured, served error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	at := make(chan fabric.Address, 1)
	end := make(chan error, 1)
	go func() {
		end <- Serve(ctx, peer, func(a fabric.Address) error { at <- a; return nil })
	}()
	select {
	case served = <-end:
		return nil, nil, served
	case a := <-at:
		measured = Measure(ctx, local, w, a, func(r Result) error { list = append(list, r); return nil })
	}
	return list, measured, <-end
}

// All operations, in all modes of both sides.
func TestAll(t *testing.T) {
	var configs []Config
	for _, wait := range []Wait{Ladder, Spin, Sleep} {
		for _, progress := range []fabric.Progress{fabric.Auto, fabric.Manual} {
			configs = append(configs, Config{Provider: "loop", Wait: wait, Progress: progress, Inside: true})
		}
	}
	for _, op := range Ops {
		for i, c := range configs {
			t.Run(fmt.Sprintf("%s, %q, %v", op, c.Wait, c.Progress), func(t *testing.T) {
				testPair(t, c, configs[(i+1)%len(configs)], op)
			})
		}
	}
}

func testPair(t *testing.T, local, peer Config, op Op) {
	w := Work{Op: op, Sizes: []int{8, 1, 100, 20_001}, Iters: 70}
	list, measured, served := pair(t.Context(), local, peer, w)
	if measured != nil || served != nil {
		t.Fatalf("measured: %v; served: %v", measured, served)
	}
	if len(list) != len(w.Sizes) {
		t.Fatalf("%d results", len(list))
	}
	for i, r := range list {
		l := r.Latency
		if r.Provider != "loop" || r.Op != op || r.Size != w.Sizes[i] || r.Iters != w.Iters {
			t.Errorf("%+v", r)
		}
		if l.Min <= 0 || l.Median < l.Min || l.P99 < l.Median || r.OpsPerS <= 0 || r.MBPerS <= 0 || r.CPU.Local <= 0 || r.CPU.Peer != 0 {
			t.Errorf("%+v", r)
		}
	}
}

// Messages may have no bytes; an iteration may be the only one; a phase may be the only one.
func TestLeast(t *testing.T) {
	for _, w := range []Work{
		{Op: Message, Sizes: []int{0}, Iters: 1},
		{Op: Tagged, Sizes: []int{0}, Iters: 1},
		{Op: Read, Sizes: []int{1}, Iters: 1},
		{Sizes: []int{8}, Iters: 100, Only: Latency},
		{Sizes: []int{8}, Iters: 100, Only: Rate},
	} {
		list, measured, served := pair(t.Context(), Config{Provider: "loop"}, Config{Provider: "loop"}, w)
		if measured != nil || served != nil || len(list) != 1 {
			t.Fatalf("%+v: %v; measured: %v; served: %v", w, list, measured, served)
		}
		if r := list[0]; (r.Latency.Median > 0) != (w.Only != Rate) || r.OpsPerS <= 0 || r.CPU.Peer < 0 {
			t.Errorf("%+v", r)
		}
	}
}

// Very large ones go one by one, in one place.
func TestOnePlace(t *testing.T) {
	was := slotBytes
	defer func() { slotBytes = was }()
	slotBytes = 1000
	for _, op := range Ops {
		for _, wait := range []Wait{Spin, Sleep} {
			if s := slots(Latency, op, 1001); s != 1 {
				t.Errorf("%s: %d places", op, s)
			}
			c := Config{Provider: "loop", Wait: wait}
			if _, measured, served := pair(t.Context(), c, c, Work{Op: op, Sizes: []int{1001, 5000}, Iters: 50}); measured != nil || served != nil {
				t.Errorf("%s: measured: %v; served: %v", op, measured, served)
			}
		}
	}
}

// Whoever prepares much memory is not waiting, and can be stopped.
func TestPieces(t *testing.T) {
	ctx, stop := context.WithCancelCause(t.Context())
	enough := errors.New("enough")
	e := &end{watch: new(watch)}
	var parts []int
	err := e.pieces(ctx, 3*piece+1, func(from, to int) {
		if parts = append(parts, to-from); len(parts) == 2 {
			stop(enough)
		}
	})
	if !errors.Is(err, enough) || len(parts) != 2 || e.watch.steps.Load() != 2 {
		t.Errorf("%v of %v, %d steps", err, parts, e.watch.steps.Load())
	}
	parts = nil
	if err := e.pieces(t.Context(), 2*piece+1, func(from, to int) { parts = append(parts, to-from) }); err != nil || len(parts) != 3 || parts[2] != 1 {
		t.Errorf("%v, %v", parts, err)
	}
	b := make([]byte, 100)
	fillFrom(b[:40], 0)
	fillFrom(b[40:], 40)
	if !slices.Equal(b, newReference(100)) {
		t.Error("piece by piece, the pattern is another one")
	}
}

// Large ones go piece by piece.
func TestLarge(t *testing.T) {
	for _, op := range Ops {
		w := Work{Op: op, Sizes: []int{300_001}, Iters: 5}
		if _, measured, served := pair(t.Context(), Config{Provider: "loop"}, Config{Provider: "loop"}, w); measured != nil || served != nil {
			t.Errorf("%s: measured: %v; served: %v", op, measured, served)
		}
	}
}

func TestRefused(t *testing.T) {
	for name, w := range map[string]Work{
		"op": {Op: "dance", Sizes: []int{1}}, "no size": {}, "negative": {Sizes: []int{-1}}, "too large": {Sizes: []int{MaxSize + 1}},
		"nothing to read": {Op: Read, Sizes: []int{0}}, "iters": {Sizes: []int{1}, Iters: -1}, "many": {Sizes: []int{1}, Iters: MaxIters + 1},
		"phase": {Sizes: []int{1}, Only: "third"}, "negative pause": {Sizes: []int{1}, Pause: -1},
		"long pause": {Sizes: []int{1}, Pause: MaxPause + 1}, "pause of rates": {Sizes: []int{1}, Only: Rate, Pause: 1},
		"pause of a read": {Op: Read, Sizes: []int{1}, Pause: 1}, "pause of a view": {Op: View, Sizes: []int{1}, Pause: 1},
	} {
		if err := Measure(t.Context(), Config{Provider: "loop"}, w, "loop://x", nil); !errors.Is(err, ErrConfig) {
			t.Errorf("%s: %v", name, err)
		}
	}
	one := Work{Sizes: []int{1}}
	if err := Measure(t.Context(), Config{Provider: "loop"}, one, "loop://nobody", nil); !errors.Is(err, fabric.ErrUnreachable) {
		t.Errorf("nobody: %v", err)
	}
	if err := Measure(t.Context(), Config{Provider: "nothing"}, one, "x://y", nil); !errors.Is(err, fabric.ErrInvalid) {
		t.Errorf("no such provider: %v", err)
	}
	if err := Serve(t.Context(), Config{Provider: "loop", Name: "a/b"}, nil); !errors.Is(err, fabric.ErrInvalid) {
		t.Errorf("no such name: %v", err)
	}
}

// An error of the one who takes the results ends both sides.
func TestResultRefused(t *testing.T) {
	full := errors.New("the disk is full")
	at := make(chan fabric.Address, 1)
	end := make(chan error, 1)
	go func() {
		end <- Serve(t.Context(), Config{Provider: "loop"}, func(a fabric.Address) error { at <- a; return nil })
	}()
	err := Measure(t.Context(), Config{Provider: "loop"}, Work{Sizes: []int{8}, Iters: 5}, <-at, func(Result) error { return full })
	if !errors.Is(err, full) {
		t.Error(err)
	}
	if err := <-end; !errors.Is(err, fabric.ErrPeerGone) {
		t.Errorf("the other side: %v", err)
	}
	if err := Serve(t.Context(), Config{Provider: "loop"}, func(fabric.Address) error { return full }); !errors.Is(err, full) {
		t.Error(err)
	}
}

// Whoever waits for the other side can be stopped.
func TestCancel(t *testing.T) {
	for _, wait := range []Wait{Ladder, Spin, Sleep} {
		ctx, cancel := context.WithCancelCause(t.Context())
		why := errors.New("enough")
		err := Serve(ctx, Config{Provider: "loop", Wait: wait}, func(fabric.Address) error { cancel(why); return nil })
		if !errors.Is(err, why) {
			t.Errorf("%q: %v", wait, err)
		}
	}
}

// The peer ends between two sizes; the error says whom it misses. (weft ping is tested with peers that are killed at work.)
func TestPeerDies(t *testing.T) {
	for _, op := range Ops {
		for _, wait := range []Wait{Ladder, Spin} {
			c := Config{Provider: "loop", Wait: wait}
			at := make(chan fabric.Address, 1)
			end := make(chan error, 1)
			go func() {
				end <- Serve(t.Context(), c, func(a fabric.Address) error { at <- a; return nil })
			}()
			addr := <-at
			err := Measure(t.Context(), c, Work{Op: op, Sizes: []int{8, 8}, Iters: 20}, addr, func(Result) error {
				if !kill(addr) {
					t.Errorf("%s, %q: nobody to kill", op, wait)
				}
				if err := <-end; err == nil {
					t.Errorf("%s, %q: the other side ended well", op, wait)
				}
				return nil
			})
			if !errors.Is(err, fabric.ErrPeerGone) && !errors.Is(err, fabric.ErrUnreachable) || !strings.Contains(err.Error(), string(addr)) {
				t.Errorf("%s, %q: %v", op, wait, err)
			}
		}
	}
}

// kill is as if the process of an endpoint had been killed.
func kill(a fabric.Address) bool {
	p, _ := provider.Lookup("loop")
	return p.(*loop.Provider).Kill(a)
}

// Whoever is stopped says so, and why, with its last word: the other side need not guess what has become of it. The one that is stopped
// ends with that reason itself.
func TestInterrupted(t *testing.T) {
	for _, op := range Ops {
		for _, wait := range []Wait{Ladder, Spin} {
			for _, who := range []string{"the one that measures", "the one that serves"} {
				c := Config{Provider: "loop", Wait: wait}
				stopped, stop := context.WithCancelCause(t.Context())
				enough := errors.New("enough of it")
				measuring, serving := t.Context(), stopped
				if who == "the one that measures" {
					measuring, serving = stopped, t.Context()
				}
				at := make(chan fabric.Address, 1)
				end := make(chan error, 1)
				go func() {
					end <- Serve(serving, c, func(a fabric.Address) error { at <- a; return nil })
				}()
				measured := Measure(measuring, c, Work{Op: op, Sizes: []int{8, 1000}, Iters: 20}, <-at, func(Result) error { stop(enough); return nil })
				served := <-end
				itself, other := measured, served
				if serving == stopped {
					itself, other = served, measured
				}
				if !errors.Is(itself, enough) || !errors.Is(other, errNo) || !strings.Contains(other.Error(), enough.Error()) {
					t.Errorf("%s, %q, %s: itself: %v; the other: %v", op, wait, who, itself, other)
				}
			}
		}
	}
}

// What goes wrong with a control message is named after what it is for.
func TestTalkErrors(t *testing.T) {
	var op *fabric.OpError
	for _, o := range Ops {
		err := Measure(t.Context(), Config{Provider: "loop"}, Work{Op: o, Sizes: []int{8}}, "loop://nobody", nil)
		if !errors.As(err, &op) || op.Op != "connect" || !errors.Is(err, fabric.ErrUnreachable) {
			t.Errorf("%s: %v", o, err)
		}
	}
}
