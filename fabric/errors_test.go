package fabric

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/weft-fabric/weft/internal/fakeprov"
)

// What ends a wait names the operation and the provider, as all errors do, and allocates nothing.
func TestEndsOfWaits(t *testing.T) {
	a := open(t, fakeprov.New("fake"), "a")
	q, err := a.d.OpenCompletionQueue(CQConfig{})
	if err != nil {
		t.Fatal(err)
	}
	n, err := a.d.OpenCounter()
	if err != nil {
		t.Fatal(err)
	}
	var c [1]Completion
	wait := func(ctx context.Context) error { _, err := q.Wait(ctx, c[:]); return err }
	read := func(context.Context) error { _, err := q.Read(c[:]); return err }
	count := func(ctx context.Context) error { return n.Wait(ctx, 1) }

	over, cancel := context.WithCancel(t.Context())
	cancel()
	late, stop := context.WithTimeout(t.Context(), 0)
	defer stop()
	own := errors.New("enough")
	caused, cause := context.WithCancelCause(t.Context())
	cause(own)
	var none context.Context
	check := func(op string, call func(context.Context) error, ctx context.Context, before func(), want error) {
		t.Helper()
		before()
		err := call(ctx)
		oe, ok := errors.AsType[*OpError](err)
		if !errors.Is(err, want) || !ok || oe.Op != op || oe.Provider != "fake" {
			t.Errorf("%s: %v, want %v", op, err, want)
		}
		if want == ErrInvalid || want == own {
			return
		}
		most := 0.0
		if want == ErrSignal {
			most = 1 // the channel of the fake
		}
		if allocs := testing.AllocsPerRun(20, func() { before(); _ = call(ctx) }); allocs > most {
			t.Errorf("%s: %v allocates %v times", op, want, allocs)
		}
	}
	nothing := func() {}
	check("wait for completions", wait, none, nothing, ErrInvalid)
	check("wait for counter", count, none, nothing, ErrInvalid)
	check("wait for completions", wait, t.Context(), q.Signal, ErrSignal)
	for op, call := range map[string]func(context.Context) error{"wait for completions": wait, "wait for counter": count} {
		check(op, call, over, nothing, context.Canceled)
		check(op, call, late, nothing, context.DeadlineExceeded)
		check(op, call, caused, nothing, own)
	}
	if err := errors.Join(q.Close(), n.Close()); err != nil {
		t.Fatal(err)
	}
	check("wait for completions", wait, t.Context(), nothing, ErrClosed)
	check("read completions", read, t.Context(), nothing, ErrClosed)
	check("wait for counter", count, t.Context(), nothing, ErrClosed)

	// What was closed is said of an endpoint that would use it.
	for what, c := range map[string]EndpointConfig{
		"completion queue": {Name: "x", Send: a.q, Recv: q},
		"counter":          {Name: "x", Send: a.q, Recv: a.q, Counters: Counters{Write: n}},
	} {
		if _, err := a.d.OpenEndpoint(c); !errors.Is(err, ErrClosed) || !strings.Contains(err.Error(), what) {
			t.Errorf("an endpoint on a %s that was closed: %v", what, err)
		}
	}
	if _, err := a.d.View(none, 1, 1, 0, 1); !errors.Is(err, ErrInvalid) {
		t.Errorf("a view without a context: %v", err)
	}
	if _, err := DiscoverIn(none, fakeprov.New("fake"), Hints{}); !errors.Is(err, ErrInvalid) {
		t.Errorf("discovery without a context: %v", err)
	}
}

// A mode that does not exist is not one that the provider lacks.
func TestNoSuchProgress(t *testing.T) {
	p := fakeprov.New("fake")
	infos, err := DiscoverIn(t.Context(), p, Hints{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := OpenDomainIn(p, infos[0], DomainConfig{Progress: 9}); !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), "9") {
		t.Error(err)
	}
	for p, want := range map[Progress]string{Auto: "auto", Manual: "manual", 9: "mode9"} {
		if p.String() != want {
			t.Errorf("%d is %v", p, p)
		}
	}
}
