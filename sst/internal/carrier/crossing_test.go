package carrier

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/weft-fabric/weft/internal/testutil"
	"github.com/weft-fabric/weft/internal/wire/cm"
)

// delays holds each stage of a connection up by a random time.
type delays struct {
	mu   sync.Mutex
	rnd  *rand.Rand
	most time.Duration
}

func (d *delays) at(string) {
	d.mu.Lock()
	wait := time.Duration(0)
	if d.rnd.IntN(2) == 0 {
		wait = time.Duration(d.rnd.Int64N(int64(d.most)))
	}
	d.mu.Unlock()
	if wait > 0 {
		<-time.After(wait)
	}
}

// openProbed is open with a probe, set before anything can happen.
func openProbed(t testing.TB, config Config, probe func(string)) (*CM, *recorder) {
	t.Helper()
	c, r := open(t, config)
	c.probe = probe
	return c, r
}

// crossing has both endpoints dial each other, n times each, at once, and
// returns the link of each side.
func crossing(t *testing.T, a, b *CM, n int) (la, lb Link) {
	t.Helper()
	var start sync.WaitGroup
	start.Add(1)
	waits := [2][]chan dialled{}
	for i, pair := range [][2]*CM{{a, b}, {b, a}} {
		for range n {
			ch := make(chan dialled, 1)
			waits[i] = append(waits[i], ch)
			go func() {
				start.Wait()
				l, err := pair[0].Dial(context.Background(), pair[1].Contact())
				ch <- dialled{l, err}
			}()
		}
	}
	start.Done()
	var links [2]Link
	for i := range waits {
		for _, ch := range waits[i] {
			d := next(t, "link", ch)
			switch {
			case d.err != nil:
				t.Fatal(d.err)
			case links[i] == nil:
				links[i] = d.link
			case links[i] != d.link:
				t.Fatalf("side %d: two links", i)
			}
		}
	}
	return links[0], links[1]
}

// TestCrossingDials: whatever the timing, one connection comes of it, and it is
// never given up.
func TestCrossingDials(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	f := testFormat(t, "F")
	for round := range testutil.Count(t, 150, 5000) {
		d := &delays{rnd: rand.New(rand.NewPCG(rnd.Uint64(), 0)), most: []time.Duration{1, 100 * time.Microsecond, 3 * time.Millisecond}[round%3]}
		a, ra := openProbed(t, Config{}, d.at)
		b, rb := openProbed(t, Config{}, d.at)
		la, lb := crossing(t, a, b, 1+round%8)
		if la.Info().Local != lb.Info().Remote || lb.Info().Local != la.Info().Remote {
			t.Fatalf("round %d: two connections: %+v, %+v", round, la.Info(), lb.Info())
		}
		_ = la.Send(record(f, 1, 1))
		_ = lb.Send(record(f, 2, 1))
		if e := next(t, "record", ra.got); e.link != la || number(e.data) != 2 {
			t.Fatalf("round %d: %+v", round, e)
		}
		if e := next(t, "record", rb.got); e.link != lb || number(e.data) != 1 {
			t.Fatalf("round %d: %+v", round, e)
		}
		// A connection that was given up is not always seen to be by now. Answered
		// after the link's end it would be a link, of no time and of no use.
		settled(t, a)
		settled(t, b)
		_, _ = a.Close(), b.Close()
		if len(ra.lost) != 1 || len(rb.lost) != 1 {
			t.Fatalf("round %d: %d and %d links were made", round, len(ra.lost), len(rb.lost))
		}
		for i, bk := range []books{booksOf(a), booksOf(b)} {
			if bk != (books{}) {
				t.Fatalf("round %d: left behind at side %d: %+v", round, i, bk)
			}
		}
	}
}

// settled waits until no connection is on its way in.
func settled(t *testing.T, c *CM) {
	t.Helper()
	testutil.Eventually(t, "no attempt is under way", func() bool {
		b := booksOf(c)
		return b.conns == b.links && b.flights == 0
	})
}

// gate stops connections at a stage until it is opened, or the test is over.
type gate struct {
	t       *testing.T
	stage   string
	reached chan struct{}
	open    chan struct{}
}

func newGate(t *testing.T, stage string) *gate {
	return &gate{t, stage, make(chan struct{}, 100), make(chan struct{})}
}

func (g *gate) at(stage string) {
	if stage == g.stage {
		g.reached <- struct{}{}
		select {
		case <-g.open:
		case <-g.t.Context().Done():
		}
	}
}

// TestCrossingAtEachStage stops both dials at the same stage, so that they truly
// cross, and lets them go.
func TestCrossingAtEachStage(t *testing.T) {
	for _, stage := range []string{"connecting", "connected", "greeted"} {
		t.Run(stage, func(t *testing.T) {
			ga, gb := newGate(t, stage), newGate(t, stage)
			a, ra := openProbed(t, Config{}, ga.at)
			b, rb := openProbed(t, Config{}, gb.at)
			wa := dialAsync(t.Context(), a, b.Contact())
			wb := dialAsync(t.Context(), b, a.Contact())
			next(t, "stage", ga.reached)
			next(t, "stage", gb.reached)
			close(ga.open)
			close(gb.open)
			da, db := next(t, "link", wa), next(t, "link", wb)
			if da.err != nil || db.err != nil {
				t.Fatal(da.err, db.err)
			}
			settled(t, a)
			settled(t, b)
			_, _ = a.Close(), b.Close()
			if len(ra.lost) != 1 || len(rb.lost) != 1 {
				t.Errorf("%d and %d links were made", len(ra.lost), len(rb.lost))
			}
		})
	}
}

// Of a raw peer with one of these IDs the endpoint is the greater or the lesser.
const (
	lesserID  = 6
	greaterID = 1<<31 - 1
)

// crossed has an endpoint dial a raw peer, which takes the connection without an
// answer, and connects to the endpoint in turn.
func crossed(t *testing.T, c *CM, id uint32) (h *host, wait <-chan dialled, ours, theirs *raw) {
	t.Helper()
	h = newHost(t)
	wait = dialAsync(t.Context(), c, h.contact(id).WithMark())
	ours, _, _ = h.accept()
	theirs = connect(t, c)
	theirs.send(hello(id, false).Append(cm.Preamble{Port: h.addr().Port()}.Append(nil)))
	return h, wait, ours, theirs
}

// answered reads the endpoint's handshake.
func (p *raw) answered(c *CM) {
	p.t.Helper()
	if h, err := p.r.Handshake(); err != nil || !h.Answer || h.ID != c.id {
		p.t.Fatalf("answer %+v, %v", h, err)
	}
}

// crossedHeld is crossed up to where the peer's connection is held, because the
// endpoint is the greater; what comes of ours decides.
func crossedHeld(t *testing.T, config Config) (c *CM, r *recorder, wait <-chan dialled, ours, theirs *raw) {
	t.Helper()
	g := newGate(t, "held")
	c, r = openProbed(t, config, g.at)
	_, wait, ours, theirs = crossed(t, c, lesserID)
	next(t, "held", g.reached)
	close(g.open)
	return c, r, wait, ours, theirs
}

// landed waits for the link of a Dial: inbound, if the peer's connection is to
// be that.
func landed(t *testing.T, wait <-chan dialled, inbound bool) Link {
	t.Helper()
	d := next(t, "link", wait)
	if d.err != nil || d.link.Info().Inbound != inbound {
		t.Fatalf("%+v", d)
	}
	return d.link
}

// endsIt has a peer close its connection, the endpoint's only link.
func endsIt(t *testing.T, peer *raw, r *recorder) {
	t.Helper()
	_ = peer.conn.Close()
	next(t, "end", r.lost)
	nothingIn(t, "second link", r.lost)
}

// nothingLeft wants the tables of an endpoint to be empty.
func nothingLeft(t *testing.T, c *CM) {
	t.Helper()
	if b := booksOf(c); b != (books{}) {
		t.Errorf("left behind: %+v", b)
	}
}

// TestCrossingGreaterWins: the peer's connection is closed unanswered once ours
// is a link.
func TestCrossingGreaterWins(t *testing.T) {
	_, r, wait, ours, theirs := crossedHeld(t, Config{})
	ours.send(hello(lesserID, true).Append(nil))
	landed(t, wait, false)
	if _, err := theirs.r.Handshake(); err == nil {
		t.Error("the peer's connection was answered")
	}
	endsIt(t, ours, r)
}

// TestCrossingLesserYields: ours is closed, and the peer's is what Dial returns.
func TestCrossingLesserYields(t *testing.T) {
	c, r := open(t, Config{})
	_, wait, ours, theirs := crossed(t, c, greaterID)
	theirs.answered(c)
	landed(t, wait, true)
	ours.ended()
	endsIt(t, theirs, r)
}

// TestCrossingWinnerFails: the connection that was held takes the place of ours.
func TestCrossingWinnerFails(t *testing.T) {
	for name, fail := range map[string]func(*raw){
		"closed":       func(p *raw) { _ = p.conn.Close() },
		"wrong peer":   func(p *raw) { p.send(hello(77, true).Append(nil)) },
		"not EVPath":   func(p *raw) { p.send([]byte("HTTP/1.1 400 Bad Request\r\n\r\n")) },
		"never at all": func(*raw) {}, // the patience of whoever holds ends first
	} {
		t.Run(name, func(t *testing.T) {
			limit := 10 * time.Second
			if name == "never at all" {
				limit = 200 * time.Millisecond
			}
			c, r, wait, ours, theirs := crossedHeld(t, Config{DialTimeout: limit})
			fail(ours)
			theirs.answered(c)
			landed(t, wait, true)
			ours.ended()
			endsIt(t, theirs, r)
			if b := booksOf(c); b.flights != 0 || b.links != 0 {
				t.Errorf("%+v", b)
			}
		})
	}
}

// TestCrossingHeldIsGone: the peer that was held leaves, then ours fails too: the
// caller hears of it, in whatever way, and nothing is left.
func TestCrossingHeldIsGone(t *testing.T) {
	g := newGate(t, "held")
	c, _ := openProbed(t, Config{}, g.at)
	h, wait, ours, theirs := crossed(t, c, lesserID)
	next(t, "held", g.reached)
	_ = h.ln.Close()
	_ = theirs.conn.SetLinger(0)
	_ = theirs.conn.Close()
	_ = ours.conn.Close()
	close(g.open)
	if d := next(t, "Dial", wait); d.err == nil {
		next(t, "end of the link", d.link.Done())
	}
	_ = c.Close()
	nothingLeft(t, c)
}

// TestCrossingClose: closing ends a connection that is held, and the dial.
func TestCrossingClose(t *testing.T) {
	c, _, wait, _, theirs := crossedHeld(t, Config{})
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if d := next(t, "Dial", wait); !errors.Is(d.err, ErrClosed) {
		t.Errorf("%+v", d)
	}
	theirs.ended()
	nothingLeft(t, c)
}

// TestCrossingADIOS2: a contact without Weft's mark is dialled, and its process
// answered, as ever: it gets two connections.
func TestCrossingADIOS2(t *testing.T) {
	for _, id := range []uint32{lesserID, greaterID, cm.ID210} {
		c, r := open(t, Config{})
		h := newHost(t)
		contact := h.contact(id)
		if id == cm.ID210 {
			contact = h.contact(0)
		}
		wait := dialAsync(t.Context(), c, contact)
		ours, _, _ := h.accept()
		theirs := join(t, c, id, h.addr().Port())
		ours.send(hello(id, true).Append(nil))
		if d := next(t, "link", wait); d.err != nil || d.link.Info().Inbound {
			t.Errorf("ID %d: %+v", id, d)
		}
		_, _ = ours.conn.Close(), theirs.conn.Close()
		next(t, "end", r.lost)
		next(t, "end", r.lost)
	}
}

// TestCrossingDialsTwice: a peer that comes twice is answered twice; nobody waits.
func TestCrossingDialsTwice(t *testing.T) {
	g := newGate(t, "entering")
	c, r := openProbed(t, Config{}, g.at)
	first := join(t, c, 77, 0)
	second := join(t, c, 77, 0)
	next(t, "stage", g.reached)
	next(t, "stage", g.reached)
	close(g.open)
	_, _ = first.conn.Close(), second.conn.Close()
	next(t, "end", r.lost)
	next(t, "end", r.lost)
}

// TestDialWaitsForAnInbound: a peer that is being answered is not dialled.
func TestDialWaitsForAnInbound(t *testing.T) {
	g := newGate(t, "entering")
	c, r := openProbed(t, Config{}, g.at)
	h := newHost(t)
	theirs := join(t, c, 77, h.addr().Port())
	next(t, "stage", g.reached)
	ctx, cancel := context.WithCancel(t.Context())
	leaver := dialAsync(ctx, c, h.contact(77).WithMark())
	stayer := dialAsync(t.Context(), c, h.contact(77).WithMark())
	waiters(t, c, 2)
	cancel()
	if d := next(t, "the leaver", leaver); !errors.Is(d.err, context.Canceled) {
		t.Errorf("%+v", d)
	}
	close(g.open)
	landed(t, stayer, true)
	_ = theirs.conn.Close()
	next(t, "end", r.lost)
}

// TestDialAfterAnInboundFails: it makes an attempt of its own.
func TestDialAfterAnInboundFails(t *testing.T) {
	g := newGate(t, "answering")
	c, r := openProbed(t, Config{HandshakeTimeout: time.Hour}, g.at)
	h := newHost(t)
	theirs := connect(t, c)
	theirs.send(hello(77, false).Append(cm.Preamble{Port: h.addr().Port()}.Append(nil)))
	next(t, "stage", g.reached)
	wait := dialAsync(t.Context(), c, h.contact(77).WithMark())
	waiters(t, c, 1)
	// What a reset connection does at the next write cannot be timed: end the
	// flight as greet does.
	c.mu.Lock()
	a := c.flights[target{id: 77, weft: true}]
	c.mu.Unlock()
	c.forsake(a, netip.AddrPort{}, syscall.ECONNRESET)
	ours, _, _ := h.accept()
	ours.send(hello(77, true).Append(nil))
	landed(t, wait, false)
	_ = ours.conn.Close()
	next(t, "end", r.lost)
	c.mu.Lock()
	a.done, a.err = make(chan struct{}), nil // for its greet, which ends it again
	c.mu.Unlock()
	close(g.open)
	_ = theirs.conn.Close()
	next(t, "end", r.lost)
}

// TestDialOtherAddress: a caller that joined an attempt at another address of the
// peer makes one at its own when that fails.
func TestDialOtherAddress(t *testing.T) {
	g := newGate(t, "connecting")
	c, r := openProbed(t, Config{}, g.at)
	h := newHost(t)
	dead, err := h.contact(77).WithMark().WithAddr(netip.MustParseAddr("127.0.0.9"))
	if err != nil {
		t.Fatal(err)
	}
	first := dialAsync(t.Context(), c, dead)
	next(t, "stage", g.reached)
	second := dialAsync(t.Context(), c, h.contact(77).WithMark())
	waiters(t, c, 2)
	close(g.open)
	if d := next(t, "first", first); !errors.Is(d.err, syscall.ECONNREFUSED) {
		t.Errorf("%+v", d)
	}
	p, _, _ := h.accept()
	p.send(hello(77, true).Append(nil))
	if d := next(t, "second", second); d.err != nil {
		t.Error(d.err)
	}
	_ = p.conn.Close()
	next(t, "end", r.lost)
}

// TestDialCommittedGoesOn: once a Weft peer may have answered, the last caller's
// leaving does not take the link away from it.
func TestDialCommittedGoesOn(t *testing.T) {
	g := newGate(t, "introduced")
	c, r := openProbed(t, Config{}, g.at)
	h := newHost(t)
	ctx, cancel := context.WithCancel(t.Context())
	wait := dialAsync(ctx, c, h.contact(77).WithMark())
	next(t, "stage", g.reached)
	cancel()
	if d := next(t, "Dial", wait); !errors.Is(d.err, context.Canceled) {
		t.Errorf("%+v", d)
	}
	close(g.open)
	again := dialAsync(t.Context(), c, h.contact(77).WithMark())
	p, _, _ := h.accept()
	p.send(hello(77, true).Append(nil))
	if d := next(t, "second Dial", again); d.err != nil {
		t.Error(d.err)
	}
	_ = p.conn.Close()
	next(t, "end", r.lost)
}

// redialled links an endpoint to a raw peer and has the peer connect in turn.
func redialled(t *testing.T, c *CM) (ours, theirs *raw, link Link) {
	t.Helper()
	h := newHost(t)
	wait := dialAsync(t.Context(), c, h.contact(77).WithMark())
	ours, _, _ = h.accept()
	ours.send(hello(77, true).Append(nil))
	link = landed(t, wait, false)
	theirs = connect(t, c)
	theirs.send(hello(77, false).Append(cm.Preamble{Port: h.addr().Port()}.Append(nil)))
	return ours, theirs, link
}

// TestDoubt: what becomes of a connection whose peer we have dialled already.
func TestDoubt(t *testing.T) {
	for name, tt := range map[string]struct {
		then   func(ours, theirs *raw, l Link)
		answer bool
		links  int
	}{
		"given up by the peer": {func(_, theirs *raw, _ Link) { _ = theirs.conn.CloseWrite() }, false, 1},
		"talks at once":        {func(_, theirs *raw, _ Link) { theirs.send([]byte{1}) }, false, 1},
		"the link ends":        {func(ours, _ *raw, _ Link) { _ = ours.conn.Close() }, true, 2},
		"the link is dead":     {func(*raw, *raw, Link) {}, true, 2},
	} {
		t.Run(name, func(t *testing.T) {
			g := newGate(t, "doubted")
			c, r := openProbed(t, Config{}, g.at)
			ours, theirs, l := redialled(t, c)
			next(t, "stage", g.reached)
			close(g.open)
			tt.then(ours, theirs, l)
			h, err := theirs.r.Handshake()
			if (err == nil) != tt.answer || tt.answer && h.ID != c.id {
				t.Errorf("answer %+v, %v", h, err)
			}
			_, _ = ours.conn.Close(), theirs.conn.Close()
			for range tt.links {
				next(t, "end", r.lost)
			}
			nothingIn(t, "link", r.lost)
		})
	}
}

// TestDoubtClose: closing does not wait for the doubt to end.
func TestDoubtClose(t *testing.T) {
	g := newGate(t, "doubted")
	c, _ := openProbed(t, Config{}, g.at)
	_, theirs, l := redialled(t, c)
	next(t, "stage", g.reached)
	close(g.open)
	l.Abort(nil)
	_ = c.Close()
	theirs.ended()
	nothingLeft(t, c)
}

// TestManyCrossings: several processes all dial each other.
func TestManyCrossings(t *testing.T) {
	const n = 6
	d := &delays{rnd: rand.New(rand.NewPCG(1, 2)), most: time.Millisecond}
	ends := make([]*CM, n)
	logs := make([]*recorder, n)
	for i := range ends {
		ends[i], logs[i] = openProbed(t, Config{}, d.at)
	}
	var all sync.WaitGroup
	for i := range ends {
		for j := range ends {
			all.Go(func() {
				if _, err := ends[i].Dial(context.Background(), ends[j].Contact()); err != nil {
					t.Error(fmt.Errorf("%d to %d: %w", i, j, err))
				}
			})
		}
	}
	all.Wait()
	for _, e := range ends {
		settled(t, e)
	}
	for _, e := range ends {
		_ = e.Close()
	}
	for i, r := range logs {
		if got := len(r.lost); got != n-1+2 { // the dial to itself has two ends here
			t.Errorf("endpoint %d had %d links", i, got)
		}
	}
}
