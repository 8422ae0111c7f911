package sst

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/netip"
	"sync"
	"time"

	"github.com/weft-fabric/weft/internal/wire/cm"
	"github.com/weft-fabric/weft/internal/wire/sstmsg"
	"github.com/weft-fabric/weft/sst/internal/carrier"
	"github.com/weft-fabric/weft/sst/internal/cp"
)

// SessionConfig configures a session. The zero value works.
type SessionConfig struct {
	// NetworkInterface names the interface whose address is published. Empty
	// chooses an address of the host.
	NetworkInterface string
	// AdvertiseAddr is an IPv4 address to publish instead, as seen by the peers:
	// for tunnels and containers.
	AdvertiseAddr netip.Addr
	// Logger gets explanations of long waits and what happens to peers; nil means
	// slog.Default(). Nothing is logged per step.
	Logger *slog.Logger
	// HandshakeGrace bounds how long Close waits for handshakes that must be
	// finished lest an ADIOS2 writer hangs; 0 means 60 s.
	HandshakeGrace time.Duration
}

const defaultGrace = 60 * time.Second

// Session is what the streams of a process share: a listener, connections,
// identities. Sessions are independent of each other.
type Session struct {
	cfg SessionConfig
	log *slog.Logger
	cm  *carrier.CM

	mu         sync.Mutex
	writers    map[int64]*Writer         // by stream number
	routes     map[int64]route           // by any other identity that we issued
	old        []int64                   // retired identities, in the order of their end
	conditions map[int32]*Reader         // openings under way
	links      map[carrier.Link]*linkUse // every link that is up
	streams    map[stream]struct{}       // to be closed with the session
	closed     bool
	closing    sync.Once
	gone       chan struct{} // closed when Close begins
	closeErr   error
	pending    sync.WaitGroup // handshakes finished in the background
	tasks      sync.WaitGroup // started by background
	stop       context.CancelCauseFunc
	life       context.Context // ends with Close
}

// stream is a Writer or Reader as its session sees it.
type stream interface {
	abort(err error) // ends it at once, without waiting
}

// route says who an identity belongs to. A retired one has nobody: messages to
// it crossed a close and are dropped without a word.
type route struct {
	writer *Writer
	reader *Reader
	key    readerKey // of writer's reader
	rank   int
	data   bool // a data-plane identity
}

func (r route) retired() bool { return r.writer == nil && r.reader == nil }

func (r route) owner() side {
	if r.writer != nil {
		return writerSide
	}
	return readerSide
}

// linkUse counts the streams that need a link.
type linkUse struct {
	streams int
	closing bool // its last stream has gone: nobody may take it up again
	peer    bool // the peer reads streams of ours over it: closing it is up to the peer
	weft    bool // the peer said that it is Weft
}

// NewSession opens a session: it listens on a port of the system's choice.
func NewSession(ctx context.Context, cfg SessionConfig) (*Session, error) {
	s := &Session{
		cfg: cfg, log: cfg.Logger,
		writers: map[int64]*Writer{}, routes: map[int64]route{}, conditions: map[int32]*Reader{},
		links: map[carrier.Link]*linkUse{}, streams: map[stream]struct{}{}, gone: make(chan struct{}),
	}
	if s.log == nil {
		s.log = slog.Default()
	}
	if s.cfg.HandshakeGrace == 0 {
		s.cfg.HandshakeGrace = defaultGrace
	}
	s.life, s.stop = context.WithCancelCause(context.Background())
	var err error
	s.cm, err = carrier.NewCM(ctx, carrier.Config{
		Interface: cfg.NetworkInterface, AdvertiseAddr: cfg.AdvertiseAddr, Handler: (*sessionHandler)(s), Logger: s.log,
	})
	if err != nil {
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
	s.stop(ErrClosed)
	err := s.cm.Close()
	s.tasks.Wait()
	return err
}

// background runs f on a goroutine that Close joins; its context ends there.
func (s *Session) background(f func(ctx context.Context)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	s.tasks.Go(func() { f(s.life) })
}

// finishHandshakes waits for openings whose callers have gone.
func (s *Session) finishHandshakes() {
	done := make(chan struct{})
	go func() {
		s.pending.Wait()
		close(done)
	}()
	defer explain(context.Background(), s.log, func() (string, []any) {
		return "closing: finishing a handshake first, because an ADIOS2 writer would hang without it", []any{"at most", s.cfg.HandshakeGrace}
	})()
	grace := time.NewTimer(s.cfg.HandshakeGrace)
	defer grace.Stop()
	select {
	case <-done:
	case <-grace.C:
		s.dropOpenings()
		<-done
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

// newID returns a random identity, never zero and never negative.
func newID() int64 { return rand.Int64N(1<<63-1) + 1 }

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

// beginOpening registers a reader whose handshake the session waits for.
func (s *Session) beginOpening(r *Reader) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return fmt.Errorf("session: %w", ErrClosed)
	}
	s.streams[r] = struct{}{}
	s.pending.Add(1)
	return nil
}

// endOpening says that the handshake is over, one way or the other.
func (s *Session) endOpening(r *Reader) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range r.conditions {
		delete(s.conditions, c)
	}
	s.pending.Done()
}

func (s *Session) removeStream(st stream) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.streams, st)
}

// issue makes n fresh identities with the given route; rank counts from 0.
func (s *Session) issue(n int, r route) []int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	ids := make([]int64, n)
	for i := range ids {
		id := newID()
		for s.routes[id] != (route{}) {
			id = newID()
		}
		r.rank = i
		s.routes[id] = r
		ids[i] = id
	}
	return ids
}

// keepRetired is how many retired identities stay known.
const keepRetired = 1 << 16

// retire takes identities out of use. They stay known for long, so that a late
// message is not mistaken for an attack.
func (s *Session) retire(ids ...int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.retireLocked(ids...)
}

// retireLocked is retire for who holds mu.
func (s *Session) retireLocked(ids ...int64) {
	for _, id := range ids {
		s.routes[id] = route{}
	}
	s.old = append(s.old, ids...)
	for len(s.old) > keepRetired {
		delete(s.routes, s.old[0])
		s.old = s.old[1:]
	}
}

// issueCondition makes a number for a request whose answer has nothing else to
// find its reader by. It is random, as identities are: whoever can connect to us
// must not be able to answer for the writer.
func (s *Session) issueCondition(r *Reader) int32 {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		c := rand.Int32N(1<<31-1) + 1
		if s.conditions[c] == nil {
			s.conditions[c] = r
			return c
		}
	}
}

// use adds a stream to a link, unless that is about to close; unuse closes the
// link with its last one. A link that the peer made, or reads over, is left to
// the peer: another of its streams may be opening on it.
func (s *Session) use(l carrier.Link) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	u := s.linkUse(l)
	if u.closing {
		return false
	}
	u.streams++
	return true
}

func (s *Session) unuse(l carrier.Link) {
	s.mu.Lock()
	u := s.links[l]
	last := false
	if u != nil {
		u.streams--
		last = u.streams == 0 && !u.peer && !l.Info().Inbound
		u.closing = last
	}
	s.mu.Unlock()
	if last {
		l.Close()
	}
}

// peerReads notes that the peer of a link asked for a stream of ours.
func (s *Session) peerReads(l carrier.Link, weft bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	u := s.linkUse(l)
	u.peer = true
	u.weft = u.weft || weft
}

// linkUse returns the entry of a link. The caller holds mu.
func (s *Session) linkUse(l carrier.Link) *linkUse {
	u := s.links[l]
	if u == nil {
		u = &linkUse{}
		s.links[l] = u
	}
	return u
}

// dial connects to a contact, or finds the connection that exists. The caller is
// one of its users, until unuse.
func (s *Session) dial(ctx context.Context, c cm.Contact) (carrier.Link, error) {
	for {
		l, err := s.cm.Dial(ctx, c)
		if err != nil || s.use(l) {
			return l, err
		}
		select {
		case <-l.Done(): // another stream was closing it
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// send encodes m and queues it on the link. Done is called when its memory is
// no longer needed; it may be nil.
func (s *Session) send(l carrier.Link, m sstmsg.Message, o sstmsg.Options, done func()) error {
	f, parts, err := sstmsg.Encode(m, o)
	if err != nil {
		if done != nil {
			done()
		}
		return err
	}
	r := carrier.Record{Format: f, Parts: parts}
	if done != nil {
		r.Done = func(error) { done() }
	}
	return l.Send(r)
}

// post is send for messages whose loss nobody waits for: if m cannot be queued
// the link is of no use any more, and is dropped if it is not down already.
func (s *Session) post(l carrier.Link, m sstmsg.Message, o sstmsg.Options, done func()) {
	if err := s.send(l, m, o, done); err != nil && !errors.Is(err, carrier.ErrClosed) {
		l.Abort(err) // one that is closing writes out what it has first
	}
}

// sessionHandler is the Session as its carrier sees it.
type sessionHandler Session

// errIdentity drops the connection of a peer that names what it cannot know.
var errIdentity = errors.New("unknown stream identity")

// Message routes one message to its stream. It runs on the link's goroutine.
func (h *sessionHandler) Message(l carrier.Link, in carrier.Inbound) {
	s := (*Session)(h)
	m, err := sstmsg.Decode(in.Format, in.Data)
	if err == nil {
		err = s.route(l, m, in.Free)
	} else {
		in.Free()
	}
	if err != nil {
		err = fmt.Errorf("%s: %w: %w", in.Format.Name(), ErrProtocol, err)
		s.log.Warn("dropping a connection", "peer", l.Info().Remote, "error", err)
		l.Abort(err)
	}
}

// route hands m to whom its identity belongs. Free is called exactly once, by
// route or by the stream.
func (s *Session) route(l carrier.Link, m sstmsg.Message, free func()) error {
	switch m := m.(type) {
	case *sstmsg.DPQuery:
		defer free()
		return s.toWriter(m.WriterID, func(w *Writer) { w.query(l, m) }, func() { s.sayEnded(l, m.Condition) })
	case *sstmsg.ReaderRegister:
		defer free()
		return s.toWriter(m.WriterID, func(w *Writer) { w.register(l, m) }, func() { s.turnAway(l, m) })
	case *sstmsg.DPQueryResponse:
		return s.toOpening(m.Condition, m, free)
	case *sstmsg.WriterResponse:
		return s.toOpening(m.Condition, m, free)
	case *sstmsg.ReadRequest:
		defer free()
		served := false
		err := s.toPeer(m.WriterID, writerSide, true, func(r route) {
			served = true
			r.writer.serve(l, r, m)
		})
		if err == nil && !served {
			err = s.refuse(l, m)
		}
		return err
	case *sstmsg.ReadReply:
		defer free()
		return s.toPeer(m.ReaderID, readerSide, true, func(r route) { r.reader.plane.Reply(m) })
	case *sstmsg.Preload:
		return s.toReader(m.ReaderID, true, free, func(r *Reader) { r.plane.Push(m, free) })
	case *sstmsg.TimestepMetadata:
		return s.toReader(m.ReaderID, false, free, func(r *Reader) { r.receive(m, free) })
	case *sstmsg.WriterClose:
		return s.toReader(m.ReaderID, false, free, func(r *Reader) { r.receive(m, free) })
	case *sstmsg.PeerSetup:
		return s.toReader(m.ReaderID, false, free, func(r *Reader) { r.peerSetup(l, m, free) })
	case *sstmsg.CommPatternLocked:
		return s.toReader(m.ReaderID, false, free, func(r *Reader) { r.receive(m, free) })
	case *sstmsg.ReaderActivate:
		defer free()
		return s.fromReader(m.WriterID, m)
	case *sstmsg.ReaderRequestStep:
		defer free()
		return s.fromReader(m.WriterID, m)
	case *sstmsg.ReleaseTimestep:
		defer free()
		return s.fromReader(m.WriterID, m)
	case *sstmsg.LockReaderDefinitions:
		defer free()
		return s.fromReader(m.WriterID, m)
	case *sstmsg.ReaderClose:
		defer free()
		return s.fromReader(m.WriterID, m)
	}
	free()
	return sstmsg.ErrUnknown
}

func (s *Session) toWriter(id int64, do func(*Writer), ended func()) error {
	s.mu.Lock()
	w := s.writers[id]
	r, known := s.routes[id]
	s.mu.Unlock()
	switch {
	case w != nil:
		do(w)
	case known && r.retired():
		ended()
	default:
		return fmt.Errorf("%w %#x", errIdentity, uint64(id))
	}
	return nil
}

// sayEnded answers who asks for a stream that has ended: it found the contact
// file just before that went. Other streams of its may use the link, so that
// stays. An ADIOS2 reader takes the answer for a plane that it lacks, and leaves.
func (s *Session) sayEnded(l carrier.Link, condition int32) {
	s.post(l, &sstmsg.DPQueryResponse{Condition: condition, DataPlane: cp.PlaneEnded}, sstmsg.Options{}, nil)
}

// turnAway does the same for who has asked before, and registers now. ADIOS2
// readers expect nothing but the writer's response then.
func (s *Session) turnAway(l carrier.Link, m *sstmsg.ReaderRegister) {
	s.mu.Lock()
	weft := s.linkUse(l).weft
	s.mu.Unlock()
	if weft {
		s.sayEnded(l, m.Condition)
		return
	}
	l.Abort(fmt.Errorf("stream has ended: %w", ErrClosed))
}

func (s *Session) toOpening(condition int32, m sstmsg.Message, free func()) error {
	s.mu.Lock()
	r := s.conditions[condition]
	s.mu.Unlock()
	if r == nil {
		free()
		return nil // the opening was given up before it began
	}
	r.receive(m, free)
	return nil
}

// refuse answers a read request to a stream that has ended, or that has given
// the reader up. There is no error reply in the protocol: Weft takes an empty one
// for it, for others the connection is dropped.
func (s *Session) refuse(l carrier.Link, m *sstmsg.ReadRequest) error {
	s.mu.Lock()
	weft := s.linkUse(l).weft
	s.mu.Unlock()
	if !weft {
		return fmt.Errorf("read of step %d of a stream that has ended: %w", m.Step, ErrClosed)
	}
	return s.send(l, &sstmsg.ReadReply{Step: m.Step, ReaderID: m.ReaderID, Condition: m.Condition}, sstmsg.Options{}, nil)
}

// toPeer finds the route of an identity; those of writers and readers, of
// control and data, are not mixed.
func (s *Session) toPeer(id int64, owner side, data bool, do func(route)) error {
	s.mu.Lock()
	r, ok := s.routes[id]
	s.mu.Unlock()
	if !ok || !r.retired() && (r.data != data || r.owner() != owner) {
		return fmt.Errorf("%w %#x", errIdentity, uint64(id))
	}
	if !r.retired() {
		do(r)
	}
	return nil
}

func (s *Session) toReader(id int64, data bool, free func(), do func(*Reader)) error {
	called := false
	err := s.toPeer(id, readerSide, data, func(r route) {
		called = true
		do(r.reader)
	})
	if !called {
		free()
	}
	return err
}

func (s *Session) fromReader(id int64, m sstmsg.Message) error {
	return s.toPeer(id, writerSide, false, func(r route) { r.writer.fromReader(r.key, m) })
}

// Lost tells every stream that used the link.
func (h *sessionHandler) Lost(l carrier.Link, err error) {
	s := (*Session)(h)
	s.mu.Lock()
	readers, writers := map[*Reader]struct{}{}, map[*Writer]struct{}{}
	for _, r := range s.routes {
		if r.reader != nil {
			readers[r.reader] = struct{}{}
		}
		if r.writer != nil {
			writers[r.writer] = struct{}{}
		}
	}
	s.mu.Unlock()
	for r := range readers {
		r.linkLost(l, err)
	}
	for w := range writers {
		w.linkLost(l, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.links, l)
}
