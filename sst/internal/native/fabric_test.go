package native

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"github.com/weft-fabric/weft/fabric"
	"github.com/weft-fabric/weft/fabric/provider"
	"github.com/weft-fabric/weft/internal/testutil"
	"github.com/weft-fabric/weft/prov/hook"
)

// hooked is a Config whose provider does what the hook says.
func hooked(t testing.TB, c hook.Config) Config {
	t.Helper()
	p, ok := provider.Lookup(providerName)
	if !ok {
		t.Fatal("the provider is not linked")
	}
	h := hook.Wrap(p, c)
	infos, err := fabric.DiscoverIn(t.Context(), h, fabric.Hints{})
	if err != nil {
		t.Fatal(err)
	}
	return Config{Open: func(d fabric.DomainConfig) (*fabric.Domain, error) { return fabric.OpenDomainIn(h, infos[0], d) }}
}

// failing is a Config with calls of the kernel that fail.
func failing(t testing.TB, calls string) Config {
	return hooked(t, hook.Config{Open: map[string]string{"fail": calls}})
}

// Why there is no Fabric is said for people.
func TestOpenRefuses(t *testing.T) {
	_, err := discover(t.Context(), "shn")
	is(t, err, ErrNotLinked, fabric.ErrNotSupported)
	if !strings.Contains(err.Error(), `import _ "github.com/weft-fabric/weft/prov/shm"`) {
		t.Errorf("the import is not said: %v", err)
	}
	t.Log(err)
	ended, end := context.WithCancel(t.Context())
	end()
	for _, x := range []struct {
		name string
		ctx  context.Context
		c    Config
		want error
		says string
	}{
		{"context", ended, Config{}, context.Canceled, "discover"},
		{"option", t.Context(), Config{Options: map[string]string{"prefalt": "1M"}}, fabric.ErrInvalid, "prefault"},
		{"progress", t.Context(), Config{Progress: 7}, fabric.ErrInvalid, "7"},
		{"bound", t.Context(), Config{Memory: 1000}, fabric.ErrNoMemory, "1000"},
		{"memory file", t.Context(), failing(t, "memfd"), fabric.ErrNoMemory, "too many open files"},
		{"memory file of the probe", t.Context(), failing(t, "memfd@2-"), fabric.ErrNoMemory, "allocate"},
		{"pages", t.Context(), failing(t, "fallocate"), fabric.ErrNoMemory, ""},
		{"domain", t.Context(), hooked(t, hook.Config{Rules: []hook.Rule{{At: hook.OpenDomain, Err: fabric.ErrNotSupported}}}), fabric.ErrNotSupported, "open domain"},
		{"endpoint", t.Context(), hooked(t, hook.Config{Rules: []hook.Rule{{At: hook.OpenEndpoint, Err: fabric.ErrNoMemory}}}), fabric.ErrNoMemory, "open endpoint"},
	} {
		t.Run(x.name, func(t *testing.T) {
			files, goroutines := holdings(t)
			f, err := Open(x.ctx, x.c)
			if f != nil || err == nil {
				t.Fatalf("opened: %v, %v", f, err)
			}
			t.Log(err)
			is(t, err, x.want)
			if !strings.Contains(err.Error(), x.says) {
				t.Errorf("%q is not said", x.says)
			}
			testutil.Eventually(t, "nothing is left", func() bool {
				f, g := holdings(t)
				return f <= files && g <= goroutines
			})
		})
	}
}

// The bound holds for all memory, and what is freed can be had again.
func TestMemoryBound(t *testing.T) {
	f := open(t, Config{Memory: 8 << 20})
	m := alloc(t, f, 4<<20)
	_, err := f.Alloc(4 << 20)
	is(t, err, fabric.ErrNoMemory)
	_, err = f.Alloc(0)
	is(t, err, fabric.ErrInvalid)
	_, err = f.Alloc(-1)
	is(t, err, fabric.ErrInvalid)
	m.Free()
	m = alloc(t, f, 6<<20) // the segment before has gone back to the system
	if s := f.Stats(); s.Arena > 8<<20 || s.ArenaMost > 8<<20 {
		t.Errorf("more than the bound: %+v", s)
	}
	m.Free()
	m = alloc(t, f, 6<<20)
	clear(m.Bytes())
}

// Memory is new: zero, also where it was used before.
func TestAllocIsZero(t *testing.T) {
	f := open(t, Config{})
	for _, n := range []int{1, 64, 5000, 1 << 20} {
		for range 3 {
			m, err := f.Alloc(n)
			if err != nil {
				t.Fatal(err)
			}
			if len(m.Bytes()) != n || !bytes.Equal(m.Bytes(), make([]byte, n)) {
				t.Errorf("%d bytes are not zero, or %d", n, len(m.Bytes()))
			}
			fill(m.Bytes(), 3)
			m.Free()
		}
	}
}

// Memory that cannot be had is an error; the Fabric goes on.
func TestAllocFails(t *testing.T) {
	f := open(t, failing(t, "memfd@4,fallocate@3"))
	m := alloc(t, f, 64)
	p := reach(t, f, f.Contact())
	failed := 0
	for range 6 {
		big, err := f.Alloc(2 << 20)
		if err == nil {
			t.Cleanup(big.Free)
			continue
		}
		failed++
		is(t, err, fabric.ErrNoMemory)
		sees(t, p, m.Key(), 0, 64)
	}
	if failed == 0 {
		t.Error("nothing has failed")
	}
}

// Errors of the provider come through as they are, but for the death of who lives.
func TestViewErrors(t *testing.T) {
	other := newServer(t, 64)
	for _, want := range []error{fabric.ErrNotSupported, fabric.ErrNoMemory, fabric.ErrKey} {
		f := open(t, hooked(t, hook.Config{Rules: []hook.Rule{{At: hook.View, After: 1, Count: 1, Err: want}}}))
		p := reach(t, f, other.contact)
		_, _, err := p.View(t.Context(), other.key, 0, 64)
		is(t, err, want)
		sees(t, p, other.key, 0, 64)
	}
	f := open(t, hooked(t, hook.Config{Rules: []hook.Rule{{At: hook.View, After: 1, Count: 1, Err: fabric.ErrPeerGone}}}))
	sees(t, reach(t, f, other.contact), other.key, 0, 64)
	// One that ends each connection is given up.
	f = open(t, hooked(t, hook.Config{Rules: []hook.Rule{{At: hook.View, After: 1, Chance: 0.9999999, Err: fabric.ErrPeerGone}}}))
	_, _, err := reach(t, f, other.contact).View(t.Context(), other.key, 0, 64)
	is(t, err, fabric.ErrPeerGone)
}

// What is out when the Fabric closes stays: views until they are released, memory until it is freed.
func TestCloseLeavesMemory(t *testing.T) {
	writer, reader := open(t, Config{}), open(t, Config{})
	m := alloc(t, writer, testSize)
	p := reach(t, reader, writer.Contact())
	b, release := view(t, p, m.Key(), 0, testSize)
	self := reach(t, writer, writer.Contact())
	own, releaseOwn := view(t, self, m.Key(), 0, testSize)
	for range 2 {
		for _, f := range []*Fabric{writer, reader} {
			if err := f.Close(); err != nil {
				t.Error(err)
			}
		}
	}
	_, err := writer.Alloc(1)
	is(t, err, fabric.ErrClosed)
	for _, p := range []*Peer{p, self} {
		_, _, err = p.View(t.Context(), m.Key(), 0, 1)
		is(t, err, fabric.ErrClosed)
	}
	for _, x := range [][]byte{m.Bytes(), b, own} {
		if !bytes.Equal(x, pattern(testSize, 1)) {
			t.Error("memory is not what it was")
		}
	}
	fill(m.Bytes(), 5)
	m.Free()
	for _, x := range [][]byte{b, own} {
		if !bytes.Equal(x, pattern(testSize, 5)) {
			t.Error("a view is not what the memory was when it was freed")
		}
	}
	release()
	releaseOwn()
	p.Close()
}

// A process without descriptors says so, and goes on when it has some again.
func TestNoDescriptors(t *testing.T) {
	f := open(t, Config{})
	child := testutil.Child(t, "starve", f.Contact())
	for _, x := range []struct{ what, want string }{
		{"reach", "true false"},
		{"allocate", "true false"},
		{"open", "false true"}, // it cannot be seen whether the provider could be used
	} {
		said := child.Expect("error ")
		if t.Logf("%s: %s", x.what, said); !strings.HasPrefix(said, x.want) || !strings.Contains(said, "too many open files") {
			t.Errorf("want %s", x.want)
		}
	}
	if err := child.Wait(); err != nil {
		t.Error(err)
	}
}
