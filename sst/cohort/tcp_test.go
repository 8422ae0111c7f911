package cohort

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weft-fabric/weft/internal/testutil"
)

// forming is a rank 0 that waits.
type forming struct {
	t      *testing.T
	addr   string
	log    *testutil.Log
	result chan error
	cohort Cohort
}

// startRoot starts rank 0 of n, which waits for the others.
func startRoot(ctx context.Context, t *testing.T, n int, change func(*TCPConfig)) *forming {
	t.Helper()
	l := listen(t)
	log, logger := testutil.NewLog(slog.LevelDebug)
	f := &forming{t: t, addr: l.Addr().String(), log: log, result: make(chan error, 1)}
	c := TCPConfig{Size: n, Token: testToken, Listener: l, Logger: logger}
	if change != nil {
		change(&c)
	}
	go func() {
		var err error
		f.cohort, err = TCP(ctx, c)
		f.result <- err
	}()
	return f
}

// wait waits for the end of the forming.
func (f *forming) wait() error {
	f.t.Helper()
	select {
	case err := <-f.result:
		if f.cohort != nil {
			closeAll(f.t, []Cohort{f.cohort})
		}
		return err
	case <-time.After(patience):
		f.t.Fatal("rank 0 hangs")
		panic("unreachable")
	}
}

// rank connects a rank to it, as a right one would unless changed.
func (f *forming) rank(rank, size int, change func(*TCPConfig)) error {
	c := TCPConfig{Root: f.addr, Rank: rank, Size: size, Token: testToken}
	if change != nil {
		change(&c)
	}
	r, err := TCP(bounded(f.t), c)
	if r != nil {
		closeAll(f.t, []Cohort{r})
	}
	return err
}

// finish lets the right ranks of n come, and wants the cohort to form.
func (f *forming) finish(n int) {
	f.t.Helper()
	var wg sync.WaitGroup
	for i := 1; i < n; i++ {
		wg.Go(func() {
			if err := f.rank(i, n, nil); err != nil {
				f.t.Errorf("rank %d: %v", i, err)
			}
		})
	}
	wg.Wait()
	if err := f.wait(); err != nil {
		f.t.Errorf("rank 0: %v", err)
	}
}

// Whoever does not belong there is refused, with the reason on both sides, and
// the right ones form the cohort all the same.
func TestRefused(t *testing.T) {
	for _, c := range []struct {
		name       string
		rank, size int
		token      string
		err, log   string
	}{
		{"token", 1, 3, "another", "rank 0 has another token than rank 1", "another token than that of rank 0"},
		{"size", 1, 4, testToken, "rank 1 thinks that there are 4 ranks; rank 0 knows of 3", "rank 1 thinks that there are 4"},
		{"rank beyond", 3, 4, testToken, "rank 3 thinks that there are 4 ranks", "rank 3 thinks"},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := startRoot(bounded(t), t, 3, nil)
			err := f.rank(c.rank, c.size, func(x *TCPConfig) { x.Token = c.token })
			wants(t, "the wrong rank", err, ErrRefused)
			if err != nil && !strings.Contains(err.Error(), c.err) {
				t.Errorf("%v does not say %q", err, c.err)
			}
			f.log.Expect(t, "refused a connection", c.log)
			f.finish(3)
		})
	}
}

// A second process with the same number is refused; the first stays.
func TestRankTwice(t *testing.T) {
	f := startRoot(bounded(t), t, 3, nil)
	log, logger := testutil.NewLog(slog.LevelDebug)
	first := make(chan error, 1)
	go func() {
		first <- f.rank(1, 3, func(c *TCPConfig) { c.Logger = logger })
	}()
	log.Expect(t, "level=DEBUG", "connected to rank 0")
	err := f.rank(1, 3, nil)
	wants(t, "the second rank 1", err, ErrRefused)
	f.log.Expect(t, "rank 1 is there already")
	if err := f.rank(2, 3, nil); err != nil {
		t.Error(err)
	}
	if err := errors.Join(<-first, f.wait()); err != nil {
		t.Error(err)
	}
}

// greeted dials rank 0 and reads its greeting.
func greeted(t *testing.T, addr string) (net.Conn, *exchange) {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	g, err := hear(conn)
	if err != nil {
		t.Fatal(err)
	}
	return conn, &exchange{greeting: g}
}

// Strangers: silent, talking, leaving, repeating what a rank has said. None of
// them joins, or keeps the right ones out.
func TestStrangers(t *testing.T) {
	replay := recordClaim(t)
	for _, c := range []struct {
		name string
		do   func(t *testing.T, addr string) net.Conn
	}{
		{"silent", func(t *testing.T, addr string) net.Conn { return dialRaw(t, addr, "") }},
		{"HTTP", func(t *testing.T, addr string) net.Conn { return dialRaw(t, addr, "GET / HTTP/1.1\r\n\r\n") }},
		{"zeros", func(t *testing.T, addr string) net.Conn { return dialRaw(t, addr, string(make([]byte, 1<<16))) }},
		{"half a claim", func(t *testing.T, addr string) net.Conn { return dialRaw(t, addr, magic+"xxxx") }},
		{"a claim of nothing", func(t *testing.T, addr string) net.Conn {
			return dialRaw(t, addr, magic+string(make([]byte, claimLen-len(magic))))
		}},
		{"replay", func(t *testing.T, addr string) net.Conn { return dialRaw(t, addr, string(replay)) }},
		{"mirror", func(t *testing.T, addr string) net.Conn {
			conn, ex := greeted(t, addr)
			conn.Write(append(ex.append(nil), make([]byte, claimLen-greetingLen)...))
			return conn
		}},
		{"gone at once", func(t *testing.T, addr string) net.Conn {
			conn := dialRaw(t, addr, "")
			conn.Close()
			return conn
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := startRoot(bounded(t), t, 3, nil)
			for range 5 {
				conn := c.do(t, f.addr)
				defer conn.Close()
			}
			within(t, 5*time.Second, "forming", func() { f.finish(3) })
		})
	}
}

// Who looks in and hangs up, one way or another, is not worth a line: a rank that
// finds two ways to rank 0 does so at each start.
func TestLookingInIsNoNews(t *testing.T) {
	f := startRoot(bounded(t), t, 2, nil)
	for range 20 {
		conn := dialRaw(t, f.addr, "")
		conn.(*net.TCPConn).SetLinger(0) // a reset
		conn.Close()
		dialRaw(t, f.addr, "").Close()
	}
	within(t, 5*time.Second, "forming", func() { f.finish(2) })
	if text := f.log.String(); strings.Contains(text, "refused") {
		t.Error(text)
	}
}

// A rank whose host answers no more is lost, with that as the reason.
func TestVanishedHost(t *testing.T) {
	for _, far := range []int{0, 1} {
		ranks := makeTCP(t, 2)
		ends := joinAll(t, ranks, "s")
		near := 1 - far
		c := ranks[near].(*tcpRank)
		c.mu.Lock()
		l := c.links[far]
		c.mu.Unlock()
		l.vanished(errors.New("no answer"))
		if e := ends[near].next(); e.from != far || !errors.Is(e.lost, ErrRankGone) || !strings.Contains(e.lost.Error(), "no answer") {
			t.Errorf("%+v", e)
		}
		ends[far].wantsLost(near)
	}
}

func dialRaw(t *testing.T, addr, say string) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.WriteString(conn, say)
	return conn
}

// recordClaim returns what a rank of another cohort with the same token says.
func recordClaim(t *testing.T) []byte {
	t.Helper()
	l := listen(t)
	ctx, cancel := context.WithCancel(bounded(t))
	done := make(chan error, 1)
	go func() {
		_, err := TCP(ctx, TCPConfig{Root: l.Addr().String(), Rank: 1, Size: 3, Token: testToken})
		done <- err
	}()
	conn, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	conn.Write((&greeting{id: newCohortID(), nonce: newNonce()}).append(nil))
	b := make([]byte, claimLen)
	if _, err := io.ReadFull(conn, b); err != nil {
		t.Fatal(err)
	}
	cancel()
	wants(t, "a rank that was cancelled", <-done, context.Canceled)
	return b
}

// More strangers than are greeted at a time do not keep the right ones out.
func TestManyStrangers(t *testing.T) {
	f := startRoot(bounded(t), t, 3, nil)
	for range 300 {
		conn := dialRaw(t, f.addr, "")
		defer conn.Close()
	}
	within(t, 5*time.Second, "forming", func() { f.finish(3) })
}

// A stranger that is silent is sent away in time.
func TestSilentStrangerIsSentAway(t *testing.T) {
	f := startRoot(bounded(t), t, 2, func(c *TCPConfig) { c.HandshakeTimeout = 20 * time.Millisecond })
	conn, _ := greeted(t, f.addr)
	defer conn.Close()
	if _, err := conn.Read(make([]byte, 1)); err == nil {
		t.Error("it got an answer")
	}
	f.log.Expect(t, "refused a connection", "timeout")
	f.finish(2)
}

// Who listens where rank 0 should be is not believed.
func TestFalseRoots(t *testing.T) {
	hello := (&greeting{}).append(nil)
	for _, c := range []struct {
		name string
		say  []byte // at once
		then []byte // after the claim
		err  string
	}{
		{"another protocol", []byte("SSH-2.0-OpenSSH_9.2\r\n"), nil, "is not rank 0 of a cohort"},
		{"no proof", hello, (&verdict{}).append(nil), "cannot prove"},
		{"unproven refusal", hello, (&verdict{code: verdictSize, text: "go away"}).append(nil), "cannot prove"},
		{"token", hello, (&verdict{code: verdictToken}).append(nil), "another token"},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := listen(t)
			defer falseRoot(l, c.say, c.then)()
			_, err := TCP(bounded(t), TCPConfig{Root: l.Addr().String(), Rank: 1, Size: 2, Token: testToken})
			wants(t, "a false rank 0", err, ErrRefused)
			if err != nil && !strings.Contains(err.Error(), c.err) {
				t.Errorf("%v does not say %q", err, c.err)
			}
		})
	}
}

// falseRoot answers everybody at a listener; the function it returns ends it.
func falseRoot(l net.Listener, say, then []byte) func() {
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			wg.Go(func() {
				defer conn.Close()
				conn.Write(say)
				if then == nil {
					return
				}
				if _, err := io.ReadFull(conn, make([]byte, claimLen)); err == nil {
					conn.Write(then)
				}
			})
		}
	})
	return func() {
		l.Close()
		wg.Wait()
	}
}

// Who hangs up, as a proxy does whose service is not there yet, is asked again.
func TestRootThatHangsUp(t *testing.T) {
	l := listen(t)
	stop := falseRoot(l, nil, nil)
	ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
	defer cancel()
	_, err := TCP(ctx, TCPConfig{Root: l.Addr().String(), Rank: 1, Size: 2, Token: testToken})
	stop()
	wants(t, "nobody", err, context.DeadlineExceeded)
	if !strings.Contains(err.Error(), l.Addr().String()) || !strings.Contains(err.Error(), "last attempt: ") {
		t.Errorf("%v does not say where and what", err)
	}
}

// A rank may come before rank 0 listens.
func TestRankComesFirst(t *testing.T) {
	l := listen(t)
	addr := l.Addr().String()
	l.Close()
	log, logger := testutil.NewLog(slog.LevelDebug)
	first := make(chan error, 1)
	go func() {
		c, err := TCP(bounded(t), TCPConfig{Root: addr, Rank: 1, Size: 2, Token: testToken, Logger: logger, Tuning: Tuning{explainAfter: 50 * time.Millisecond}})
		if c != nil {
			closeAll(t, []Cohort{c})
		}
		first <- err
	}()
	log.Expect(t, "level=WARN", "waits for rank 0 to answer", addr, "connection refused")
	root, err := TCP(bounded(t), TCPConfig{Root: addr, Size: 2, Token: testToken})
	if err != nil {
		t.Fatal(err)
	}
	closeAll(t, []Cohort{root})
	if err := <-first; err != nil {
		t.Error(err)
	}
}

// Both sides say once what they wait for, and the error at the end says it too.
func TestMissingRank(t *testing.T) {
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	soon := func(c *TCPConfig) { c.explainAfter = 20 * time.Millisecond }
	f := startRoot(ctx, t, 4, soon)
	log, logger := testutil.NewLog(slog.LevelDebug)
	one := make(chan error, 1)
	go func() {
		one <- f.rank(1, 4, func(c *TCPConfig) { c.explainAfter, c.Logger = time.Second, logger }) // connected by then
	}()
	log.Expect(t, "connected to rank 0, which waits for other ranks")
	line := f.log.Expect(t, "level=WARN", "waits for other ranks to connect")
	if !strings.Contains(line, "2, 3 of 4") {
		t.Errorf("rank 0 does not say who is missing: %s", line)
	}
	enough := errors.New("the test has had enough")
	cancel(enough)
	err := f.wait()
	wants(t, "rank 0", err, enough)
	if !strings.Contains(err.Error(), "rank 2, 3 of 4") {
		t.Errorf("the error does not say who is missing: %v", err)
	}
	err = <-one
	wants(t, "rank 1", err, ErrRankGone)
	if !strings.Contains(err.Error(), "gave up") || !strings.Contains(err.Error(), "rank 2, 3 of 4") {
		t.Errorf("rank 1 is not told why: %v", err)
	}
}

// A rank that dies while the cohort forms fails it everywhere, by name.
func TestDeathWhileForming(t *testing.T) {
	f := startRoot(bounded(t), t, 4, nil)
	ctx, cancel := context.WithCancel(context.Background())
	log, logger := testutil.NewLog(slog.LevelDebug)
	two := make(chan error, 1)
	go func() {
		_, err := TCP(ctx, TCPConfig{Root: f.addr, Rank: 2, Size: 4, Token: testToken, Logger: logger})
		two <- err
	}()
	one := make(chan error, 1)
	go func() {
		one <- f.rank(1, 4, func(c *TCPConfig) { c.Logger = logger })
	}()
	for range 2 {
		log.Expect(t, "level=DEBUG", "connected to rank 0")
	}
	cancel()
	wants(t, "rank 2", <-two, context.Canceled)
	for name, err := range map[string]error{"rank 0": f.wait(), "rank 1": <-one} {
		wants(t, name, err, ErrRankGone)
		if err != nil && !strings.Contains(err.Error(), "rank 2") {
			t.Errorf("%s is not told who: %v", name, err)
		}
	}
}

func TestBadConfig(t *testing.T) {
	l := listen(t)
	for name, c := range map[string]TCPConfig{
		"nothing":           {},
		"rank beyond":       {Root: "h:1", Rank: 2, Size: 2, Token: "x"},
		"negative":          {Root: "h:1", Rank: -1, Size: 2, Token: "x"},
		"no token":          {Root: "h:1", Rank: 1, Size: 2},
		"no root":           {Rank: 1, Size: 2, Token: "x"},
		"no root at 0":      {Size: 2, Token: "x"},
		"root without port": {Root: "h", Rank: 1, Size: 2, Token: "x"},
		"the same at 0":     {Root: "h", Size: 2, Token: "x"},
		"listener at 1":     {Root: "h:1", Rank: 1, Size: 2, Token: "x", Listener: l},
		"two listeners":     {Size: 2, Token: "x", Listener: l, ListenAddr: ":0"},
	} {
		_, err := TCP(bounded(t), c)
		wants(t, name, err, ErrConfig)
	}
	if _, err := l.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("the listener is still open: %v", err)
	}
	if _, err := TCP(bounded(t), TCPConfig{Size: 2, Token: "x", ListenAddr: "192.0.2.1:1"}); err == nil {
		t.Error("it listens at another host")
	}
	c, err := TCP(bounded(t), TCPConfig{Size: 1})
	if err != nil || c.Size() != 1 {
		t.Errorf("one rank: %v", err)
	}
}

// pair connects two ranks, of which the second is played by the test.
func pair(t *testing.T, rank int, change func(*TCPConfig)) (Cohort, net.Conn) {
	t.Helper()
	if rank == 0 {
		f := startRoot(bounded(t), t, 2, change)
		conn, ex := greeted(t, f.addr)
		t.Cleanup(func() { conn.Close() })
		ex.token = testToken
		ex.claim = claim{rank: 1, size: 2, nonce: newNonce()}
		ex.claim.mac = ex.claimProof()
		conn.Write(ex.claim.append(nil))
		if v, err := readVerdict(conn); err != nil || v.code != verdictWelcome || !same(v.mac, ex.verdictProof(&v)) {
			t.Fatalf("%+v, %v", v, err)
		}
		if err := f.wait(); err != nil {
			t.Fatal(err)
		}
		return f.cohort, conn
	}
	l := listen(t)
	got := make(chan Cohort, 1)
	go func() {
		c := TCPConfig{Root: l.Addr().String(), Rank: 1, Size: 2, Token: testToken}
		if change != nil {
			change(&c)
		}
		r, err := TCP(bounded(t), c)
		if err != nil {
			t.Error(err)
		}
		got <- r
	}()
	conn, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	ex := &exchange{token: testToken, greeting: greeting{id: newCohortID(), nonce: newNonce()}}
	conn.Write(ex.append(nil))
	b := make([]byte, claimLen)
	if _, err := io.ReadFull(conn, b); err != nil {
		t.Fatal(err)
	}
	if ex.claim, err = parseClaim(b); err != nil || !same(ex.claim.mac, ex.claimProof()) {
		t.Fatalf("a bad claim: %v", err)
	}
	v := verdict{}
	v.mac = ex.verdictProof(&v)
	conn.Write(append(v.append(nil), (&frame{kind: frameStart}).appendHeader(nil)...))
	c := <-got
	if c == nil {
		t.FailNow()
	}
	closeAll(t, []Cohort{c})
	return c, conn
}

func wire(list ...frame) []byte {
	var b []byte
	for _, f := range list {
		b = append(f.appendHeader(b), f.body...)
	}
	return b
}

// What a peer may not say ends it, and says what it was.
func TestHostilePeer(t *testing.T) {
	joinS := frame{kind: frameJoin, id: 1, body: appendJoin(nil, key{"s", 1})}
	joinX := frame{kind: frameJoin, id: 2, body: appendJoin(nil, key{"x", 1})}
	gone := frame{kind: frameGone, id: 1, body: (&goneBody{}).append(nil)}
	for _, c := range []struct {
		name string
		rank int // of ours
		say  []byte
		want error
	}{
		{"message without join", 0, wire(frame{kind: frameMessage, id: 9}), ErrProtocol},
		{"leave without join", 0, wire(frame{kind: frameLeave, id: 9}), ErrProtocol},
		{"message after leave", 0, wire(joinX, frame{kind: frameLeave, id: 2}, frame{kind: frameMessage, id: 2}), ErrProtocol},
		{"joined twice", 0, wire(joinX, joinX), ErrProtocol},
		{"short join", 0, wire(frame{kind: frameJoin, id: 1, body: []byte("x")}), ErrProtocol},
		{"start from below", 0, wire(frame{kind: frameStart}), ErrProtocol},
		{"loss from below", 0, wire(gone), ErrProtocol},
		{"after the last", 0, wire(frame{kind: frameBye}, joinS), ErrProtocol},
		{"answer to nothing", 0, wire(frame{kind: frameFlushed}), ErrProtocol},
		{"garbage", 0, []byte("GET / HTTP/1.1\r\nHost: x\r\n\r\n"), ErrProtocol},
		{"cut off", 0, wire(joinS)[:10], io.ErrUnexpectedEOF},
		{"long message", 0, wire(joinX, frame{kind: frameMessage, id: 2, body: make([]byte, 1001)}), ErrLimit},
		{"too much kept", 0, wire(joinX, frame{kind: frameMessage, id: 2, body: make([]byte, 999)}, frame{kind: frameMessage, id: 2, body: make([]byte, 999)}), ErrLimit},
		{"start twice", 1, wire(frame{kind: frameStart}), ErrProtocol},
		{"loss of rank 0", 1, wire(frame{kind: frameGone, id: 0, body: (&goneBody{}).append(nil)}), ErrProtocol},
		{"loss of ourselves", 1, wire(gone), ErrProtocol},
		{"loss of nobody", 1, wire(frame{kind: frameGone, id: 7, body: (&goneBody{}).append(nil)}), ErrProtocol},
		{"bad loss", 1, wire(frame{kind: frameGone, id: 7, body: []byte("x")}), ErrProtocol},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, conn := pair(t, c.rank, func(x *TCPConfig) { x.MaxMessage, x.MaxKept = 1000, 2000 })
			e := join(t, r, "s")
			conn.Write(c.say)
			if c.want == io.ErrUnexpectedEOF {
				conn.(*net.TCPConn).CloseWrite()
			}
			s := e.next()
			wants(t, "what is told", s.lost, c.want)
		})
	}
}

// Channels that are never joined are bounded in number.
func TestManyChannelsNeverJoined(t *testing.T) {
	for _, leave := range []bool{false, true} {
		r, conn := pair(t, 0, func(x *TCPConfig) { x.MaxKept = 1 << 20 })
		e := join(t, r, "s")
		done := make(chan struct{})
		go func() {
			defer close(done)
			for i := range uint32(2 * maxChannels) {
				b := wire(frame{kind: frameJoin, id: i, body: binary.LittleEndian.AppendUint32([]byte{1, 0, 0, 0}, i)})
				if leave {
					b = append(b, wire(frame{kind: frameLeave, id: i})...)
				}
				if _, err := conn.Write(b); err != nil {
					return
				}
			}
		}()
		wants(t, "what is told", e.next().lost, ErrLimit)
		<-done
		r.Close()
	}
}

// Their names count as well: a rank that joins and leaves what nobody else has
// takes no more memory than the limit says, or a small multiple.
func TestLongNamesNeverJoined(t *testing.T) {
	heap := func() int64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	const limit = 4 << 20
	name := strings.Repeat("x", maxName-8)
	left := func(i uint32) key { return key{n: 1, name: fmt.Sprintf("%08x%s", i, name)} }
	for rank := range 2 {
		r, conn := pair(t, rank, func(x *TCPConfig) { x.MaxKept = limit })
		e := join(t, r, "s")
		before, most := heap(), int64(0)
		for i := range uint32(40_000) {
			b := append(wire(frame{kind: frameJoin, id: i, body: appendJoin(nil, left(i))}), wire(frame{kind: frameLeave, id: i})...)
			if _, err := conn.Write(b); err != nil {
				break
			}
			if i%2000 == 0 {
				most = max(most, heap()-before)
			}
		}
		wants(t, "what is told", e.next().lost, ErrLimit)
		if most > 4*limit {
			t.Errorf("%d MiB are taken, the limit is %d", most>>20, limit>>20)
		}
		r.Close()
	}
}

func TestLongMessageIsRefused(t *testing.T) {
	ends := joinAll(t, form(t, 2, func(c *TCPConfig) { c.MaxMessage = 100 }), "s")
	wants(t, "101 bytes", ends[0].Send(1, make([]byte, 101)), ErrLimit)
	ends[0].send(1, strings.Repeat("x", 100))
	ends[1].wants(0, strings.Repeat("x", 100))
}

// Close takes no longer than it may, also if the peer does nothing at all.
func TestCloseWithAPeerThatHangs(t *testing.T) {
	for rank := range 2 {
		r, conn := pair(t, rank, func(c *TCPConfig) { c.CloseTimeout = 100 * time.Millisecond })
		e := join(t, r, "s")
		// Much more than the kernel takes.
		if err := e.Send(1-rank, make([]byte, 64<<20)); err != nil {
			t.Fatal(err)
		}
		within(t, time.Second, "Close", func() { r.Close() })
		conn.Close()
	}
}

// What was sent before Close arrives, however much it is.
func TestCloseWritesOut(t *testing.T) {
	ranks := makeTCP(t, 2)
	ends := joinAll(t, ranks, "s")
	for i := range 8 {
		if err := ends[1].Send(0, filler(8<<20, 1, i)); err != nil {
			t.Fatal(err)
		}
	}
	ends[1].Close()
	ranks[1].Close()
	for i := range 8 {
		if e := ends[0].next(); len(e.msg) != 8<<20 || e.msg[0] != filler(1, 1, i)[0] {
			t.Fatalf("message %d: %d bytes, lost: %v", i, len(e.msg), e.lost)
		}
	}
	waitGone(t, ranks[0], 1)
	ends[0].quiet()
}

// A peer whose handler is slow is not read without bounds: memory does not grow.
func TestSlowHandlerHoldsBackThePeer(t *testing.T) {
	r, conn := pair(t, 0, nil)
	slow := &blocker{entered: make(chan struct{}, 1<<16), release: make(chan struct{})}
	if _, err := r.Join("s", slow); err != nil {
		t.Fatal(err)
	}
	conn.Write(wire(frame{kind: frameJoin, id: 1, body: appendJoin(nil, key{"s", 1})}))
	msg := wire(frame{kind: frameMessage, id: 1, body: make([]byte, 8<<20)})
	for n := 0; ; n++ {
		if n == 1000 {
			t.Fatal("8 GB were taken")
		}
		_ = conn.SetWriteDeadline(time.Now().Add(500 * time.Millisecond))
		if _, err := conn.Write(msg); err != nil {
			break
		}
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	if m.HeapInuse > 512<<20 {
		t.Errorf("%d MB are in use", m.HeapInuse>>20)
	}
	within(t, 5*time.Second, "Close", func() {
		close(slow.release)
		r.Close()
	})
}

// Many cohorts, one after the other, with deaths, leave nothing behind. TestMain
// looks at goroutines and descriptors.
func TestSoakFormAndDie(t *testing.T) {
	rnd := testutil.Rand(t)
	before := runtime.NumGoroutine()
	for range testutil.Count(t, 10, 500) {
		n := 2 + rnd.IntN(5)
		ranks := makeTCP(t, n)
		ends := joinAll(t, ranks, "s")
		victim := rnd.IntN(n)
		// A connection cut as a dead host's kernel would: no last word.
		c := ranks[victim].(*tcpRank)
		c.mu.Lock()
		for _, l := range c.links {
			if l == nil {
				continue
			}
			_ = l.conn.(*net.TCPConn).SetLinger(0)
			_ = l.conn.Close()
		}
		c.mu.Unlock()
		for i := range ends {
			if i != victim {
				ends[i].wantsLost(victim)
			}
		}
		for _, r := range ranks {
			within(t, 2*time.Second, "Close", func() { r.Close() })
		}
	}
	if n := runtime.NumGoroutine(); n > before+5 {
		t.Errorf("%d goroutines, %d before", n, before)
	}
}

// Two goroutines a connection, none otherwise.
func TestGoroutines(t *testing.T) {
	before := runtime.NumGoroutine()
	Solo().Join("s", newRecorder(t))
	joinAll(t, Local(10), "s")
	if n := runtime.NumGoroutine(); n > before {
		t.Errorf("%d goroutines, %d before", n, before)
	}
	const size = 8
	ranks := makeTCP(t, size)
	testutil.Eventually(t, "two goroutines at each end of a connection, all of them here", func() bool {
		return runtime.NumGoroutine()-before <= 2*2*(size-1) // who dialled may be about to end
	})
	for _, r := range ranks {
		r.Close()
	}
}
