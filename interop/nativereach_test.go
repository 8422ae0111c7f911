package interop

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/weft-fabric/weft/internal/testutil"
)

// Readers that the writer's memory does not reach.

// stranger is a reader that is started in some way.
type stranger struct {
	name   string
	writer func(Stream) Stream
	reader func(Stream) Stream
	reason string // why it does not reach the memory
}

func asIs(s Stream) Stream { return s }

// outOfReach checks that such a reader gets all of a stream through sockets, and says once
// why; and that one that was told to use the native plane fails with the reason.
func (x stranger) outOfReach(t *testing.T) {
	t.Helper()
	const total = 5
	start := func(t *testing.T, ranks int, transport string) (w, r *WeftPeer) {
		dir := openFolder(t)
		s := Stream{Dir: dir, Vars: few, Ranks: 2}
		if transport != "" { // nobody comes in, so it waits for nobody, and stays
			s.StepWait, s.Params = true, map[string]string{"RendezvousReaderCount": "0"}
		}
		w = WeftWriter(t, WriterOptions{Stream: x.writer(s), Steps: total, ContactMode: 0o644})
		s.StepWait, s.Ranks, s.Params = false, ranks, map[string]string{"OpenTimeoutSecs": "30"}
		if transport != "" {
			s.Params["DataTransport"] = transport
		}
		return w, WeftReader(t, ReaderOptions{Stream: x.reader(s), WriterRanks: 2, WeftWriter: true, Steps: total})
	}
	for _, ranks := range []int{1, 2} {
		t.Run(x.name, func(t *testing.T) {
			w, r := start(t, ranks, "")
			wantAll(t, r.StepNumbers(), total)
			w.OK()
			wantPlane(t, w, r, "evpath")
			for rank, p := range r.Ranks {
				if lines := linesWith(p.Stderr(), "the writer's memory cannot be looked at"); len(lines) != 1 || !strings.Contains(lines[0], x.reason) {
					t.Errorf("rank %d says %q, want one line with %q", rank, lines, x.reason)
				}
			}
		})
	}
	for _, transport := range []string{"native", "shm"} {
		t.Run(x.name+" told "+transport, func(t *testing.T) {
			w, r := start(t, 2, transport)
			for rank := range r.Ranks {
				e := r.End(rank, 2*killBound)
				if e.Late || e.Leak != "" || !e.Failed("ErrPlane") || !strings.Contains(e.Text, x.reason) {
					t.Errorf("rank %d: %+v, want ErrPlane and %q", rank, e, x.reason)
				}
			}
			w.CloseInput()
			w.OK() // nobody else is harmed
		})
	}
}

// linesWith returns the lines of a text that hold a word.
func linesWith(text, word string) []string {
	lines := strings.Split(text, "\n")
	return slices.DeleteFunc(lines, func(l string) bool { return !strings.Contains(l, word) })
}

// openFolder is a folder that every user may enter.
func openFolder(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "weft") //nolint:usetesting // other users may not enter the test's own
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

// asNobody runs a side as another user, from a copy of this program that it may read.
func asNobody(t *testing.T) func(Stream) Stream {
	t.Helper()
	testutil.Require(t, testutil.Superuser(), testutil.Program("setpriv"))
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(exe)
	if err != nil {
		t.Fatal(err)
	}
	copied := filepath.Join(openFolder(t), "interop.test")
	if err := os.WriteFile(copied, text, 0o755); err != nil {
		t.Fatal(err)
	}
	return func(s Stream) Stream {
		// What is started is this program with its arguments: the shell puts the copy in its place.
		s.Prefix = []string{
			"setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--no-new-privs", "sh", "-c", `shift; exec "$0" "$@"`, copied,
		}
		return s
	}
}

// TestNativeOtherUser: a program of another user that may read the contact file gets the
// stream, but not the writer's memory; whoever of the two is the superuser.
func TestNativeOtherUser(t *testing.T) {
	stranger{"a reader", asIs, asNobody(t), "user"}.outOfReach(t)
}

// TestNativeOtherHost: in a network namespace of its own, on another host for all that it can
// tell, and in its own namespace of processes, too.
func TestNativeOtherHost(t *testing.T) {
	testutil.Require(t, testutil.Superuser(), testutil.Program("unshare"))
	a, b := twoHosts(t)
	wired := func(h host, s Stream) Stream {
		s = h.in(s)
		s.Params = withParam(s.Params, "NetworkInterface", "wire")
		return s
	}
	onA := func(s Stream) Stream { return wired(a, s) }
	stranger{"network", onA, func(s Stream) Stream { return wired(b, s) }, "network namespace"}.outOfReach(t)
	stranger{"network and processes", onA, func(s Stream) Stream {
		s = wired(b, s)
		s.Prefix = append(s.Prefix, "unshare", "--pid", "--fork", "--kill-child", "--mount-proc", "--")
		return s
	}, "network namespace"}.outOfReach(t)
}

// TestNativeOtherProcesses: a namespace of processes alone keeps nobody from the memory.
func TestNativeOtherProcesses(t *testing.T) {
	testutil.Require(t, testutil.Superuser(), testutil.Program("unshare"))
	const total = 5
	dir := t.TempDir()
	w := WeftWriter(t, WriterOptions{Stream: Stream{Dir: dir, Vars: few, Ranks: 2}, Steps: total})
	s := Stream{Dir: dir, Vars: few, Ranks: 2, Prefix: []string{"unshare", "--pid", "--fork", "--kill-child", "--mount-proc", "--"}}
	r := WeftReader(t, ReaderOptions{Stream: s, WriterRanks: 2, WeftWriter: true, Steps: total})
	wantAll(t, r.StepNumbers(), total)
	w.OK()
	wantPlane(t, w, r, "native")
}
