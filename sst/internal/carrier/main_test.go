package carrier

import (
	"context"
	"encoding/binary"
	"errors"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/weft-fabric/weft/internal/testutil"
	"github.com/weft-fabric/weft/internal/wire/cm"
	"github.com/weft-fabric/weft/internal/wire/ffs"
	"github.com/weft-fabric/weft/sst/internal/tcp"
)

func TestMain(m *testing.M) { testutil.Main(m, roles...) }

var loopback = netip.MustParseAddr("127.0.0.1")

// patience bounds every wait of a test; no test passes by it.
const patience = 20 * time.Second

// event is a message as the Handler got it.
type event struct {
	link   Link
	format string
	data   []byte
	free   func()
	queued int // records waiting on the link at that moment
}

// lost is the end of a link.
type lost struct {
	link Link
	err  error
}

// recorder is a Handler that keeps everything.
type recorder struct {
	got  chan event
	lost chan lost
}

func newRecorder() *recorder {
	return &recorder{got: make(chan event, 1<<16), lost: make(chan lost, 1<<12)}
}

func (r *recorder) Message(l Link, in Inbound) {
	r.got <- event{l, in.Format.Name(), in.Data, in.Free, l.Info().QueuedRecords}
}

func (r *recorder) Lost(l Link, err error) { r.lost <- lost{l, err} }

// next waits for one thing on a channel.
func next[T any](t testing.TB, what string, ch <-chan T) T {
	t.Helper()
	select {
	case v := <-ch:
		return v
	case <-time.After(patience):
		t.Fatalf("nothing came: %s", what)
		panic("unreachable")
	}
}

// nothingIn fails if something is already there.
func nothingIn[T any](t testing.TB, what string, ch <-chan T) {
	t.Helper()
	select {
	case v := <-ch:
		t.Errorf("unexpected %s: %+v", what, v)
	default:
	}
}

// open returns an endpoint on loopback and its recorder. It is closed at the end.
func open(t testing.TB, config Config) (*CM, *recorder) {
	t.Helper()
	r := newRecorder()
	if config.Handler == nil {
		config.Handler = r
	}
	if !config.ListenAddr.IsValid() {
		config.ListenAddr = netip.AddrPortFrom(loopback, 0)
	}
	if config.CloseTimeout == 0 {
		config.CloseTimeout = 10 * time.Second
	}
	c, err := NewCM(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c, r
}

// dial connects two endpoints and returns the dialler's link.
func dial(t testing.TB, from *CM, to cm.Contact) Link {
	t.Helper()
	l, err := from.Dial(t.Context(), to)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// variantHeader is the size of the header of records of testFormat.
const variantHeader = 24

// testFormat is a format with a number and a blob.
func testFormat(t testing.TB, name string) *ffs.Format {
	t.Helper()
	f, err := ffs.New(ffs.Struct{Name: name, RecordLen: 24, Fields: []ffs.Field{
		{Name: "n", Type: "integer", Size: 8, Offset: 0},
		{Name: "length", Type: "integer", Size: 8, Offset: 8},
		{Name: "data", Type: "char[length]", Size: 1, Offset: 16},
	}})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// record encodes number n with a blob of size bytes, as two parts.
func record(f *ffs.Format, n, size int) Record {
	id := f.ID()
	b := append([]byte(nil), id[:]...)
	b = binary.LittleEndian.AppendUint64(b, uint64(24+size))
	b = append(b, 0, 0, 0, 0)
	b = binary.LittleEndian.AppendUint64(b, uint64(n))
	b = binary.LittleEndian.AppendUint64(b, uint64(size))
	b = binary.LittleEndian.AppendUint64(b, 24)
	return Record{Format: f, Parts: [][]byte{b, make([]byte, size)}}
}

// number reads back the number of a record.
func number(data []byte) int { return int(binary.LittleEndian.Uint64(data[variantHeader:])) }

// bytesOf joins a record.
func bytesOf(r Record) []byte {
	var b []byte
	for _, p := range r.Parts {
		b = append(b, p...)
	}
	return b
}

// raw is a peer that speaks bytes, to see and to send what no endpoint would.
type raw struct {
	t    testing.TB
	conn *net.TCPConn
	r    *cm.Reader
}

// rawConn wraps a connection; it is closed at the end and no wait on it is endless.
func rawConn(t testing.TB, conn net.Conn) *raw {
	t.Helper()
	t.Cleanup(func() { _ = conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	return &raw{t, conn.(*net.TCPConn), cm.NewReader(conn, cm.ReaderConfig{})}
}

// connect opens a connection to an endpoint, and sends nothing.
func connect(t testing.TB, c *CM) *raw {
	t.Helper()
	conn, err := net.Dial("tcp4", netip.AddrPortFrom(loopback, c.port).String())
	if err != nil {
		t.Fatal(err)
	}
	return rawConn(t, conn)
}

// join connects to an endpoint and shakes hands as a peer with that ID and port.
func join(t testing.TB, c *CM, id uint32, port uint16) *raw {
	t.Helper()
	p := connect(t, c)
	p.send(hello(id, false).Append(cm.Preamble{Port: port}.Append(nil)))
	h, err := p.r.Handshake()
	if err != nil || !h.Answer || h.ID != c.id {
		t.Fatalf("answer %+v, %v", h, err)
	}
	return p
}

func hello(id uint32, answer bool) cm.Handshake {
	return cm.Handshake{Version: 1, FormatServer: cm.SelfHosted, ID: id, Answer: answer}
}

func (p *raw) send(b []byte) {
	p.t.Helper()
	if _, err := p.conn.Write(b); err != nil {
		p.t.Fatal(err)
	}
}

// push sends a format.
func (p *raw) push(f *ffs.Format) {
	p.t.Helper()
	id := f.ID()
	p.send(cm.Push(id[:], f.Body()).Append(nil))
}

func (p *raw) unit() cm.Unit {
	p.t.Helper()
	u, err := p.r.Next()
	if err != nil {
		p.t.Fatal(err)
	}
	return u
}

// ended waits until the endpoint has closed the connection, in whatever way.
func (p *raw) ended() {
	p.t.Helper()
	for {
		if _, err := p.r.Next(); err != nil {
			if ne, ok := errors.AsType[net.Error](err); ok && ne.Timeout() {
				p.t.Fatal("the connection was not closed")
			}
			return
		}
	}
}

// host is a listener of bytes.
type host struct {
	t  testing.TB
	ln net.Listener
}

func newHost(t testing.TB) *host {
	t.Helper()
	ln, err := new(net.ListenConfig).Listen(context.Background(), "tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ln.Close() })
	if err := ln.(*net.TCPListener).SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	return &host{t, ln}
}

func (h *host) addr() netip.AddrPort { return tcp.AddrPort(h.ln.Addr()) }

// contact is what a process with that ID would publish from here.
func (h *host) contact(id uint32) cm.Contact {
	c, err := cm.NewContact(h.addr(), id)
	if err != nil {
		h.t.Fatal(err)
	}
	return c
}

// accept takes the next connection and reads its opening.
func (h *host) accept() (*raw, cm.Preamble, cm.Handshake) {
	h.t.Helper()
	conn, err := h.ln.Accept()
	if err != nil {
		h.t.Fatal(err)
	}
	p := rawConn(h.t, conn)
	pre, err := p.r.Preamble()
	if err != nil {
		h.t.Fatal(err)
	}
	hs, err := p.r.Handshake()
	if err != nil {
		h.t.Fatal(err)
	}
	return p, pre, hs
}

// dialled is what Dial returned.
type dialled struct {
	link Link
	err  error
}

// dialAsync dials in the background.
func dialAsync(ctx context.Context, c *CM, to cm.Contact) <-chan dialled {
	ch := make(chan dialled, 1)
	go func() {
		l, err := c.Dial(ctx, to)
		ch <- dialled{l, err}
	}()
	return ch
}

// books are the sizes of an endpoint's tables.
type books struct{ links, byID, old, flights, conns int }

func booksOf(c *CM) books {
	c.mu.Lock()
	defer c.mu.Unlock()
	return books{len(c.links.all), len(c.links.byID), len(c.links.old), len(c.flights), c.conns}
}
