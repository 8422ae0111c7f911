package shm

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/weft-fabric/weft/fabric/provider"
	"github.com/weft-fabric/weft/internal/provutil"
)

// Every error names operation, provider and, where there is one, peer, once, also one that came that way from below.
func TestErrorsNameOnce(t *testing.T) {
	a, b, to, _ := twoSides(t, provider.DomainConfig{})
	below := provutil.OpError("view", Name, "shm://x", provider.ErrKey)
	if err := fail("read", "shm://y", below); err != below || fail("read", "", nil) != nil {
		t.Error(err)
	}
	long := make([]byte, 1<<20)
	_, alloc := a.d.Alloc(-1, 0)
	_, register := a.d.Register(nil, 0)
	_, view := a.d.View(t.Context(), to, 1, 0, -1)
	_, insert := a.d.Insert("x")
	_, address := a.d.Address(99)
	for want, err := range map[string]error{
		"shm: send: peer " + string(b.ep.Address()) + ": ": a.ep.Send(provider.Op{Local: provider.Segment{Bytes: long}, Peer: to, Flags: provider.Inject}),
		"shm: receive: ":        a.ep.Recv(provider.Op{Flags: provider.Directed}),
		"shm: tagged send: ":    a.ep.SendTagged(provider.Op{}),
		"shm: tagged receive: ": a.ep.RecvTagged(provider.Op{Flags: provider.Discard}),
		"shm: read: ":           a.ep.Read(provider.Op{}),
		"shm: write: ":          a.ep.Write(provider.Op{}),
		"shm: atomic: ":         a.ep.Atomic(provider.Atomic{}),
		"shm: allocate: ":       alloc,
		"shm: register: ":       register,
		"shm: view: ":           view,
		"shm: insert: peer x: ": insert,
		"shm: address: ":        address,
		"shm: remove: ":         a.d.Remove(99),
	} {
		oe, ok := errors.AsType[*provider.OpError](err)
		if !ok || !strings.HasPrefix(err.Error(), want) || strings.Count(err.Error(), "shm: ") != 1 {
			t.Errorf("%v, want %q once", err, want)
		} else if _, twice := errors.AsType[*provider.OpError](oe.Err); twice {
			t.Errorf("%v is one within another", err)
		}
	}
}

// What the kernel says becomes what a program can test for.
func TestSystemErrors(t *testing.T) {
	for errno, want := range map[syscall.Errno]error{
		syscall.EMFILE: provider.ErrNoMemory, syscall.ENOSPC: provider.ErrNoMemory, syscall.ECONNREFUSED: provider.ErrUnreachable,
		syscall.EPIPE: provider.ErrUnreachable, syscall.ECONNRESET: provider.ErrUnreachable, syscall.EADDRINUSE: provider.ErrBusy,
	} {
		if err := systemError(os.NewSyscallError("x", errno)); !errors.Is(err, want) || !errors.Is(err, errno) {
			t.Errorf("%v became %v", errno, err)
		} else if again := systemError(fmt.Errorf("so: %w", err)); strings.Count(again.Error(), want.Error()) != 1 {
			t.Errorf("%v says it twice", again)
		}
	}
}
