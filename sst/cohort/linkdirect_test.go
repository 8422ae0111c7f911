package cohort

import (
	"encoding/binary"
	"sync"
	"testing"
	"time"
)

// A message that was put off keeps its place, and goes out although nothing follows.
func conformLater(t *testing.T, m maker) {
	ends := joinAll(t, m.make(t, 3), "s")
	later := func(e end, to int, msg string) {
		t.Helper()
		if err := e.Channel.(Delayer).SendLater(to, []byte(msg)); err != nil {
			t.Fatal(err)
		}
	}
	for _, to := range []int{1, 2} {
		later(ends[0], to, "first")
		later(ends[0], to, "second")
		ends[0].send(to, "third")
		ends[to].wants(0, "first")
		ends[to].wants(0, "second")
		ends[to].wants(0, "third")
	}
	for range 3 { // the timer runs again
		later(ends[1], 0, "alone")
		ends[0].wants(1, "alone")
	}
	later(ends[2], 0, "last")
	if err := ends[2].Close(); err != nil {
		t.Fatal(err)
	}
	ends[0].wants(2, "last")
	wants(t, "SendLater to itself", ends[0].Channel.(Delayer).SendLater(0, nil), ErrRank)
}

// quickRecorder is a recorder that is called where messages come in.
type quickRecorder struct{ *recorder }

func (quickRecorder) Quick() {}

// A quick handler is called for one rank at a time, in order, however many messages
// come, and hears of losses last.
func conformQuick(t *testing.T, m maker) {
	const n, messages = 4, 20 * maxHere
	ranks := m.make(t, n)
	r := newRecorder(t)
	if _, err := ranks[0].Join("s", quickRecorder{r}); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for rank := 1; rank < n; rank++ {
		e := join(t, ranks[rank], "s")
		wg.Go(func() {
			for i := range messages {
				e.send(0, string(binary.LittleEndian.AppendUint32(nil, uint32(i))))
			}
			ranks[rank].Close()
		})
	}
	var next [n]uint32
	for range (n - 1) * (messages + 1) {
		e := r.next()
		switch {
		case e.lost != nil && next[e.from] != messages:
			t.Fatalf("rank %d is lost after %d messages", e.from, next[e.from])
		case e.lost == nil:
			if got := binary.LittleEndian.Uint32(e.msg); got != next[e.from] {
				t.Fatalf("message %d of rank %d, want %d", got, e.from, next[e.from])
			}
			next[e.from]++
		}
	}
	wg.Wait()
}

// Whoever is called on the reading goroutine for others' messages does not stay there
// for ever: the goroutine reads on.
func TestQuickHandlerHandsOver(t *testing.T) {
	ranks := makeTCP(t, 3)
	slow := quickBlocker{&blocker{entered: make(chan struct{}, 1<<16), release: make(chan struct{})}}
	ch, err := ranks[0].Join("s", slow)
	if err != nil {
		t.Fatal(err)
	}
	fast := joinAll(t, ranks, "fast")
	first, second := join(t, ranks[1], "s"), join(t, ranks[2], "s")
	first.send(0, "calls the handler")
	<-slow.entered
	for range maxHere {
		second.send(0, "more")
	}
	second.waitQueued(t, ch, maxHere)
	for range maxHere - 1 {
		slow.release <- struct{}{}
		<-slow.entered
	}
	// The goroutine that reads from rank 1 is in its last call. From then on it reads.
	slow.release <- struct{}{}
	<-slow.entered
	fast[1].send(0, "hello")
	fast[0].wants(1, "hello")
	close(slow.release)
}

type quickBlocker struct{ *blocker }

func (quickBlocker) Quick() {}

// waitQueued waits until so many messages wait in a channel.
func (end) waitQueued(t *testing.T, ch Channel, n int) {
	t.Helper()
	c := ch.(*channel)
	for range 10_000 {
		c.hub.mu.Lock()
		here := len(c.inbox)
		c.hub.mu.Unlock()
		if here == n {
			return
		}
		<-pauseBriefly()
	}
	t.Fatalf("%d messages do not come", n)
}

// What the kernel does not take at once comes after it, whole and in order, and nobody
// who sends has waited.
func TestDirectWriteToAPeerThatDoesNotRead(t *testing.T) {
	r, conn := pair(t, 0, func(c *TCPConfig) { c.CloseTimeout = time.Minute })
	e := join(t, r, "s")
	const messages = 20_000
	body := filler(copyBelow-1, 0, 1)
	for i := range messages {
		binary.LittleEndian.PutUint32(body, uint32(i))
		e.send(1, string(body))
	}
	for want := 0; want < messages; {
		f, err := readFrame(conn, 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		if f.kind != frameMessage {
			continue
		}
		if got := binary.LittleEndian.Uint32(f.body); int(got) != want || len(f.body) != len(body) {
			t.Fatalf("message %d of %d bytes, want %d", got, len(f.body), want)
		}
		want++
	}
	conn.Close()
	e.wantsLost(1)
}
