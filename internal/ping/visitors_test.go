package ping

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/weft-fabric/weft/fabric"
)

// caller is an endpoint that says hello in its own way.
type caller struct {
	t *testing.T
	*end
}

func newCaller(t *testing.T, to fabric.Address, p fabric.Progress) *caller {
	e, err := open(t.Context(), Config{Provider: "loop", Progress: p}, fabric.Tagged)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.close() })
	if e.peer, err = e.domain.Insert(to); err != nil {
		t.Fatal(err)
	}
	return &caller{t: t, end: e}
}

// says returns when the other side has got it.
func (c *caller) says(text []byte) {
	c.t.Helper()
	op := fabric.Op{Tag: helloTag, Local: fabric.Bytes(text), Peer: c.peer, Flags: fabric.DeliveryComplete}
	if err := c.ep.SendTagged(op); err != nil {
		c.t.Fatal(err)
	}
	if done := c.one(); done.Kind != fabric.TSendDone || done.Err != nil {
		c.t.Fatalf("%q: %+v", text, done)
	}
}

func (c *caller) one() fabric.Completion {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), time.Minute)
	defer cancel()
	var one [1]fabric.Completion
	if _, err := c.cq.Wait(ctx, one[:]); err != nil {
		c.t.Fatal(err)
	}
	return one[0]
}

// served is what Serve does; whom it knows at the end is told as well.
func served(t *testing.T) (fabric.Address, func() ([]fabric.PeerStats, error)) {
	e, err := open(t.Context(), Config{Provider: "loop"}, fabric.Tagged)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.close() })
	if err := e.listen(t.Context()); err != nil {
		t.Fatal(err)
	}
	end := make(chan error, 1)
	go func() { end <- e.serve(t.Context()) }()
	return e.ep.Address(), func() ([]fabric.PeerStats, error) {
		err := <-end
		return e.domain.Peers(), err
	}
}

// One who says hello thousands of times and takes no answer, in its own name or that of another one, takes nothing from those
// who measure.
func TestRudeVisitor(t *testing.T) {
	addr, ended := served(t)
	work := Work{Sizes: []int{8, 16}, Iters: 20}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	err := Measure(ctx, Config{Provider: "loop"}, work, addr, func(r Result) error {
		if r.Size == 8 {
			rude, mute := newCaller(t, addr, fabric.Manual), newCaller(t, addr, fabric.Manual)
			for i := range 3000 {
				a := []fabric.Address{rude.ep.Address(), mute.ep.Address()}[i%2]
				rude.says(fmt.Appendf(nil, `{"verb":"hello","version":%d,"address":%q}`, version, a))
			}
		}
		return nil
	})
	if _, served := ended(); err != nil || served != nil {
		t.Errorf("%v; served: %v", err, served)
	}
}

// Who was told that it is not served is forgotten.
func TestVisitorsForgotten(t *testing.T) {
	addr, ended := served(t)
	work := Work{Sizes: []int{8, 16}, Iters: 20}
	err := Measure(t.Context(), Config{Provider: "loop"}, work, addr, func(r Result) error {
		for range 20 {
			if err := Measure(t.Context(), Config{Provider: "loop"}, work, addr, nil); !errors.Is(err, errNo) {
				t.Error(err)
			}
		}
		return nil
	})
	peers, served := ended()
	if err != nil || served != nil {
		t.Errorf("%v; served: %v", err, served)
	}
	if len(peers) != 1 {
		t.Errorf("after 40 visitors it knows %+v", peers)
	}
}

// What is no hello ends no listener. Who said it hears why it is not served, where it says who it is.
func TestNoHello(t *testing.T) {
	addr, ended := served(t)
	for _, no := range []struct{ text, want string }{
		{"{", "no weft ping of this version"}, {"", "no weft ping"}, {`{"verb":"job"}`, `says \"job\"`},
		{`{"verb":"hello","version":1,"address":"loop://x"}`, "version 1 instead of"},
		{strings.Repeat(" ", controlMax+1), ""}, {`{"verb":"bye","error":"x"}`, ""},
		{`{"verb":"hello","version":2}`, "hello without an address"},
	} {
		c := newCaller(t, addr, fabric.Auto)
		c.says([]byte(no.text))
		if no.want == "" {
			continue
		}
		answer := make([]byte, controlMax)
		if err := c.ep.RecvTagged(fabric.Op{Tag: controlTag, Local: fabric.Bytes(answer)}); err != nil {
			t.Fatal(err)
		}
		if got := c.one(); got.Err != nil || !bytes.Contains(answer[:got.Len], []byte(no.want)) {
			t.Errorf("%q is answered by %q, %v", no.text, answer[:got.Len], got.Err)
		}
	}
	if err := Measure(t.Context(), Config{Provider: "loop"}, Work{Sizes: []int{8}, Iters: 20}, addr, func(Result) error { return nil }); err != nil {
		t.Error(err)
	}
	if _, err := ended(); err != nil {
		t.Error(err)
	}
}
