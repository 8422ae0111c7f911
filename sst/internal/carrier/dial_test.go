package carrier

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/netip"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/weft-fabric/weft/internal/testutil"
	"github.com/weft-fabric/weft/internal/wire/cm"
)

func TestDialReuses(t *testing.T) {
	a, ra := open(t, Config{})
	b, rb := open(t, Config{})
	first := dial(t, a, b.Contact())
	if again := dial(t, a, b.Contact()); again != first {
		t.Error("a second link to the same peer")
	}
	_ = first.Send(record(testFormat(t, "F"), 1, 1))
	accepted := next(t, "record", rb.got).link
	if back := dial(t, b, a.Contact()); back != accepted {
		t.Error("the accepted link was not used for the way back")
	}
	// The ID counts, whatever address the contact names.
	moved, err := b.Contact().WithAddr(netip.MustParseAddr("192.0.2.1"))
	if err != nil {
		t.Fatal(err)
	}
	if again := dial(t, a, moved); again != first {
		t.Error("not found by its ID")
	}
	_ = first.Close()
	next(t, "near end", ra.lost)
	next(t, "far end", rb.lost)
	if anew := dial(t, a, b.Contact()); anew == first {
		t.Error("a closed link was handed out")
	}
}

// TestDialDoesNotReuseAClosingLink: it would refuse every record.
func TestDialDoesNotReuseAClosingLink(t *testing.T) {
	a, ra := open(t, Config{CloseTimeout: time.Hour})
	h := newHost(t)
	wait := dialAsync(t.Context(), a, h.contact(77))
	p, _, _ := h.accept()
	p.send(hello(77, true).Append(nil))
	first := next(t, "link", wait)
	_ = first.link.Close()
	wait = dialAsync(t.Context(), a, h.contact(77))
	q, _, _ := h.accept()
	q.send(hello(77, true).Append(nil))
	if second := next(t, "second link", wait); second.err != nil || second.link == first.link {
		t.Errorf("%+v", second)
	}
	_ = p.conn.Close()
	next(t, "end of the first", ra.lost)
	_ = q.conn.Close()
	next(t, "end of the second", ra.lost)
}

func TestDialReuses210ByAddress(t *testing.T) {
	c, r := open(t, Config{})
	f := testFormat(t, "F")
	// An old reader that dials us and listens on port 4000: its contact has no ID.
	p := join(t, c, cm.ID210, 4000)
	p.push(f)
	p.send(cm.Data{Record: bytesOf(record(f, 1, 1))}.Append(nil))
	accepted := next(t, "record", r.got).link
	contact, err := cm.NewContact(netip.AddrPortFrom(loopback, 4000), 0)
	if err != nil {
		t.Fatal(err)
	}
	if l := dial(t, c, contact); l != accepted {
		t.Error("the accepted link of a 2.10 peer was not used")
	}
	// An old writer that we dial.
	h := newHost(t)
	wait := dialAsync(t.Context(), c, h.contact(0))
	q, _, _ := h.accept()
	q.send(hello(cm.ID210, true).Append(nil))
	d := next(t, "link", wait)
	if d.err != nil || d.link.Info().Release != Release210 {
		t.Fatalf("%+v", d)
	}
	if l := dial(t, c, h.contact(0)); l != d.link {
		t.Error("the dialled link of a 2.10 peer was not used")
	}
	_ = p.conn.Close()
	_ = q.conn.Close()
	next(t, "end", r.lost)
	next(t, "end", r.lost)
	if b := booksOf(c); b != (books{}) {
		t.Errorf("left behind: %+v", b)
	}
}

// waiters waits until n callers share the only attempt.
func waiters(t *testing.T, c *CM, n int) {
	t.Helper()
	testutil.Eventually(t, fmt.Sprintf("%d callers share an attempt", n), func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		for _, f := range c.flights {
			if f.waiters == n {
				return true
			}
		}
		return false
	})
}

func TestDialSingleFlight(t *testing.T) {
	c, _ := open(t, Config{})
	h := newHost(t)
	const n = 20
	var waits []<-chan dialled
	for range n {
		waits = append(waits, dialAsync(t.Context(), c, h.contact(77)))
	}
	p, _, _ := h.accept()
	waiters(t, c, n)
	p.send(hello(77, true).Append(nil))
	first := next(t, "link", waits[0])
	for _, w := range waits[1:] {
		if d := next(t, "link", w); d.err != nil || d.link != first.link {
			t.Errorf("%+v, first %+v", d, first)
		}
	}
	if b := booksOf(c); b.links != 1 || b.flights != 0 {
		t.Errorf("%+v", b)
	}
	_ = p.conn.Close()
}

func TestDialOneLeavesOthersStay(t *testing.T) {
	c, _ := open(t, Config{})
	h := newHost(t)
	ctx, cancel := context.WithCancel(t.Context())
	leaver := dialAsync(ctx, c, h.contact(77))
	stayer := dialAsync(t.Context(), c, h.contact(77))
	p, _, _ := h.accept()
	waiters(t, c, 2)
	cancel()
	if d := next(t, "the leaver", leaver); !errors.Is(d.err, context.Canceled) || d.link != nil {
		t.Errorf("%+v", d)
	}
	p.send(hello(77, true).Append(nil))
	if d := next(t, "the stayer", stayer); d.err != nil {
		t.Error(d.err)
	}
	_ = p.conn.Close()
}

func TestDialAllLeave(t *testing.T) {
	c, r := open(t, Config{})
	h := newHost(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("the user went home")
	wait := dialAsync(ctx, c, h.contact(77))
	p, _, _ := h.accept()
	cancel(why)
	d := next(t, "Dial", wait)
	if le, ok := errors.AsType[*LinkError](d.err); !ok || !errors.Is(d.err, why) || le.Peer != h.addr().String() {
		t.Errorf("%+v", d)
	}
	p.ended() // nobody waits for it: it is given up
	// And the next caller gets a fresh attempt.
	wait = dialAsync(t.Context(), c, h.contact(77))
	q, _, _ := h.accept()
	q.send(hello(77, true).Append(nil))
	if d := next(t, "second Dial", wait); d.err != nil {
		t.Error(d.err)
	}
	_ = q.conn.Close()
	next(t, "end", r.lost)
	if _, err := c.Dial(ctx, h.contact(77)); !errors.Is(err, why) {
		t.Errorf("a context that is over: %v", err)
	}
}

func TestDialWrongPeer(t *testing.T) {
	c, _ := open(t, Config{})
	for name, tt := range map[string]struct{ contact, answer uint32 }{
		"another process":           {77, 78},
		"an old one now":            {77, cm.ID210},
		"a new one instead of 2.10": {0, 78},
	} {
		h := newHost(t)
		wait := dialAsync(t.Context(), c, h.contact(tt.contact))
		p, _, _ := h.accept()
		p.send(hello(tt.answer, true).Append(nil))
		if d := next(t, "Dial", wait); !errors.Is(d.err, ErrWrongPeer) || d.link != nil {
			t.Errorf("%s: %+v", name, d)
		}
		if _, err := p.r.Next(); err != io.EOF { // nothing was said to it
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestDialFailures(t *testing.T) {
	c, _ := open(t, Config{DialTimeout: 100 * time.Millisecond})
	h := newHost(t)
	gone := h.contact(77)
	_ = h.ln.Close()
	if _, err := c.Dial(t.Context(), gone); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("nobody listens: %v", err)
	}
	h = newHost(t)
	wait := dialAsync(t.Context(), c, h.contact(77))
	silent, _, _ := h.accept()
	if d := next(t, "Dial", wait); !errors.Is(d.err, context.DeadlineExceeded) {
		t.Errorf("no answer: %v", d.err)
	}
	silent.ended()
	for name, answer := range map[string]string{
		"HTTP":           "HTTP/1.1 400 Bad Request\r\n\r\n",
		"half an answer": string(hello(77, true).Append(nil)[:13]),
		"data first":     string(cm.Data{Record: []byte("x")}.Append(nil)),
	} {
		wait := dialAsync(t.Context(), c, h.contact(77))
		p, _, _ := h.accept()
		p.send([]byte(answer))
		_ = p.conn.CloseWrite()
		if d := next(t, "Dial", wait); d.err == nil {
			t.Errorf("%s was taken as an answer", name)
		}
	}
	for name, contact := range map[string]cm.Contact{
		"empty":     nil,
		"enet":      h.contact(77).With(cm.Attr{Atom: cm.AtomTransport, Kind: cm.KindString, Text: "enet"}),
		"host only": {{Atom: cm.AtomIPHost, Kind: cm.KindString, Text: "node7"}},
	} {
		if l, err := c.Dial(t.Context(), contact); !errors.Is(err, cm.ErrNoAddress) || l != nil {
			t.Errorf("%s: %v, %v", name, l, err)
		}
	}
	if b := booksOf(c); b != (books{}) {
		t.Errorf("left behind: %+v", b)
	}
}

// TestDialAnswersAnOddPeer: a passive side that does not say that it has our
// handshake gets it once more.
func TestDialAnswersAnOddPeer(t *testing.T) {
	c, _ := open(t, Config{})
	h := newHost(t)
	wait := dialAsync(t.Context(), c, h.contact(77))
	p, _, _ := h.accept()
	p.send(hello(77, false).Append(nil))
	if d := next(t, "Dial", wait); d.err != nil {
		t.Error(d.err)
	}
	if u := p.unit(); u != hello(c.id, true) {
		t.Errorf("%+v", u)
	}
	_ = p.conn.Close()
}

func TestCloseEndsDial(t *testing.T) {
	c, _ := open(t, Config{})
	h := newHost(t)
	wait := dialAsync(t.Context(), c, h.contact(77))
	h.accept()
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if d := next(t, "Dial", wait); !errors.Is(d.err, ErrClosed) {
		t.Errorf("%+v", d)
	}
}

// TestDialSelf: writer and reader of one process share an endpoint.
func TestDialSelf(t *testing.T) {
	c, r := open(t, Config{})
	f := testFormat(t, "F")
	l := dial(t, c, c.Contact())
	_ = l.Send(record(f, 1, 1))
	far := next(t, "record", r.got)
	if far.link == l {
		t.Fatal("both ends are one")
	}
	_ = far.link.Send(record(f, 2, 1))
	if back := next(t, "answer", r.got); back.link != l || number(back.data) != 2 {
		t.Error("the answer came the wrong way")
	}
	if again := dial(t, c, c.Contact()); again != l {
		t.Error("the second Dial took another end")
	}
	_ = l.Close()
	next(t, "end", r.lost)
	next(t, "end", r.lost)
}

func TestManyLinks(t *testing.T) {
	hub, rh := open(t, Config{})
	f := testFormat(t, "F")
	const peers, each = 60, 20
	type side struct {
		l Link
		r *recorder
	}
	var sides []side
	for range peers {
		c, r := open(t, Config{})
		l := dial(t, c, hub.Contact())
		sides = append(sides, side{l, r})
		go func() {
			for i := range each {
				_ = l.Send(record(f, i, 100*i))
			}
		}()
	}
	seen := map[Link]int{}
	for range peers * each {
		e := next(t, "record", rh.got)
		if number(e.data) != seen[e.link] {
			t.Fatalf("record %d, expected %d", number(e.data), seen[e.link])
		}
		seen[e.link]++
		_ = e.link.Send(record(f, number(e.data), 10))
	}
	for _, s := range sides {
		for i := range each {
			if got := number(next(t, "answer", s.r.got).data); got != i {
				t.Fatalf("answer %d, expected %d", got, i)
			}
		}
	}
	if err := hub.Close(); err != nil {
		t.Fatal(err)
	}
	if len(rh.lost) != peers || len(seen) != peers {
		t.Errorf("%d links, %d lost", len(seen), len(rh.lost))
	}
	for range peers {
		if e := <-rh.lost; e.err != nil {
			t.Error(e.err)
		}
	}
}

func TestLongDialExplainsItself(t *testing.T) {
	var log lines
	c, _ := open(t, Config{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	c.explain = time.Nanosecond
	h := newHost(t)
	wait := dialAsync(t.Context(), c, h.contact(77))
	p, _, _ := h.accept()
	testutil.Eventually(t, "the attempt explains itself", func() bool { return log.String() != "" })
	if s := log.String(); !strings.Contains(s, h.addr().String()) || !strings.Contains(s, "limit=10s") {
		t.Errorf("the log says: %s", s)
	}
	p.send(hello(77, true).Append(nil))
	if d := next(t, "link", wait); d.err != nil {
		t.Error(d.err)
	}
	_ = p.conn.Close()
}

// TestAcceptSurvivesErrors: an error of accept is not the end of accepting.
func TestAcceptSurvivesErrors(t *testing.T) {
	var log lines
	c, r := open(t, Config{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	if err := c.listener.SetDeadline(time.Unix(1, 0)); err != nil {
		t.Fatal(err)
	}
	testutil.Eventually(t, "it has tried twice", func() bool { return strings.Count(log.String(), "cannot accept") >= 2 })
	if err := c.listener.SetDeadline(time.Time{}); err != nil {
		t.Fatal(err)
	}
	works(t, c, r)
	// And closing does not wait for the next try.
	if err := c.listener.SetDeadline(time.Unix(1, 0)); err != nil {
		t.Fatal(err)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestDialLateCancel has the caller of Dial go in the moment in which the link is
// made: the link is returned, for nobody else would close it.
func TestDialLateCancel(t *testing.T) {
	a, _ := open(t, Config{})
	b, _ := open(t, Config{})
	l := dial(t, a, b.Contact()).(*link)
	f := &flight{waiters: 1, link: l, cancel: func() { t.Error("cancelled") }}
	if got := a.leave(f); got != l {
		t.Errorf("got %v, want the link", got)
	}
}
