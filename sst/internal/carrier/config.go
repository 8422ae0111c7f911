package carrier

import (
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"time"

	"github.com/weft-fabric/weft/internal/wire/ffs"
	"github.com/weft-fabric/weft/sst/internal/tcp"
)

// Config says how an endpoint behaves. Only Handler has no usable zero value.
type Config struct {
	// Handler gets all messages. Required.
	Handler Handler
	// Place, which may be nil, is asked about each long record when it begins to
	// arrive, and may return memory for its end, into which that is then read
	// without a copy. head is the beginning of the record, at least the header and
	// the fixed fields of any message with data, and valid during the call only;
	// total is the length of the record, in bytes: the peer's word, so the memory
	// must be there for another reason. nil declines. It is called on the link's
	// reading goroutine and must not block. A placement that does not end where the
	// record ends takes the link down.
	Place func(l Link, f *ffs.Format, head []byte, total int) *Placement
	// Logger hears of refused peers and of long waits; nil discards.
	Logger *slog.Logger

	// ListenAddr restricts on which IPv4 address and port peers are accepted.
	// Zero address: on all interfaces. Zero port: the system chooses.
	ListenAddr netip.AddrPort
	// ListenPorts restricts on which port peers are accepted, for firewalls;
	// ListenAddr must have none then.
	ListenPorts PortRange
	// DialOnly makes an endpoint that nobody can dial: it has no listener, and a goroutine
	// only for each link, while that is up.
	DialOnly bool
	// Interface chooses the network interface whose IPv4 address is published: by
	// its name, by one of its addresses, by a prefix in which its address lies
	// (10.1.0.0/16), or by the beginning of its name ("ib" for ib0), which is how
	// ADIOS2 understands it. Peers are accepted on the others all the same.
	Interface string
	// AdvertiseAddr is the IPv4 address to publish, whatever this host calls
	// itself; it wins over Interface. AdvertisePort is the port, for a tunnel that
	// maps another one to ours; 0 means that on which we listen.
	AdvertiseAddr netip.Addr
	AdvertisePort uint16

	HandshakeTimeout time.Duration // until an accepted peer must have introduced itself; 0 means 10 s
	DialTimeout      time.Duration // for one attempt, handshake included; 0 means 10 s
	CloseTimeout     time.Duration // for writing out and ending a link; 0 means 3 s

	// A peer whose host has vanished is noticed after
	// KeepAliveIdle + KeepAliveCount*KeepAliveInterval: by default 35 s. Where a
	// kernel before Linux 6.15 waits for a full peer, it can be some minutes.
	KeepAliveIdle     time.Duration // 0 means 15 s
	KeepAliveInterval time.Duration // 0 means 5 s
	KeepAliveCount    int           // 0 means 4

	MaxRecord      int // longest record accepted, in bytes; 0 means 4 GiB
	MaxFormats     int // formats that one peer may push; 0 means 256
	MaxFormatBytes int // bytes of their bodies, together; 0 means 4 MiB
	MaxLinks       int // connections at one time, handshakes included; 0 means 16384
	MaxQueued      int // queued outgoing records above which a link is not read; 0 means 65536
	BufferBytes    int // freed record memory that is kept for reuse; 0 means 256 MiB
}

// Defaults of both carriers.
const (
	defaultCloseTimeout   = 3 * time.Second
	defaultMaxRecord      = 4 << 30
	defaultMaxFormats     = 256
	defaultMaxFormatBytes = 4 << 20
	defaultMaxLinks       = 16384
	defaultMaxQueued      = 65536
	defaultBufferBytes    = 256 << 20
)

// resolve returns a checked copy of c with defaults in place.
func (c Config) resolve() (Config, error) {
	if c.Handler == nil {
		return c, fmt.Errorf("%w: no Handler", ErrConfig)
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if !c.ListenAddr.Addr().IsValid() {
		c.ListenAddr = netip.AddrPortFrom(netip.IPv4Unspecified(), c.ListenAddr.Port())
	}
	c.ListenAddr = netip.AddrPortFrom(c.ListenAddr.Addr().Unmap(), c.ListenAddr.Port())
	if !c.ListenAddr.Addr().Is4() {
		return c, fmt.Errorf("%w: listen address %v is not IPv4, and the protocol has no other", ErrConfig, c.ListenAddr)
	}
	if r := c.ListenPorts; !r.IsZero() && (r.First == 0 || r.Last < r.First || c.ListenAddr.Port() != 0) {
		return c, fmt.Errorf("%w: cannot listen on ports %v with listen address %v", ErrConfig, r, c.ListenAddr)
	}
	c.AdvertiseAddr = c.AdvertiseAddr.Unmap()
	if a := c.AdvertiseAddr; a.IsValid() && (!a.Is4() || a.IsUnspecified() || a.IsMulticast()) {
		return c, fmt.Errorf("%w: cannot publish %v: not the IPv4 address of a host", ErrConfig, a)
	}
	c.HandshakeTimeout = tcp.OrDefault(c.HandshakeTimeout, 10*time.Second)
	c.DialTimeout = tcp.OrDefault(c.DialTimeout, 10*time.Second)
	c.CloseTimeout = tcp.OrDefault(c.CloseTimeout, defaultCloseTimeout)
	c.MaxRecord = tcp.OrDefault(c.MaxRecord, defaultMaxRecord)
	c.MaxFormats = tcp.OrDefault(c.MaxFormats, defaultMaxFormats)
	c.MaxFormatBytes = tcp.OrDefault(c.MaxFormatBytes, defaultMaxFormatBytes)
	c.MaxLinks = tcp.OrDefault(c.MaxLinks, defaultMaxLinks)
	c.MaxQueued = tcp.OrDefault(c.MaxQueued, defaultMaxQueued)
	c.BufferBytes = tcp.OrDefault(c.BufferBytes, defaultBufferBytes)
	return c, nil
}

// keepAlive returns the TCP keep-alive settings.
func (c *Config) keepAlive() net.KeepAliveConfig {
	return tcp.KeepAlive(c.KeepAliveIdle, c.KeepAliveInterval, c.KeepAliveCount)
}
