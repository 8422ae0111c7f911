package pinnic

import (
	"bytes"
	"errors"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/weft-fabric/weft/internal/sys"
	"github.com/weft-fabric/weft/internal/testutil"
)

func TestMain(m *testing.M) {
	testutil.Main(m, testutil.Role{Name: "nothing", Run: func([]string) error { return nil }})
}

func has(f sys.Feature) testutil.Capability {
	return testutil.Capability{Name: f.String(), Fixed: true, Probe: func() error { return sys.Features{}.Check(f) }}
}

// mostPinned is how much memory a test has registered at a time, in bytes.
const mostPinned = 4 << 20

// lockable is the right to pin that much.
var lockable = testutil.Capability{Name: "4 MiB of memory that may be locked (RLIMIT_MEMLOCK)", Fixed: true, Probe: sync.OnceValue(func() error {
	k, far, err := New(Config{})
	if err != nil {
		return err
	}
	far.Close()
	defer k.Close()
	h, err := k.Register(make([]byte, mostPinned))
	if err != nil {
		return err
	}
	return k.Deregister(h)
})}

// ways are the ways of sending.
var ways = []struct {
	name string
	Config
	needs sys.Feature
}{
	{"write_fixed", Config{}, sys.IOUring},
	{"send_zc", Config{ZeroCopy: true}, sys.SendZC},
}

// eachWay runs a test with each way of sending.
func eachWay(t *testing.T, test func(*testing.T, *wired)) {
	for _, way := range ways {
		t.Run(way.name, func(t *testing.T) {
			testutil.Require(t, has(way.needs))
			test(t, newWired(t, way.Config))
		})
	}
}

// wired is a card and the far end of its wire.
type wired struct {
	*Card
	t   *testing.T
	far *net.TCPConn
}

func newWired(t *testing.T, c Config) *wired {
	t.Helper()
	testutil.Require(t, has(sys.IOUring), lockable)
	k, far, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		far.Close()
		if err := k.Close(); err != nil {
			t.Error(err)
		}
	})
	return &wired{k, t, far}
}

// in is the same for a test inside of its test.
func (w *wired) in(t *testing.T) *wired { return &wired{w.Card, t, w.far} }

// rounds is how often something is played. Without copying some take as long as TCP takes to acknowledge, 40 ms.
func (w *wired) rounds(few, full int) int {
	n := testutil.Count(w.t, few, full)
	if w.send == sys.SendFixed {
		return n/20 + 1
	}
	return n
}

func (w *wired) register(b []byte) Handle {
	w.t.Helper()
	h, err := w.Register(b)
	if err != nil {
		w.t.Fatal(err)
	}
	return h
}

func (w *wired) deregister(h Handle) {
	w.t.Helper()
	if err := w.Deregister(h); err != nil {
		w.t.Fatal(err)
	}
}

// carries is what the wire carries of a registration's first n bytes.
func (w *wired) carries(h Handle, n int) string {
	w.t.Helper()
	sent := make(chan error, 1)
	go func() { // beside the reader: TCP mostly acknowledges at once what is taken
		err := w.Send(h, 0, n)
		if err != nil {
			_ = w.far.SetReadDeadline(time.Now())
		}
		sent <- err
	}()
	got := make([]byte, n)
	_, err := io.ReadFull(w.far, got)
	if err := errors.Join(<-sent, err); err != nil {
		w.t.Fatal(err)
	}
	return contents(got)
}

// receive has a registration get its first n bytes from the far end.
func (w *wired) receive(h Handle, n int) {
	w.t.Helper()
	if _, err := w.far.Write(filled(n, wireBytes)); err != nil {
		w.t.Fatal(err)
	}
	if err := w.Recv(h, 0, n); err != nil {
		w.t.Fatal(err)
	}
}

// What memory is filled with, as the tables call it.
const (
	oldBytes  = "OLD"  // before an event
	newBytes  = "NEW"  // after it
	wireBytes = "WIRE" // by the far end
)

func fill(b []byte, with string) {
	for i := range b {
		b[i] = with[0]
	}
}

func filled(n int, with string) []byte { return bytes.Repeat([]byte(with[:1]), n) }

// contents says what all of b is filled with.
func contents(b []byte) string {
	for _, with := range []string{oldBytes, newBytes, wireBytes} {
		if bytes.Equal(b, filled(len(b), with)) {
			return with
		}
	}
	return "a mixture"
}
