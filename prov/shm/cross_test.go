package shm

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/weft-fabric/weft/fabric/provider"
	"github.com/weft-fabric/weft/internal/sys"
	"github.com/weft-fabric/weft/internal/testutil"
	"github.com/weft-fabric/weft/memmon"
)

func init() { roles = append(roles, testutil.Role{Name: "reader", Run: readPrivate}) }

const privateLen = 2 << 20

func cma(v string) provider.DomainConfig {
	return provider.DomainConfig{Options: map[string]string{"cma": v}}
}

func manual(c provider.DomainConfig) provider.DomainConfig {
	c.Progress = provider.Manual
	return c
}

// private is b with registered memory that a may read, both connected.
type private struct {
	*testing.T
	a, b  *side
	to    provider.Peer
	m     provider.Memory
	bytes []byte
	pair  *pair // a's
}

func newPrivate(t *testing.T, a, b provider.DomainConfig) *private {
	t.Helper()
	testutil.Require(t, crossMemory)
	x := &private{T: t, a: newSide(t, a, provider.EndpointConfig{}), b: newSide(t, b, provider.EndpointConfig{}), bytes: make([]byte, privateLen)}
	for i := range x.bytes {
		x.bytes[i] = byte(i>>8 ^ i*7)
	}
	x.m = x.register(memmon.HeapBytes(x.bytes))
	x.to = x.a.insert(x.b.ep.Address())
	if err := x.a.ep.Send(mk(make([]byte, 8), x.to, 99)); err != nil {
		t.Fatal(err)
	}
	progress(t, "connected", func() bool { return x.a.peerState(x.to) == "connected" }, x.b, x.a)
	x.a.wait()
	x.pair = x.a.d.pairs[0]
	return x
}

func (x *private) register(k memmon.Kind) provider.Memory {
	x.Helper()
	m, err := x.b.d.Register(k, provider.PeerRead)
	if err != nil {
		x.Fatal(err)
	}
	return m
}

// asleep waits until b sleeps.
func (x *private) asleep() {
	x.Helper()
	testutil.Eventually(x, "asleep", func() bool { return x.b.d.home.armed.Load()&1 == 1 })
}

// read is a read of n bytes, and its error. b is driven if drive is set.
func (x *private) read(off, n uint64, drive ...*side) ([]byte, error) {
	x.Helper()
	in := make([]byte, n)
	x.a.must(x.a.ep.Read(provider.Op{Local: provider.Segment{Bytes: in}, Peer: x.to, Key: x.m.Key(), Offset: off, Context: 7}))
	c := x.a.wait(drive...)
	if c.Context != 7 || c.Kind != provider.ReadDone {
		x.Fatalf("completion %+v", c)
	}
	return in, c.Err
}

// good is read, and checks the bytes.
func (x *private) good(off, n uint64, drive ...*side) {
	x.Helper()
	in, err := x.read(off, n, drive...)
	if err != nil {
		x.Fatalf("%d bytes at %d: %v", n, off, err)
	}
	if !bytes.Equal(in, x.bytes[off:off+n]) {
		x.Fatalf("%d bytes at %d: other bytes", n, off)
	}
}

// reads is how many copies a has made by itself.
func (x *private) reads() uint64 {
	x.a.d.core.Lock()
	defer x.a.d.core.Unlock()
	return x.pair.cross.reads
}

var crossMemory = testutil.Capability{Name: "process_vm_readv", Fixed: true, Probe: func() error { return sys.Features{}.Check(sys.CrossMemory) }}

// A sleeping owner's memory is read without waking it, up to where that is the faster way.
func TestCrossAsleep(t *testing.T) {
	x := newPrivate(t, provider.DomainConfig{}, provider.DomainConfig{})
	x.asleep()
	wakes := x.b.d.Stats().Wakes
	sizes := []uint64{1, 8, 4096, lockedCopy, lockedCopy + 1, crossMax}
	for _, n := range sizes {
		x.good(77, n)
	}
	if x.reads() != uint64(len(sizes)) || x.b.d.Stats().Wakes != wakes {
		t.Errorf("%d of %d copies without the owner, which was woken %d times", x.reads(), len(sizes), x.b.d.Stats().Wakes-wakes)
	}
	x.good(5, crossMax+1)
	if x.reads() != uint64(len(sizes)) {
		t.Error("a long read did not go through blocks")
	}
	if s := x.a.d.Peers()[0]; s.Path != "arena, bounce, process_vm" {
		t.Errorf("path %q", s.Path)
	}
	if s := x.a.d.Stats(); s.Reads != uint64(len(sizes))+1 {
		t.Errorf("%d reads counted", s.Reads)
	}
}

// An owner that polls serves, which is as fast and leaves the copy to both.
func TestCrossAwake(t *testing.T) {
	x := newPrivate(t, provider.DomainConfig{}, provider.DomainConfig{})
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			select {
			case <-stop:
				return
			default:
				_, _ = x.b.cq.Read(nil)
				runtime.Gosched()
			}
		}
	}()
	testutil.Eventually(t, "an owner that is awake serves", func() bool { // on a busy machine it may not get to poll for long
		before := x.reads()
		x.good(3, 1000)
		return x.reads() == before
	})
	close(stop)
	<-stopped
}

// Pieces on both sides that do not match.
func TestCrossPieces(t *testing.T) {
	x := newPrivate(t, provider.DomainConfig{}, manual(provider.DomainConfig{}))
	for _, big := range []uint64{100, 300_000} {
		in := make([]byte, 3*big)
		o := provider.Op{Peer: x.to, Context: 7, Locals: []provider.Segment{{Bytes: in[big-3:]}}}
		o.Local.Bytes = in[:big-3]
		o.Remotes = []provider.RemoteSegment{{Key: x.m.Key(), Offset: 9, Len: 2 * big}, {Key: x.m.Key(), Offset: 1000, Len: 0}, {Key: x.m.Key(), Offset: 3, Len: big}}
		x.a.must(x.a.ep.Read(o))
		x.a.good(x.a.wait(), provider.ReadDone, 7)
		want := append(bytes.Clone(x.bytes[9:9+2*big]), x.bytes[3:3+big]...)
		if !bytes.Equal(in, want) {
			t.Errorf("%d: other bytes", big)
		}
	}
	if x.reads() == 0 {
		t.Error("served")
	}
}

// An owner in manual mode need not call for its memory to be read, not for many reads either, also those that were posted
// before there was a connection.
func TestCrossManual(t *testing.T) {
	x := newPrivate(t, manual(provider.DomainConfig{}), manual(provider.DomainConfig{}))
	x.good(1, privateLen-1)
	for range 1000 {
		x.good(3, 64)
	}
	x.a.d.core.Lock() // these are started by progress
	x.pair.state = pairDialing
	x.a.d.core.Unlock()
	in := make([]byte, 1<<20)
	x.a.must(x.a.ep.Read(provider.Op{Local: provider.Segment{Bytes: in}, Peer: x.to, Key: x.m.Key(), Offset: 5, Context: 8}))
	x.a.d.core.Lock()
	x.pair.state = pairUp
	x.pair.push()
	x.a.d.core.Unlock()
	x.a.good(x.a.wait(), provider.ReadDone, 8)
	if !bytes.Equal(in, x.bytes[5:5+1<<20]) {
		t.Error("other bytes")
	}
	w := provider.Op{Local: provider.Segment{Bytes: in[:8]}, Peer: x.to, Key: x.m.Key(), Context: 8}
	x.a.must(x.a.ep.Write(w))
	if c := x.a.wait(x.b); !errors.Is(c.Err, provider.ErrKey) {
		t.Errorf("a write of memory that may be read: %v", c.Err)
	}
}

// Either side can turn it off; then the owner serves.
func TestCrossOff(t *testing.T) {
	off := provider.DomainConfig{Options: map[string]string{"disable": "cma"}}
	for i, c := range [][2]provider.DomainConfig{
		{cma("off"), {}}, {{}, cma("off")}, {off, {}}, {{}, off},
	} {
		var log strings.Builder
		c[0].Logger = slog.New(slog.NewTextHandler(&log, nil))
		x := newPrivate(t, manual(c[0]), manual(c[1]))
		in := make([]byte, 100)
		x.a.must(x.a.ep.Read(provider.Op{Local: provider.Segment{Bytes: in}, Peer: x.to, Key: x.m.Key(), Context: 7}))
		var done [1]provider.Completion
		for range 100 {
			if n, _ := x.a.cq.Read(done[:]); n != 0 {
				t.Fatalf("case %d: read without the owner", i)
			}
		}
		x.a.good(x.a.wait(x.b), provider.ReadDone, 7)
		if !bytes.Equal(in, x.bytes[:100]) || x.reads() != 0 || x.a.d.Peers()[0].Path != "arena, bounce" {
			t.Errorf("case %d: %d reads, path %q", i, x.reads(), x.a.d.Peers()[0].Path)
		}
		if log.Len() > 0 {
			t.Errorf("case %d: what was asked for is no news: %s", i, log.String())
		}
	}
}

// With cma=on it is used whatever the owner does, or the read fails and says why.
func TestCrossForced(t *testing.T) {
	x := newPrivate(t, cma("on"), provider.DomainConfig{})
	for i, n := range []uint64{0, 8, crossMax + 1, privateLen} {
		x.good(0, n)
		if x.reads() != uint64(i)+1 {
			t.Errorf("%d bytes: %d reads", n, x.reads())
		}
	}
	x.m = x.register(memmon.Mapped(x.bytes, owner{}))
	fails(x, errCrossOwner.Error())
	off := cma("on")
	off.Options["disable"] = "cma"
	x = newPrivate(t, off, provider.DomainConfig{})
	fails(x, "cma is turned off")
	x = newPrivate(t, cma("on"), cma("off"))
	fails(x, errCrossClosed.Error())
	for _, e := range []syscall.Errno{syscall.EPERM, syscall.ENOSYS, syscall.EFAULT} {
		x = newPrivate(t, cma("on"), provider.DomainConfig{})
		x.breakReads(e)
		fails(x, e.Error())
	}
	x = newPrivate(t, cma("on"), provider.DomainConfig{}) // a process that is dying: if it answers after all, it is served
	tries := x.breakReads(syscall.ESRCH)
	x.good(0, 100)
	x.good(0, 100)
	if tries.Load() < 2 {
		t.Errorf("%d tries", tries.Load())
	}
	x = newPrivate(t, cma("on"), provider.DomainConfig{}) // one that was dying when it connected
	x.a.d.core.Lock()
	x.pair.crossLost(syscall.ESRCH)
	x.a.d.core.Unlock()
	x.good(0, 100)
	// With oneself, too.
	a := newSide(t, cma("on"), provider.EndpointConfig{})
	m, err := a.d.Register(memmon.HeapBytes([]byte("selfsame")), provider.PeerRead)
	if err != nil {
		t.Fatal(err)
	}
	in := make([]byte, 8)
	a.must(a.ep.Read(provider.Op{Local: provider.Segment{Bytes: in}, Peer: a.insert(a.ep.Address()), Key: m.Key(), Context: 7}))
	a.good(a.wait(), provider.ReadDone, 7)
	if string(in) != "selfsame" || a.d.pairs[0].cross.reads != 1 {
		t.Errorf("%q, %d reads", in, a.d.pairs[0].cross.reads)
	}
}

type owner struct{}

func (owner) Generation() uint64 { return 1 }

func fails(x *private, text string) {
	x.Helper()
	_, err := x.read(0, 100)
	if !errors.Is(err, provider.ErrNotSupported) || !strings.Contains(fmt.Sprint(err), text) || !strings.Contains(fmt.Sprint(err), "cma=on") {
		x.Errorf("%v, not %q", err, text)
	}
}

// breakReads has the kernel refuse from now on. The count is of the tries.
func (x *private) breakReads(err error) *atomic.Int32 {
	n := new(atomic.Int32)
	x.replace(func(int, uint64, []byte, sys.Guard, sys.Features) error {
		n.Add(1)
		return fmt.Errorf("sys: memory of process 1: %w", err)
	})
	return n
}

type readFunc = func(pid int, remote uint64, local []byte, g sys.Guard, f sys.Features) error

func (x *private) replace(f readFunc) {
	x.a.d.core.Lock()
	defer x.a.d.core.Unlock()
	x.pair.cross.read = f
}

// F38, F39: a kernel that refuses, at any time, costs one line in the log and nothing else.
func TestF39CrossRefused(t *testing.T) {
	for _, e := range []error{syscall.EPERM, syscall.ENOSYS, sys.ErrOtherProcess, syscall.ENOMEM} {
		var log strings.Builder
		x := newPrivate(t, provider.DomainConfig{Logger: slog.New(slog.NewTextHandler(&log, nil))}, provider.DomainConfig{})
		tries := x.breakReads(e)
		for range 20 {
			x.asleep()
			x.good(3, 1000)
			x.good(3, lockedCopy+1)
		}
		x.a.d.core.Lock()
		x.pair.crossLost(syscall.EPERM) // as of another peer
		x.a.d.core.Unlock()
		if tries.Load() != 1 || x.reads() != 0 || strings.Count(log.String(), "\n") != 1 || !strings.Contains(log.String(), e.Error()) || !strings.Contains(log.String(), "level=INFO") {
			t.Errorf("%v: %d tries, %d reads, log:\n%s", e, tries.Load(), x.reads(), log.String())
		}
	}
	// Of memory that is not there, nothing can be said of other memory.
	x := newPrivate(t, provider.DomainConfig{}, provider.DomainConfig{})
	tries := x.breakReads(syscall.EFAULT)
	for range 3 {
		x.asleep()
		x.good(3, 1000)
	}
	if tries.Load() < 3 {
		t.Errorf("EFAULT: %d tries", tries.Load())
	}
}

// F41: a copy that stops in the middle, before all is there, leaves nothing of it: the owner serves all.
func TestF41CrossCut(t *testing.T) {
	x := newPrivate(t, manual(provider.DomainConfig{}), manual(provider.DomainConfig{}))
	x.replace(func(_ int, _ uint64, local []byte, _ sys.Guard, _ sys.Features) error {
		for i := range local[:len(local)/2] {
			local[i] = 0xee
		}
		return syscall.EFAULT
	})
	x.good(3, 1000, x.b)
	x.good(3, 1_000_000, x.b)
}

// A registration that is closed while its memory is read: the read fails, and the bytes are nobody's.
func TestCrossClosedMeanwhile(t *testing.T) {
	for _, how := range []string{"auto", "on"} {
		for _, n := range []uint64{8, lockedCopy + 1} {
			for _, fault := range []error{nil, syscall.EFAULT} {
				x := newPrivate(t, cma(how), provider.DomainConfig{})
				x.replace(func(pid int, at uint64, local []byte, g sys.Guard, f sys.Features) error {
					err := sys.ReadGuarded(pid, at, local, g, f)
					if e := x.m.Close(); e != nil {
						err = e
					}
					return errors.Join(err, fault)
				})
				x.asleep()
				if _, err := x.read(0, n); !errors.Is(err, provider.ErrKey) {
					t.Errorf("cma=%s, %d bytes, %v: %v", how, n, fault, err)
				}
			}
		}
	}
	// The place has another key by then.
	x := newPrivate(t, provider.DomainConfig{}, provider.DomainConfig{})
	x.replace(func(pid int, at uint64, local []byte, g sys.Guard, f sys.Features) error {
		_ = x.m.Close()
		_ = x.register(heapBytes(privateLen))
		return sys.ReadGuarded(pid, at, local, g, f)
	})
	x.asleep()
	if _, err := x.read(0, 8); !errors.Is(err, provider.ErrKey) {
		t.Error(err)
	}
}

// What ends the pair while a copy runs ends the read, once.
func TestCrossEndMeanwhile(t *testing.T) {
	for name, end := range map[string]func(x *private){
		"peer": func(x *private) {
			if err := x.b.d.Close(); err != nil {
				x.Error(err)
			}
			testutil.Eventually(x, "heard", func() bool { return x.a.peerState(x.to) == "gone" })
		},
		"remove": func(x *private) {
			if err := x.a.d.Remove(x.to); err != nil {
				x.Error(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			x := newPrivate(t, provider.DomainConfig{}, provider.DomainConfig{})
			x.replace(func(pid int, at uint64, local []byte, g sys.Guard, f sys.Features) error {
				end(x)
				return sys.ReadGuarded(pid, at, local, g, f)
			})
			x.asleep()
			_, err := x.read(0, lockedCopy+1)
			if !errors.Is(err, provider.ErrPeerGone) && !errors.Is(err, provider.ErrCancelled) {
				t.Error(err)
			}
			var c [1]provider.Completion
			if n, _ := x.a.cq.Read(c[:]); n != 0 || x.a.d.ops.Len() != 0 {
				t.Errorf("%d more completions, %d operations left", n, x.a.d.ops.Len())
			}
		})
	}
	x := newPrivate(t, provider.DomainConfig{}, provider.DomainConfig{})
	closed := make(chan error, 1)
	x.replace(func(pid int, at uint64, local []byte, g sys.Guard, f sys.Features) error {
		go func() { closed <- x.a.ep.Close() }()
		testutil.Eventually(x, "closing", func() bool {
			x.a.d.core.Lock()
			defer x.a.d.core.Unlock()
			return len(x.a.d.pairs) == 0
		})
		select {
		case <-closed:
			t.Error("closed while a copy runs into memory of the program")
		default:
		}
		return sys.ReadGuarded(pid, at, local, g, f)
	})
	x.asleep()
	if _, err := x.read(0, lockedCopy+1); !errors.Is(err, provider.ErrClosed) {
		t.Error(err)
	}
	if err := <-closed; err != nil {
		t.Error(err)
	}
}

// A peer that lies about where its memory is, who it is, or how it is: the owner serves, and what it serves is right.
func TestHostileCross(t *testing.T) {
	for name, lie := range map[string]func(x *private){
		"address": func(x *private) {
			word(x.b.d.home.m.Bytes(), homeTable+int(keyPlace(x.m.Key()))*entryLen+16).Store(16)
		},
		"end of the address space": func(x *private) {
			word(x.b.d.home.m.Bytes(), homeTable+int(keyPlace(x.m.Key()))*entryLen+16).Store(^uint64(50))
		},
		"mark":         func(x *private) { word(x.b.d.home.m.Bytes(), crossMark).Add(1) },
		"mark's place": func(x *private) { x.pair.cross.guard.At = 16 },
		"process":      func(x *private) { x.pair.pid = testutil.Child(x, "hoard", "asleep").Pid() },
		"no process":   func(x *private) { x.pair.pid = 1<<22 + 1 },
	} {
		t.Run(name, func(t *testing.T) {
			x := newPrivate(t, provider.DomainConfig{}, provider.DomainConfig{})
			x.asleep()
			lie(x)
			x.good(3, 1000)
			x.asleep()
			x.good(3, 100_000)
			if x.reads() != 0 {
				t.Errorf("%d reads", x.reads())
			}
		})
	}
	// At the connection.
	for name, lie := range map[string]func(h []byte){
		"mark's place": func(h []byte) { word(h, crossAt).Store(16) },
		"state":        func(h []byte) { word(h, crossState).Store(^uint64(crossOpen)) },
	} {
		t.Run(name+" at first", func(t *testing.T) {
			a, b := newSide(t, provider.DomainConfig{}, provider.EndpointConfig{}), newSide(t, provider.DomainConfig{}, provider.EndpointConfig{})
			lie(b.d.home.m.Bytes())
			m, err := b.d.Register(memmon.HeapBytes([]byte("right here")), provider.PeerRead)
			if err != nil {
				t.Fatal(err)
			}
			in := make([]byte, 10)
			for range 2 {
				clear(in)
				a.must(a.ep.Read(provider.Op{Local: provider.Segment{Bytes: in}, Peer: a.insert(b.ep.Address()), Key: m.Key(), Context: 7}))
				a.good(a.wait(), provider.ReadDone, 7)
				a.d.core.Lock()
				if p := a.d.pairs[0]; string(in) != "right here" || p.cross.why == nil || p.cross.reads > 0 {
					t.Errorf("%q, %+v", in, p.cross)
				}
				a.d.core.Unlock()
			}
		})
	}
}

// readPrivate reads 10 bytes of a peer's registered memory, after each line of its input, and says what it got.
func readPrivate(args []string) error {
	d, err := open(provider.Info{}, cma(args[0]))
	if err != nil {
		return err
	}
	cq, err := d.OpenCompletionQueue(provider.CQConfig{})
	if err != nil {
		return err
	}
	ep, err := d.OpenEndpoint(provider.EndpointConfig{Send: cq, Recv: cq})
	if err != nil {
		return err
	}
	to, err := d.Insert(provider.Address(args[1]))
	if err != nil {
		return err
	}
	var key uint64
	if _, err := fmt.Sscan(args[2], &key); err != nil {
		return err
	}
	for s := bufio.NewScanner(os.Stdin); s.Scan(); {
		in := make([]byte, 10)
		if err := ep.Read(provider.Op{Local: provider.Segment{Bytes: in}, Peer: to, Key: provider.Key(key)}); err != nil {
			return err
		}
		var c [1]provider.Completion
		if _, err := cq.Wait(context.Background(), c[:]); err != nil {
			return err
		}
		d.core.Lock()
		fmt.Printf("read %q, %d by itself, why %v, error %v\n", in, d.pairs[0].cross.reads, d.pairs[0].cross.why, c[0].Err)
		d.core.Unlock()
	}
	return d.Close()
}

// Where the kernel refuses, in a sandbox or because the peer's process cannot be seen, all works but cma=on, which says why.
func TestF38CrossInSandbox(t *testing.T) {
	testutil.Require(t, crossMemory)
	for _, c := range []struct {
		name     string
		launcher []string
		why      string
		needs    []testutil.Capability
	}{
		{"none", []string{"env"}, "<nil>", nil},
		{"seccomp", []string{"python3", "-c", denyCross}, syscall.EPERM.Error(), []testutil.Capability{testutil.Program("python3")}},
		{"pid namespace", []string{"unshare", "--pid", "--fork", "--kill-child", "--"}, errCrossPid.Error(),
			[]testutil.Capability{testutil.Superuser(), testutil.Program("unshare")}},
	} {
		t.Run(c.name, func(t *testing.T) {
			testutil.Require(t, c.needs...)
			b := newSide(t, provider.DomainConfig{}, provider.EndpointConfig{})
			m, err := b.d.Register(memmon.HeapBytes([]byte("0123456789")), provider.PeerRead)
			if err != nil {
				t.Fatal(err)
			}
			for _, how := range []string{"auto", "on"} {
				exe, env := testutil.RoleCommand(t, "reader")
				child := testutil.Start(t, "", []string{env}, c.launcher[0], append(c.launcher[1:], exe, how, string(b.ep.Address()), fmt.Sprint(uint64(m.Key())))...)
				for i := range 2 {
					if i > 0 {
						testutil.Eventually(t, "asleep", func() bool { return b.d.home.armed.Load()&1 == 1 })
					}
					child.Send("read")
					got := child.Expect("read ")
					text := `"0123456789"`
					switch {
					case how == "on" && c.why != "<nil>":
						text = "cma=on"
					case c.why == "<nil>": // the first may find its owner awake
						if strings.Contains(got, ", 0 by itself") && (i > 0 || how == cmaOn) {
							t.Errorf("cma=%s, read %d: %s", how, i, got)
						}
					case c.why != "<nil>":
						text += ", 0 by itself"
					}
					if !strings.Contains(got, text) || !strings.Contains(got, c.why) {
						t.Errorf("cma=%s, read %d: %s, not with %q and %q", how, i, got, text, c.why)
					}
				}
				child.CloseInput()
				if err := child.Wait(); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// denyCross is a launcher that has the kernel refuse process_vm_readv and process_vm_writev with EPERM, as sandboxes do.
const denyCross = `
import ctypes, os, platform, struct, sys
first = {"x86_64": 310, "aarch64": 270}[platform.machine()]
program = b"".join(struct.pack("HBBI", *i) for i in [
    (0x20, 0, 0, 0), (0x15, 1, 0, first), (0x15, 0, 1, first + 1), (0x06, 0, 0, 0x00050000 | 1), (0x06, 0, 0, 0x7fff0000),
])
class Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("filter", ctypes.c_char_p)]
libc = ctypes.CDLL(None, use_errno=True)
if libc.prctl(38, 1, 0, 0, 0) or libc.prctl(22, 2, ctypes.byref(Program(len(program) // 8, program)), 0, 0):
    sys.exit("seccomp: errno %d" % ctypes.get_errno())
os.execvp(sys.argv[1], sys.argv[1:])
`
