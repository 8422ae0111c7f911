package sst

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weft-fabric/weft/sst/internal/carrier"
	"github.com/weft-fabric/weft/sst/internal/native"
)

// SessionConfig configures a session. The zero value works.
type SessionConfig struct {
	// NetworkInterface names the interface whose address is published: by name, by
	// the beginning of its name, by an address or by a prefix of its own. Empty
	// chooses an address of the host.
	NetworkInterface string
	// AdvertiseAddr is an IPv4 address to publish instead, as seen by the peers:
	// for tunnels and containers. AdvertisePort is the port, if that is another one
	// than the session listens on.
	AdvertiseAddr netip.Addr
	AdvertisePort uint16
	// ListenAddr restricts on which IPv4 address and port peers are accepted; a
	// zero address means on all interfaces, a zero port that the system chooses.
	ListenAddr netip.AddrPort
	// ListenPorts is the range that the port is taken from, for firewalls.
	// ListenAddr has no port then.
	ListenPorts PortRange
	// Logger gets explanations of long waits and what happens to peers; nil means
	// slog.Default(). Nothing is logged per step.
	Logger *slog.Logger
	// NoSharedMemory keeps the streams of the session from sharing memory with programs
	// of this node: their data goes through sockets.
	NoSharedMemory bool
	// Spin is how long who waits for a peer looks for its message itself before it sleeps.
	// It does so only after a wait that was as short, and only where there are more processors
	// than processes that the wait is for, which may live here; 0 means 300 us, less: never. It
	// costs that much of a processor at the end of a fast time.
	Spin time.Duration
	// ManualProgress makes a session that has no goroutine of its own once its readers are
	// open: what comes is taken in by calls of the program that wait. It is for readers
	// of one rank, of writers whose memory they can look at; other streams are refused. QueryStat has
	// goroutines while it runs. Nobody can connect to it. A call that waits is woken by what comes, and sleeps till then.
	ManualProgress bool
	// HandshakeGrace bounds how long Close waits for handshakes that must be
	// finished lest an ADIOS2 writer hangs; 0 means 60 s.
	HandshakeGrace time.Duration
}

const defaultGrace = 60 * time.Second

// PortRange is a range of TCP ports, both ends included; zero means any.
type PortRange = carrier.PortRange

// carrier is the part of the configuration that the carrier acts on.
func (c SessionConfig) carrier() carrier.Config {
	return carrier.Config{
		Interface: c.NetworkInterface, AdvertiseAddr: c.AdvertiseAddr, AdvertisePort: c.AdvertisePort,
		ListenAddr: c.ListenAddr, ListenPorts: c.ListenPorts, DialOnly: c.ManualProgress,
	}
}

// FromEnv returns c with what it leaves open filled in from the variables that
// ADIOS2 reads: ADIOS2_IP, else ADIOS2_INTERFACE, is what to publish, and
// ADIOS2_PORT_RANGE (26000:26100) where to listen. A build of ADIOS2 may have
// another prefix than "ADIOS2_"; Debian's serial one has "ADIOS2_SERIAL_".
// Nothing reads the environment unless it is called. Errors wrap ErrParam.
func (c SessionConfig) FromEnv(prefix string) (SessionConfig, error) {
	got, err := c.carrier().FromEnv(prefix)
	if err != nil {
		return c, fmt.Errorf("sst: session: %w: %w", ErrParam, err)
	}
	c.NetworkInterface, c.AdvertiseAddr, c.ListenPorts = got.Interface, got.AdvertiseAddr, got.ListenPorts
	return c, nil
}

// Session is what the streams of a process share: a listener, connections,
// identities, shared memory. Sessions are independent of each other.
type Session struct {
	cfg SessionConfig
	log *slog.Logger
	cm  *carrier.CM

	waits explainer
	early uint64 // bytes that writers may push for steps that they have not announced

	nearMu  sync.Mutex
	share   native.Config                  // as tests want it
	nearby  *near                          // nil before it was needed
	nearErr error                          // why there is none
	asleep  atomic.Pointer[carrier.Fabric] // with ManualProgress: where waits sleep

	mu         sync.Mutex
	writers    map[int64]*Writer         // by stream number
	routes     map[int64]route           // by any other identity that we issued
	old        []int64                   // retired identities, in the order of their end
	conditions map[int32]*Reader         // openings under way
	questions  map[int32]question        // of QueryStat, that wait for answers
	links      map[carrier.Link]*linkUse // every link that is up
	streams    map[stream]struct{}       // to be closed with the session
	closed     bool
	closing    sync.Once
	gone       chan struct{} // closed when Close begins
	closeErr   error
	pending    int            // handshakes and farewells that Close waits for
	settled    signal         // there is one less of them
	tasks      sync.WaitGroup // started by background
	joining    bool           // Close waits for them: there will be no more
	stop       context.CancelCauseFunc
	life       context.Context // ends with Close
}

// stream is a Writer or Reader as its session sees it.
type stream interface {
	abort(err error)                    // ends it at once, without waiting
	linkLost(l carrier.Link, err error) // a connection is gone that it may have used
}

// NewSession opens a session: it listens on a port of the system's choice.
func NewSession(ctx context.Context, cfg SessionConfig) (*Session, error) {
	s := &Session{
		cfg: cfg, log: cfg.Logger,
		writers: map[int64]*Writer{}, routes: map[int64]route{}, conditions: map[int32]*Reader{},
		links: map[carrier.Link]*linkUse{}, streams: map[stream]struct{}{}, gone: make(chan struct{}),
		early: maxEarly(),
	}
	if s.log == nil {
		s.log = slog.Default()
	}
	s.waits.log, s.waits.tidy = s.log, cfg.ManualProgress
	if s.cfg.HandshakeGrace == 0 {
		s.cfg.HandshakeGrace = defaultGrace
	}
	s.life, s.stop = context.WithCancelCause(context.Background())
	config := cfg.carrier()
	config.Handler, config.Place, config.Logger = (*sessionHandler)(s), s.place, s.log
	var err error
	s.cm, err = carrier.NewCM(ctx, config)
	switch {
	case errors.Is(err, carrier.ErrConfig):
		return nil, fmt.Errorf("sst: session: %w: %w", ErrParam, err)
	case err != nil:
		return nil, fmt.Errorf("sst: session: %w", err)
	}
	return s, nil
}

// Addr returns the address that the session publishes.
func (s *Session) Addr() string {
	a, err := s.cm.Contact().Addr()
	if err != nil {
		return ""
	}
	return a.String()
}

// Close closes the streams of the session, finishes handshakes that an ADIOS2
// writer depends on (bounded by HandshakeGrace), and joins everything that the
// session started. It is idempotent.
func (s *Session) Close() error {
	s.closing.Do(func() { s.closeErr = s.close() })
	return s.closeErr
}

func (s *Session) close() error {
	close(s.gone)
	s.mu.Lock()
	s.closed = true
	streams := make([]stream, 0, len(s.streams))
	for st := range s.streams {
		streams = append(streams, st)
	}
	s.mu.Unlock()
	for _, st := range streams {
		st.abort(ErrClosed)
	}
	s.finishHandshakes()
	s.finishLingering()
	s.stop(ErrClosed)
	s.closeLinks()
	err := s.cm.Close()
	s.mu.Lock()
	s.joining = true
	s.mu.Unlock()
	s.tasks.Wait()
	s.waits.close()
	return errors.Join(err, s.closeNear())
}

// background runs f on a goroutine that Close joins; its context ends there. It
// reports false when Close has come so far that f will not run.
func (s *Session) background(f func(ctx context.Context)) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.joining {
		return false
	}
	s.tasks.Go(func() { f(s.life) })
	return true
}

// pend has Close wait, until unpend. What begins after Close has stopped waiting
// is nothing that a writer depends on: the streams have ended by then.
func (s *Session) pend() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pending++
}

func (s *Session) unpend() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pending--
	s.settled.notify()
}

// waitPending waits until nothing is pending, or until enough; it reports which.
func (s *Session) waitPending(enough <-chan time.Time) bool {
	for {
		s.mu.Lock()
		pending, settled := s.pending, s.settled.wait()
		s.mu.Unlock()
		if pending == 0 {
			return true
		}
		select {
		case <-settled:
		case <-enough:
			return false
		}
	}
}

// finishHandshakes waits for openings whose callers have gone, and for readers
// that leave with care.
func (s *Session) finishHandshakes() {
	defer explain(context.Background(), s.log, func() (string, []any) {
		return "closing: finishing a handshake first, because an ADIOS2 writer would hang without it", []any{"at most", s.cfg.HandshakeGrace}
	})()
	grace := time.NewTimer(s.cfg.HandshakeGrace)
	defer grace.Stop()
	if !s.waitPending(grace.C) {
		s.dropOpenings()
		s.waitPending(nil)
	}
}

// dropOpenings gives handshakes up that were not finished in time.
func (s *Session) dropOpenings() {
	s.mu.Lock()
	var readers []*Reader
	for _, r := range s.conditions {
		readers = append(readers, r)
	}
	s.mu.Unlock()
	for _, r := range readers {
		r.lost(fmt.Errorf("handshake not finished within %v: %w", s.cfg.HandshakeGrace, ErrTimeout))
	}
}

// addStream registers a stream, unless the session is closed.
func (s *Session) addStream(st stream) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return fmt.Errorf("session: %w", ErrClosed)
	}
	s.streams[st] = struct{}{}
	return nil
}

// beginOpening registers a reader. Its handshake is waited for, if it makes one
// itself, until endOpening.
func (s *Session) beginOpening(r *Reader, knocks bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return fmt.Errorf("session: %w", ErrClosed)
	}
	s.streams[r] = struct{}{}
	if knocks {
		s.pending++
	}
	return nil
}

// endOpening says that the handshake is over, one way or the other.
func (s *Session) endOpening(r *Reader) {
	s.forgetConditions(r.conditions)
	s.unpend()
}

// forgetConditions says that answers by these numbers are not waited for.
func (s *Session) forgetConditions(list []int32) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range list {
		delete(s.conditions, c)
	}
}

func (s *Session) removeStream(st stream) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.streams, st)
}
