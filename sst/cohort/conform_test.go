package cohort

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/weft-fabric/weft/internal/testutil"
)

// Every kind of cohort does the same.
func TestConformance(t *testing.T) {
	for _, m := range makers {
		t.Run(m.name, func(t *testing.T) {
			for _, c := range []struct {
				name string
				run  func(*testing.T, maker)
			}{
				{"ranks", conformRanks},
				{"order", conformOrder},
				{"sizes", conformSizes},
				{"shared bytes", conformShared},
				{"channels", conformChannels},
				{"same name", conformSameName},
				{"kept", conformKept},
				{"bad sends", conformBadSends},
				{"bad joins", conformBadJoins},
				{"leaving", conformLeaving},
				{"leaving one by one", conformLeavingOneByOne},
				{"never joined", conformNeverJoined},
				{"death", conformDeath},
				{"death of rank 0", conformDeathOfRoot},
				{"death before join", conformDeathBeforeJoin},
				{"close in handler", conformCloseInHandler},
				{"close", conformClose},
				{"close with open channels", conformCloseOpen},
				{"slow handler", conformSlowHandler},
				{"flush", conformFlush},
				{"later", conformLater},
				{"quick handler", conformQuick},
			} {
				t.Run(c.name, func(t *testing.T) { c.run(t, m) })
			}
		})
	}
}

func conformRanks(t *testing.T, m maker) {
	for _, n := range []int{1, 2, 5} {
		for i, c := range m.make(t, n) {
			if c.Rank() != i || c.Size() != n {
				t.Errorf("rank %d of %d, want %d of %d", c.Rank(), c.Size(), i, n)
			}
		}
	}
}

// All ranks send at the same time, in both directions.
func conformOrder(t *testing.T, m maker) {
	const ranks, messages = 4, 2000
	ends := joinAll(t, m.make(t, ranks), "s")
	var wg sync.WaitGroup
	for i := 1; i < ranks; i++ {
		wg.Go(func() {
			for j := range messages {
				ends[i].send(0, fmt.Sprint(j))
			}
		})
		wg.Go(func() {
			for j := range messages {
				ends[0].send(i, fmt.Sprint(-j))
			}
		})
	}
	next := make([]int, ranks)
	for range (ranks - 1) * messages {
		e := ends[0].next()
		if string(e.msg) != fmt.Sprint(next[e.from]) {
			t.Fatalf("rank %d sent %q, want %d", e.from, e.msg, next[e.from])
		}
		next[e.from]++
	}
	for i := 1; i < ranks; i++ {
		for j := range messages {
			ends[i].wants(0, fmt.Sprint(-j))
		}
	}
	wg.Wait()
}

func conformSizes(t *testing.T, m maker) {
	ends := joinAll(t, m.make(t, 2), "s")
	for i, n := range []int{0, 1, 15, copyBelow - 1, copyBelow, copyBelow + 1, readBuffer - 1, readBuffer, firstChunk, firstChunk + 1, 5 << 20, 64 << 20, 0} {
		msg := filler(n, 1, i)
		for _, to := range []int{0, 1} {
			if err := ends[1-to].Send(to, msg); err != nil {
				t.Fatal(err)
			}
			if e := ends[to].next(); !bytes.Equal(e.msg, msg) || e.from != 1-to || e.lost != nil {
				t.Fatalf("%d bytes to rank %d: came as %d of %d, lost: %v", n, to, len(e.msg), e.from, e.lost)
			}
		}
	}
}

// The same bytes go to all.
func conformShared(t *testing.T, m maker) {
	ends := joinAll(t, m.make(t, 4), "s")
	msg := filler(3<<20, 0, 0)
	for i := 1; i < 4; i++ {
		if err := ends[0].Send(i, msg); err != nil {
			t.Fatal(err)
		}
	}
	for i := 1; i < 4; i++ {
		if e := ends[i].next(); !bytes.Equal(e.msg, msg) {
			t.Errorf("rank %d got something else", i)
		}
	}
}

// Channels do not mix, and the order of joins of different names is free.
func conformChannels(t *testing.T, m maker) {
	const channels = 60
	ranks := m.make(t, 3)
	all := make([][]end, 3)
	for i, c := range ranks {
		all[i] = make([]end, channels)
		for j := range channels {
			k := (j*7 + i*11) % channels
			all[i][k] = join(t, c, fmt.Sprint("s", k))
		}
	}
	for k := range channels {
		for i := 1; i < 3; i++ {
			all[i][k].send(0, fmt.Sprint("up ", k))
			all[0][k].send(i, fmt.Sprint("down ", k))
		}
	}
	for k := range channels {
		a, b := all[0][k].next(), all[0][k].next()
		if a.from == b.from || string(a.msg) != fmt.Sprint("up ", k) || string(b.msg) != fmt.Sprint("up ", k) {
			t.Errorf("channel %d: %q of %d, %q of %d", k, a.msg, a.from, b.msg, b.from)
		}
		for i := 1; i < 3; i++ {
			all[i][k].wants(0, fmt.Sprint("down ", k))
		}
	}
}

// The n-th join of a name meets the n-th, whatever happened to those before.
func conformSameName(t *testing.T, m maker) {
	ranks := m.make(t, 2)
	first := join(t, ranks[0], "s")
	first.Close()
	second := join(t, ranks[0], "s")
	second.send(1, "to the second")
	other := joinAll(t, []Cohort{ranks[1], ranks[1]}, "s")
	other[1].wants(0, "to the second")
	other[0].send(0, "to the first, which has left")
	other[1].send(0, "back")
	second.wants(1, "back")
	other[0].quiet()
	first.quiet()
}

// What comes before the join is kept, in order.
func conformKept(t *testing.T, m maker) {
	ranks := m.make(t, 3)
	late := joinAll(t, ranks[1:], "late")
	for j := range 100 {
		late[0].send(0, fmt.Sprint(j))
	}
	if err := late[0].Send(0, filler(64<<20, 1, 1)); err != nil {
		t.Fatal(err)
	}
	// Something on another channel shows that all has arrived.
	sync := joinAll(t, ranks[:2], "sync")
	sync[1].send(0, "now")
	sync[0].wants(1, "now")
	root := join(t, ranks[0], "late")
	for j := range 100 {
		root.wants(1, fmt.Sprint(j))
	}
	if e := root.next(); !bytes.Equal(e.msg, filler(64<<20, 1, 1)) {
		t.Errorf("%d bytes came", len(e.msg))
	}
	root.send(2, "hello")
	late[1].wants(0, "hello")
}

func conformBadSends(t *testing.T, m maker) {
	ranks := m.make(t, 3)
	ends := joinAll(t, ranks, "s")
	for _, c := range []struct{ from, to int }{{0, 0}, {0, 3}, {0, -1}, {1, 1}, {1, 2}, {2, 1}, {1, 3}} {
		wants(t, fmt.Sprintf("rank %d to %d", c.from, c.to), ends[c.from].Send(c.to, nil), ErrRank)
	}
	ends[1].Close()
	wants(t, "on a closed channel", ends[1].Send(0, nil), ErrClosed)
	ranks[2].Close()
	wants(t, "on a closed cohort", ends[2].Send(0, nil), ErrClosed)
}

func conformBadJoins(t *testing.T, m maker) {
	ranks := m.make(t, 2)
	_, err := ranks[0].Join("s", nil)
	wants(t, "without a handler", err, ErrConfig)
	_, err = ranks[0].Join(string(make([]byte, maxName+1)), newRecorder(t))
	wants(t, "a long name", err, ErrLimit)
	ranks[0].Close()
	_, err = ranks[0].Join("s", newRecorder(t))
	wants(t, "after Close", err, ErrClosed)
}

// Who leaves the channel, then the cohort, is not lost.
func conformLeaving(t *testing.T, m maker) {
	ranks := m.make(t, 4)
	ends := joinAll(t, ranks, "s")
	for i := 1; i < 4; i++ {
		ends[i].send(0, "last words")
		ends[i].Close()
		ends[i].Close()
	}
	ranks[3].Close()
	for range 3 {
		if e := ends[0].next(); string(e.msg) != "last words" {
			t.Errorf("rank %d: %q, lost: %v", e.from, e.msg, e.lost)
		}
	}
	waitGone(t, ranks[0], 3)
	waitGone(t, ranks[1], 3)
	wants(t, "to one that has left the cohort", ends[0].Send(3, nil), ErrRankGone)
	ends[0].send(1, "to one that has left the channel")
	ends[0].Close()
	ranks[0].Close()
	waitGone(t, ranks[1], 0)
	for i := range ends {
		ends[i].quiet()
	}
}

// waitGone waits until a rank has heard of the end of another, on a channel of
// its own.
func waitGone(t *testing.T, c Cohort, rank int) {
	t.Helper()
	probe := join(t, c, fmt.Sprint("probe ", rank, " ", time.Now()))
	defer probe.Close()
	for {
		if e := probe.next(); e.from == rank && e.lost != nil {
			return
		}
	}
}

// A rank that leaves while others go on is no loss to any of them.
func conformLeavingOneByOne(t *testing.T, m maker) {
	ranks := m.make(t, 4)
	ends := joinAll(t, ranks, "s")
	for i := 3; i > 0; i-- {
		ends[i].Close()
		ranks[i].Close()
		waitGone(t, ranks[0], i)
		for j := 1; j < i; j++ {
			ends[j].send(0, "still here")
			ends[0].wants(j, "still here")
			ends[0].send(j, "go on")
			ends[j].wants(0, "go on")
			waitGone(t, ranks[j], i)
		}
	}
	for i := range ends {
		ends[i].quiet()
	}
}

// A rank that leaves the cohort cannot join any more: others must not wait.
func conformNeverJoined(t *testing.T, m maker) {
	ranks := m.make(t, 3)
	ends := joinAll(t, ranks[:2], "s")
	ranks[2].Close()
	ends[0].wantsLost(2)
	ends[1].wantsLost(2)
	late := join(t, ranks[1], "late")
	late.wantsLost(2)
}

func conformDeath(t *testing.T, m maker) {
	for victim := 1; victim < 4; victim++ {
		t.Run(fmt.Sprint(victim), func(t *testing.T) {
			ranks := m.make(t, 4)
			a, b := joinAll(t, ranks, "a"), joinAll(t, ranks, "b")
			a[victim].send(0, "last words")
			b[victim].Close()
			ranks[victim].Close() // a is open
			a[0].wants(victim, "last words")
			for i := range ranks {
				if i != victim {
					a[i].wantsLost(victim)
					b[i].quiet()
				}
			}
			wants(t, "to a dead rank", a[0].Send(victim, nil), ErrRankGone)
			a[0].send(1+victim%3, "the others go on")
		})
	}
}

func conformDeathOfRoot(t *testing.T, m maker) {
	ranks := m.make(t, 3)
	ends := joinAll(t, ranks, "s")
	ends[0].send(1, "last words")
	ranks[0].Close()
	ends[1].wants(0, "last words")
	ends[1].wantsLost(0)
	ends[2].wantsLost(0)
	wants(t, "to a dead rank", ends[1].Send(0, nil), ErrRankGone)
	late := join(t, ranks[1], "late")
	late.wantsLost(0)
	ranks[2].Close()
	late.quiet()
	ends[1].quiet()
}

// A channel joined later hears of who was gone before, after what that had sent.
func conformDeathBeforeJoin(t *testing.T, m maker) {
	ranks := m.make(t, 4)
	early := joinAll(t, ranks[1:], "s")
	early[2].send(0, "left behind")
	early[0].send(0, "from one that leaves well")
	early[0].Close()
	ranks[1].Close()
	waitGone(t, ranks[0], 1)
	ranks[3].Close()
	waitGone(t, ranks[0], 3)
	early[1].wantsLost(3)
	root := join(t, ranks[0], "s")
	root.wants2(t, said{from: 3, msg: []byte("left behind")}, said{from: 1, msg: []byte("from one that leaves well")})
	root.wantsLost(3)
	root.quiet()
	early[1].quiet()
}

// wants2 waits for two messages, in any order.
func (r *recorder) wants2(t *testing.T, a, b said) {
	t.Helper()
	x, y := r.next(), r.next()
	if x.from == b.from {
		x, y = y, x
	}
	if x.from != a.from || !bytes.Equal(x.msg, a.msg) || y.from != b.from || !bytes.Equal(y.msg, b.msg) {
		t.Errorf("got %q of %d and %q of %d", x.msg, x.from, y.msg, y.from)
	}
}

// A rank dies at any moment of a conversation: what comes is a prefix of what it
// sent, then the loss, at every survivor.
func TestSoakDeathWithMessages(t *testing.T) {
	for _, m := range makers {
		t.Run(m.name, func(t *testing.T) {
			rnd := testutil.Rand(t)
			for range testutil.Count(t, 12, 500) {
				talk(t, m.make(t, 3), rnd.IntN(3), rnd.IntN(200), 8+1<<rnd.IntN(16))
			}
		})
	}
}

// talk lets three ranks talk until the victim dies, after some messages.
func talk(t *testing.T, ranks []Cohort, victim, after, size int) {
	ends := joinAll(t, ranks, "s")
	over := make(chan struct{})
	credits := make([]chan struct{}, len(ranks)) // a rank sends on as the others hear it
	var speakers, listeners sync.WaitGroup
	for i := range ranks {
		credits[i] = make(chan struct{}, 1<<16)
		for range 32 {
			credits[i] <- struct{}{}
		}
	}
	for i := range ranks {
		speakers.Go(func() { speak(ends[i], i, size, credits[i], over) })
		if i == victim {
			continue
		}
		die := func() {}
		if i == (victim+1)%3 || i == 0 {
			die = func() { ranks[victim].Close() }
		}
		listeners.Go(func() { hearOut(t, ends[i], victim, after, size, credits, die) })
	}
	listeners.Wait()
	close(over)
	speakers.Wait()
	for i, c := range ranks {
		if i != victim && (i == 0 || victim == 0) {
			wants(t, "to the dead", ends[i].Send(victim, nil), ErrRankGone)
		}
		within(t, 2*time.Second, "Close", func() { c.Close() })
	}
}

// speak sends numbered messages, to everybody that it may.
func speak(e end, rank, size int, credit, over <-chan struct{}) {
	for n := 0; ; n++ {
		select {
		case <-credit:
		case <-over:
			return
		}
		msg := binary.LittleEndian.AppendUint64(nil, uint64(n))
		msg = append(msg, filler(size-8, rank, n)...)
		if rank != 0 {
			_ = e.Send(0, msg)
			continue
		}
		_ = e.Send(1, msg)
		_ = e.Send(2, msg)
	}
}

// hearOut takes in messages, checks that they are whole and in order, and returns
// when the victim is lost. After some messages it has the victim die.
func hearOut(t *testing.T, e end, victim, after, size int, credits []chan struct{}, die func()) {
	next := make(map[int]int)
	for n := 0; ; n++ {
		if n == after {
			go die()
		}
		s := e.next()
		if s.lost != nil {
			if s.from != victim {
				t.Errorf("rank %d is lost, not %d: %v", s.from, victim, s.lost)
			}
			return
		}
		want := next[s.from]
		next[s.from]++
		if got := int(binary.LittleEndian.Uint64(s.msg)); got != want || !bytes.Equal(s.msg[8:], filler(size-8, s.from, want)) {
			t.Errorf("rank %d: message %d of %d bytes came, want message %d of %d", s.from, got, len(s.msg), want, size)
			return
		}
		credits[s.from] <- struct{}{}
	}
}

// A handler may close its channel.
func conformCloseInHandler(t *testing.T, m maker) {
	ranks := m.make(t, 2)
	other := join(t, ranks[1], "s")
	h := &closer{closed: make(chan error, 8)}
	ch, err := ranks[0].Join("s", h)
	if err != nil {
		t.Fatal(err)
	}
	h.set(ch)
	other.send(0, "close")
	other.send(0, "too late")
	select {
	case err := <-h.closed:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(patience):
		t.Fatal("it hangs")
	}
	ranks[1].Close()
	waitGone(t, ranks[0], 1)
	if len(h.closed) > 0 {
		t.Error("a call after Close")
	}
}

type closer struct {
	mu     sync.Mutex
	ch     Channel
	closed chan error
}

func (c *closer) set(ch Channel) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ch = ch
}

func (c *closer) Message(int, []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed <- c.ch.Close()
}

func (c *closer) Lost(int, error) { c.closed <- nil }

func conformClose(t *testing.T, m maker) {
	for _, n := range []int{1, 3} {
		ranks := m.make(t, n)
		joinAll(t, ranks, "s")
		var wg sync.WaitGroup
		for _, c := range ranks {
			for range 3 {
				wg.Go(func() {
					if err := c.Close(); err != nil {
						t.Error(err)
					}
				})
			}
		}
		within(t, 2*time.Second, "Close", wg.Wait)
	}
}

// Whoever closes its cohort under an open channel hears there that the others are
// lost, after what has come, and before Close returns.
func conformCloseOpen(t *testing.T, m maker) {
	for victim := range 3 {
		ranks := m.make(t, 4)
		ends := joinAll(t, ranks, "s")
		ends[3].Close()
		waitLeft(t, ranks[0], ends[0].Channel, 3)
		within(t, 2*time.Second, "Close", func() { ranks[victim].Close() })
		e := ends[victim]
		if victim != 0 {
			e.wantsLost(0)
		} else {
			e.wantsLost(1)
			e.wantsLost(2)
		}
		e.quiet()
		wants(t, "after Close", e.Send(e.partner(victim), nil), ErrClosed)
		e.Close()
		for i, o := range ends[:3] { // to the others it is dead, whatever it does now
			if i != victim {
				o.wantsLost(victim)
			}
		}
	}
}

// partner is a rank that one may send to.
func (end) partner(rank int) int {
	if rank == 0 {
		return 1
	}
	return 0
}

// waitLeft waits until a rank knows that another has left a channel.
func waitLeft(t *testing.T, c Cohort, ch Channel, rank int) {
	t.Helper()
	for range 10_000 {
		h := ch.(*channel).hub
		h.mu.Lock()
		_, left := ch.(*channel).left[rank]
		h.mu.Unlock()
		if left {
			return
		}
		<-pauseBriefly()
	}
	t.Fatalf("rank %d of %d does not hear that %d has left", c.Rank(), c.Size(), rank)
}

// One slow handler does not hold up another channel, or Send.
func conformSlowHandler(t *testing.T, m maker) {
	ranks := m.make(t, 2)
	slow := &blocker{entered: make(chan struct{}, 1<<16), release: make(chan struct{})}
	if _, err := ranks[0].Join("slow", slow); err != nil {
		t.Fatal(err)
	}
	a, b := join(t, ranks[1], "slow"), joinAll(t, ranks, "fast")
	for range 1000 {
		a.send(0, "wait")
	}
	<-slow.entered
	b[1].send(0, "quick")
	b[0].wants(1, "quick")
	close(slow.release)
	for range 999 {
		<-slow.entered
	}
}

type blocker struct{ entered, release chan struct{} }

func (b *blocker) Message(int, []byte) {
	b.entered <- struct{}{}
	<-b.release
}

func (b *blocker) Lost(int, error) {}
