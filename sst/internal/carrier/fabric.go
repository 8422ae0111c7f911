package carrier

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/weft-fabric/weft/fabric"
	"github.com/weft-fabric/weft/sst/internal/tcp"
)

// FabricConfig says how a Fabric behaves. Domain, Endpoint, Queue and Handler have no
// usable zero value; what else there is has the meaning, and the default, that it has
// in Config.
type FabricConfig struct {
	// Domain, Endpoint and Queue are the caller's to close, after the Fabric. The
	// endpoint is opened with FabricEndpoint. Nobody else posts on it or reads its
	// queue, and nobody removes a peer of the domain that has a link. The domain's logger
	// may be called with a link's lock held: it must not ask a Link.
	Domain   *fabric.Domain
	Endpoint *fabric.Endpoint
	Queue    *fabric.CompletionQueue
	// Progress is how the domain was opened. Of a manual one there is no goroutine:
	// things move in Send, Poll, Dial, Close and Wait.
	Progress fabric.Progress

	Handler Handler
	Logger  *slog.Logger // hears of peers that were dropped; nil discards

	CloseTimeout   time.Duration
	MaxRecord      int
	MaxFormats     int
	MaxFormatBytes int
	MaxLinks       int // those being opened included
	MaxQueued      int
	BufferBytes    int
}

// FabricEndpoint returns what the endpoint of a Fabric is opened with, both of whose
// directions use q, a queue of the ordinary size at least. Only its name may be changed.
func FabricEndpoint(q *fabric.CompletionQueue) fabric.EndpointConfig {
	return fabric.EndpointConfig{Send: q, Recv: q, Depth: fabricDepth, MinMultiRecv: maxUnit}
}

// fabricDepth bounds the peers, of which each takes a receive.
const fabricDepth = 2048

// resolve returns a checked copy of c with defaults in place.
func (c FabricConfig) resolve() (FabricConfig, error) {
	if c.Handler == nil || c.Domain == nil || c.Endpoint == nil || c.Queue == nil {
		return c, fmt.Errorf("%w: a fabric carrier needs a Domain, an Endpoint, its Queue and a Handler", ErrConfig)
	}
	info := c.Domain.Info()
	const need = fabric.Msg | fabric.Tagged | fabric.MultiRecv | fabric.DirectedRecv | fabric.Source
	if lacks := need &^ info.Caps; lacks != 0 {
		return c, fmt.Errorf("%w: provider %s does not offer %v", ErrConfig, info.Provider, lacks)
	}
	if most := info.Limits.Message; most > 0 && most < maxUnit {
		return c, fmt.Errorf("%w: provider %s has messages of at most %d bytes, and %d are needed", ErrConfig, info.Provider, most, maxUnit)
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	c.CloseTimeout = tcp.OrDefault(c.CloseTimeout, defaultCloseTimeout)
	c.MaxRecord = tcp.OrDefault(c.MaxRecord, defaultMaxRecord)
	c.MaxFormats = tcp.OrDefault(c.MaxFormats, defaultMaxFormats)
	c.MaxFormatBytes = tcp.OrDefault(c.MaxFormatBytes, defaultMaxFormatBytes)
	c.MaxLinks = tcp.OrDefault(c.MaxLinks, defaultMaxLinks)
	c.MaxQueued = tcp.OrDefault(c.MaxQueued, defaultMaxQueued)
	c.BufferBytes = tcp.OrDefault(c.BufferBytes, defaultBufferBytes)
	return c, nil
}

// Fabric carries links over messages of a fabric endpoint. It is the second carrier,
// between Weft processes that reach each other so; who they are and where, they have
// told each other over the first.
//
// Links are those of its dialler: when both sides dial there are two. A link that was
// lost is not the one that is dialled afterwards, whatever is still under way.
//
// Memory: 512 KiB for receiving from everybody. A link has its queue, formats, the record that is
// arriving, of which no more is allocated than twice what has come and 256 KiB, and at most
// 2 MiB of units that the peer has not taken, in arenas of the domain; all links keep 4 MiB of them for later. For a link that is held back, because its
// peer does not take what is queued for it, 16 MiB or one record of that peer.
//
// Callbacks run with the turn (fabricturn.go) and no other lock: they may call any method of a
// Link, but neither Dial, Wait nor Close of the Fabric.
type Fabric struct {
	config  FabricConfig
	manual  bool
	inject  int // bytes of a unit that a post copies
	buffers pool
	slots   slots
	rota    rota
	todo    chores
	inbox   inbox         // of who has the turn
	notes   []note        // of who has the turn: for the log
	unfit   uint64        // of who has the turn: peers that were dropped
	gone    chan struct{} // closed when the goroutine has ended; there is none in manual mode
	closing sync.Once

	mu      sync.Mutex
	closed  bool
	broken  error  // why the endpoint or its queue is of no use any more; changed with the turn
	tokens  uint64 // the last one
	peers   map[fabric.Peer]*fabricPeer
	watches map[uint64]*fabricPeer // by token
	links   map[linkKey]*fabricLink
	byToken map[uint64]*fabricLink
	flights map[fabric.Address]*fabricFlight // what was dialled, and what is being
}

// NewFabric returns a carrier that takes peers in when it returns. Errors wrap
// ErrConfig, or are those of posting receives.
func NewFabric(c FabricConfig) (*Fabric, error) {
	c, err := c.resolve()
	if err != nil {
		return nil, err
	}
	f := &Fabric{
		config: c, manual: c.Progress == fabric.Manual, inject: maxInject, gone: make(chan struct{}),
		peers: map[fabric.Peer]*fabricPeer{}, watches: map[uint64]*fabricPeer{},
		links: map[linkKey]*fabricLink{}, byToken: map[uint64]*fabricLink{}, flights: map[fabric.Address]*fabricFlight{},
	}
	if most := c.Domain.Info().Limits.Inject; most > 0 {
		f.inject = min(f.inject, int(most))
	}
	f.buffers.limit = c.BufferBytes
	f.rota.init()
	f.inbox.init()
	if err := f.postAll(); err != nil {
		f.retire()
		return nil, fmt.Errorf("carrier: receive: %w", err)
	}
	if !f.manual {
		go f.run()
	}
	return f, nil
}

// Close closes all links as Link.Close does, and returns when no goroutine and no
// callback is left: within CloseTimeout, whatever the peers do, but for a callback. It
// does not close the domain, the endpoint and the queue. Idempotent. It must not be
// called from a callback.
func (f *Fabric) Close() error {
	f.closing.Do(f.close)
	return nil
}

func (f *Fabric) close() {
	f.mu.Lock()
	f.closed = true
	links := make([]*fabricLink, 0, len(f.links))
	for _, l := range f.links {
		links = append(links, l)
	}
	f.mu.Unlock()
	for _, l := range links {
		l.finish()
	}
	f.kick()
	if !f.manual {
		<-f.gone
		return
	}
	for !f.over() {
		_ = f.wait(context.Background(), nil)
	}
	f.retire()
}

// over reports whether the Fabric was closed and no link is left.
func (f *Fabric) over() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.closed && len(f.links) == 0
}

// brokenBy is why the endpoint or its queue is of no use any more; nil: it is.
func (f *Fabric) brokenBy() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.broken
}

// breakOff ends all links, because the queue has ended before. The caller has the turn.
func (f *Fabric) breakOff(err error) {
	f.mu.Lock()
	if f.broken != nil {
		f.mu.Unlock()
		return
	}
	f.broken = cause(err)
	links := make([]*fabricLink, 0, len(f.links))
	for _, l := range f.links {
		links = append(links, l)
	}
	f.mu.Unlock()
	for _, l := range links {
		l.fail("read", cause(err))
	}
}

// cause takes the form off an error of the fabric: who wraps it says what was tried,
// and with whom.
func cause(err error) error {
	if oe, ok := errors.AsType[*fabric.OpError](err); ok {
		return oe.Err
	}
	return err
}

// note is what a person should know, until it can be told.
type note struct {
	text string
	args []any
}

// later has the log told when the turn is given up. The caller has the turn.
func (f *Fabric) later(text string, args ...any) { f.notes = append(f.notes, note{text, args}) }
