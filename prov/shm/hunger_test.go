package shm

import (
	"errors"
	"log/slog"
	"os"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weft-fabric/weft/fabric/provider"
	"github.com/weft-fabric/weft/internal/sys"
	"github.com/weft-fabric/weft/internal/testutil"
)

// fast has this process get no descriptor more until the result is called.
func fast(t *testing.T) (eat func()) {
	t.Helper()
	var old syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &old); err != nil {
		t.Fatal(err)
	}
	next, err := os.Open("/dev/null")
	if err != nil {
		t.Fatal(err)
	}
	few := syscall.Rlimit{Cur: uint64(next.Fd()), Max: old.Max}
	_ = next.Close()
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &few); err != nil {
		t.Fatal(err)
	}
	ate := false
	eat = func() {
		if !ate {
			ate = true
			if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &old); err != nil {
				t.Error(err)
			}
		}
	}
	t.Cleanup(eat)
	return eat
}

// quiet polls until nothing moves: that comes soon, if nothing is tried again and again.
func (s *side) quiet() {
	s.t.Helper()
	for n := 0; s.poll(); n++ {
		if n > 1000 {
			s.t.Fatal("it is busy with what it cannot do")
		}
	}
}

// A peer's memory that there are no descriptors for waits, the peer stays, and it goes on when there are.
func TestWantOfDescriptors(t *testing.T) {
	a, b, ab, _ := joined(t, provider.EndpointConfig{})
	m := b.alloc(1<<16, peerBoth)
	copy(m.Bytes(), "here")
	eat := fast(t)
	a.quiet()
	if got := a.peerState(ab); got != "connected" {
		t.Fatalf("the peer is %s: %v", got, a.d.Peers()[0].Why)
	}
	buf := make([]byte, 4)
	a.must(a.ep.Read(provider.Op{Local: provider.Segment{Bytes: buf}, Peer: ab, Key: m.Key(), Context: 1}))
	a.quiet()
	eat()
	if a.good(a.wait(b), provider.ReadDone, 1); string(buf) != "here" {
		t.Errorf("%q", buf)
	}
}

// The same with a connection.
func TestWantOfDescriptorsToAccept(t *testing.T) {
	for _, what := range []string{"accept", "hello"} {
		a := newSide(t, provider.DomainConfig{Progress: provider.Manual}, provider.EndpointConfig{})
		b := newSide(t, provider.DomainConfig{Progress: provider.Manual}, provider.EndpointConfig{})
		b.must(b.ep.Send(mk(make([]byte, 8), b.insert(a.ep.Address()), 1)))
		if what == "hello" { // there is one descriptor: for the connection
			one, err := os.Open("/dev/null")
			a.must(err)
			eat := fast(t)
			_ = one.Close()
			a.quiet()
			eat()
		} else {
			eat := fast(t)
			a.quiet()
			eat()
		}
		a.must(a.ep.Recv(recvOp(make([]byte, 8), 2)))
		b.good(b.wait(a), provider.SendDone, 1)
		a.good(a.wait(b), provider.RecvDone, 2)
	}
}

// Who cannot be taken in for want of descriptors is told so, and does not take the other for dead; here the log has it once.
func TestWantOfDescriptorsIsSaid(t *testing.T) {
	for what, room := range map[string]int{"hello": 1, "lanes": 4} {
		log, logger := testutil.NewLog(slog.LevelWarn)
		a := newSide(t, provider.DomainConfig{Progress: provider.Manual, Logger: logger}, provider.EndpointConfig{})
		for range 2 {
			b := newSide(t, provider.DomainConfig{Progress: provider.Manual}, provider.EndpointConfig{})
			to := b.insert(a.ep.Address())
			b.must(b.ep.Send(mk(make([]byte, 8), to, 1)))
			var some []*os.File
			for range room {
				f, err := os.Open("/dev/null")
				a.must(err)
				some = append(some, f)
			}
			eat := fast(t)
			for _, f := range some {
				_ = f.Close()
			}
			a.d.feed() // its listener, which has waited for descriptors since the last round
			a.quiet()
			a.within(func() {
				for _, s := range a.ep.(*endpoint).strangers { // as if ten seconds had passed
					s.starved.since = time.Now().Add(-2 * starvedTime)
					s.ready(sys.Readable)
				}
			})
			eat()
			c := b.wait(a)
			if !errors.Is(c.Err, provider.ErrUnreachable) || !strings.Contains(c.Err.Error(), "it says: ") || !strings.Contains(c.Err.Error(), "descriptors") {
				t.Errorf("%s: %v", what, c.Err)
			}
			if state := b.peerState(to); state != "new" {
				t.Errorf("%s: the peer is %s", what, state)
			}
		}
		if said := log.String(); strings.Count(said, "RLIMIT_NOFILE") != 1 || !strings.Contains(said, "taken in") {
			t.Errorf("%s: the log has %s", what, said)
		}
	}
}

// What cannot wait fails for what it is: no breach of the peer's.
func TestWantOfDescriptorsIsNoBreach(t *testing.T) {
	a, b, ab, ba := joined(t, provider.EndpointConfig{})
	m := b.alloc(1<<16, peerBoth)
	a.must(a.ep.Recv(recvOp(make([]byte, 1<<16), 1)))
	b.must(b.ep.Send(provider.Op{Local: provider.Segment{Bytes: m.Bytes(), Memory: m}, Peer: ba, Context: 2}))
	eat := fast(t)
	a.quiet()
	eat()
	a.wait()
	if why := a.d.Peers()[0].Why; a.peerState(ab) != "gone" || !errors.Is(why, provider.ErrNoMemory) || errors.Is(why, provider.ErrProtocol) {
		t.Errorf("the peer is %s: %v", a.peerState(ab), why)
	}
}

// Want of descriptors when a pair has ended is not the end of the peer's use of our memory: a view keeps its block.
func TestWantOfDescriptorsWhenThePairHasEnded(t *testing.T) {
	a, b, ab, ba := joined(t, provider.EndpointConfig{})
	m := a.alloc(1<<16, peerBoth)
	copy(m.Bytes(), "mine")
	v := b.view(ba, m, 0, 4)
	b.alloc(1<<20, peerBoth) // is announced, with a descriptor
	a.must(a.d.Remove(ab))
	eat := fast(t)
	a.quiet()
	eat()
	a.must(m.Close())
	for range 40 {
		copy(a.alloc(1<<16, peerBoth).Bytes(), "else")
	}
	if string(v.Bytes()) != "mine" {
		t.Errorf("the view shows %q", v.Bytes())
	}
	v.Release()
	b.quiet()
	a.quiet()
	if n := a.partingPairs(); n != 0 {
		t.Errorf("%d pairs have not parted", n)
	}
}

// The logger may ask the domain when a peer is given up.
func TestLoggerMayAskInWantOfDescriptors(t *testing.T) {
	ctx, cancel := withPatience(t)
	defer cancel()
	a, b, _, ba := joined(t, provider.EndpointConfig{})
	h := asking{nil, &a.d, make(chan string, 2)}
	a.within(func() { a.d.log, a.d.background = slog.New(h), ctx })
	m := b.alloc(1<<16, peerBoth)
	a.must(a.ep.Recv(recvOp(make([]byte, 1<<16), 1)))
	b.must(b.ep.Send(provider.Op{Local: provider.Segment{Bytes: m.Bytes(), Memory: m}, Peer: ba, Context: 2}))
	eat := fast(t)
	a.quiet()
	eat()
	for range 2 {
		select {
		case <-h.heard:
		case <-ctx.Done():
			t.Fatal("the logger does not get an answer")
		}
	}
}

// What cannot be announced, since the kernel does not take the descriptors, is announced later; nobody is busy until then.
func TestAnnounceLater(t *testing.T) {
	a, b, ab, ba := joined(t, provider.EndpointConfig{})
	swap := func(s sys.Socket) (old sys.Socket) {
		b.locked(ba, func(p *pair) { old, p.sock = p.sock, s })
		return old
	}
	file, err := sys.Memfd(sys.MemfdConfig{Name: "no socket", Size: 4096})
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	sock := swap(sys.Socket{FD: file})
	m := b.alloc(1<<16, peerBoth)
	copy(m.Bytes(), "here")
	b.quiet()
	b.locked(ba, func(p *pair) {
		if p.jammed || b.d.retry == nil {
			t.Errorf("jammed %v, tried again: %v", p.jammed, b.d.retry != nil)
		}
	})
	swap(sock)
	buf := make([]byte, 4)
	a.must(a.ep.Read(provider.Op{Local: provider.Segment{Bytes: buf}, Peer: ab, Key: m.Key(), Context: 1}))
	if a.good(a.wait(b), provider.ReadDone, 1); string(buf) != "here" {
		t.Errorf("%q", buf)
	}
}

// A socket is given up when its message has waited for ten seconds, however often it was tried.
func TestHopeless(t *testing.T) {
	synctest.Test(t, func(*testing.T) {
		var s starvation
		for range 1000 {
			if s.hopeless() {
				t.Fatal("at once")
			}
		}
		time.Sleep(starvedTime)
		if s.hopeless() {
			t.Error("early")
		}
		time.Sleep(time.Nanosecond)
		if !s.hopeless() {
			t.Error("not after its time")
		}
		if s.ends(); s.hopeless() {
			t.Error("it had some")
		}
	})
}
