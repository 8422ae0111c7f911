package native

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/weft-fabric/weft/fabric"
	"github.com/weft-fabric/weft/internal/testutil"
	_ "github.com/weft-fabric/weft/prov/shm"
)

func TestMain(m *testing.M) {
	testutil.Main(m, testutil.Role{Name: "serve", Run: serve}, testutil.Role{Name: "starve", Run: starve})
}

// open opens a Fabric, which is closed at the end, and fails the test if it does not go.
func open(t testing.TB, c Config) *Fabric {
	t.Helper()
	f, err := Open(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.Close(); err != nil {
			t.Errorf("closing: %v", err)
		}
	})
	return f
}

// alloc gets memory with a pattern, which is freed at the end.
func alloc(t testing.TB, f *Fabric, n int) *Memory {
	t.Helper()
	m, err := f.Alloc(n)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Free)
	fill(m.Bytes(), 1)
	return m
}

// fill writes a pattern, another one for each seed.
func fill(b []byte, seed int) {
	for i := range b {
		b[i] = byte(i*31 + i>>8 + seed)
	}
}

func pattern(n, seed int) []byte {
	b := make([]byte, n)
	fill(b, seed)
	return b
}

// reach reaches a process, and closes the peer at the end.
func reach(t testing.TB, f *Fabric, contact string) *Peer {
	t.Helper()
	p, err := f.Reach(t.Context(), contact)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

// view gets a view that must be there.
func view(t testing.TB, p *Peer, key fabric.Key, at uint64, n int) (b []byte, release func()) {
	t.Helper()
	b, release, err := p.View(t.Context(), key, at, n)
	if err != nil {
		t.Fatal(err)
	}
	return b, release
}

// sees checks that a view has the bytes of the pattern.
func sees(t testing.TB, p *Peer, key fabric.Key, at uint64, n int) {
	t.Helper()
	b, release := view(t, p, key, at, n)
	defer release()
	if want := pattern(int(at)+n, 1)[at:]; !bytes.Equal(b, want) {
		t.Errorf("%d bytes at %d are others than were written", n, at)
	}
}

// is checks what an error is.
func is(t testing.TB, err error, all ...error) {
	t.Helper()
	for _, want := range all {
		if !errors.Is(err, want) {
			t.Errorf("got %v, want %v", err, want)
		}
	}
}

// unused checks that no peer is in use.
func unused(t testing.TB, f *Fabric) {
	t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.peers) > 0 {
		t.Errorf("left: peers %v", f.peers)
	}
}

// empty checks that nothing is known of any peer but those that are connected.
func empty(t testing.TB, f *Fabric) {
	t.Helper()
	unused(t, f)
	for _, left := range f.domain.Peers() {
		if left.State != connected {
			t.Errorf("left in the domain: %+v", left)
		}
	}
}

// holdings counts what this process has open.
func holdings(t testing.TB) (descriptors, goroutines int) {
	t.Helper()
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(list), runtime.NumGoroutine()
}

// server is another process with a Fabric and memory with the pattern.
type server struct {
	*testutil.Process
	t       testing.TB
	contact string
	key     fabric.Key
}

func newServer(t testing.TB, size int) *server {
	t.Helper()
	s := &server{Process: testutil.Child(t, "serve", strconv.Itoa(size)), t: t}
	s.contact = s.Expect("contact ")
	key, err := strconv.ParseUint(s.Expect("key "), 16, 64)
	if err != nil {
		t.Fatal(err)
	}
	s.key = fabric.Key(key)
	return s
}

// serve is the other process. What it is told is a line, what it has done another one.
func serve(args []string) error {
	size, err := strconv.Atoi(args[0])
	if err != nil {
		return err
	}
	ctx := context.Background()
	f, err := Open(ctx, Config{})
	if err != nil {
		return err
	}
	defer f.Close()
	m, err := f.Alloc(size)
	if err != nil {
		return err
	}
	defer m.Free()
	fill(m.Bytes(), 1)
	fmt.Printf("contact %s\nkey %x\n", f.Contact(), uint64(m.Key()))
	var peer *Peer
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		verb, arg, _ := strings.Cut(in.Text(), " ")
		switch verb {
		case "free":
			m.Free()
		case "close":
			if err := f.Close(); err != nil {
				return err
			}
		case "reach":
			if peer, err = f.Reach(ctx, arg); err != nil {
				return err
			}
		case "leave":
			peer.Close()
		case "usage":
			var r syscall.Rusage
			if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
				return err
			}
			fmt.Printf("usage %d %d\n", r.Utime.Nano()+r.Stime.Nano(), f.Stats().Wakes)
			continue
		}
		fmt.Println("done")
	}
	return nil
}

// do has the other process do something.
func (s *server) do(what string) {
	s.Send(what)
	s.Expect("done")
}

// stop stops the other process, and returns when none of its threads runs any more.
func (s *server) stop() {
	if err := s.Signal(syscall.SIGSTOP); err != nil {
		s.t.Fatal(err)
	}
	testutil.Eventually(s.t, "every thread has stopped", func() bool {
		threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", s.Pid()))
		if err != nil {
			s.t.Fatal(err)
		}
		return !slices.ContainsFunc(threads, func(thread string) bool {
			b, err := os.ReadFile(thread)
			return err == nil && !bytes.Contains(b, []byte(") T "))
		})
	})
}

// starve is a process that runs out of descriptors before it reaches a contact.
func starve(args []string) error {
	ctx := context.Background()
	f, err := Open(ctx, Config{})
	if err != nil {
		return err
	}
	defer f.Close()
	var was syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &was); err != nil {
		return err
	}
	next, err := os.Open(os.DevNull)
	if err != nil {
		return err
	}
	none := syscall.Rlimit{Cur: uint64(next.Fd()), Max: was.Max}
	next.Close()
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &none); err != nil {
		return err
	}
	_, reachErr := f.Reach(ctx, args[0])
	_, openErr := Open(ctx, Config{})
	_, allocErr := f.Alloc(8 << 20)
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &was); err != nil {
		return err
	}
	for _, err := range []error{reachErr, allocErr, openErr} {
		fmt.Printf("error %t %t %q\n", errors.Is(err, fabric.ErrNoMemory), errors.Is(err, fabric.ErrNotSupported), err)
	}
	if left := f.domain.Peers(); len(left) > 0 {
		return fmt.Errorf("left: %+v", left)
	}
	p, err := f.Reach(ctx, args[0]) // it is as good as ever
	if err != nil {
		return err
	}
	p.Close()
	return nil
}
