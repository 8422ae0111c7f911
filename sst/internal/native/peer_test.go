package native

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/weft-fabric/weft/fabric"
	"github.com/weft-fabric/weft/internal/testutil"
)

const testSize = 1<<20 + 4321

// Ranges of memory are seen as they are, in a process of its own, in the same process, and by the one who has it.
func TestView(t *testing.T) {
	own := open(t, Config{})
	m := alloc(t, own, testSize)
	other := newServer(t, testSize)
	for _, c := range []struct {
		name    string
		from    *Fabric
		contact string
		key     fabric.Key
	}{
		{"own", own, own.Contact(), m.Key()},
		{"same process", open(t, Config{}), own.Contact(), m.Key()},
		{"other process", own, other.contact, other.key},
		{"manual", open(t, Config{Progress: fabric.Manual}), other.contact, other.key},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := reach(t, c.from, c.contact)
			for _, r := range [][2]int{{0, testSize}, {0, 1}, {testSize - 1, 1}, {12345, 67890}, {0, 0}, {testSize, 0}} {
				sees(t, p, c.key, uint64(r[0]), r[1])
			}
			if s := c.from.Stats(); s.Views != 0 || s.ViewBytes != 0 {
				t.Errorf("after the last release: %+v", s)
			}
			for _, r := range [][2]int{{0, testSize + 1}, {testSize + 1, 0}, {1 << 40, 1}} {
				_, _, err := p.View(t.Context(), c.key, uint64(r[0]), r[1])
				is(t, err, fabric.ErrKey)
			}
			_, _, err := p.View(t.Context(), c.key+1, 0, 1)
			is(t, err, fabric.ErrKey)
			_, _, err = p.View(t.Context(), c.key, 0, -1)
			is(t, err, fabric.ErrInvalid)
			_, _, err = p.View(t.Context(), c.key, 1<<64-1, 2)
			is(t, err, fabric.ErrInvalid)
			b, release := view(t, p, c.key, 10, 20)
			p.Close()
			if !bytes.Equal(b, pattern(30, 1)[10:]) {
				t.Error("a view is another one when the peer is closed")
			}
			release()
			_, _, err = p.View(t.Context(), c.key, 0, 1)
			is(t, err, fabric.ErrClosed)
			empty(t, c.from)
		})
	}
}

// A view is the memory itself: what is written later is seen, if the two sides see to the order.
func TestViewIsTheMemory(t *testing.T) {
	f := open(t, Config{})
	m := alloc(t, f, 4096)
	b, release := view(t, reach(t, f, f.Contact()), m.Key(), 0, 4096)
	defer release()
	fill(m.Bytes(), 2)
	if !bytes.Equal(b, pattern(4096, 2)) {
		t.Error("the view has not changed")
	}
}

// Memory that came after the connection, in segments that the peer was not told of when it connected.
func TestViewOfNewMemory(t *testing.T) {
	writer, reader := open(t, Config{}), open(t, Config{})
	p := reach(t, reader, writer.Contact())
	for i := range 12 {
		n := 100 << i << (i % 7)
		sees(t, p, alloc(t, writer, n).Key(), 0, n)
	}
}

// The same contact is the same peer, which ends with its last user.
func TestReachCounts(t *testing.T) {
	f, other := open(t, Config{}), open(t, Config{})
	m := alloc(t, other, 64)
	var wg sync.WaitGroup
	peers := make([]*Peer, 8)
	for i := range peers {
		wg.Go(func() {
			var err error
			if peers[i], err = f.Reach(t.Context(), other.Contact()); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	for _, p := range peers[1:] {
		if p != peers[0] {
			t.Fatal("one contact became several peers")
		}
		sees(t, p, m.Key(), 0, 64)
		p.Close()
	}
	sees(t, peers[0], m.Key(), 0, 64)
	peers[0].Close()
	peers[0].Close() // one too many is nothing
	empty(t, f)
	sees(t, reach(t, f, other.Contact()), m.Key(), 0, 64)
}

// with is a contact in which something was replaced.
func with(t *testing.T, contact, old, by string) string {
	t.Helper()
	s := strings.Replace(contact, old, by, 1)
	if s == contact {
		t.Fatalf("no %q in %q", old, contact)
	}
	return s
}

// parameter is a word of a contact's address, as "inc=123".
func parameter(t *testing.T, contact, name string) string {
	t.Helper()
	_, rest, ok := strings.Cut(contact, name+"=")
	if !ok {
		t.Fatalf("no %s in %q", name, contact)
	}
	if i := strings.IndexAny(rest, "& "); i >= 0 {
		rest = rest[:i]
	}
	return name + "=" + rest
}

// Who cannot be reached is a clear error, that says who, and nothing is left of the attempt.
func TestReachRefuses(t *testing.T) {
	dead := newServer(t, 64)
	dead.Kill()
	<-dead.Done()
	closed := open(t, Config{})
	if err := closed.Close(); err != nil {
		t.Fatal(err)
	}
	f, other := open(t, Config{}), open(t, Config{})
	c := other.Contact()
	parsed, err := ParseContact(c)
	if err != nil {
		t.Fatal(err)
	}
	alike := parsed
	alike.Nonce[3]++
	unknown := parsed
	unknown.Key++
	nobody := parsed
	nobody.Address = "shm://nobody-has-this-name"
	scheme := parsed
	scheme.Address = "tcp://127.0.0.1:80"
	for _, x := range []struct {
		name, contact string
		want          error
		says          string
	}{
		{"garbage", "\x00garbage", fabric.ErrInvalid, "offset 0"},
		{"scheme", string(scheme.Append(nil)), fabric.ErrInvalid, "tcp://127.0.0.1:80"},
		{"parameter", with(t, c, "inc=", "ink="), fabric.ErrInvalid, "ink"},
		{"node", with(t, c, parameter(t, c, "boot"), "boot=00112233445566778899aabbccddeeff"), fabric.ErrUnreachable, "node"},
		{"network namespace", with(t, c, parameter(t, c, "net"), "net=1"), fabric.ErrUnreachable, "namespace"},
		{"user", with(t, c, parameter(t, c, "uid"), "uid=54321"), fabric.ErrUnreachable, "54321"},
		{"incarnation", with(t, c, parameter(t, c, "inc"), "inc=1"), fabric.ErrUnreachable, "another"},
		{"nobody", string(nobody.Append(nil)), fabric.ErrUnreachable, "nobody listens"},
		{"dead process", dead.contact, fabric.ErrUnreachable, "nobody listens"},
		{"closed", closed.Contact(), fabric.ErrUnreachable, "nobody listens"},
		{"probe", string(alike.Append(nil)), fabric.ErrUnreachable, "another process"},
		{"key of the probe", string(unknown.Append(nil)), fabric.ErrUnreachable, "another process"},
	} {
		t.Run(x.name, func(t *testing.T) {
			p, err := f.Reach(t.Context(), x.contact)
			if p != nil || err == nil {
				t.Fatalf("reached: %v, %v", p, err)
			}
			t.Log(err)
			is(t, err, x.want)
			if !strings.Contains(err.Error(), x.says) {
				t.Errorf("%q is not said", x.says)
			}
			if c, bad := ParseContact(x.contact); bad == nil && !strings.Contains(err.Error(), string(c.Address)) {
				t.Error("the address is not said")
			}
			empty(t, f)
		})
	}
	t.Run("after close", func(t *testing.T) {
		_, err := closed.Reach(t.Context(), c)
		is(t, err, fabric.ErrClosed)
	})
}

// A false contact with a true address takes nothing from who uses the true one.
func TestReachFalseBesideTrue(t *testing.T) {
	f, other := open(t, Config{}), open(t, Config{})
	m := alloc(t, other, 64)
	p := reach(t, f, other.Contact())
	number := p.number.Load()
	c, err := ParseContact(other.Contact())
	if err != nil {
		t.Fatal(err)
	}
	c.Nonce[0]++
	_, err = f.Reach(t.Context(), string(c.Append(nil)))
	is(t, err, fabric.ErrUnreachable)
	sees(t, p, m.Key(), 0, 64)
	if p.number.Load() != number {
		t.Error("it had to be connected anew")
	}
}

// A process that is stopped is waited for as long as the context allows, by all who want to reach it, and nothing is left of that.
func TestReachStopped(t *testing.T) {
	f, other := open(t, Config{}), newServer(t, 64)
	other.stop()
	before, _ := holdings(t)
	ctx, cancel := context.WithCancel(t.Context())
	results := make(chan error)
	for range 3 {
		go func() {
			_, err := f.Reach(ctx, other.contact)
			results <- err
		}()
	}
	testutil.Eventually(t, "all wait", func() bool {
		f.mu.Lock()
		defer f.mu.Unlock()
		for _, p := range f.peers {
			return p.users == 3
		}
		return false
	})
	late, end := context.WithTimeout(t.Context(), time.Millisecond)
	defer end()
	_, err := f.Reach(late, other.contact)
	is(t, err, context.DeadlineExceeded)
	cancel()
	for range 3 {
		is(t, <-results, context.Canceled)
	}
	empty(t, f)
	testutil.Eventually(t, "the descriptors are closed", func() bool { now, _ := holdings(t); return now <= before })
	if err := other.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	p := reach(t, f, other.contact)
	sees(t, p, other.key, 0, 32)
	other.stop() // which says nothing to who is connected
	sees(t, p, other.key, 32, 32)
}

// A view of a process that was killed stays readable; the next one says that the peer is gone, and so does every later one, at once.
func TestDeath(t *testing.T) {
	f, other := open(t, Config{}), newServer(t, testSize)
	p := reach(t, f, other.contact)
	b, release := view(t, p, other.key, 0, testSize)
	other.Kill()
	<-other.Done()
	var err error
	testutil.Eventually(t, "the death is noticed", func() bool {
		var again func()
		if _, again, err = p.View(t.Context(), other.key, 0, 1); err == nil {
			again()
		}
		return err != nil
	})
	t.Log(err)
	is(t, err, fabric.ErrPeerGone, fabric.ErrUnreachable)
	for range 100 {
		_, _, err := p.View(t.Context(), other.key, 0, 1)
		is(t, err, fabric.ErrPeerGone)
	}
	_, err = f.Reach(t.Context(), other.contact)
	is(t, err, fabric.ErrPeerGone)
	if !bytes.Equal(b, pattern(testSize, 1)) {
		t.Error("the view is not what it was")
	}
	p.Close()
	if !bytes.Equal(b, pattern(testSize, 1)) {
		t.Error("the view is not what it was, with the peer closed")
	}
	release()
	empty(t, f)
}

// Who closes its Fabric and lives is gone as well.
func TestPeerCloses(t *testing.T) {
	f, other := open(t, Config{}), newServer(t, testSize)
	p := reach(t, f, other.contact)
	b, release := view(t, p, other.key, 0, testSize)
	defer release()
	other.do("close")
	var err error
	testutil.Eventually(t, "the end is noticed", func() bool {
		var again func()
		if _, again, err = p.View(t.Context(), other.key, 0, 1); err == nil {
			again()
		}
		return err != nil
	})
	is(t, err, fabric.ErrPeerGone)
	if !bytes.Equal(b, pattern(testSize, 1)) {
		t.Error("the view is not what it was")
	}
}

// Two processes read of each other over one connection. One leaves; the other goes on, with another connection.
func TestPeerLeavesAndLives(t *testing.T) {
	f, other := open(t, Config{}), newServer(t, testSize)
	p := reach(t, f, other.contact)
	for range 5 {
		b, release := view(t, p, other.key, 0, testSize)
		other.do("reach " + f.Contact())
		other.do("leave")
		for range 100 {
			sees(t, p, other.key, 77, 100)
		}
		if !bytes.Equal(b, pattern(testSize, 1)) {
			t.Error("a view of the connection that ended is not what it was")
		}
		release()
	}
}

// The same with many at a time: no view fails because the other side comes and goes.
func TestSoakViewsWhilePeerComesAndGoes(t *testing.T) {
	a, b := open(t, Config{}), open(t, Config{})
	m := alloc(t, b, 4096)
	p := reach(t, a, b.Contact())
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					sees(t, p, m.Key(), 0, 4096)
				}
			}
		})
	}
	for range testutil.Count(t, 50, 2000) {
		back, err := b.Reach(t.Context(), a.Contact())
		if err != nil {
			t.Error(err)
			break
		}
		back.Close()
	}
	close(stop)
	wg.Wait()
}

// Freed memory cannot be viewed any more, and is not used anew while a view is left.
func TestFree(t *testing.T) {
	writer, reader := open(t, Config{}), open(t, Config{})
	m := alloc(t, writer, 1<<20)
	p := reach(t, reader, writer.Contact())
	b, release := view(t, p, m.Key(), 0, 1<<20)
	used := writer.Stats().ArenaUsed
	m.Free()
	m.Free()
	_, _, err := p.View(t.Context(), m.Key(), 0, 1)
	is(t, err, fabric.ErrKey)
	next := alloc(t, writer, 1<<20)
	fill(next.Bytes(), 9)
	if !bytes.Equal(b, pattern(1<<20, 1)) {
		t.Error("the view is not what it was")
	}
	release()
	next.Free()
	third := alloc(t, writer, 1<<20)
	if now := writer.Stats().ArenaUsed; now != used {
		t.Errorf("%d bytes are used, %d were", now, used)
	}
	sees(t, p, third.Key(), 0, 1<<20)
}

// Views are released by any goroutine, more than once, also at a time, while others get theirs and the Fabric closes.
func TestReleaseAnywhere(t *testing.T) {
	reader, other := open(t, Config{}), newServer(t, testSize)
	p := reach(t, reader, other.contact)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for j := range 200 {
				b, release, err := p.View(t.Context(), other.key, uint64(i*j), 100)
				if err != nil {
					is(t, err, fabric.ErrClosed)
					return
				}
				if b[0] != pattern(i*j+1, 1)[i*j] {
					t.Error("a byte is another one")
				}
				wg.Go(release)
				wg.Go(release)
				if i == 7 && j == 100 {
					if err := reader.Close(); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	wg.Wait()
	if s := reader.Stats(); s.Views != 0 {
		t.Errorf("%d views are left", s.Views)
	}
}

// Views of more memory than the provider has room for are an error by which the range can be had otherwise; one memory may be viewed at will.
func TestViewsTooMany(t *testing.T) {
	const most = 4096
	f, writer := open(t, Config{}), open(t, Config{})
	p := reach(t, f, writer.Contact())
	var keys []fabric.Key
	for range most + 1 {
		keys = append(keys, alloc(t, writer, 64).Key())
	}
	var releases []func()
	for _, key := range keys[:most] {
		_, release := view(t, p, key, 0, 64)
		_, second := view(t, p, key, 0, 64)
		releases = append(releases, release, second)
	}
	_, _, err := p.View(t.Context(), keys[most], 0, 64)
	is(t, err, fabric.ErrNoMemory)
	for _, release := range releases {
		release()
	}
	sees(t, p, keys[most], 0, 64)
}

// Nothing is left of peers, views and Fabrics that came and went.
func TestSoakCyclesAreFlat(t *testing.T) {
	other := newServer(t, testSize)
	one := func() {
		f, err := Open(t.Context(), Config{})
		if err != nil {
			t.Fatal(err)
		}
		for _, contact := range []string{other.contact, f.Contact()} {
			p, err := f.Reach(t.Context(), contact)
			if err != nil {
				t.Fatal(err)
			}
			if contact == other.contact {
				sees(t, p, other.key, 0, 100)
			}
			p.Close()
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
	one()
	files, goroutines := holdings(t)
	for range testutil.Count(t, 100, 2000) {
		one()
	}
	testutil.Eventually(t, "as at the beginning", func() bool {
		f, g := holdings(t)
		return f <= files && g <= goroutines
	})
	// One Fabric, and peers that come and go.
	f := open(t, Config{})
	reachOnce := func() {
		p, err := f.Reach(t.Context(), other.contact)
		if err != nil {
			t.Fatal(err)
		}
		p.Close()
	}
	reachOnce()
	files, goroutines = holdings(t)
	for range testutil.Count(t, 100, 2000) {
		reachOnce()
	}
	empty(t, f)
	testutil.Eventually(t, "as after the first peer", func() bool {
		n, g := holdings(t)
		return n <= files+4 && g <= goroutines // connections that end go on for a moment
	})
}

// A process that is connected and does nothing uses no processor, and nothing wakes it: views cost their viewer alone.
func TestIdle(t *testing.T) {
	f, other := open(t, Config{}), newServer(t, 64)
	p := reach(t, f, other.contact)
	sees(t, p, other.key, 0, 64)
	usage := func() (used time.Duration, wakes uint64) {
		other.Send("usage")
		if _, err := fmt.Sscan(other.Expect("usage "), &used, &wakes); err != nil {
			t.Fatal(err)
		}
		return used, wakes + f.Stats().Wakes
	}
	usage()
	// The best of three counts: the first may see the end of the connection's making.
	for try := range 3 {
		before, wakes := usage()
		second := time.NewTimer(time.Second)
		for range 10000 {
			_, release := view(t, p, other.key, 0, 64)
			release()
		}
		<-second.C
		after, now := usage()
		if now == wakes && after-before < 10*time.Millisecond { // most of it is the question
			return
		}
		t.Logf("try %d: woken %d times, and the other process used %v in a second", try, now-wakes, after-before)
	}
	t.Error("a process that does nothing is not idle")
}

// A peer that sends messages against all custom keeps them, and harms nobody.
func TestStrayMessages(t *testing.T) {
	f, stranger, friend := open(t, Config{}), open(t, Config{}), open(t, Config{})
	m := alloc(t, f, 64)
	c, err := ParseContact(f.Contact())
	if err != nil {
		t.Fatal(err)
	}
	to, err := stranger.domain.Insert(c.Address)
	if err != nil {
		t.Fatal(err)
	}
	q, err := stranger.domain.OpenCompletionQueue(fabric.CQConfig{})
	if err != nil {
		t.Fatal(err)
	}
	end, err := stranger.domain.OpenEndpoint(fabric.EndpointConfig{Send: q, Recv: q})
	if err != nil {
		t.Fatal(err)
	}
	posted, done := 0, make([]fabric.Completion, 100)
	for ; posted < 1000; posted++ {
		err := end.Send(fabric.Op{Local: fabric.Bytes(make([]byte, 4096)), Peer: to, Flags: fabric.RemoteData})
		if err != nil {
			is(t, err, fabric.ErrAgain)
			break
		}
	}
	ended, err := q.Wait(t.Context(), done)
	if err != nil {
		t.Fatal(err)
	}
	sees(t, reach(t, friend, f.Contact()), m.Key(), 0, 64)
	kept := uint64(0)
	for _, p := range f.domain.Peers() {
		kept += p.Unexpected
	}
	t.Logf("%d messages posted, %d ended, %d bytes kept", posted, ended, kept)
	if kept > 1<<20 {
		t.Errorf("%d bytes are kept of a stranger", kept)
	}
	sees(t, reach(t, stranger, f.Contact()), m.Key(), 0, 64)
}

// Both sides reach each other, look and leave, all the time: every call of either succeeds.
func TestSoakBothComeAndGo(t *testing.T) {
	a, b := open(t, Config{}), open(t, Config{})
	var wg sync.WaitGroup
	for _, side := range [][2]*Fabric{{a, b}, {b, a}, {a, b}, {b, a}} {
		from, to := side[0], side[1]
		m := alloc(t, to, 4096)
		wg.Go(func() {
			for range testutil.Count(t, 50, 2000) {
				p, err := from.Reach(t.Context(), to.Contact())
				if err != nil {
					t.Error(err)
					return
				}
				if v, release, err := p.View(t.Context(), m.Key(), 0, 4096); err != nil {
					t.Error(err)
				} else {
					if !bytes.Equal(v, pattern(4096, 1)) {
						t.Error("other bytes")
					}
					release()
				}
				p.Close()
			}
		})
	}
	wg.Wait()
	unused(t, a)
	unused(t, b)
}
