package carrier

import (
	"bytes"
	"errors"
	"runtime"
	"sync"
	"testing"

	"github.com/weft-fabric/weft/internal/shmem"
	"github.com/weft-fabric/weft/internal/sys"
	"github.com/weft-fabric/weft/internal/testutil"
	"github.com/weft-fabric/weft/internal/wire/cm"
)

// polled is a Handler that keeps the numbers of what came.
type polled struct {
	mu   sync.Mutex
	got  []int
	lost error
	ends chan struct{}
	on   func(Link)
}

func (p *polled) Message(l Link, in Inbound) {
	p.mu.Lock()
	p.got = append(p.got, number(in.Data))
	p.mu.Unlock()
	if p.on != nil {
		p.on(l)
	}
}

func (p *polled) Lost(_ Link, err error) {
	p.lost = err
	close(p.ends)
}

func (p *polled) count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.got)
}

// pollable returns a link to a peer of bytes that knows format F.
func pollable(t *testing.T, h *polled, config Config) (*raw, *link) {
	t.Helper()
	if !sys.CanReadNow {
		t.Skip("this system has no read that does not wait (sys.ReadNow)")
	}
	h.ends = make(chan struct{})
	config.Handler = h
	a, _ := open(t, config)
	p, l := met(t, a)
	p.push(testFormat(t, "F"))
	return p, l
}

// TestPoll: while somebody polls, each message comes once and in order, whoever
// reads it, small or so large that only the reading goroutine takes it.
func TestPoll(t *testing.T) {
	h := &polled{}
	p, l := pollable(t, h, Config{})
	f := testFormat(t, "F")
	const n = 3000
	go func() {
		var b []byte
		for i := range n {
			size := i % 300
			if i%100 == 0 {
				size = 50 << 10
			}
			b = cm.Data{Record: bytesOf(record(f, i, size))}.Append(b)
			if i%7 != 0 {
				continue
			}
			half := len(b) / 2 // cut somewhere
			p.send(b[:half])
			p.send(b[half:])
			b = b[:0]
		}
		p.send(b)
	}()
	byPoll := 0
	testutil.Eventually(t, "all has come", func() bool {
		for l.Poll() {
			byPoll++
		}
		return h.count() == n
	})
	for i, got := range h.got {
		if got != i {
			t.Fatalf("number %d at place %d", got, i)
		}
	}
	t.Logf("%d polls found something", byPoll)
}

// TestPollTakesIt: who polls gets a message sooner than the reading goroutine, which
// has to be woken, at least now and then.
func TestPollTakesIt(t *testing.T) {
	h := &polled{}
	p, l := pollable(t, h, Config{})
	f := testFormat(t, "F")
	testutil.Eventually(t, "Poll finds a message before the reading goroutine does", func() bool {
		was := h.count()
		p.send(cm.Data{Record: bytesOf(record(f, was, 10))}.Append(nil))
		mine := false
		for h.count() == was {
			mine = l.Poll()
		}
		return mine
	})
}

// TestPollHasNothing: no bytes, half a unit, somebody else who reads, too much in
// the queue: Poll takes nothing and does not wait.
func TestPollHasNothing(t *testing.T) {
	h := &polled{}
	p, l := pollable(t, h, Config{MaxQueued: 1})
	if l.Poll() && h.count() > 0 {
		t.Error("a message of nobody")
	}
	unit := cm.Data{Record: bytesOf(record(testFormat(t, "F"), 0, 100))}.Append(nil)
	p.send(unit[:50])
	testutil.Eventually(t, "half a unit is read", func() bool {
		l.Poll()
		l.read.turn.Lock()
		defer l.read.turn.Unlock()
		return l.reader.Missing() == len(unit)-50
	})
	if h.count() != 0 {
		t.Error("half a message was delivered")
	}
	l.read.turn.Lock()
	p.send(unit[50:])
	if l.Poll() {
		t.Error("two read at the same time")
	}
	l.read.turn.Unlock()
	testutil.Eventually(t, "the other half has come", func() bool { return h.count() == 1 })

	l.mu.Lock()
	l.queued += 2
	l.mu.Unlock()
	if l.Poll() {
		t.Error("reading is not held back")
	}
	l.mu.Lock()
	l.queued -= 2
	l.room.Broadcast()
	l.mu.Unlock()
}

// TestPollMeetsTheEnd: a Poll that finds the end of the connection, or nonsense,
// takes the link down, with the same error as the reading goroutine would; so does a
// message whose taker aborts the link.
func TestPollMeetsTheEnd(t *testing.T) {
	boom := errors.New("boom")
	for name, c := range map[string]struct {
		end  func(*raw)
		on   func(Link)
		want error
	}{
		"closed":   {end: func(p *raw) { _ = p.conn.Close() }, want: ErrPeerClosed},
		"nonsense": {end: func(p *raw) { p.send([]byte("GET / HTTP/1.1")) }, want: cm.ErrMagic},
		"aborted": {
			end:  func(p *raw) { p.send(cm.Data{Record: bytesOf(record(testFormat(t, "F"), 0, 1))}.Append(nil)) },
			on:   func(l Link) { l.Abort(boom) },
			want: boom,
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := &polled{on: c.on}
			p, l := pollable(t, h, Config{})
			c.end(p)
			for over := false; !over; {
				l.Poll()
				select {
				case <-h.ends:
					over = true
				default:
				}
			}
			if !errors.Is(h.lost, c.want) {
				t.Errorf("lost: %v, want %v", h.lost, c.want)
			}
			if l.Poll() {
				t.Error("something came over a link that is down")
			}
		})
	}
}

// TestLasting sends large parts that are lent, among others that are not, to a peer
// that is slow; where lending does not work, they are copied.
func TestLasting(t *testing.T) {
	for name, failed := range map[string]bool{"lent": false, "copied": true} {
		t.Run(name, func(t *testing.T) {
			a, _ := open(t, Config{})
			p, l := met(t, a)
			greeting := p.r.Offset()
			l.write.lending.failed = failed
			f := testFormat(t, "F")
			var all []Record
			done := make(chan error, 10)
			for n, size := range []int{10, minLend, 3<<20 + 17, minLend - 1, 0, 5 << 20} {
				r := record(f, n, 0)
				body := shmem.MakeHuge(size)
				for i := range body {
					body[i] = byte(i*7 ^ i>>9 ^ n)
				}
				cut := size / 3
				r.Parts[0] = record(f, n, size).Parts[0]
				r.Parts = [][]byte{r.Parts[0], body[:cut], body[cut:]}
				r.Lasting = true
				r.Done = func(err error) { done <- err }
				all = append(all, r)
			}
			if err := l.SendAll(all); err != nil {
				t.Fatal(err)
			}
			p.unit() // the push
			for n, r := range all {
				if u := p.unit().(cm.Data); !bytes.Equal(u.Record, bytesOf(r)) {
					t.Fatalf("record %d is damaged", n)
				}
			}
			for range all {
				if err := next(t, "Done", done); err != nil {
					t.Error(err)
				}
			}
			if got := l.write.lending.lender != nil; got != (sys.CanLend && !failed) {
				t.Errorf("lent: %v", got)
			}
			if got, want := l.Info().BytesOut, uint64(p.r.Offset()-greeting); got != want {
				t.Errorf("%d bytes out, %d came", got, want)
			}
		})
	}
}

// TestLastingIsCutOff: a link that goes down while it lends is done with its records,
// and keeps no descriptor.
func TestLastingIsCutOff(t *testing.T) {
	a, _ := open(t, Config{})
	p, l := met(t, a)
	r := record(testFormat(t, "F"), 0, 64<<20)
	r.Lasting = true
	done := make(chan error, 1)
	r.Done = func(err error) { done <- err }
	if err := l.Send(r); err != nil {
		t.Fatal(err)
	}
	p.unit() // the push
	l.Abort(nil)
	if err := next(t, "Done", done); !errors.Is(err, ErrAborted) {
		t.Error(err)
	}
	<-l.Done()
	if l.write.lending.lender != nil {
		t.Error("the lender is open")
	}
}

// TestNoMessageAfterLost takes a link down in a Message of Poll: Lost waits.
func TestNoMessageAfterLost(t *testing.T) {
	f := testFormat(t, "F")
	testutil.Eventually(t, "Poll finds the message before the reading goroutine does", func() bool {
		h := &polled{}
		h.on = func(l Link) {
			l.Abort(nil)
			<-l.(*link).written // the writing goroutine is gone, and the reading one
			for range 10_000 {  // has time to say Lost
				runtime.Gosched()
			}
			nothingIn(t, "Lost", h.ends)
		}
		p, l := pollable(t, h, Config{})
		testutil.Eventually(t, "the push is read", func() bool { return l.Info().FormatsKnown == 1 })
		p.send(cm.Data{Record: bytesOf(record(f, 0, 10))}.Append(nil))
		mine := false
		for h.count() == 0 {
			mine = l.Poll()
		}
		<-h.ends
		return mine
	})
}

// TestPollLeavesNothing: what Poll has read it delivers, also if too much comes to be
// queued meanwhile: the kernel does not wake anybody for it again.
func TestPollLeavesNothing(t *testing.T) {
	f := testFormat(t, "F")
	var b []byte
	const n = 50
	for i := range n {
		b = cm.Data{Record: bytesOf(record(f, i, 10))}.Append(b)
	}
	testutil.Eventually(t, "Poll finds the messages before the reading goroutine does", func() bool {
		h := &polled{on: func(l Link) { _ = l.Send(record(f, 0, 8<<20)) }} // which the peer does not read
		p, l := pollable(t, h, Config{MaxQueued: 1})
		testutil.Eventually(t, "the push is read", func() bool { return l.Info().FormatsKnown == 1 })
		p.send(b)
		mine := false
		for h.count() == 0 {
			mine = l.Poll()
		}
		if mine && h.count() != n {
			t.Errorf("Poll delivered %d of %d messages", h.count(), n)
		}
		l.Abort(nil)
		<-h.ends
		return mine
	})
}

// TestPollHeldBack: units that came whole before the end of the connection are
// delivered, also if Poll finds that end while reading was held back.
func TestPollHeldBack(t *testing.T) {
	h := &polled{}
	p, l := pollable(t, h, Config{MaxQueued: 1})
	testutil.Eventually(t, "the push is read", func() bool { return l.Info().FormatsKnown == 1 })
	hold := func(n int) {
		l.mu.Lock()
		l.queued += n
		l.mu.Unlock()
	}
	l.read.turn.Lock()
	hold(2)
	var b []byte
	for i := range 3 {
		b = cm.Data{Record: bytesOf(record(testFormat(t, "F"), i, 10))}.Append(b)
	}
	p.send(b)
	_ = p.conn.Close()
	raw := l.reader.source.raw
	testutil.Eventually(t, "all is in the read buffer, and the end is seen", func() bool {
		return raw.Control(l.read.pollFn) == nil && errors.Is(readError(l.read.pollErr), ErrPeerClosed)
	})
	l.read.turn.Unlock()
	hold(-2)
	for over := false; !over; {
		l.Poll()
		l.mu.Lock()
		l.room.Broadcast()
		l.mu.Unlock()
		select {
		case <-h.ends:
			over = true
		default:
		}
	}
	if h.count() != 3 || !errors.Is(h.lost, ErrPeerClosed) {
		t.Errorf("%d of 3 messages came, %v", h.count(), h.lost)
	}
}

// TestLendingFailsMidway: what is written when lending fails is not written again.
func TestLendingFailsMidway(t *testing.T) {
	if !sys.CanLend {
		t.Skip("memory cannot be lent to the kernel of this system (sys.CanLend)")
	}
	a, _ := open(t, Config{})
	p, l := met(t, a)
	body := make([]byte, 24<<20)
	for i := range body {
		body[i] = byte(i*7 ^ i>>9)
	}
	if !l.startLending() {
		t.Fatal("no lender")
	}
	lender, tries := l.write.lending.lender, 0
	l.write.lending.tryFn = func(fd uintptr) bool {
		if tries++; tries == 2 {
			lender.Close() // the socket was full; now there is no pipe any more
		}
		return l.tryLend(fd)
	}
	r := record(testFormat(t, "F"), 0, len(body))
	r.Parts[1], r.Lasting = body, true
	done := make(chan error, 1)
	r.Done = func(err error) { done <- err }
	if err := l.Send(r); err != nil {
		t.Fatal(err)
	}
	p.unit() // the push
	if u := p.unit().(cm.Data); !bytes.Equal(u.Record, bytesOf(r)) {
		t.Error("the record is damaged")
	}
	if err := next(t, "Done", done); err != nil || tries < 2 {
		t.Errorf("%v after %d tries", err, tries)
	}
	if w := &l.write.lending; w.lender != nil || !w.failed {
		t.Error("lending goes on")
	}
}
