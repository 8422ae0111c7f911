package interop

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// kind is the software of one side of a stream, and how many ranks of it there are.
type kind struct {
	name  string
	weft  bool
	local bool
	ranks int
}

func (k kind) String() string { return fmt.Sprintf("%s%d", k.name, k.ranks) }

func adios2Kind(ranks int) kind { return kind{"adios", false, false, ranks} }
func localKind(ranks int) kind  { return kind{"local", true, true, ranks} }
func weftKind(ranks int) kind   { return kind{"weft", true, false, ranks} }

// kinds are the sides of the matrix.
var kinds = []kind{
	adios2Kind(1), adios2Kind(2), adios2Kind(4),
	localKind(1), localKind(3),
	weftKind(1), weftKind(3), weftKind(5),
}

// side is a running writer or reader, of either software.
type side interface {
	Next()
	CloseInput()
	Expect(prefix string) string
	Stdout() string
	OK()
	Done() <-chan struct{}
}

// startWriter starts a writer of the kind.
func startWriter(t *testing.T, k kind, o WriterOptions) side {
	t.Helper()
	o.Ranks, o.Local = k.ranks, k.local
	if k.weft {
		return WeftWriter(t, o)
	}
	return ADIOS2Writer(t, o)
}

// startReader starts a reader of the kind, of a writer of the kind from.
func startReader(t *testing.T, k, from kind, o ReaderOptions) side {
	t.Helper()
	o.Ranks, o.Local, o.WriterRanks, o.WeftWriter = k.ranks, k.local, from.ranks, from.weft
	if k.weft {
		return WeftReader(t, o)
	}
	return ADIOS2Reader(t, o)
}

// stepsOf waits for a reader that was started by startReader with o, and returns
// the steps that it saw.
func stepsOf(t *testing.T, r side, from kind, o ReaderOptions) []int {
	t.Helper()
	if w, ok := r.(*WeftPeer); ok {
		return w.StepNumbers()
	}
	o.WriterRanks, o.WeftWriter = from.ranks, from.weft
	return r.(*Peer).Steps(o.check())
}

// withParam returns a copy of the parameters with more of them.
func withParam(p map[string]string, pairs ...string) map[string]string {
	out := map[string]string{}
	for k, v := range p {
		out[k] = v
	}
	for i := 0; i+1 < len(pairs); i += 2 {
		out[pairs[i]] = pairs[i+1]
	}
	return out
}

// connections counts the TCP connections that are up between two processes of
// this host, from the kernel's table.
func connections(t *testing.T, a, b int) int {
	t.Helper()
	mine, theirs := tcpOf(t, a), tcpOf(t, b)
	n := 0
	for _, c := range mine {
		if slices.Contains(theirs, tcpConn{c.remote, c.local}) {
			n++
		}
	}
	return n
}

// tcpConn is a connection as one end sees it.
type tcpConn struct{ local, remote string }

// tcpOf lists the connections of a process.
func tcpOf(t *testing.T, pid int) (list []tcpConn) {
	t.Helper()
	sockets := map[string]bool{}
	links, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range links {
		if target, err := os.Readlink(l); err == nil && strings.HasPrefix(target, "socket:[") {
			sockets[strings.TrimSuffix(strings.TrimPrefix(target, "socket:["), "]")] = true
		}
	}
	const established, inode = "01", 9
	for _, table := range []string{"tcp", "tcp6"} {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/net/%s", pid, table))
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			f := strings.Fields(line)
			if len(f) > inode && f[3] == established && sockets[f[inode]] {
				list = append(list, tcpConn{shortAddress(f[1]), shortAddress(f[2])})
			}
		}
	}
	return list
}

// shortAddress makes an address of /proc/net/tcp6 that is an IPv4 one look as in
// /proc/net/tcp: the last four of its bytes, and the port.
func shortAddress(s string) string {
	host, port, _ := strings.Cut(s, ":")
	return host[max(0, len(host)-8):] + ":" + port
}

func TestConnections(t *testing.T) {
	l := listen(t)
	c := dial(t, l)
	defer c.Close()
	in, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	// Both ends are ours, so the connection counts from either.
	if n := connections(t, os.Getpid(), os.Getpid()); n != 2 {
		t.Errorf("%d connections, want 2", n)
	}
}

// everything is a reader's demand for n steps of the whole table.
func everything(dir string, n int, params map[string]string) ReaderOptions {
	return ReaderOptions{Stream: Stream{Dir: dir, Params: params}, Steps: n}
}
