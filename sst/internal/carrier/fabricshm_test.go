package carrier

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"runtime"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/weft-fabric/weft/fabric"
	"github.com/weft-fabric/weft/fabric/provider"
	"github.com/weft-fabric/weft/internal/testutil"
	"github.com/weft-fabric/weft/internal/wire/cm"
	_ "github.com/weft-fabric/weft/prov/shm"
)

// roles are what a child process of the tests can be.
var roles = []testutil.Role{{Name: "mirror", Run: mirror}}

// shmProvider is the provider shm, if it can be used here.
func shmProvider(t testing.TB) provider.Provider {
	t.Helper()
	p, ok := provider.Lookup("shm")
	if !ok {
		t.Fatal("shm is not linked")
	}
	infos, err := fabric.Discover(t.Context(), fabric.Hints{Provider: "shm"})
	if err != nil || !infos[0].Usable {
		t.Skipf("no shared memory between processes (prov/shm): %v", err)
	}
	return p
}

// reflector is a Handler that sends everything back, and says on which link.
type reflector struct {
	last atomic.Value // Link
}

func (r *reflector) Message(l Link, in Inbound) {
	r.last.Store(l)
	_ = l.Send(Record{Format: in.Format, Parts: [][]byte{in.Data}, Done: func(error) { in.Free() }})
}

func (r *reflector) Lost(Link, error) {}

// mirror is a process that sends everything back, over the carrier "shm" or "tcp"; it sleeps meanwhile, or polls. It ends with its
// input.
func mirror(args []string) error {
	h := &reflector{}
	if args[0] == "tcp" {
		c, err := NewCM(context.Background(), Config{Handler: h, ListenAddr: netip.AddrPortFrom(loopback, 0)})
		if err != nil {
			return err
		}
		defer c.Close()
		fmt.Println("addr", c.Contact())
		return h.until(args[1] == "poll")
	}
	infos, err := fabric.Discover(context.Background(), fabric.Hints{Provider: "shm"})
	if err != nil {
		return err
	}
	d, err := fabric.OpenDomain(infos[0], fabric.DomainConfig{})
	if err != nil {
		return err
	}
	defer d.Close()
	q, err := d.OpenCompletionQueue(fabric.CQConfig{})
	if err != nil {
		return err
	}
	e, err := d.OpenEndpoint(FabricEndpoint(q))
	if err != nil {
		return err
	}
	f, err := NewFabric(FabricConfig{Domain: d, Endpoint: e, Queue: q, Handler: h})
	if err != nil {
		return err
	}
	defer f.Close()
	fmt.Println("addr", e.Address())
	return h.until(args[1] == "poll")
}

// until waits for the end of the input.
func (r *reflector) until(poll bool) error {
	var over atomic.Bool
	read := func() {
		_, _ = bufio.NewReader(os.Stdin).ReadString('\n')
		over.Store(true)
	}
	if !poll {
		read()
		return nil
	}
	go read()
	for !over.Load() {
		if l, ok := r.last.Load().(Link); ok {
			l.Poll()
		}
		runtime.Gosched()
	}
	return nil
}

// TestFabricOverShm: records of all sizes go to another process and back, and its end is heard of.
func TestFabricOverShm(t *testing.T) {
	p := shmProvider(t)
	a := place(t, p, fabric.DomainConfig{}).settle(t, FabricConfig{})
	child := testutil.Child(t, "mirror", "shm", "sleep")
	var address string
	if _, err := fmt.Sscan(child.Expect("addr "), &address); err != nil {
		t.Fatal(err)
	}
	l, err := a.f.Dial(t.Context(), fabric.Address(address))
	if err != nil {
		t.Fatal(err)
	}
	f := testFormat(t, "F")
	const n = 200
	size := func(i int) int { return []int{0, 200, 4000, 5000, 70_000, 1 << 20}[i%6] }
	for i := range n {
		if err := l.Send(record(f, i, size(i))); err != nil {
			t.Fatal(err)
		}
	}
	for i := range n {
		e := next(t, "record", a.got)
		if number(e.data) != i || len(e.data) != 24+variantHeader+size(i) {
			t.Fatalf("number %d of %d bytes at place %d", number(e.data), len(e.data), i)
		}
		e.free()
	}
	nothingIn(t, "end", a.lost)
	child.Kill() // while nothing moves
	if e := next(t, "end", a.lost); !errors.Is(e.err, fabric.ErrPeerGone) {
		t.Error(e.err)
	}
	_, err = a.f.Dial(t.Context(), fabric.Address(address))
	if !errors.Is(err, fabric.ErrUnreachable) && !errors.Is(err, fabric.ErrPeerGone) {
		t.Errorf("dial of a dead process: %v", err)
	}
}

// TestFabricOverShmStopped: a process that is stopped holds up Close for CloseTimeout, and nobody else.
func TestFabricOverShmStopped(t *testing.T) {
	p := shmProvider(t)
	a, b := place(t, p, fabric.DomainConfig{}).settle(t, FabricConfig{CloseTimeout: 100 * time.Millisecond}), place(t, p, fabric.DomainConfig{}).settle(t, FabricConfig{})
	child := testutil.Child(t, "mirror", "shm", "sleep")
	var address string
	if _, err := fmt.Sscan(child.Expect("addr "), &address); err != nil {
		t.Fatal(err)
	}
	l, err := a.f.Dial(t.Context(), fabric.Address(address))
	if err != nil {
		t.Fatal(err)
	}
	child.Signal(syscall.SIGSTOP)
	f := testFormat(t, "F")
	done := make(chan error, 20)
	for i := range 20 {
		r := record(f, i, 1<<20)
		r.Done = func(err error) { done <- err }
		if err := l.Send(r); err != nil {
			t.Fatal(err)
		}
	}
	good := a.reach(t, b)
	if err := good.Send(record(f, 5, 1<<20)); err != nil {
		t.Fatal(err)
	}
	next(t, "record", b.got)
	_ = a.f.Close()
	for range 2 {
		if e := next(t, "end", a.lost); (e.err == nil) != (e.link == good) {
			t.Error(e.err)
		}
	}
	for range 20 {
		next(t, "Done", done)
	}
}

// TestFabricOverShmTogether: two carriers of one process have links both ways, and hold each other back.
func TestFabricOverShmTogether(t *testing.T) {
	p := shmProvider(t)
	c := FabricConfig{MaxQueued: 3}
	a, b := place(t, p, fabric.DomainConfig{}).settle(t, c), place(t, p, fabric.DomainConfig{}).settle(t, c)
	la, lb := a.reach(t, b), b.reach(t, a)
	f := testFormat(t, "F")
	const n = 300
	for i := range n {
		for _, l := range []Link{la, lb} {
			if err := l.Send(record(f, i, i%9*40_000)); err != nil {
				t.Fatal(err)
			}
		}
	}
	for i := range n {
		for _, s := range []*site{a, b} {
			if e := next(t, "record", s.got); number(e.data) != i {
				t.Fatalf("number %d at place %d", number(e.data), i)
			}
		}
	}
	_ = a.f.Close()
	_ = b.f.Close()
	vacant(t, a)
	vacant(t, b)
}

// BenchmarkPingPong is a record of 200 bytes, format ID and header among them, to another process and back, over shared memory and over TCP; both sides
// poll, or both sleep.
func BenchmarkPingPong(b *testing.B) {
	for _, way := range []string{"shm", "tcp"} {
		for _, how := range []string{"poll", "sleep"} {
			b.Run(way+"/"+how, func(b *testing.B) { pingPong(b, way, how == "poll", 200-24-variantHeader) })
		}
		b.Run(way+"/1MiB", func(b *testing.B) { pingPong(b, way, false, 1<<20) })
	}
}

// counter is a Handler that counts.
type counter struct {
	n    atomic.Int64
	came chan struct{}
}

func (c *counter) Message(_ Link, in Inbound) {
	in.Free()
	c.n.Add(1)
	if c.came != nil {
		c.came <- struct{}{}
	}
}

func (c *counter) Lost(Link, error) {}

func pingPong(b *testing.B, way string, poll bool, size int) {
	h := &counter{}
	how := "poll"
	if !poll {
		how, h.came = "sleep", make(chan struct{}, 1)
	}
	var l Link
	child := testutil.Child(b, "mirror", way, how)
	address := child.Expect("addr ")
	if way == "shm" {
		s := place(b, shmProvider(b), fabric.DomainConfig{}).settle(b, FabricConfig{Handler: h})
		var err error
		if l, err = s.f.Dial(b.Context(), fabric.Address(address)); err != nil {
			b.Fatal(err)
		}
	} else {
		c, _ := open(b, Config{Handler: h})
		contact, err := cm.ParseContact(address)
		if err != nil {
			b.Fatal(err)
		}
		l = dial(b, c, contact)
	}
	out := record(testFormat(b, "F"), 1, size)
	if size > 1000 {
		b.SetBytes(int64(2 * size))
	}
	b.ReportAllocs()
	for b.Loop() {
		was := h.n.Load()
		if err := l.Send(out); err != nil {
			b.Fatal(err)
		}
		if poll {
			for h.n.Load() == was {
				l.Poll()
			}
		} else {
			<-h.came
		}
	}
	b.StopTimer()
	child.CloseInput()
	if err := child.Wait(); err != nil {
		b.Error(err)
	}
}
