package interop

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"runtime"
	"runtime/debug"
	"testing"

	"github.com/weft-fabric/weft/fabric"
	"github.com/weft-fabric/weft/fabric/provider"
	"github.com/weft-fabric/weft/internal/fakeprov"
	"github.com/weft-fabric/weft/internal/pinnic"
	"github.com/weft-fabric/weft/internal/provutil"
	"github.com/weft-fabric/weft/internal/sys"
	"github.com/weft-fabric/weft/internal/testutil"
	"github.com/weft-fabric/weft/memmon"
)

// pinned is the card of a provider: what is sent are the pages that were registered.
type pinned struct {
	t      *testing.T
	card   *pinnic.Card
	far    *net.TCPConn
	locals *provutil.Locals[pinnic.Handle]
}

var errNoMemory = errors.New("the test registers no memory with the domain")

func newPinned(t *testing.T, a *memmon.Arbiter) *pinned {
	t.Helper()
	testutil.Require(t, testutil.Capability{Name: "io_uring", Fixed: true, Probe: func() error { return sys.Features{}.Check(sys.IOUring) }})
	card, far, err := pinnic.New(pinnic.Config{})
	if err != nil {
		t.Fatal(err)
	}
	l, err := provutil.NewLocals(provutil.LocalsConfig[pinnic.Handle]{
		Registrar: card, Small: 64, Bounces: 4, Arbiter: a,
		Own: func(provider.Memory, []byte) (pinnic.Handle, uint64, error) { return pinnic.Handle{}, 0, errNoMemory },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(l.Close(), far.Close(), card.Close()); err != nil {
			t.Error(err)
		}
	})
	return &pinned{t, card, far, l}
}

func (p *pinned) Gather(s *provider.Segment) ([]byte, error) {
	x, err := p.locals.Begin(s, provutil.ReadLocal)
	if err != nil || len(s.Bytes) == 0 {
		return nil, err
	}
	sent := make(chan error, 1)
	go func() { sent <- p.card.Send(x.Handle, int(x.Offset), len(s.Bytes)) }()
	got := make([]byte, len(s.Bytes))
	_, err = io.ReadFull(p.far, got)
	return got, errors.Join(err, <-sent, x.End(len(got)))
}

func (p *pinned) Scatter(s *provider.Segment, b []byte) error {
	x, err := p.locals.Begin(s, provutil.WriteLocal)
	if err != nil || len(b) == 0 {
		return err
	}
	_, err = p.far.Write(b)
	return errors.Join(err, p.card.Recv(x.Handle, int(x.Offset), len(b)), x.End(len(b)))
}

// wire is two endpoints of a domain whose local buffers are registered.
type wire struct {
	*pinned
	queue    *fabric.CompletionQueue
	from, to *fabric.Endpoint
	peer     fabric.Peer
}

func newWire(t *testing.T, a *memmon.Arbiter) *wire {
	t.Helper()
	p := fakeprov.New("card")
	w := &wire{pinned: newPinned(t, a)}
	p.Card = w.pinned
	p.Offer.Memory.Local = true
	infos, err := fabric.DiscoverIn(t.Context(), p, fabric.Hints{})
	if err != nil {
		t.Fatal(err)
	}
	d, err := fabric.OpenDomainIn(p, infos[0], fabric.DomainConfig{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	if w.queue, err = d.OpenCompletionQueue(fabric.CQConfig{}); err != nil {
		t.Fatal(err)
	}
	open := func(name string) (ep *fabric.Endpoint) {
		if ep, err = d.OpenEndpoint(fabric.EndpointConfig{Name: name, Send: w.queue, Recv: w.queue}); err != nil {
			t.Fatal(err)
		}
		return ep
	}
	w.from, w.to = open("from"), open("to")
	if w.peer, err = d.Insert(w.to.Address()); err != nil {
		t.Fatal(err)
	}
	return w
}

// carries sends all of the memory and returns its first byte as it arrives.
func (w *wire) carries(k memmon.Kind) byte {
	w.t.Helper()
	got := make([]byte, len(k.Bytes()))
	if err := w.to.Recv(fabric.Op{Local: fabric.Bytes(got)}); err != nil {
		w.t.Fatal(err)
	}
	if err := w.from.Send(fabric.Op{Local: fabric.Segment{Bytes: k.Bytes(), Kind: k}, Peer: w.peer}); err != nil {
		w.t.Fatal(err)
	}
	for range 2 {
		var c [1]fabric.Completion
		if _, err := w.queue.Wait(w.t.Context(), c[:]); err != nil {
			w.t.Fatal(err)
		}
		if c[0].Err != nil {
			w.t.Fatal(c[0].Err)
		}
	}
	if !bytes.Equal(got, bytes.Repeat(got[:1], len(got))) {
		w.t.Fatal("a mixture arrived")
	}
	return got[0]
}

func paint(b []byte, with byte) {
	for i := range b {
		b[i] = with
	}
}

// mapping is memory that comes and goes.
type mapping struct{ *sys.Anonymous }

// happenings are what makes registrations of mappings stale.
var happenings = map[string]func(m *mapping) error{
	"mapped over": func(m *mapping) error { return m.MapOver() },
	"dropped":     func(m *mapping) error { return sys.NewPages(m.Bytes()) },
	"unmapped, and mapped again at the same address": func(m *mapping) error {
		r := memmon.RangeOf(m.Bytes())
		if err := m.Close(); err != nil {
			return err
		}
		again, taken, err := sys.MapAnonymousAt(r.Addr, int(r.Len))
		if taken {
			return errTaken
		}
		m.Anonymous = again
		return err
	},
}

// errTaken says that another thread of the process has mapped something at the address meanwhile.
var errTaken = errors.New("the address is taken")

// told is an owner that says when its memory changes; one that never does is what a cache is without anybody who tells.
type told struct{ n uint64 }

func (o *told) Generation() uint64 { return o.n }

// stale plays all that can happen to a mapping, and says what the wire carries after it.
func stale(t *testing.T, w *wire, kind func(b []byte) memmon.Kind, before func()) map[string]byte {
	t.Helper()
	carried := map[string]byte{}
	for name, happen := range happenings {
		for range testutil.Count(t, 20, 1000) {
			a, err := sys.MapAnonymous(16 * os.Getpagesize())
			if err != nil {
				t.Fatal(err)
			}
			m := &mapping{Anonymous: a}
			paint(m.Bytes(), 'O')
			k := kind(m.Bytes())
			for range 2 { // the second one is a hit
				if c := w.carries(k); c != 'O' {
					t.Fatalf("%s: %q before it happens", name, c)
				}
			}
			before()
			if err := happen(m); errors.Is(err, errTaken) {
				continue
			} else if err != nil {
				t.Fatal(err)
			}
			paint(m.Bytes(), 'N')
			got := w.carries(kind(m.Bytes()))
			if c, ok := carried[name]; ok && c != got {
				t.Errorf("%s: once %q, once %q", name, c, got)
			}
			carried[name] = got
			before()
			if err := m.Close(); err != nil {
				t.Fatal(err)
			}
			if t.Failed() {
				return carried
			}
		}
	}
	if len(carried) != len(happenings) {
		t.Errorf("only %v happened", carried)
	}
	return carried
}

func arbiter(t *testing.T) *memmon.Arbiter {
	t.Helper()
	a, err := memmon.NewArbiter()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := a.Close(); err != nil {
			t.Error(err)
		}
	})
	return a
}

// TestSoakRegistrations sends memory through a fabric whose card sends the pages that were registered: without anybody who tells, what was
// there before; with each who can tell, what is there now.
func TestSoakRegistrations(t *testing.T) {
	all := func(t *testing.T, carried map[string]byte, want byte) {
		t.Helper()
		for name, got := range carried {
			if got != want {
				t.Errorf("%s: the wire carries %q, not %q", name, got, want)
			}
		}
	}
	t.Run("nobody tells", func(t *testing.T) {
		own := new(told)
		all(t, stale(t, newWire(t, arbiter(t)), func(b []byte) memmon.Kind { return memmon.Mapped(b, own) }, func() {}), 'O')
	})
	t.Run("the owner tells", func(t *testing.T) {
		own := new(told)
		all(t, stale(t, newWire(t, arbiter(t)), func(b []byte) memmon.Kind { return memmon.Mapped(b, own) }, func() { own.n++ }), 'N')
	})
	t.Run("nobody can tell", func(t *testing.T) {
		w := newWire(t, arbiter(t))
		all(t, stale(t, w, func(b []byte) memmon.Kind { return memmon.Mapped(b, nil) }, func() {}), 'N')
		if s := w.locals.Stats(); s.Hits != 0 {
			t.Errorf("kept on nobody's word: %+v", s)
		}
	})
	t.Run("userfaultfd", func(t *testing.T) {
		testutil.Require(t, testutil.Capability{Name: "userfaultfd with write protection", Probe: sys.CanUserfault, Fixed: true})
		a := arbiter(t)
		if err := a.Choose("userfaultfd"); err != nil {
			t.Fatal(err)
		}
		w := newWire(t, a)
		all(t, stale(t, w, func(b []byte) memmon.Kind { return memmon.Mapped(b, nil) }, func() {}), 'N')
		if s := w.locals.Stats(); s.Hits == 0 {
			t.Errorf("nothing was kept: %+v", s)
		}
	})
}

// TestSoakRegisteredArena does the same to memory of an arena.
func TestSoakRegisteredArena(t *testing.T) {
	a := arbiter(t)
	w := newWire(t, a)
	m, err := a.NewArena(16 * os.Getpagesize())
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	for range testutil.Count(t, 20, 1000) {
		paint(m.Bytes(), 'O')
		for range 2 {
			if c := w.carries(m); c != 'O' {
				t.Fatalf("%q before the discard", c)
			}
		}
		if err := m.Discard(0, len(m.Bytes())); err != nil {
			t.Fatal(err)
		}
		paint(m.Bytes(), 'N')
		if c := w.carries(m); c != 'N' {
			t.Fatalf("%q after the discard", c)
		}
	}
	if s := w.locals.Stats(); s.Hits == 0 {
		t.Errorf("nothing was kept: %+v", s)
	}
}

// TestF71RegisteredHeap sends buffers of the Go heap that live for one message, while the runtime gives pages back and uses addresses again: always the bytes of
// this message arrive.
func TestF71RegisteredHeap(t *testing.T) {
	w := newWire(t, arbiter(t))
	again := map[uint64]bool{}
	reused := 0
	for n := range testutil.Count(t, 200, 2000) {
		b := make([]byte, 256<<10)
		paint(b, byte(n))
		at := memmon.RangeOf(b).Addr
		if again[at] {
			reused++
		}
		again[at] = true
		k := memmon.HeapBytes(b)
		for range 2 {
			if c := w.carries(k); c != byte(n) {
				t.Fatalf("message %d carries the bytes of %d", n, c)
			}
		}
		runtime.KeepAlive(b)
		if n%10 == 0 {
			debug.FreeOSMemory()
		}
	}
	if s := w.locals.Stats(); s.Hits == 0 || reused == 0 {
		t.Errorf("it has shown nothing: %d addresses were used again; %+v", reused, s)
	}
}
