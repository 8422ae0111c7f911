package cohort

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"time"

	"github.com/weft-fabric/weft/sst/internal/tcp"
)

// TCPConfig says who belongs to a cohort of processes and how they meet.
type TCPConfig struct {
	// Root is where rank 0 listens and the others dial: "host:port". The host may
	// be a name. Rank 0 may leave it out if it has a Listener or a ListenAddr.
	Root string
	// Rank is the number of this process, from 0, and Size how many there are.
	// Size 1 connects to nobody.
	Rank, Size int
	// Token is the secret of the cohort. Whoever knows it may join; it does not
	// travel. Required if Size is more than 1. It should be long and random: what
	// two ranks say to each other lets a listener on the network try out short ones.
	Token string

	// Listener is used by rank 0 instead of an own one. TCP owns it from the call
	// on, also if it fails, and closes it when all ranks are there.
	Listener net.Listener
	// ListenAddr is where rank 0 listens, "host:port". Empty means: the port of
	// Root, on loopback if Root is there, else on all interfaces.
	ListenAddr string

	// Logger hears of refused peers, of deaths and of long waits; nil means
	// slog.Default().
	Logger *slog.Logger

	Tuning
}

// Tuning is what every way to make a cohort of processes leaves to choose. The zero
// value works.
type Tuning struct {
	HandshakeTimeout time.Duration // until a peer must have proved itself; 0 means 10 s
	DialTimeout      time.Duration // for one attempt to connect; 0 means 5 s
	CloseTimeout     time.Duration // for writing out in Close; 0 means 3 s

	// A rank whose host has vanished is noticed after
	// KeepAliveIdle + KeepAliveCount*KeepAliveInterval: by default 35 s. Where a
	// kernel before Linux 6.15 waits for a full peer, it can be some minutes.
	KeepAliveIdle     time.Duration // 0 means 15 s
	KeepAliveInterval time.Duration // 0 means 5 s
	KeepAliveCount    int           // 0 means 4

	MaxMessage int // longest message sent or accepted, in bytes; 0 means 4 GiB
	MaxKept    int // bytes kept for channels that this rank has not joined yet; 0 means 1 GiB

	explainAfter time.Duration // of a wait; 0 means 3 s
}

// resolve returns a checked copy with defaults in place.
func (c TCPConfig) resolve() (TCPConfig, error) {
	switch {
	case c.Size < 1 || c.Rank < 0 || c.Rank >= c.Size:
		return c, fmt.Errorf("%w: rank %d of %d", ErrConfig, c.Rank, c.Size)
	case c.Size > 1 && c.Token == "":
		return c, fmt.Errorf("%w: no Token: who may join rank %d of %d?", ErrConfig, c.Rank, c.Size)
	case c.Rank != 0 && (c.Listener != nil || c.ListenAddr != ""):
		return c, fmt.Errorf("%w: rank %d does not listen, rank 0 does", ErrConfig, c.Rank)
	case c.Listener != nil && c.ListenAddr != "":
		return c, fmt.Errorf("%w: both Listener and ListenAddr %q", ErrConfig, c.ListenAddr)
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	c.Tuning = c.withDefaults()
	return c, nil
}

func (t Tuning) withDefaults() Tuning {
	t.HandshakeTimeout = tcp.OrDefault(t.HandshakeTimeout, 10*time.Second)
	t.DialTimeout = tcp.OrDefault(t.DialTimeout, 5*time.Second)
	t.CloseTimeout = tcp.OrDefault(t.CloseTimeout, 3*time.Second)
	t.MaxMessage = tcp.OrDefault(t.MaxMessage, 4<<30)
	t.MaxKept = tcp.OrDefault(t.MaxKept, 1<<30)
	t.explainAfter = tcp.OrDefault(t.explainAfter, 3*time.Second)
	return t
}

// tune sets the options of a new connection.
func (c *TCPConfig) tune(conn net.Conn) {
	if t, ok := conn.(*net.TCPConn); ok {
		// A failure means that the connection is gone, which the next read tells.
		_ = t.SetKeepAliveConfig(c.keepAlive())
		_ = tcp.TuneWithinHost(t) // if not, it is slower
	}
}

// keepAlive returns the TCP keep-alive settings.
func (t *Tuning) keepAlive() net.KeepAliveConfig {
	return tcp.KeepAlive(t.KeepAliveIdle, t.KeepAliveInterval, t.KeepAliveCount)
}

// listen opens the listener of rank 0.
func (c *TCPConfig) listen(ctx context.Context) (net.Listener, error) {
	if c.Listener != nil {
		return c.Listener, nil
	}
	addr := c.ListenAddr
	if addr == "" {
		if c.Root == "" {
			return nil, fmt.Errorf("%w: rank 0 has neither Root nor ListenAddr nor Listener", ErrConfig)
		}
		host, port, err := net.SplitHostPort(c.Root)
		if err != nil {
			return nil, fmt.Errorf("%w: Root: %w", ErrConfig, err)
		}
		if !isLoopback(host) {
			host = ""
		}
		addr = net.JoinHostPort(host, port)
	}
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("cohort: rank 0 cannot listen: %w", err)
	}
	return l, nil
}

// isLoopback reports whether a host is this one for sure.
func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}
