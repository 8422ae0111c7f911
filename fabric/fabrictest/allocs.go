package fabrictest

import (
	"runtime"
	"testing"

	"github.com/weft-fabric/weft/fabric/provider"
	"github.com/weft-fabric/weft/memmon"
)

// viewAllocs is what making and releasing a view may allocate: the view that the program holds, and the provider's.
const viewAllocs = 2

// testAllocs: posts and completions allocate nothing, whatever way the bytes go.
func testAllocs(e *env) {
	a, b := e.directs()
	w := e.newWork(a, b)
	w.messages()
	if e.has(provider.RMA) {
		heap, err := b.d.Register(memmon.HeapBytes(make([]byte, w.long)), readWrite)
		if err != nil {
			e.Fatal(err)
		}
		w.remote("registered memory", heap)
	}
	if e.has(provider.RMA | provider.Arena) {
		m, err := b.d.Alloc(w.long, readWrite)
		if err != nil {
			e.Fatal(err)
		}
		w.remote("an arena", m)
	}
	if e.has(provider.Views | provider.Arena) {
		w.views()
	}
}

// work is what is measured: operations of a towards b.
type work struct {
	e       *env
	a, b    *direct
	out, in memory // large buffers
	long    int    // bytes of them
	some    []provider.Completion
	tag     uint64
}

func (e *env) newWork(a, b *direct) *work {
	e.Helper()
	w := &work{e: e, a: a, b: b, long: 600_000, some: make([]provider.Completion, 4)}
	var err error
	for m, d := range map[*memory]*direct{&w.out: a, &w.in: b} {
		if *m, err = d.d.Register(memmon.HeapBytes(make([]byte, w.long)), 0); err != nil {
			e.Fatal(err)
		}
	}
	return w
}

// pieces cuts n bytes of a buffer in three.
func pieces(m memory, n int) (first provider.Segment, more []provider.Segment) {
	return m.Slice(0, n/4), []provider.Segment{m.Slice(n/4, n/4), m.Slice(2*(n/4), n-2*(n/4))}
}

// vectored says whether an operation may have three segments on both sides.
func (w *work) vectored() bool {
	l := w.e.info.Limits
	return (l.Segments == 0 || l.Segments >= 3) && (l.Remotes == 0 || l.Remotes >= 3)
}

// messages measures what both sides do, in all the ways that a message may go.
func (w *work) messages() {
	e, a, b := w.e, w.a, w.b
	e.Helper()
	sources := map[string]memory{"": w.out}
	if e.has(provider.Arena) {
		m, err := a.d.Alloc(w.long, 0)
		if err != nil {
			e.Fatal(err)
		}
		sources[" from an arena"] = m
	}
	send := func(o provider.Op) error { return a.ep.Send(o) }
	recv := func(o provider.Op) error { return b.ep.Recv(o) }
	for from, m := range sources {
		for what, n := range map[string]int{"a short message": 256, "a message": 20_000, "a large message": w.long} {
			out := provider.Op{Local: m.Slice(0, n), Peer: a.to}
			in := provider.Op{Local: w.in.Slice(0, n)}
			what += from
			w.measure(what, 0, both(recv, in, send, out))
			w.measure(what+" with a late receive", 0, both(send, out, recv, in))
			done := out
			done.Flags = provider.DeliveryComplete
			w.measure(what+", delivery-complete", 0, both(recv, in, send, done))
			if e.has(provider.MultiRecv) {
				many := in
				many.Flags = provider.Multi
				w.measure(what+" into a multi-receive", 0, both(recv, many, send, out))
			}
			if !w.vectored() {
				continue
			}
			out.Local, out.Locals = pieces(m, n)
			in.Local, in.Locals = pieces(w.in, n)
			w.measure(what+" in pieces", 0, both(recv, in, send, out))
			w.measure(what+" in pieces with a late receive", 0, both(send, out, recv, in))
		}
	}
	if !e.has(provider.Tagged) {
		return
	}
	out := provider.Op{Local: w.out.Slice(0, 256), Peer: a.to, Flags: provider.Inject}
	in := provider.Op{Local: w.in.Slice(0, 256)}
	w.measure("a tagged message", 0, func() (int, int, error) {
		w.tag++
		in.Tag, out.Tag = w.tag&e.tagMask(), w.tag&e.tagMask()
		if err := b.ep.RecvTagged(in); err != nil {
			return 0, 0, err
		}
		return 1, 1, a.ep.SendTagged(out)
	})
	if w.vectored() {
		out.Local, out.Locals = pieces(w.out, 256)
		w.measure("a tagged message in pieces, injected", 0, both(b.ep.RecvTagged, in, a.ep.SendTagged, out))
	}
}

// both does two posts, one at each side.
func both(first func(provider.Op) error, one provider.Op, second func(provider.Op) error, other provider.Op) func() (int, int, error) {
	return func() (int, int, error) {
		if err := first(one); err != nil {
			return 0, 0, err
		}
		return 1, 1, second(other)
	}
}

// alone does a post whose completion is at the initiator.
func alone(do func(provider.Op) error, o provider.Op) func() (int, int, error) {
	return func() (int, int, error) { return 1, 0, do(o) }
}

// remote measures operations on memory of b.
func (w *work) remote(where string, m memory) {
	e, a := w.e, w.a
	e.Helper()
	off := e.base(m)
	for what, n := range map[string]int{" of " + where: 256, " of a lot of " + where: w.long} {
		o := provider.Op{Local: w.out.Slice(0, n), Peer: a.to, Key: m.Key(), Offset: off}
		w.measure("a read"+what, 0, alone(a.ep.Read, o))
		w.measure("a write"+what, 0, alone(a.ep.Write, o))
		if e.has(provider.RemoteCQData) {
			data := o
			data.Flags, data.Data = provider.RemoteData, 5
			w.measure("a write with data"+what, 0, func() (int, int, error) { return 1, 1, a.ep.Write(data) })
		}
		if !w.vectored() {
			continue
		}
		o.Local, o.Locals = pieces(w.out, n)
		o.Key, o.Offset, o.Remotes = 0, 0, cutRemote(m, off, n)
		w.measure("a read in pieces"+what, 0, alone(a.ep.Read, o))
		w.measure("a write in pieces"+what, 0, alone(a.ep.Write, o))
	}
	if e.has(provider.Atomics) {
		w.atomics(where, m, off)
	}
}

// cutRemote is n bytes of registered memory in three pieces with gaps, the first the longest.
func cutRemote(m memory, off uint64, n int) []provider.RemoteSegment {
	k, third := m.Key(), uint64(n/3)/8*8
	first := uint64(n) - 2*third
	return []provider.RemoteSegment{
		{Key: k, Offset: off + uint64(len(m.Bytes())) - first, Len: first}, {Key: k, Offset: off, Len: third}, {Key: k, Offset: off + third, Len: third},
	}
}

func (w *work) atomics(where string, m memory, off uint64) {
	e, a := w.e, w.a
	e.Helper()
	result := w.out.Bytes()[1000:1008]
	x := provider.Atomic{Code: provider.AtomicSum, Type: provider.Uint64, Result: result}
	x.Op = provider.Op{Local: w.out.Slice(0, 8), Peer: a.to, Key: m.Key(), Offset: off}
	fetch := x
	w.measure("a fetching atomic on "+where, 0, func() (int, int, error) { return 1, 0, a.ep.Atomic(fetch) })
	if w.vectored() {
		parts := x
		parts.Result = w.out.Bytes()[2000:2096]
		parts.Local, parts.Locals = pieces(w.out, 96)
		parts.Key, parts.Offset, parts.Remotes = 0, 0, cutRemote(m, off, 96)
		w.measure("an atomic in pieces on "+where, 0, func() (int, int, error) { return 1, 0, a.ep.Atomic(parts) })
		parts.Type = provider.Uint16
		w.measure("an atomic in pieces on short words of "+where, 0, func() (int, int, error) { return 1, 0, a.ep.Atomic(parts) })
	}
	x.Result, x.Type = nil, provider.Uint16 // which the CPU does not change at once
	w.measure("an atomic on short words of "+where, 0, func() (int, int, error) { return 1, 0, a.ep.Atomic(x) })
}

// views measures views, which are objects: they may allocate what the program holds.
func (w *work) views() {
	e, a, b := w.e, w.a, w.b
	e.Helper()
	m, err := b.d.Alloc(4096, provider.PeerRead)
	if err != nil {
		e.Fatal(err)
	}
	w.measure("a view", viewAllocs, func() (int, int, error) {
		v, err := a.d.View(e.Context(), a.to, m.Key(), 0, 4096)
		if err == nil {
			v.Release()
		}
		return 0, 0, err
	})
}

// measure fails the test if a round allocates more than may often.
func (w *work) measure(what string, may float64, round func() (int, int, error)) {
	e := w.e
	e.Helper()
	for range 50 { // pools fill
		e.round(w.a, w.b, w.some, round)
	}
	n := testing.AllocsPerRun(200, func() { e.round(w.a, w.b, w.some, round) })
	if n >= may+1 {
		e.Errorf("%s: %v allocations for each post and its completions, not %v", what, n, may)
	}
}

// round does one round and reads its completions, without allocating.
func (e *env) round(a, b *direct, some []provider.Completion, round func() (int, int, error)) {
	na, nb, err := round()
	if err != nil {
		e.Fatal(err)
	}
	for spins := 0; na > 0 || nb > 0; spins++ {
		n, err := a.q.Read(some)
		if err != nil || n > 0 && some[0].Err != nil {
			e.Fatalf("%v, %s", err, show(some[0]))
		}
		na -= n
		if n, err = b.q.Read(some); err != nil || n > 0 && some[0].Err != nil {
			e.Fatalf("%v, %s", err, show(some[0]))
		}
		nb -= n
		if n == 0 {
			runtime.Gosched()
		}
		if spins > 1e8 {
			e.Fatalf("%d and %d completions never come", na, nb)
		}
	}
}
