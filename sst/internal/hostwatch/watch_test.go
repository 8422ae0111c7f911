package hostwatch

import (
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/weft-fabric/weft/internal/testutil"
)

func TestMain(m *testing.M) {
	testutil.Main(m, testutil.Role{Name: "sink", Run: sink}, testutil.Role{Name: "source", Run: source})
}

// quick is a keep-alive that finds out within 5 s.
var quick = net.KeepAliveConfig{Enable: true, Idle: 2 * time.Second, Interval: time.Second, Count: 3}

const sinkAddr = "10.214.1.2:4711"

// sink takes what comes, or only holds the connection.
func sink(args []string) error {
	l, err := net.Listen("tcp4", sinkAddr)
	if err != nil {
		return err
	}
	fmt.Println("listening")
	c, err := l.Accept()
	if err != nil {
		return err
	}
	fmt.Println("connected")
	if args[0] == "hold" {
		select {}
	}
	b := make([]byte, 1<<16)
	for err == nil {
		_, err = c.Read(b)
	}
	return nil
}

// source sends so many bytes when it is told, and says when the watch, or else
// the kernel, gives the host up.
func source(args []string) error {
	var size int
	if _, err := fmt.Sscan(args[0], &size); err != nil {
		return err
	}
	conn, err := (&net.Dialer{KeepAliveConfig: quick}).Dial("tcp4", sinkAddr)
	if err != nil {
		return err
	}
	defer conn.Close()
	w := New(conn.(*net.TCPConn), quick, func(err error) { fmt.Println("gone", errors.Is(err, syscall.ETIMEDOUT), err) })
	defer w.Stop()
	fmt.Println("ready")
	for {
		var what string
		if _, err := fmt.Scan(&what); err != nil || what == "end" {
			return nil
		}
		w.Sent()
		conn.SetWriteDeadline(time.Now().Add(time.Second)) // the buffers are full by then
		_, err := conn.Write(make([]byte, size))
		w.Sent()
		fmt.Println("wrote", err)
	}
}

// hosts are two network namespaces with a wire between them.
type hosts struct{ a, b string }

func twoHosts(t *testing.T) hosts {
	t.Helper()
	testutil.Require(t, testutil.Superuser(), testutil.Program("ip"), testutil.Capability{
		Name: "network namespaces with veth links", Fixed: true, Probe: func() error {
			name := "weft-probe-" + strings.ToLower(rand.Text()[:6])
			err := exec.Command("ip", "netns", "add", name).Run()
			if err == nil {
				err = errors.Join(exec.Command("ip", "-n", name, "link", "add", "name", "one", "type", "veth", "peer", "name", "two").Run(),
					exec.Command("ip", "netns", "del", name).Run())
			}
			return err
		},
	})
	tag := strings.ToLower(rand.Text()[:6])
	h := hosts{"weft-a-" + tag, "weft-b-" + tag}
	for _, name := range []string{h.a, h.b} {
		ip(t, "netns", "add", name)
		t.Cleanup(func() { ip(t, "netns", "del", name) })
	}
	ip(t, "-n", h.a, "link", "add", "name", "wire", "type", "veth", "peer", "name", "wire", "netns", h.b)
	ip(t, "-n", h.a, "addr", "add", "10.214.1.1/24", "dev", "wire")
	ip(t, "-n", h.b, "addr", "add", "10.214.1.2/24", "dev", "wire")
	ip(t, "-n", h.a, "link", "set", "wire", "up")
	ip(t, "-n", h.b, "link", "set", "wire", "up")
	return h
}

func ip(t *testing.T, args ...string) {
	t.Helper()
	if out, err := exec.Command("ip", args...).CombinedOutput(); err != nil {
		t.Errorf("ip %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// cut makes the second host vanish for the first.
func (h hosts) cut(t *testing.T) { ip(t, "-n", h.b, "link", "set", "wire", "down") }

// play starts the two sides.
func (h hosts) play(t *testing.T, taking string, size int) (source, sink *testutil.Process) {
	t.Helper()
	start := func(host, role string, args ...string) *testutil.Process {
		exe, env := testutil.RoleCommand(t, role)
		return testutil.Start(t, "", []string{env}, "ip", append([]string{"netns", "exec", host, exe}, args...)...)
	}
	sink = start(h.b, "sink", taking)
	sink.Expect("listening")
	source = start(h.a, "source", fmt.Sprint(size))
	source.Expect("ready")
	sink.Expect("connected")
	return source, sink
}

// TestVanishedHost: whatever is under way when a host vanishes, it is noticed
// within the bound of the keep-alive, which here is 5 s, and not before.
func TestVanishedHost(t *testing.T) {
	t.Parallel() // it mostly waits
	h := twoHosts(t)
	for _, c := range []struct {
		name   string
		taking string
		size   int
		before bool // it is sent before the wire is cut
	}{
		{"a little, never acknowledged", "read", 1000, false},
		{"much, never acknowledged", "read", 64 << 20, false},
		{"a full window", "hold", 64 << 20, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			source, _ := h.play(t, c.taking, c.size)
			if c.before {
				source.Send("send")
				source.Expect("wrote")
			}
			h.cut(t)
			defer ip(t, "-n", h.b, "link", "set", "wire", "up")
			began := time.Now()
			if !c.before {
				source.Send("send")
			}
			said := source.Expect("gone")
			took := time.Since(began)
			t.Logf("after %v: %s", took, said)
			if !strings.HasPrefix(said, " true") || took < 2*time.Second || took > 8*time.Second {
				t.Errorf("after %v: %s", took, said)
			}
			source.Send("end")
		})
	}
}

// TestStoppedPeer: a process that is stopped, with its window full, is not given
// up: its kernel answers. Afterwards it takes what there is.
func TestStoppedPeer(t *testing.T) {
	t.Parallel()
	h := twoHosts(t)
	source, sink := h.play(t, "read", 8<<20)
	if err := sink.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	source.Send("send")
	source.Expect("wrote")
	select {
	case <-source.Done():
		t.Error("it ended")
	case <-time.After(2 * (quick.Idle + time.Duration(quick.Count)*quick.Interval)): // there is nothing to wait for but time
	}
	if out := source.Stdout(); strings.Contains(out, "gone") {
		t.Errorf("a stopped process was given up: %s", out)
	}
	if err := sink.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	source.Send("end")
	if err := source.Wait(); err != nil {
		t.Error(err)
	}
}

// TestQuietWatch: when all is acknowledged no timer runs, and the next write
// starts it again.
func TestQuietWatch(t *testing.T) {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	conn, err := net.Dial("tcp4", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	keep := quick
	keep.Interval = time.Millisecond
	w := New(conn.(*net.TCPConn), keep, func(err error) { t.Error(err) })
	for range 3 {
		w.Sent()
		if _, err := conn.Write([]byte("x")); err != nil {
			t.Fatal(err)
		}
		w.Sent()
		if !w.armed.Load() {
			t.Error("a write does not start the watch")
		}
		for began := time.Now(); w.armed.Load(); <-time.After(time.Millisecond) {
			if time.Since(began) > 10*time.Second {
				t.Fatal("it watches on although all is acknowledged")
			}
		}
	}
	w.Sent()
	w.Stop()
	conn.Close()
	New(conn.(*net.TCPConn), keep, nil).Stop()
}
