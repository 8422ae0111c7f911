package hook

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/weft-fabric/weft/fabric"
	"github.com/weft-fabric/weft/fabric/provider"
	"github.com/weft-fabric/weft/internal/sys"
	"github.com/weft-fabric/weft/internal/testutil"
	"github.com/weft-fabric/weft/memmon"
)

// program is a domain with an endpoint, whose kernel may fail.
type program struct {
	d  *fabric.Domain
	q  *fabric.CompletionQueue
	ep *fabric.Endpoint
}

// openFailing opens a program over a hook that has calls of the kernel fail.
func openFailing(t *testing.T, mode fabric.Progress, fails string, more map[string]string) (p program, err error) {
	t.Helper()
	real, _ := provider.Lookup("shm")
	options := map[string]string{"fail": fails}
	for k, v := range more {
		options[k] = v
	}
	h := Wrap(real, Config{Open: options})
	infos, err := fabric.DiscoverIn(t.Context(), h, fabric.Hints{})
	if err != nil {
		t.Fatal(err)
	}
	if p.d, err = fabric.OpenDomainIn(h, infos[0], fabric.DomainConfig{Progress: mode}); err != nil {
		return p, err
	}
	t.Cleanup(func() {
		if err := p.d.Close(); err != nil {
			t.Error(err)
		}
	})
	if p.q, err = p.d.OpenCompletionQueue(fabric.CQConfig{}); err != nil {
		return p, err
	}
	p.ep, err = p.d.OpenEndpoint(fabric.EndpointConfig{Send: p.q, Recv: p.q})
	return p, err
}

// end waits for one completion.
func (p program) end(ctx context.Context, t *testing.T) error {
	t.Helper()
	var c [1]fabric.Completion
	if _, err := p.q.Wait(ctx, c[:]); err != nil {
		t.Fatal(err)
	}
	return c[0].Err
}

// told fails the test unless an error says what it was about, and what the kernel said.
func told(t *testing.T, what string, err error, call string) {
	t.Helper()
	oe, ok := errors.AsType[*fabric.OpError](err)
	if !ok || !strings.Contains(err.Error(), "injected: "+call) {
		t.Errorf("%s: %v", what, err)
	} else if oe.Provider != "shm" {
		t.Errorf("%s: of provider %s", what, oe.Provider)
	}
}

// Whichever memory file cannot be made, who wanted it hears of it, nothing hangs, and what there is goes on.
func TestMemoryFilesThatFail(t *testing.T) {
	good, err := openFailing(t, fabric.Auto, "", nil)
	if err != nil {
		t.Fatal(err)
	}
	failed := 0
	for n := 1; n <= 8; n++ {
		t.Run(fmt.Sprint("file ", n), func(t *testing.T) {
			bad, err := openFailing(t, fabric.Auto, fmt.Sprint("memfd@", n), nil)
			if err != nil {
				told(t, "opening", err, "memfd_create")
				if !errors.Is(err, fabric.ErrNoMemory) {
					t.Errorf("opening: %v is no want of memory", err)
				}
				failed++
				return
			}
			to, err := bad.d.Insert(good.ep.Address())
			if err != nil {
				t.Fatal(err)
			}
			for _, size := range []int{8, 200_000} { // the second by way of bounce blocks
				out, in := bytes.Repeat([]byte{byte(n)}, size), make([]byte, size)
				if err := good.ep.Recv(fabric.Op{Local: fabric.Bytes(in), Context: 7}); err != nil {
					t.Fatal(err)
				}
				err := bad.ep.Send(fabric.Op{Local: fabric.Bytes(out), Peer: to})
				if err == nil {
					err = bad.end(t.Context(), t)
				}
				if err != nil {
					told(t, fmt.Sprint("a send of ", size), err, "memfd_create")
					failed++
					if !good.ep.Cancel(7) || !errors.Is(good.end(t.Context(), t), fabric.ErrCancelled) {
						t.Error("the receive was used up")
					}
					if to, err = bad.d.Insert(good.ep.Address()); err != nil {
						t.Fatal(err)
					}
					continue
				}
				if err := good.end(t.Context(), t); err != nil || !bytes.Equal(in, out) {
					t.Errorf("%d bytes: %v", size, err)
				}
			}
			m, err := bad.d.Alloc(100_000, fabric.PeerRead)
			if err != nil {
				told(t, "an arena", err, "memfd_create")
				failed++
				if m, err = bad.d.Alloc(100_000, fabric.PeerRead); err != nil {
					t.Fatalf("the next arena: %v", err)
				}
			}
			if err := m.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	if failed < 3 {
		t.Errorf("%d failures were noticed", failed)
	}
}

// Memory that is not there when it is brought in is an error of Alloc, not a fault later, and costs nothing of the bound.
func TestMemoryThatIsNotThere(t *testing.T) {
	p, err := openFailing(t, fabric.Manual, "fallocate@1", nil)
	if err != nil {
		t.Fatal(err)
	}
	_, err = p.d.Alloc(100_000, fabric.PeerRead)
	told(t, "an arena", err, "fallocate")
	if s := p.d.Stats(); !errors.Is(err, fabric.ErrNoMemory) || s.ArenaUsed != 0 {
		t.Errorf("%v, and %d bytes are used", err, s.ArenaUsed)
	}
	m, err := p.d.Alloc(100_000, fabric.PeerRead)
	if err != nil {
		t.Fatal(err)
	}
	m.Bytes()[99_999] = 1
}

// A process's memory that cannot be read any more is read by way of its owner, at the moment at which that begins; where it was
// forced, it is an error that says so.
func TestCrossCopiesThatFail(t *testing.T) {
	testutil.Require(t, testutil.Capability{Name: "process_vm_readv", Fixed: true, Probe: func() error { return sys.Features{}.Check(sys.CrossMemory) }})
	owner := testutil.Child(t, "failing-owner")
	line := strings.Fields(owner.Expect("ready "))
	var key uint64
	if _, err := fmt.Sscan(line[1], &key); err != nil {
		t.Fatal(err)
	}
	for fails, options := range map[string]map[string]string{
		"process_vm": nil, "process_vm@2": nil, "process_vm@3-": nil, "process_vm@1-": {"cma": "on"},
	} {
		p, err := openFailing(t, fabric.Auto, fails, options)
		if err != nil {
			told(t, "opening", err, "process_vm_readv")
			continue
		}
		to, err := p.d.Insert(fabric.Address(line[0]))
		if err != nil {
			t.Fatal(err)
		}
		for range 6 {
			in := make([]byte, 5000)
			if err := p.ep.Read(fabric.Op{Local: fabric.Bytes(in), Peer: to, Key: fabric.Key(key)}); err != nil {
				t.Fatal(err)
			}
			switch err := p.end(t.Context(), t); {
			case options != nil:
				told(t, "a read with cma=on", err, "process_vm_readv")
			case err != nil || !bytes.Equal(in, bytes.Repeat([]byte{3}, len(in))):
				t.Errorf("%s: %v, or wrong bytes", fails, err)
			}
		}
	}
}

// failingOwner is a process with registered memory.
func failingOwner([]string) error {
	infos, err := fabric.Discover(context.Background(), fabric.Hints{Provider: "shm"})
	if err != nil {
		return err
	}
	d, err := fabric.OpenDomain(infos[0], fabric.DomainConfig{})
	if err != nil {
		return err
	}
	q, err := d.OpenCompletionQueue(fabric.CQConfig{})
	if err != nil {
		return err
	}
	ep, err := d.OpenEndpoint(fabric.EndpointConfig{Send: q, Recv: q})
	if err != nil {
		return err
	}
	m, err := d.Register(memmon.HeapBytes(bytes.Repeat([]byte{3}, 5000)), fabric.PeerRead)
	if err != nil {
		return err
	}
	fmt.Println("ready", ep.Address(), uint64(m.Key()))
	_, _ = os.Stdin.Read(make([]byte, 1)) // until the test ends
	return d.Close()
}
