package fabrictest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weft-fabric/weft/fabric/provider"
)

// childWraps are what children of this package's tests may be told to use.
func childWraps() []Wrap {
	leak := (&mutant{opened: func(provider.Domain) { go func() { select {} }() }}).wrap()
	leak.Name = "leaks"
	return []Wrap{*leak, *(&mutant{}).wrap()}
}

// childEnv is an environment with two processes, over a provider that knows only one: sides of the other can talk
// to themselves.
func childEnv(t testing.TB, w *Wrap) *env {
	t.Helper()
	c := Config{Provider: "loop", Procs: 2, Wrap: w, patience: 2 * time.Second}
	p, info := find(t, &c)
	return newEnv(t, c, p, info, provider.Auto)
}

// A side in a child does what one in this process does.
func TestChild(t *testing.T) {
	e := childEnv(t, nil)
	s := e.side(1)
	if s.remote == nil {
		t.Fatal("side 1 of 2 processes is in this process")
	}
	s.open(e.spec())
	me := s.knows(s)
	e.alone(s, me)
	m := s.private(100, 1, readWrite)
	e.rma(s, s, me, s.heap(100, 0), m, 10, 50)
	if u := s.usage(); u.CPU == 0 || u.Goroutines < 2 || u.Resident == 0 {
		t.Errorf("the child uses %+v", u)
	}
	_, err := s.try(request{Verb: "take", N: 1, Millis: 1})
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("an error of a child lost what it is: %v", err)
	}
	err = s.tryPost(sendOp(77777, 1, s.heap(8, 0).all()))
	if oe, ok := errors.AsType[*provider.OpError](err); !ok || oe.Provider != "loop" || !errors.Is(err, provider.ErrInvalid) {
		t.Errorf("an error of a child lost what it is: %v", err)
	}
	if _, err := s.try(request{Verb: "dance"}); err == nil || !strings.Contains(err.Error(), "dance") {
		t.Errorf("a verb that there is not: %v", err)
	}
	f := flow{Kind: "all", Peers: []provider.Peer{me}, Seeds: []uint64{5}, Seed: 5, Count: 30, Sizes: []int{8, 70000}}
	s.start(request{Verb: "flow", Flow: &f})
	if r, err := s.join(); err != nil || r.N != 60 {
		t.Errorf("a flow: %d, %v", r.N, err)
	}
	e.finish()
}

// What a child leaves is seen, and a child that dies is no more.
func TestChildLeaves(t *testing.T) {
	w := childWraps()[0]
	r := record(t, func(tb testing.TB) {
		e := childEnv(tb, &w)
		e.side(1).open(e.spec())
		e.finish()
	})
	if !r.failed || !strings.Contains(r.said(), "goroutines") {
		t.Errorf("nobody noticed a goroutine that stays: %s", r.said())
	}
	e := childEnv(t, nil)
	s := e.side(1)
	s.open(e.spec())
	s.kill()
	if !s.remote.dead {
		t.Error("a side that was killed lives")
	}
	e.finish()
}

func TestUnknownWrap(t *testing.T) {
	r := record(t, func(tb testing.TB) {
		e := childEnv(tb, &Wrap{Name: "never heard", Provider: func(p provider.Provider) provider.Provider { return p }})
		e.side(1).open(e.spec())
	})
	if !r.failed {
		t.Error("a wrap that the child does not know is no failure")
	}
}

func TestLauncher(t *testing.T) {
	e := childEnv(t, nil)
	e.c.Launcher = []string{"env", "FABRICTEST_LAUNCHER=1"}
	s := e.side(1)
	s.open(e.spec())
	e.finish()
}

func TestErrorsTravel(t *testing.T) {
	cause := &provider.OpError{Op: "send", Provider: "x", Addr: "x://y", Err: errors.Join(provider.ErrPeerGone, context.Canceled)}
	got := pack(cause).err()
	oe, ok := errors.AsType[*provider.OpError](got)
	if !ok || oe.Addr != "x://y" || oe.Op != "send" || oe.Provider != "x" {
		t.Errorf("got %#v", got)
	}
	if got.Error() != cause.Error() || pack(cause).nests() {
		t.Errorf("%q became %q", cause, got)
	}
	if outer := (&provider.OpError{Op: "send", Provider: "x", Err: fmt.Errorf("so: %w", cause)}); !pack(outer).nests() {
		t.Errorf("nobody noticed: %v", outer)
	}
	for _, is := range sentinels {
		if want := errors.Is(cause, is); errors.Is(got, is) != want {
			t.Errorf("is %v: %v", is, !want)
		}
	}
	short := &provider.OpError{Op: "receive", Provider: "x", Err: &provider.TruncatedError{Message: 7, Room: 3}}
	if te, ok := errors.AsType[*provider.TruncatedError](pack(short).err()); !ok || te.Message != 7 || te.Room != 3 {
		t.Errorf("%+v", te)
	}
	if _, ok := errors.AsType[*provider.TruncatedError](got); ok {
		t.Error("it was not truncated")
	}
	if pack(nil).err() != nil {
		t.Error("no error became one")
	}
	if err := pack(errors.New("plain")).err(); err.Error() != "plain" {
		t.Errorf("got %v", err)
	}
}

func TestPattern(t *testing.T) {
	whole := pattern(100, 7)
	for at := range 20 {
		part := make([]byte, 50)
		fill(part, 7, at)
		if diff := cmp.Diff(whole[at:at+50], part); diff != "" {
			t.Fatalf("from %d on: %s", at, diff)
		}
		if got := wrong(part, 7, at); got != -1 {
			t.Fatalf("from %d on byte %d is wrong", at, got)
		}
		for i := range part {
			part[i] ^= 0x10
			if got := wrong(part, 7, at); got != i {
				t.Fatalf("byte %d is wrong, found %d", i, got)
			}
			part[i] ^= 0x10
		}
	}
	if wrong(whole, 8, 0) == -1 || wrong(whole, 7, 1) == -1 || wrong(nil, 1, 0) != -1 {
		t.Error("patterns do not depend on seed and place")
	}
}

func TestCollector(t *testing.T) {
	c := newCollector(&opener{})
	if _, err := c.take(1, time.Millisecond); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("nothing came, and: %v", err)
	}
	var all sync.WaitGroup
	all.Go(func() { c.add([]provider.Completion{{Context: 1}, {Context: 2}, {Context: 3}}, nil) })
	got, err := c.take(2, time.Minute)
	all.Wait()
	if err != nil || len(got) != 2 || got[1].Context != 2 {
		t.Errorf("got %v, %v", got, err)
	}
	if rest := c.all(time.Minute); len(rest) != 1 || rest[0].Context != 3 {
		t.Errorf("the rest is %v", rest)
	}
	c.add(nil, provider.ErrClosed)
	if _, err := c.take(1, time.Minute); !errors.Is(err, provider.ErrClosed) {
		t.Errorf("got %v", err)
	}
}

func TestModel(t *testing.T) {
	i8 := func(v int8) []byte { return []byte{byte(v)} }
	for _, c := range []struct {
		code          provider.AtomicCode
		typ           provider.DataType
		t, x, c, want []byte
	}{
		{provider.AtomicMin, provider.Int8, i8(3), i8(-4), nil, i8(-4)},
		{provider.AtomicMin, provider.Uint8, []byte{3}, []byte{0xfc}, nil, []byte{3}},
		{provider.AtomicMax, provider.Int8, i8(3), i8(-4), nil, i8(3)},
		{provider.AtomicSum, provider.Int8, i8(127), i8(1), nil, i8(-128)},
		{provider.AtomicProd, provider.Uint8, []byte{20}, []byte{20}, nil, []byte{144}},
		{provider.AtomicLogOr, provider.Uint8, []byte{0}, []byte{9}, nil, []byte{1}},
		{provider.AtomicLogAnd, provider.Uint8, []byte{4}, []byte{9}, nil, []byte{1}},
		{provider.AtomicLogXor, provider.Uint8, []byte{4}, []byte{9}, nil, []byte{0}},
		{provider.AtomicBitXor, provider.Uint8, []byte{6}, []byte{3}, nil, []byte{5}},
		{provider.AtomicRead, provider.Uint8, []byte{6}, []byte{3}, nil, []byte{6}},
		{provider.AtomicWrite, provider.Uint8, []byte{6}, []byte{3}, nil, []byte{3}},
		{provider.AtomicSwapEq, provider.Uint8, []byte{6}, []byte{3}, []byte{6}, []byte{3}},
		{provider.AtomicSwapNe, provider.Uint8, []byte{6}, []byte{3}, []byte{6}, []byte{6}},
		{provider.AtomicSwapLe, provider.Uint8, []byte{6}, []byte{3}, []byte{7}, []byte{6}},
		{provider.AtomicSwapLt, provider.Uint8, []byte{6}, []byte{3}, []byte{5}, []byte{3}},
		{provider.AtomicSwapGe, provider.Uint8, []byte{6}, []byte{3}, []byte{6}, []byte{3}},
		{provider.AtomicSwapGt, provider.Uint8, []byte{6}, []byte{3}, []byte{6}, []byte{6}},
		{provider.AtomicMaskSwap, provider.Uint8, []byte{0xf0}, []byte{0x0f}, []byte{0x3c}, []byte{0xcc}},
		{provider.AtomicSum, provider.Int16, []byte{0xff, 0x00}, []byte{1, 0}, nil, []byte{0, 1}},
	} {
		comparand := c.c
		if comparand == nil {
			comparand = make([]byte, 16)
		}
		got := append([]byte(nil), c.t...)
		model(c.code, c.typ, got, c.x, comparand)
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("code %d on type %d, %x with %x: %s", c.code, c.typ, c.t, c.x, diff)
		}
	}
	for typ := provider.Int8; typ <= provider.Complex128; typ++ {
		b := pattern(typ.Size(), 3)
		back := make([]byte, len(b))
		store(typ, back, load(typ, b))
		if diff := cmp.Diff(b, back); diff != "" {
			t.Errorf("type %d: %s", typ, diff)
		}
	}
}

// What an open domain may say otherwise than Discover did: to have room for more peers, if it is denied something.
func TestKeeps(t *testing.T) {
	said := provider.Info{Provider: "x", Limits: provider.Limits{Peers: 10, Inject: 5}}
	for _, c := range []struct {
		change func(i *provider.Info)
		option string
		want   bool
	}{
		{func(*provider.Info) {}, "", true},
		{func(*provider.Info) {}, "disable", true},
		{func(i *provider.Info) { i.Limits.Peers = 11 }, "disable", true},
		{func(i *provider.Info) { i.Limits.Peers = 11 }, "folder", false},
		{func(i *provider.Info) { i.Limits.Peers = 11 }, "", false},
		{func(i *provider.Info) { i.Limits.Peers = 9 }, "disable", false},
		{func(i *provider.Info) { i.Limits.Inject = 6 }, "disable", false},
		{func(i *provider.Info) { i.Caps = provider.Msg }, "disable", false},
	} {
		open := said
		c.change(&open)
		if got := keeps(open, said, map[string]string{c.option: "y"}); got != c.want {
			t.Errorf("%+v with %q: %v", open, c.option, got)
		}
	}
}
