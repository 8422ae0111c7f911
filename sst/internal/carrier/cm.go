package carrier

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/weft-fabric/weft/internal/wire/cm"
	"github.com/weft-fabric/weft/sst/internal/tcp"
)

// CM is the Endpoint that speaks EVPath's CM over TCP.
type CM struct {
	config     Config
	listener   *net.TCPListener
	port       uint16 // on which we listen
	publicPort uint16 // under which peers reach it
	id         uint32
	contact    cm.Contact
	fixed      bool // contact holds for every peer
	buffers    pool
	explain    time.Duration      // explainAfter, but in a test
	probe      func(stage string) // nil but in a test

	ctx    context.Context // ends when Close is called
	cancel context.CancelFunc
	wg     sync.WaitGroup // every goroutine of the endpoint and its links

	mu      sync.Mutex
	closed  bool
	conns   int // connections that are open or being opened by a peer
	links   index
	flights map[target]*flight // by flightKey
}

var _ Endpoint = (*CM)(nil)

// NewCM opens an endpoint: it listens when NewCM returns, but for one that only dials. ctx bounds the opening
// only. Errors wrap ErrConfig or are those of listening.
func NewCM(ctx context.Context, config Config) (*CM, error) {
	config, err := config.resolve()
	if err != nil {
		return nil, err
	}
	addr, fixed, err := config.published()
	if err != nil {
		return nil, err
	}
	c := &CM{config: config, id: newID(), fixed: fixed, links: newIndex(), flights: make(map[target]*flight), explain: explainAfter}
	c.buffers.limit = config.BufferBytes
	c.ctx, c.cancel = context.WithCancel(context.Background())
	if config.DialOnly {
		return c, nil
	}
	if err := c.open(ctx, addr); err != nil {
		c.cancel()
		return nil, err
	}
	return c, nil
}

// open lets peers in, at an address that is published.
func (c *CM) open(ctx context.Context, addr netip.Addr) error {
	listener, err := c.config.listen(ctx)
	if err != nil {
		return err
	}
	c.port = tcp.AddrPort(listener.Addr()).Port()
	c.publicPort = cmp.Or(c.config.AdvertisePort, c.port)
	contact, err := cm.NewContact(netip.AddrPortFrom(addr, c.publicPort), c.id)
	if err != nil {
		_ = listener.Close()
		return fmt.Errorf("%w: %w", ErrConfig, err)
	}
	c.listener, c.contact = listener, contact.WithMark()
	c.wg.Go(c.acceptLoop)
	return nil
}

// newID draws the ID of an endpoint: 31 bits, and neither 0, which is no ID, nor
// 5, which is that of every old peer (docs/wire/cm.md §3).
func newID() uint32 {
	for {
		var b [4]byte
		rand.Read(b[:]) // never fails
		id := binary.LittleEndian.Uint32(b[:]) >> 1
		if id != 0 && id != cm.ID210 {
			return id
		}
	}
}

// Contact implements Endpoint: nothing, if nobody can dial it. The caller may change the copy.
func (c *CM) Contact() cm.Contact { return append(cm.Contact(nil), c.contact...) }

// ContactFor implements Endpoint. An address that was chosen by configuration
// stays as it is. A real peer that finds another address in the contact than it
// sees on the connection dials back instead of answering (docs/wire/cm.md §2.3).
func (c *CM) ContactFor(l Link) cm.Contact {
	if !c.fixed && c.listener != nil {
		if out, err := c.contact.WithAddr(l.Info().Local.Addr()); err == nil {
			return out
		}
	}
	return c.Contact()
}

// ContactVia returns our contact with the address of another interface, chosen as
// Config.Interface is, for what is to come in over that one. AdvertiseAddr stays
// what it is. An empty iface gives Contact. Errors wrap ErrConfig and list the
// interfaces of this host. A peer that we share a link with uses that link all the
// same.
func (c *CM) ContactVia(iface string) (cm.Contact, error) {
	if iface == "" {
		return c.Contact(), nil
	}
	addr, err := c.config.viaInterface(iface)
	if err != nil {
		return nil, err
	}
	if c.config.AdvertiseAddr.IsValid() {
		return c.Contact(), nil
	}
	return c.contact.WithAddr(addr)
}

// Buffer returns n bytes of unspecified content, from the memory that is kept for
// records, and a function that gives them back: safe to call from any goroutine,
// idempotent.
func (c *CM) Buffer(n int) (b []byte, free func()) {
	b = c.buffers.get(n)
	return b, c.buffers.releaser(b)
}

// hello is the handshake of this endpoint.
func (c *CM) hello(answer bool) cm.Handshake {
	return cm.Handshake{Version: cm.HandshakeVersion, FormatServer: cm.SelfHosted, ID: c.id, Answer: answer}
}

// newReader returns the reader of a new connection.
func (c *CM) newReader(conn *net.TCPConn) *inflow {
	source := newQuickAcker(conn)
	return &inflow{source: source, Reader: cm.NewReader(source, cm.ReaderConfig{
		MaxRecord: c.config.MaxRecord,
		MaxFormat: c.config.MaxFormatBytes,
		Alloc:     c.buffers.get,
		Free:      c.buffers.put,
	})}
}

// start makes a link out of a connection whose handshake is done, and enters it.
// The caller holds mu and a count of wg, and has seen that the endpoint is open.
func (c *CM) start(conn *net.TCPConn, reader *inflow, p peer) *link {
	l := newLink(c, conn, reader, p)
	c.links.add(l)
	c.wg.Go(l.run)
	return l
}

// remove takes a link that is down off the books.
func (c *CM) remove(l *link) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.links.remove(l)
	c.conns--
}

// admit counts a connection, if the endpoint is open and there is room.
func (c *CM) admit() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return ErrClosed
	}
	if c.conns >= c.config.MaxLinks {
		return fmt.Errorf("%w: %d connections", ErrLimit, c.conns)
	}
	c.conns++
	return nil
}

// dismiss takes back what admit counted.
func (c *CM) dismiss() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.conns--
}

// Close implements Endpoint. It must not be called from a callback.
func (c *CM) Close() error {
	c.mu.Lock()
	c.closed = true
	links := make([]*link, 0, len(c.links.all))
	for l := range c.links.all {
		links = append(links, l)
	}
	c.mu.Unlock()
	c.cancel()
	if c.listener != nil {
		_ = c.listener.Close()
	}
	for _, l := range links {
		_ = l.Close()
	}
	c.wg.Wait()
	return nil
}
