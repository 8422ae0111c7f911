package shm

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weft-fabric/weft/fabric/provider"
	"github.com/weft-fabric/weft/internal/sys"
)

// A socket file that its owner left behind is removed, and one that a successor has made meanwhile is not.
func TestStaleSocketHasASuccessor(t *testing.T) {
	dir := t.TempDir()
	at := sys.UnixAddress{Name: filepath.Join(dir, "s")}
	bind := func() sys.Socket {
		s, err := sys.ListenUnix(at, sys.SeqPacket, 1)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	_ = bind().Close() // dead: its file stays
	old, err := os.Lstat(at.Name)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(at.Name); err != nil {
		t.Fatal(err)
	}
	alive := bind()
	defer alive.Close()
	if removeSame(at.Name, old) || stale(at) {
		t.Error("a successor's socket is taken for a dead one's")
	}
	if _, err := alive.Accept(); !errors.Is(err, sys.ErrWouldBlock) {
		t.Errorf("the successor was disturbed: %v", err)
	}
	c, err := sys.ConnectUnix(at, sys.SeqPacket)
	if err != nil {
		t.Fatal("the successor cannot be reached: ", err)
	}
	_ = c.Close()
	if list, _ := os.ReadDir(dir); len(list) != 1 {
		t.Error(list)
	}
	_ = alive.Close()
	if !stale(at) {
		t.Error("a dead one's socket stays")
	}
	if list, _ := os.ReadDir(dir); len(list) != 0 {
		t.Error(list)
	}
}

// A file that is moved aside in the moment in which it has no socket yet comes back.
func TestStaleSocketHasAnOwnerAfterAll(t *testing.T) {
	at := sys.UnixAddress{Name: filepath.Join(t.TempDir(), "s")}
	s, err := sys.ListenUnix(at, sys.SeqPacket, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	seen, err := os.Lstat(at.Name)
	if err != nil {
		t.Fatal(err)
	}
	if removeSame(at.Name, seen) {
		t.Error("it is removed")
	}
	if now, err := os.Lstat(at.Name); err != nil || !os.SameFile(now, seen) {
		t.Error(err)
	}
}

// The first endpoint of a domain removes what nobody listens at in the folder, and nothing else.
func TestFolderIsTidied(t *testing.T) {
	dir := t.TempDir()
	bind := func(name string, kind sys.SocketType) sys.Socket {
		s, err := sys.ListenUnix(sys.UnixAddress{Name: filepath.Join(dir, name)}, kind, 1)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	for _, name := range []string{filepath.Base(folderName("/", "dead").Name), "weft-1.old", "other.sock"} {
		_ = bind(name, sys.SeqPacket).Close()
	}
	alive := bind("weft-alive.sock", sys.SeqPacket)
	defer alive.Close()
	stream := bind("weft-stream.sock", sys.Stream)
	defer stream.Close()
	for _, name := range []string{"weft-file.sock", "weft.sock"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	a := newSide(t, provider.DomainConfig{Options: map[string]string{"folder": dir}}, provider.EndpointConfig{})
	a.must(a.ep.Close())
	if _, err := alive.Accept(); !errors.Is(err, sys.ErrWouldBlock) {
		t.Errorf("who lives was disturbed: %v", err)
	}
	var left []string
	list, err := os.ReadDir(dir)
	a.must(err)
	for _, e := range list {
		left = append(left, e.Name())
	}
	if got := strings.Join(left, " "); got != "other.sock weft-alive.sock weft-file.sock weft-stream.sock weft.sock" {
		t.Error("left are ", got)
	}
}

// What came with a welcome that is no good is let go of: the next one brings its own.
func TestBadWelcomeLeavesNothing(t *testing.T) {
	a, b, ab, _ := joined(t, provider.EndpointConfig{})
	a.d.core.Lock()
	defer a.d.core.Unlock()
	p := a.ep.(*endpoint).newPair(*a.d.av.Lookup(ab))
	a.must(p.prepare())
	defer a.d.reap()
	defer p.end(provider.ErrClosed, nil)
	good := b.alloc(4096, 0).(*memory).extent.seg
	for range 3 {
		var fds []*sys.FD
		before := openFiles(t)
		other, err := newLanes(b.d.features)
		a.must(err)
		bell, err := sys.NewEventfd(b.d.features)
		a.must(err)
		open, err := sys.Memfd(sys.MemfdConfig{Name: "not sealed", Size: pageSize})
		a.must(err)
		for _, fd := range []*sys.FD{b.d.home.fd, other.fd, bell.FD, b.d.arena.segments[good].file.fd, open} {
			dup, err := fd.Dup()
			a.must(err)
			fds = append(fds, dup)
		}
		h := hello{features: hasBell, segments: []segmentInfo{b.d.arena.segments[good].info(), {index: 77, size: pageSize}}}
		if err := p.take(&h, fds); err == nil || len(p.segments) > 0 {
			t.Errorf("%v, and %d segments", err, len(p.segments))
		}
		other.close()
		sys.CloseAll([]*sys.FD{bell.FD, open})
		if got := openFiles(t); got != before {
			t.Errorf("%d descriptors, before %d", got, before)
		}
	}
}

// countEventfds is how many of this process's descriptors are eventfds.
func countEventfds(t *testing.T) (n int) {
	t.Helper()
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range list {
		if to, _ := os.Readlink("/proc/self/fd/" + e.Name()); strings.Contains(to, "eventfd") {
			n++
		}
	}
	return n
}

// Without eventfds there are none, whatever is opened, and an event loop is woken all the same.
func TestNoEventfdAtAll(t *testing.T) {
	for _, mode := range bothModes {
		before := countEventfds(t)
		c := provider.DomainConfig{Progress: mode, Options: map[string]string{"disable": "eventfd"}}
		a, b, _, ba := twoSides(t, c)
		fd, err := a.cq.Descriptor()
		a.must(err)
		if fd < 0 || countEventfds(t) > before {
			t.Errorf("descriptor %d; %d eventfds, before %d", fd, countEventfds(t), before)
		}
		a.must(a.ep.Recv(recvOp(make([]byte, 8), 1)))
		b.must(b.ep.Send(mk(make([]byte, 8), ba, 2)))
		b.good(b.wait(a), provider.SendDone, 2)
		a.good(a.wait(b), provider.RecvDone, 1)
		if countEventfds(t) > before {
			t.Errorf("%d eventfds after a message, before %d", countEventfds(t), before)
		}
	}
}
