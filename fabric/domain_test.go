package fabric

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weft-fabric/weft/internal/fakeprov"
	"github.com/weft-fabric/weft/memmon"
)

func TestMessages(t *testing.T) {
	p := fakeprov.New("fake")
	a, b := open(t, p, "a"), open(t, p, "b")
	to := a.peer(t, b)
	buf := make([]byte, 16)
	if err := b.ep.Recv(Op{Local: Bytes(buf[:4]), Locals: []Segment{Bytes(buf[4:])}, Context: 5}); err != nil {
		t.Fatal(err)
	}
	if err := a.ep.Send(Op{Local: Bytes([]byte("hello ")), Locals: []Segment{Bytes([]byte("b"))}, Peer: to, Context: 6, Flags: RemoteData, Data: 7}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(Completion{Context: 6, Kind: SendDone, Len: 7, Source: to}, a.one(t)); diff != "" {
		t.Error(diff)
	}
	want := Completion{Context: 5, Kind: RecvDone, Flags: HasData, Len: 7, Data: 7, Source: b.peer(t, a)}
	if diff := cmp.Diff(want, b.one(t)); diff != "" {
		t.Error(diff)
	}
	if string(buf[:7]) != "hello b" {
		t.Errorf("received %q", buf)
	}
	if err := b.ep.RecvTagged(Op{Local: Bytes(buf), Tag: 0x10, Ignore: 0xf, Context: 8}); err != nil {
		t.Fatal(err)
	}
	if err := a.ep.SendTagged(Op{Local: Bytes([]byte("x")), Peer: to, Tag: 0x13, Flags: Quiet | Inject}); err != nil {
		t.Fatal(err)
	}
	if c := b.one(t); c.Tag != 0x13 || c.Len != 1 || c.Kind != TRecvDone {
		t.Errorf("tagged: %+v", c)
	}
	var none [1]Completion
	if n, err := a.q.Read(none[:]); n != 0 || err != nil {
		t.Errorf("a quiet send gave %d completions, %v", n, err)
	}
}

func TestMemory(t *testing.T) {
	p := fakeprov.New("fake")
	a, b := open(t, p, "a"), open(t, p, "b")
	to := a.peer(t, b)
	there, err := b.d.Alloc(64, PeerRead|PeerWrite)
	if err != nil {
		t.Fatal(err)
	}
	here, err := a.d.Register(memmon.HeapBytes([]byte("0123456789")), 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := a.ep.Write(Op{Local: here.Slice(2, 3), Peer: to, Key: there.Key(), Offset: 10, Context: 1, Flags: RemoteData, Data: 9}); err != nil {
		t.Fatal(err)
	}
	if c := a.one(t); c.Err != nil || c.Kind != WriteDone {
		t.Errorf("write: %+v", c)
	}
	if c := b.one(t); c.Kind != RemoteWrite || c.Data != 9 || c.Len != 3 {
		t.Errorf("at the target: %+v", c)
	}
	back := make([]byte, 3)
	if err := a.ep.Read(Op{Local: Bytes(back), Peer: to, Remotes: []RemoteSegment{{Key: there.Key(), Offset: 10, Len: 3}}}); err != nil {
		t.Fatal(err)
	}
	if c := a.one(t); c.Err != nil || string(back) != "234" {
		t.Errorf("read: %+v, %q", c, back)
	}
	v, err := a.d.View(t.Context(), to, there.Key(), 9, 5)
	if err != nil {
		t.Fatal(err)
	}
	if string(v.Bytes()) != "\x00234\x00" || a.d.Stats().Views != 1 {
		t.Errorf("view: %q, %+v", v.Bytes(), a.d.Stats())
	}
	kind := memmon.Mapped(v.Bytes(), v)
	held := kind.Generation()
	v.Release()
	v.Release()
	if kind.Generation() == held {
		t.Error("a view that was released is the memory that it was")
	}
	if v.Bytes() != nil || a.d.Stats().Views != 0 {
		t.Errorf("released view: %q, %+v", v.Bytes(), a.d.Stats())
	}
	if err := there.Refresh(60, 4); err != nil {
		t.Error(err)
	}
	if err := there.Refresh(60, 5); !errors.Is(err, ErrInvalid) {
		t.Errorf("refresh beyond the end: %v", err)
	}
	if err := errors.Join(there.Close(), there.Close()); err != nil {
		t.Error(err)
	}
	if there.Bytes() != nil {
		t.Error("closed memory still has bytes")
	}
	if _, err := a.d.View(t.Context(), to, there.Key(), 0, 1); !errors.Is(err, ErrKey) {
		t.Errorf("view of closed memory: %v", err)
	}
}

// What is not memory of this domain, and in it, is refused before the provider sees it.
func TestForeignSegments(t *testing.T) {
	p := fakeprov.New("fake")
	a, b := open(t, p, "a"), open(t, p, "b")
	to := a.peer(t, b)
	mine, err := a.d.Alloc(100, 0)
	if err != nil {
		t.Fatal(err)
	}
	others, err := b.d.Alloc(100, 0)
	if err != nil {
		t.Fatal(err)
	}
	closed, err := a.d.Alloc(100, 0)
	if err != nil {
		t.Fatal(err)
	}
	stale := closed.Slice(0, 1)
	if err := closed.Close(); err != nil {
		t.Fatal(err)
	}
	if err := a.ep.Send(Op{Local: mine.Slice(100, 0), Locals: []Segment{mine.Slice(0, 100), Bytes(nil)}, Peer: to, Flags: Quiet}); err != nil {
		t.Errorf("good segments: %v", err)
	}
	for _, c := range []struct {
		name string
		s    Segment
		says string
	}{
		{"other domain", others.Slice(0, 1), "another domain"},
		{"closed", stale, "closed"},
		{"slice of closed", closed.Slice(0, 1), "Slice(0, 1) of memory that was closed"},
		{"negative", mine.Slice(-1, 1), "Slice(-1, 1) of memory of 100 bytes"},
		{"negative length", mine.Slice(1, -1), "Slice(1, -1)"},
		{"beyond", mine.Slice(1, 100), "Slice(1, 100)"},
		{"far beyond", mine.Slice(101, 0), "Slice(101, 0)"},
		{"wraps", mine.Slice(1, int(^uint(0)>>1)), "of memory of 100 bytes"},
		{"made by hand", Segment{Memory: mine}, "Memory.Slice"},
	} {
		for _, op := range []Op{{Local: c.s, Peer: to}, {Locals: []Segment{c.s}, Peer: to}} {
			if err := a.ep.Send(op); !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%s: %v, want %q", c.name, err, c.says)
			}
		}
	}
}

// global is memory that Go did not allocate.
var global [8]byte

// Who registers memory that is not of the heap as such can tell that from other mistakes.
func TestRegisterGlobal(t *testing.T) {
	d := open(t, fakeprov.New("fake"), "a").d
	if _, err := d.Register(memmon.HeapBytes(global[:]), 0); !errors.Is(err, ErrInvalid) || !errors.Is(err, memmon.ErrNotHeap) {
		t.Errorf("registered: %v", err)
	}
}

// Bytes that are not of the memory that they are said to be would be looked for at an offset of nothing: they are refused.
func TestKindsOfSegments(t *testing.T) {
	p := fakeprov.New("fake")
	a, b := open(t, p, "a"), open(t, p, "b")
	to := a.peer(t, b)
	mine, err := a.d.Alloc(100, 0)
	if err != nil {
		t.Fatal(err)
	}
	arena, err := memmon.NewArena(100)
	if err != nil {
		t.Fatal(err)
	}
	ended := arena.Bytes()
	if err := arena.Close(); err != nil {
		t.Fatal(err)
	}
	all := make([]byte, 100)
	kind := memmon.HeapBytes(all[10:90])
	for _, s := range []Segment{{Bytes: all[10:90], Kind: kind}, {Bytes: all[89:90], Kind: kind}, {Bytes: all[:0], Kind: kind}, {Kind: kind}} {
		if err := a.ep.Send(Op{Local: s, Peer: to, Flags: Quiet}); err != nil {
			t.Errorf("%d bytes of their kind: %v", len(s.Bytes), err)
		}
	}
	const says = "not part of"
	for _, c := range []struct {
		name string
		s    Segment
		says string
	}{
		{"before it", Segment{Bytes: all[9:11], Kind: kind}, says},
		{"behind it", Segment{Bytes: all[89:91], Kind: kind}, says},
		{"up to its capacity", Segment{Bytes: all[90:91], Kind: kind}, says},
		{"other bytes", Segment{Bytes: make([]byte, 10), Kind: kind}, says},
		{"no memory", Segment{Bytes: all, Kind: memmon.HeapBytes(nil)}, says},
		{"an arena that is closed", Segment{Bytes: ended, Kind: arena}, says},
		{"registered", Segment{Bytes: mine.Bytes()[:1], Memory: mine.Slice(0, 1).Memory, Kind: kind}, "registered memory has a Kind"},
	} {
		for _, op := range []Op{{Local: c.s, Peer: to}, {Locals: []Segment{c.s}, Peer: to}} {
			if err := a.ep.Send(op); !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%s: %v, want %q", c.name, err, c.says)
			}
		}
	}
}

// An error says which operation, through which provider, towards whom.
func TestErrorsName(t *testing.T) {
	p := fakeprov.New("fake")
	a, b := open(t, p, "a"), open(t, p, "b")
	to := a.peer(t, b)
	err := a.ep.Send(Op{Local: Bytes(make([]byte, 1<<20+1)), Peer: to})
	oe, ok := errors.AsType[*OpError](err)
	if !ok || oe.Op != "send" || oe.Provider != "fake" || oe.Addr != b.ep.Address() || !errors.Is(err, ErrTooLong) {
		t.Errorf("%#v", err)
	}
	if _, err := a.d.Address(99); !errors.Is(err, ErrInvalid) || !strings.HasPrefix(err.Error(), "fake: address: ") {
		t.Errorf("address: %v", err)
	}
	if err := a.d.Remove(99); !errors.Is(err, ErrInvalid) || !strings.HasPrefix(err.Error(), "fake: remove: ") {
		t.Errorf("remove: %v", err)
	}
	if _, err := a.d.Insert(""); !errors.Is(err, ErrInvalid) {
		t.Errorf("insert: %v", err)
	}
	if err := b.ep.Atomic(Atomic{}); !errors.Is(err, ErrNotSupported) || !strings.HasPrefix(err.Error(), "fake: atomic: ") {
		t.Errorf("atomic: %v", err)
	}
	if _, err := a.q.Descriptor(); !errors.Is(err, ErrNotSupported) || !strings.HasPrefix(err.Error(), "fake: descriptor: ") {
		t.Errorf("descriptor: %v", err)
	}
	if _, err := a.q.Wait(t.Context(), nil); !errors.Is(err, ErrInvalid) {
		t.Errorf("wait for nothing: %v", err)
	}
	other := open(t, p, "c")
	if _, err := a.d.OpenEndpoint(EndpointConfig{Name: "c", Send: a.q, Recv: a.q}); !errors.Is(err, ErrBusy) {
		t.Errorf("a name twice: %v", err)
	}
	counter, err := other.d.OpenCounter()
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]EndpointConfig{
		"no queue":      {},
		"one queue":     {Send: a.q},
		"foreign queue": {Send: a.q, Recv: other.q},
		"counter":       {Send: a.q, Recv: a.q, Counters: Counters{Read: counter}},
		"depth":         {Send: a.q, Recv: a.q, Depth: -1},
	} {
		if _, err := a.d.OpenEndpoint(c); !errors.Is(err, ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, f := range map[string]func() error{
		"queue":            func() error { _, err := a.d.OpenCompletionQueue(CQConfig{Size: -1}); return err },
		"alloc":            func() error { _, err := a.d.Alloc(-1, 0); return err },
		"alloc nothing":    func() error { _, err := a.d.Alloc(0, 0); return err },
		"access":           func() error { _, err := a.d.Alloc(1, 1<<7); return err },
		"register":         func() error { _, err := a.d.Register(nil, 0); return err },
		"register unowned": func() error { _, err := a.d.Register(memmon.Mapped(make([]byte, 8), nil), 0); return err },
		"register none":    func() error { _, err := a.d.Register(memmon.HeapBytes(nil), 0); return err },
		"register odd":     func() error { _, err := a.d.Register(memmon.HeapBytes([]byte{1}), 1<<7); return err },
		"view":             func() error { _, err := a.d.View(t.Context(), to, 1, 0, -1); return err },
		"view wraps":       func() error { _, err := a.d.View(t.Context(), to, 1, ^uint64(0), 1); return err },
		"view of none":     func() error { _, err := a.d.View(t.Context(), 0, 1, 0, 1); return err },
	} {
		if err := f(); !errors.Is(err, ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// What the provider does not offer is refused by name.
func TestNotOffered(t *testing.T) {
	p := fakeprov.New("fake")
	p.Offer.Caps = Msg
	a := open(t, p, "a")
	if _, err := a.d.Alloc(1, 0); !errors.Is(err, ErrNotSupported) {
		t.Errorf("alloc: %v", err)
	}
	if _, err := a.d.View(t.Context(), 1, 1, 0, 1); !errors.Is(err, ErrNotSupported) {
		t.Errorf("view: %v", err)
	}
	if err := a.ep.Read(Op{Peer: 1}); !errors.Is(err, ErrNotSupported) {
		t.Errorf("read: %v", err)
	}
}

// The bare ErrAgain of a provider gets the form of all errors, and progress ends it.
func TestAgain(t *testing.T) {
	p := fakeprov.New("fake")
	a, b := open(t, p, "a"), open(t, p, "b")
	q, err := a.d.OpenCompletionQueue(CQConfig{Size: 2})
	if err != nil {
		t.Fatal(err)
	}
	ep, err := a.d.OpenEndpoint(EndpointConfig{Send: q, Recv: a.q})
	if err != nil {
		t.Fatal(err)
	}
	sent, got := 0, 0
	var c [1]Completion
	for sent < 10 {
		switch err := ep.Send(Op{Peer: a.peer(t, b)}); {
		case err == nil:
			sent++
		case errors.Is(err, ErrAgain):
			if oe, ok := errors.AsType[*OpError](err); !ok || oe.Op != "send" || oe.Provider != "fake" {
				t.Fatalf("%#v", err)
			}
			n, err := q.Read(c[:])
			if n != 1 || err != nil {
				t.Fatalf("ErrAgain without completions: %d, %v", n, err)
			}
			got++
		default:
			t.Fatal(err)
		}
	}
	if got != 8 {
		t.Errorf("%d completions made room for 10 sends in 2 places", got)
	}
}

func TestCounters(t *testing.T) {
	p := fakeprov.New("fake")
	a, b := open(t, p, "a"), open(t, p, "b")
	c, err := a.d.OpenCounter()
	if err != nil {
		t.Fatal(err)
	}
	ep, err := a.d.OpenEndpoint(EndpointConfig{Send: a.q, Recv: a.q, Counters: Counters{Send: c}})
	if err != nil {
		t.Fatal(err)
	}
	to := a.peer(t, b)
	for range 3 {
		if err := ep.Send(Op{Peer: to, Flags: Quiet}); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.Wait(t.Context(), 3); err != nil || c.Value() != 3 || c.Errors() != 0 {
		t.Errorf("%v, %d, %d", err, c.Value(), c.Errors())
	}
	c.Add(2)
	if c.Value() != 5 {
		t.Errorf("after Add: %d", c.Value())
	}
	c.Set(1)
	if c.Value() != 1 {
		t.Errorf("after Set: %d", c.Value())
	}
	ended := make(chan error)
	go func() { ended <- c.Wait(t.Context(), 100) }()
	if err := errors.Join(c.Close(), c.Close()); err != nil {
		t.Error(err)
	}
	if err := <-ended; !errors.Is(err, ErrClosed) {
		t.Errorf("wait ended with %v", err)
	}
}

func TestQueueWithOpenEndpointIsBusy(t *testing.T) {
	p := fakeprov.New("fake")
	a := open(t, p, "a")
	if err := a.q.Close(); !errors.Is(err, ErrBusy) {
		t.Errorf("close with an open endpoint: %v", err)
	}
	if err := a.ep.Recv(Op{Context: 4}); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(a.ep.Close(), a.ep.Close()); err != nil {
		t.Error(err)
	}
	if c := a.one(t); c.Context != 4 || !errors.Is(c.Err, ErrClosed) {
		t.Errorf("the receive of a closed endpoint: %+v", c)
	}
	if err := errors.Join(a.q.Close(), a.q.Close()); err != nil {
		t.Error(err)
	}
	if _, err := a.d.OpenEndpoint(EndpointConfig{Send: a.q, Recv: a.q}); !errors.Is(err, ErrClosed) {
		t.Errorf("an endpoint on a closed queue: %v", err)
	}
	if _, err := a.q.Wait(t.Context(), make([]Completion, 1)); !errors.Is(err, ErrClosed) {
		t.Errorf("wait on a closed queue: %v", err)
	}
}

func TestDomainClosesAll(t *testing.T) {
	p := fakeprov.New("fake")
	a := open(t, p, "a")
	m, err := a.d.Alloc(8, PeerRead)
	if err != nil {
		t.Fatal(err)
	}
	c, err := a.d.OpenCounter()
	if err != nil {
		t.Fatal(err)
	}
	waits := make(chan error, 2)
	go func() { _, err := a.q.Wait(context.WithoutCancel(t.Context()), make([]Completion, 1)); waits <- err }()
	go func() { waits <- c.Wait(context.WithoutCancel(t.Context()), 1) }()
	if err := errors.Join(a.d.Close(), a.d.Close()); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := <-waits; !errors.Is(err, ErrClosed) {
			t.Errorf("a wait ended with %v", err)
		}
	}
	if m.Bytes() != nil {
		t.Error("memory outlives its domain")
	}
	if err := a.ep.Send(Op{Peer: 1}); !errors.Is(err, ErrClosed) {
		t.Errorf("send: %v", err)
	}
	for name, f := range map[string]func() error{
		"queue":    func() error { _, err := a.d.OpenCompletionQueue(CQConfig{}); return err },
		"counter":  func() error { _, err := a.d.OpenCounter(); return err },
		"endpoint": func() error { _, err := a.d.OpenEndpoint(EndpointConfig{Send: a.q, Recv: a.q}); return err },
		"alloc":    func() error { _, err := a.d.Alloc(1, 0); return err },
		"register": func() error { _, err := a.d.Register(memmon.HeapBytes([]byte{1}), 0); return err },
	} {
		if err := f(); !errors.Is(err, ErrClosed) {
			t.Errorf("%s after close: %v", name, err)
		}
	}
	if err := errors.Join(a.ep.Close(), a.q.Close(), c.Close(), m.Close()); err != nil {
		t.Errorf("closing what the domain has closed: %v", err)
	}
}

// Close against everything that opens: nothing stays open, nothing is closed twice.
func TestDomainCloseRaces(t *testing.T) {
	for range 50 {
		p := fakeprov.New("fake")
		a := open(t, p, "a")
		var all sync.WaitGroup
		start := make(chan struct{})
		for range 4 {
			all.Go(func() {
				<-start
				for {
					q, err := a.d.OpenCompletionQueue(CQConfig{})
					if err != nil {
						return
					}
					ep, err := a.d.OpenEndpoint(EndpointConfig{Send: q, Recv: q})
					if err != nil {
						return
					}
					m, err := a.d.Alloc(8, 0)
					if err != nil {
						return
					}
					ep.Send(Op{Local: m.Slice(0, 8), Peer: 1})
					m.Close()
					ep.Close()
					q.Close()
				}
			})
		}
		all.Go(func() {
			<-start
			if err := a.d.Close(); err != nil {
				t.Error(err)
			}
		})
		close(start)
		all.Wait()
		a.d.memories.Range(func(k, _ any) bool { t.Errorf("open memory: %v", k); return true })
		if n := len(a.d.ends) + len(a.d.queues) + len(a.d.counters); n != 0 {
			t.Errorf("%d things are still open", n)
		}
	}
}

func TestSignalReadyCancel(t *testing.T) {
	p := fakeprov.New("fake")
	a := open(t, p, "a")
	if !a.q.TryWait() {
		t.Error("an empty queue says not to wait")
	}
	a.q.Signal()
	if _, err := a.q.Wait(t.Context(), make([]Completion, 1)); !errors.Is(err, ErrSignal) {
		t.Errorf("signalled: %v", err)
	}
	if err := a.ep.Recv(Op{Context: 3}); err != nil {
		t.Fatal(err)
	}
	if a.ep.Cancel(4) || !a.ep.Cancel(3) {
		t.Error("Cancel finds the wrong receive")
	}
	<-a.q.Ready()
	if c := a.one(t); !errors.Is(c.Err, ErrCancelled) {
		t.Errorf("%+v", c)
	}
	if err := a.d.Remove(a.peer(t, a)); err != nil {
		t.Error(err)
	}
	if got := a.d.Peers(); len(got) != 0 {
		t.Errorf("%v", got)
	}
}
