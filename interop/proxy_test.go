package interop

import (
	"io"
	"net"
	"net/netip"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/weft-fabric/weft/internal/wire/cm"
)

// listen listens on the loopback interface.
func listen(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

func dial(t *testing.T, l net.Listener) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp4", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// proxy stands between readers and the rank 0 of a writer: the network that can
// be slow, or break.
type proxy struct {
	l      net.Listener
	target string

	mu    sync.Mutex
	conns []*net.TCPConn
	ended bool
	gate  sync.WaitGroup // held: nothing comes back from the target
	tasks sync.WaitGroup
}

// newProxy starts one; it ends with the test.
func newProxy(t *testing.T, target string) *proxy {
	t.Helper()
	p := &proxy{l: listen(t), target: target}
	p.tasks.Go(p.accept)
	t.Cleanup(func() {
		p.l.Close()
		p.mu.Lock()
		p.ended = true
		p.mu.Unlock()
		p.reset()
		p.tasks.Wait()
	})
	return p
}

func (p *proxy) port() int { return p.l.Addr().(*net.TCPAddr).Port }

func (p *proxy) accept() {
	for {
		c, err := p.l.Accept()
		if err != nil {
			return
		}
		out, err := net.Dial("tcp4", p.target)
		if err != nil {
			c.Close()
			continue
		}
		a, b := c.(*net.TCPConn), out.(*net.TCPConn)
		if !p.add(a, b) {
			return
		}
		p.tasks.Go(func() { pass(b, a, nil) })
		p.tasks.Go(func() { pass(a, b, &p.gate) })
	}
}

// add keeps connections for reset.
func (p *proxy) add(conns ...*net.TCPConn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended {
		for _, c := range conns {
			c.Close()
		}
		return false
	}
	p.conns = append(p.conns, conns...)
	return true
}

// pass copies from one end to the other, while the gate is open, and passes the
// end on.
func pass(to, from *net.TCPConn, gate *sync.WaitGroup) {
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		if gate != nil {
			gate.Wait()
		}
		if _, werr := to.Write(buf[:n]); werr != nil || err != nil {
			_ = to.CloseWrite()
			if err != io.EOF {
				to.Close()
			}
			return
		}
	}
}

// hold stops what comes back from the target until the returned function is called.
func (p *proxy) hold() (release func()) {
	p.gate.Add(1)
	return p.gate.Done
}

// reset breaks every connection with an RST on both ends. It returns how many
// there were.
func (p *proxy) reset() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.conns {
		_ = c.SetLinger(0)
		c.Close()
	}
	n := len(p.conns) / 2
	p.conns = nil
	return n
}

// behindProxy makes a contact file of the name to that leads to the writer of the
// name from by way of a proxy.
func behindProxy(t *testing.T, from, to string) *proxy {
	t.Helper()
	text, err := os.ReadFile(from + ".sst")
	if err != nil {
		t.Fatal(err)
	}
	head, contact, ok := strings.Cut(strings.TrimSpace(string(text)), ":")
	if !ok {
		t.Fatalf("a contact file with %q", text)
	}
	c, err := cm.ParseContact(contact)
	if err != nil {
		t.Fatal(err)
	}
	addr, err := c.Addr()
	if err != nil {
		t.Fatal(err)
	}
	p := newProxy(t, addr.String())
	c, err = c.WithAddr(netip.MustParseAddr("127.0.0.1"))
	if err != nil {
		t.Fatal(err)
	}
	c = c.With(cm.Attr{Atom: cm.AtomIPPort, Kind: cm.KindInt32, Int: int64(p.port())})
	if err := os.WriteFile(to+".sst", []byte(head+":"+c.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return p
}
