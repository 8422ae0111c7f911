package shm

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weft-fabric/weft/fabric/provider"
	"github.com/weft-fabric/weft/internal/sys"
	"github.com/weft-fabric/weft/internal/testutil"
	"github.com/weft-fabric/weft/memmon"
)

// holdings are what this process has of what can leak.
type holdings struct{ descriptors, mappings, goroutines int }

func holdingsOf(t *testing.T) holdings {
	t.Helper()
	fds, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		t.Fatal(err)
	}
	return holdings{len(fds), bytes.Count(maps, []byte("memfd:")), runtime.NumGoroutine()}
}

// flat fails the test unless what is held comes back to what was held.
func flat(t *testing.T, before holdings) {
	t.Helper()
	testutil.Eventually(t, fmt.Sprintf("no more is held than %+v", before), func() bool {
		now := holdingsOf(t)
		return now.descriptors <= before.descriptors && now.mappings <= before.mappings && now.goroutines <= before.goroutines
	})
}

// greet sends a message from one side to the other.
func greet(t *testing.T, from, to *side, peer provider.Peer, text string) {
	t.Helper()
	in := make([]byte, len(text))
	if err := to.ep.Recv(provider.Op{Local: provider.Segment{Bytes: in}}); err != nil {
		t.Fatal(err)
	}
	if err := from.ep.Send(provider.Op{Local: provider.Segment{Bytes: []byte(text)}, Peer: peer}); err != nil {
		t.Fatal(err)
	}
	for _, s := range []*side{from, to} {
		if c := s.wait(); c.Err != nil {
			t.Fatal(c.Err)
		}
	}
	if string(in) != text {
		t.Fatalf("%q arrived, want %q", in, text)
	}
}

// TestF94DomainsAreApart is field report F94: two of everything in one process, with default settings, do not meet; closing one
// does not touch the other.
func TestF94DomainsAreApart(t *testing.T) {
	type couple struct {
		a, b *side
		ab   provider.Peer
		m    provider.Memory
	}
	var couples [2]couple
	for i := range couples {
		c := &couples[i]
		c.a, c.b, c.ab, _ = twoSides(t, provider.DomainConfig{})
		var err error
		if c.m, err = c.b.d.Alloc(4096, provider.PeerRead); err != nil {
			t.Fatal(err)
		}
		copy(c.m.Bytes(), fmt.Sprint("memory ", i))
	}
	for round := range 3 {
		for i := range couples {
			greet(t, couples[i].a, couples[i].b, couples[i].ab, fmt.Sprintf("round %d of couple %d", round, i))
		}
	}
	first, second := couples[0], couples[1]
	v, err := second.a.d.View(t.Context(), second.ab, second.m.Key(), 0, 8)
	if err != nil {
		t.Fatal(err)
	}
	// A key means nothing to the other couple, and an address of it is a peer like any other.
	if _, err := first.a.d.View(t.Context(), first.ab, second.m.Key(), 0, 8); first.m.Key() != second.m.Key() && !errors.Is(err, provider.ErrKey) {
		t.Errorf("a view of the other couple's memory: %v", err)
	}
	for _, s := range []*side{first.a, first.b} {
		if err := s.d.Close(); err != nil {
			t.Fatal(err)
		}
	}
	for round := range 3 {
		greet(t, second.a, second.b, second.ab, fmt.Sprint("round ", round, " alone"))
	}
	if string(v.Bytes()) != "memory 1" {
		t.Errorf("a view shows %q", v.Bytes())
	}
	v.Release()
	if s := second.a.d.Stats(); s.Sent != 6 || s.Peers != 1 || s.Errors != 0 {
		t.Errorf("%+v", s)
	}
}

// TestF95FailedOpensLeaveNothing is field report F95: what could not be opened holds nothing, however often it was tried.
func TestF95FailedOpensLeaveNothing(t *testing.T) {
	s := newSide(t, provider.DomainConfig{}, provider.EndpointConfig{Name: fmt.Sprint("f95-", os.Getpid())})
	ep := s.ep.(*endpoint)
	try := map[string]func() error{
		"a name that is taken": func() error {
			_, err := s.d.OpenEndpoint(provider.EndpointConfig{Name: ep.addr.name, Send: s.cq, Recv: s.cq})
			return err
		},
		"a depth beyond the limit": func() error {
			_, err := s.d.OpenEndpoint(provider.EndpointConfig{Send: s.cq, Recv: s.cq, Depth: maxDepth + 1})
			return err
		},
		"a queue that is closed": func() error {
			q, err := s.d.OpenCompletionQueue(provider.CQConfig{})
			if err != nil {
				return nil
			}
			if q.Close() != nil {
				return nil
			}
			_, err = s.d.OpenEndpoint(provider.EndpointConfig{Send: q, Recv: s.cq})
			return err
		},
		"an option that is none": func() error {
			_, err := open(provider.Info{}, provider.DomainConfig{Options: map[string]string{"nonsense": "1"}})
			return err
		},
		"a folder that is none": func() error {
			d, err := open(provider.Info{}, provider.DomainConfig{Options: map[string]string{"folder": t.TempDir() + "/missing"}})
			if err != nil {
				return err
			}
			q, err := d.OpenCompletionQueue(provider.CQConfig{})
			if err == nil {
				_, err = d.OpenEndpoint(provider.EndpointConfig{Send: q, Recv: q})
			}
			return errors.Join(err, d.Close())
		},
		"more memory than there may be": func() error {
			d, err := open(provider.Info{}, provider.DomainConfig{Memory: 1 << 20})
			if err != nil {
				return nil
			}
			_, err = d.Alloc(1<<30, 0)
			return errors.Join(err, d.Close())
		},
		"a view of nobody": func() error {
			p, err := s.d.Insert("shm://nobody-is-here")
			if err != nil {
				return nil
			}
			_, err = s.d.View(t.Context(), p, 1, 0, 1)
			return errors.Join(err, s.d.Remove(p))
		},
	}
	once := func() {
		for what, do := range try {
			if err := do(); err == nil {
				t.Fatalf("%s: no error", what)
			}
		}
	}
	once()
	before := holdingsOf(t)
	for range testutil.Count(t, 30, 1024) {
		once()
	}
	flat(t, before)
}

// TestF96OpenCloseIsFlatAndCheap is field report F96: opening, meeting and closing leaves nothing on either side, and costs little.
func TestF96OpenCloseIsFlatAndCheap(t *testing.T) {
	cycle := func() {
		var sides [2]*side
		for i := range sides {
			d, err := open(provider.Info{}, provider.DomainConfig{})
			if err != nil {
				t.Fatal(err)
			}
			cq, err := d.OpenCompletionQueue(provider.CQConfig{})
			if err != nil {
				t.Fatal(err)
			}
			ep, err := d.OpenEndpoint(provider.EndpointConfig{Send: cq, Recv: cq})
			if err != nil {
				t.Fatal(err)
			}
			sides[i] = &side{t: t, d: d, cq: cq, ep: ep}
		}
		m, err := sides[1].d.Alloc(100_000, provider.PeerRead)
		if err != nil {
			t.Fatal(err)
		}
		to := sides[0].insert(sides[1].ep.Address())
		greet(t, sides[0], sides[1], to, "hello")
		v, err := sides[0].d.View(t.Context(), to, m.Key(), 0, 100)
		if err != nil {
			t.Fatal(err)
		}
		v.Release()
		for _, s := range sides {
			if err := s.d.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
	cycle()
	before := holdingsOf(t)
	var took []time.Duration
	for range testutil.Count(t, 30, 1000) {
		start := time.Now()
		cycle()
		took = append(took, time.Since(start))
	}
	flat(t, before)
	slices.Sort(took)
	median := took[len(took)/2]
	t.Logf("a cycle of both sides takes %v in the middle, %v at most", median, took[len(took)-1])
	if median > 50*time.Millisecond {
		t.Errorf("a cycle takes %v, which should be less than 50 ms", median)
	}
}

// mapper is who maps memory and says when it is other memory.
type mapper struct{ n atomic.Uint64 }

func (m *mapper) Generation() uint64 { return m.n.Load() }

// TestF59OldKey has a peer read and write with the key of memory that was mapped over without an end of its registration: it gets an error, and what
// lies there now is untouched.
func TestF59OldKey(t *testing.T) {
	x := newPrivate(t, provider.DomainConfig{}, provider.DomainConfig{})
	own := new(mapper)
	mapped, err := sys.MapAnonymous(os.Getpagesize())
	if err != nil {
		t.Fatal(err)
	}
	defer mapped.Close()
	if x.m, err = x.b.d.Register(memmon.Mapped(mapped.Bytes(), own), provider.PeerRead|provider.PeerWrite); err != nil {
		t.Fatal(err)
	}
	x.bytes = mapped.Bytes()
	x.bytes[0] = 'O'
	x.good(0, 100)
	own.n.Add(1)
	if err := mapped.MapOver(); err != nil {
		t.Fatal(err)
	}
	x.bytes[0] = 'N'
	if _, err := x.read(0, 100); !errors.Is(err, provider.ErrKey) {
		t.Errorf("read with the old key: %v", err)
	}
	x.a.must(x.a.ep.Write(provider.Op{Local: provider.Segment{Bytes: []byte("other")}, Peer: x.to, Key: x.m.Key()}))
	if c := x.a.wait(); !errors.Is(c.Err, provider.ErrKey) {
		t.Errorf("written with the old key: %v", c.Err)
	}
	if x.bytes[0] != 'N' || !bytes.Equal(x.bytes[1:], make([]byte, len(x.bytes)-1)) {
		t.Error("what lies there now was written")
	}
	x.a.must(x.m.Close())
}
