package provutil

import (
	"bytes"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"weak"

	"github.com/weft-fabric/weft/fabric/provider"
	"github.com/weft-fabric/weft/internal/testutil"
	"github.com/weft-fabric/weft/memmon"
)

// desk registers memory by noting it; a handle is the memory.
type desk struct {
	mu       sync.Mutex
	open     map[*registered]bool
	made     int
	shortage bool
	room     int          // for so many registrations; 0: for any number
	locked   memmon.Range // what cannot be pinned
	most     int          // bytes of one registration; 0: any
}

type registered struct{ b []byte }

func (d *desk) Register(b []byte) (*registered, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.shortage || d.room > 0 && len(d.open) == d.room || d.most > 0 && len(b) > d.most {
		return nil, syscall.ENOMEM
	}
	if d.locked.Overlaps(memmon.RangeOf(b)) {
		return nil, syscall.EFAULT
	}
	r := &registered{b}
	d.open[r] = true
	d.made++
	return r, nil
}

var errUnknown = errors.New("not registered")

func (d *desk) Deregister(r *registered) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.open[r] {
		return errUnknown
	}
	delete(d.open, r)
	return nil
}

// numbered is an owner.
type numbered struct{ gen atomic.Uint64 }

func (n *numbered) Generation() uint64 { return n.gen.Load() }

// locals makes one with bounce buffers of 64 bytes, over a desk.
func locals(t *testing.T, bounces int) (*Locals[*registered], *desk) {
	t.Helper()
	a, err := memmon.NewArbiter()
	if err != nil {
		t.Fatal(err)
	}
	d := &desk{open: make(map[*registered]bool)}
	l, err := NewLocals(LocalsConfig[*registered]{
		Registrar: d, Small: 64, Bounces: bounces, Arbiter: a,
		Own: func(provider.Memory, []byte) (*registered, uint64, error) { return nil, 7, nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(l.Close(), a.Close()); err != nil {
			t.Error(err)
		}
		if len(d.open) > 0 {
			t.Errorf("%d registrations are left", len(d.open))
		}
	})
	return l, d
}

// at is where a segment lies, as a device sees it.
func (x *Local[H]) at(h *registered, n int) []byte { return h.b[x.Offset:][:n] }

func TestLocalsBounce(t *testing.T) {
	l, d := locals(t, 1)
	out := []byte("sent")
	x, err := l.Begin(&provider.Segment{Bytes: out}, ReadLocal)
	if err != nil || !bytes.Equal(x.at(x.Handle, 4), out) {
		t.Fatalf("%v, %q", err, x.at(x.Handle, 4))
	}
	made := d.made
	y, err := l.Begin(&provider.Segment{Bytes: out}, ReadLocal) // no buffer is left
	if err != nil || d.made != made+1 || &y.at(y.Handle, 4)[0] != &out[0] {
		t.Fatalf("%v: %d registrations, %d before", err, d.made, made)
	}
	for range 2 {
		if err := errors.Join(x.End(4), y.End(4)); err != nil {
			t.Error(err)
		}
	}
	in := make([]byte, 8)
	x, err = l.Begin(&provider.Segment{Bytes: in}, WriteLocal)
	if err != nil || d.made != made+1 {
		t.Fatalf("%v: %d registrations, %d before", err, d.made, made+1)
	}
	copy(x.at(x.Handle, 8), "received")
	if err := x.End(6); err != nil || string(in) != "receiv\x00\x00" {
		t.Errorf("%v, %q", err, in)
	}
}

func TestLocalsKeep(t *testing.T) {
	l, d := locals(t, 1)
	b := make([]byte, 10000)
	k := memmon.HeapBytes(b)
	made := d.made
	for i := range 10 {
		part := b[100*i:][:500]
		x, err := l.Begin(&provider.Segment{Bytes: part, Kind: k}, ReadLocal)
		if err != nil || &x.at(x.Handle, 500)[0] != &part[0] {
			t.Fatal(err)
		}
		if err := x.End(500); err != nil {
			t.Error(err)
		}
	}
	if d.made != made+1 || l.Stats().Hits != 9 {
		t.Errorf("%d registrations for ten uses, %+v", d.made-made, l.Stats())
	}
}

func TestLocalsTellOfChanges(t *testing.T) {
	l, _ := locals(t, 1)
	own := new(numbered)
	b := make([]byte, 10000)
	s := &provider.Segment{Bytes: b[:100], Kind: memmon.Mapped(b, own)}
	x, err := l.Begin(s, WriteLocal)
	if err != nil {
		t.Fatal(err)
	}
	own.gen.Add(1)
	if err := x.End(100); !errors.Is(err, provider.ErrRemapped) {
		t.Errorf("the memory changed: %v", err)
	}
	if err := x.End(100); err != nil {
		t.Error(err)
	}
}

var someGlobal [200]byte

func TestLocalsRefuse(t *testing.T) {
	l, d := locals(t, 1)
	if _, err := l.Begin(&provider.Segment{Bytes: someGlobal[:], Kind: memmon.HeapBytes(someGlobal[:])}, ReadLocal); !errors.Is(err, provider.ErrInvalid) {
		t.Errorf("a global as heap: %v", err)
	}
	b := make([]byte, 300)
	for _, s := range []provider.Segment{{Bytes: b[:100]}, {Bytes: b[150:250]}, {Bytes: make([]byte, 300)}} {
		s.Kind = memmon.HeapBytes(b[100:200:200])
		if _, err := l.Begin(&s, WriteLocal); !errors.Is(err, provider.ErrInvalid) {
			t.Errorf("bytes that are not of their kind: %v", err)
		}
	}
	if n := l.Stats().InUse; n != 0 {
		t.Errorf("%d registrations are in use", n)
	}
	d.shortage = true
	if _, err := l.Begin(&provider.Segment{Bytes: make([]byte, 100)}, ReadLocal); !errors.Is(err, provider.ErrNoMemory) || !errors.Is(err, syscall.ENOMEM) {
		t.Errorf("out of memory: %v", err)
	}
	d.shortage = false
	if x, err := l.Begin(&provider.Segment{}, ReadLocal); err != nil || x.End(0) != nil {
		t.Errorf("nothing: %v", err)
	}
}

// TestLocalsMakeRoom has the device full of what the cache keeps, and raw bytes to register.
func TestLocalsMakeRoom(t *testing.T) {
	l, d := locals(t, 1)
	d.room = len(d.open) + 1
	b := make([]byte, 100)
	x, err := l.Begin(&provider.Segment{Bytes: b, Kind: memmon.HeapBytes(b)}, ReadLocal)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.Begin(&provider.Segment{Bytes: b}, ReadLocal); !errors.Is(err, provider.ErrNoMemory) {
		t.Errorf("beside what is in use: %v", err)
	}
	if err := x.End(0); err != nil {
		t.Error(err)
	}
	raw, err := l.Begin(&provider.Segment{Bytes: b}, ReadLocal)
	if err != nil {
		t.Fatalf("beside what is idle: %v", err)
	}
	if err := raw.End(0); err != nil {
		t.Error(err)
	}
}

// TestLocalsMakeRoomForBounces opens another domain when the device is full of what the first one keeps.
func TestLocalsMakeRoomForBounces(t *testing.T) {
	l, d := locals(t, 1)
	b := make([]byte, 100)
	x, err := l.Begin(&provider.Segment{Bytes: b, Kind: memmon.HeapBytes(b)}, ReadLocal)
	if err := errors.Join(err, x.End(0)); err != nil {
		t.Fatal(err)
	}
	d.room = len(d.open)
	other, err := NewLocals(LocalsConfig[*registered]{Registrar: d, Small: 64, Bounces: 1, Arbiter: l.c.Arbiter})
	if err != nil {
		t.Fatalf("beside what is idle: %v", err)
	}
	if err := other.Close(); err != nil {
		t.Error(err)
	}
}

// blind registers memory and keeps nothing of it, as a card does: what it holds the collector does not see.
type blind struct{}

func (blind) Register([]byte) (int, error) { return 1, nil }
func (blind) Deregister(int) error         { return nil }

// TestLocalsHold has nobody but the registration hold the memory of an operation, while garbage is collected.
func TestLocalsHold(t *testing.T) {
	a, err := memmon.NewArbiter()
	if err != nil {
		t.Fatal(err)
	}
	l, err := NewLocals(LocalsConfig[int]{Registrar: blind{}, Arbiter: a})
	if err != nil {
		t.Fatal(err)
	}
	for what, kind := range map[string]func(b []byte) memmon.Kind{
		"raw":              func([]byte) memmon.Kind { return nil },
		"heap":             memmon.HeapBytes,
		"nobody's, really": func(b []byte) memmon.Kind { return memmon.Mapped(b, nil) },
	} {
		b := make([]byte, 1<<16)
		object := weak.Make(&b[0])
		x, err := l.Begin(&provider.Segment{Bytes: b, Kind: kind(b)}, WriteLocal)
		if err != nil {
			t.Fatal(err)
		}
		b = nil
		runtime.GC()
		if object.Value() == nil {
			t.Errorf("%s: it was collected, and the card writes to it", what)
		}
		if err := x.End(0); err != nil {
			t.Error(err)
		}
	}
	if err := errors.Join(l.Close(), a.Close()); err != nil {
		t.Error(err)
	}
}

// TestLocalsCloseWhileBouncing ends it while an operation has a buffer, which stays until the operation has ended.
func TestLocalsCloseWhileBouncing(t *testing.T) {
	l, d := locals(t, 2)
	in := make([]byte, 8)
	x, err := l.Begin(&provider.Segment{Bytes: in}, WriteLocal)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	if !d.open[x.Handle] {
		t.Fatal("the device writes to memory that is not registered any more")
	}
	copy(x.at(x.Handle, 8), "received")
	if err := x.End(8); err != nil || string(in) != "received" {
		t.Errorf("%v, %q", err, in)
	}
	if len(d.open) > 0 {
		t.Error("nobody has ended the registration of the buffers")
	}
	late, err := l.Begin(&provider.Segment{Bytes: in}, ReadLocal)
	if err != nil || late.bounce != nil {
		t.Errorf("after the end: %v, through a buffer of %d bytes", err, len(late.bounce))
	}
	if err := late.End(0); err != nil {
		t.Error(err)
	}
}

// TestLocalsCloseBeside ends it while goroutines are in the middle: what has begun is registered until it ends, and nothing is left.
func TestLocalsCloseBeside(t *testing.T) {
	for range testutil.Count(t, 50, 1000) {
		l, d := locals(t, 2)
		kind := memmon.HeapBytes(make([]byte, 1000))
		began := make(chan struct{})
		begin := sync.OnceFunc(func() { close(began) })
		var all sync.WaitGroup
		for range 2 {
			all.Go(func() {
				<-began
				if err := l.Close(); err != nil {
					t.Error(err)
				}
			})
		}
		for _, s := range []provider.Segment{
			{Bytes: make([]byte, 50)}, {Bytes: make([]byte, 50)}, {Bytes: make([]byte, 50)}, // more than there are buffers
			{Bytes: make([]byte, 500)}, {Bytes: kind.Bytes()[1:], Kind: kind}, {Bytes: kind.Bytes()[2:], Kind: kind},
		} {
			all.Go(func() {
				for range 20 {
					err := d.use(l, &s)
					begin()
					if err != nil && (s.Kind == nil || !errors.Is(err, provider.ErrClosed)) {
						t.Error(err)
						return
					}
				}
			})
		}
		all.Wait()
		if n := len(d.open); n > 0 {
			t.Fatalf("%d registrations are left", n)
		}
	}
}

// use begins and ends the use of a segment, which is registered in between.
func (d *desk) use(l *Locals[*registered], s *provider.Segment) error {
	x, err := l.Begin(s, WriteLocal)
	if err != nil {
		return err
	}
	d.mu.Lock()
	if !d.open[x.Handle] {
		err = errUnknown
	}
	d.mu.Unlock()
	return errors.Join(err, x.End(len(s.Bytes)))
}

// TestLocalsRegisterNoMoreThanNeeded sends a little of much memory: what is for this one operation, or would be more than there may be, is the
// little.
func TestLocalsRegisterNoMoreThanNeeded(t *testing.T) {
	l, d := locals(t, 1)
	d.most = 1 << 16
	much := make([]byte, 1<<20)
	for what, k := range map[string]memmon.Kind{"nobody answers": memmon.Mapped(much, nil), "too much": memmon.Mapped(much, new(numbered))} {
		part := much[1<<19:][:100]
		for range 2 {
			x, err := l.Begin(&provider.Segment{Bytes: part, Kind: k}, ReadLocal)
			if err != nil {
				t.Fatalf("%s: %v", what, err)
			}
			if &x.at(x.Handle, 100)[0] != &part[0] || len(x.Handle.b) > 1<<16 {
				t.Errorf("%s: %d bytes are registered for 100", what, len(x.Handle.b))
			}
			if err := x.End(100); err != nil {
				t.Error(err)
			}
		}
	}
	other := &provider.Segment{Bytes: make([]byte, 100), Kind: memmon.HeapBytes(much)}
	if _, err := l.Begin(other, ReadLocal); !errors.Is(err, provider.ErrInvalid) {
		t.Errorf("bytes of other memory: %v", err)
	}
}
