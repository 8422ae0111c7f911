package shm

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/weft-fabric/weft/fabric/provider"
	"github.com/weft-fabric/weft/internal/shmem"
	"github.com/weft-fabric/weft/internal/sys"
	"github.com/weft-fabric/weft/internal/testutil"
	"github.com/weft-fabric/weft/memmon"
)

func init() { roles = append(roles, testutil.Role{Name: "mortal", Run: mortal}) }

// mortal is connected, has so many bytes of memory, and waits for what becomes of it. Arguments: address, bytes, what to
// disable, endpoints.
func mortal(args []string) error {
	n, err := strconv.Atoi(args[1])
	if err != nil {
		return err
	}
	ballast := make([]byte, n)
	for i := 0; i < n; i += pageSize {
		ballast[i] = 1
	}
	d, err := open(provider.Info{}, provider.DomainConfig{Options: map[string]string{"disable": args[2]}})
	if err != nil {
		return err
	}
	endpoints, err := strconv.Atoi(args[3])
	if err != nil {
		return err
	}
	to, err := d.Insert(provider.Address(args[0]))
	if err != nil {
		return err
	}
	m, err := d.Register(heapBytes(1<<20), peerBoth)
	if err != nil {
		return err
	}
	var said []any
	for range endpoints {
		cq, err := d.OpenCompletionQueue(provider.CQConfig{})
		if err != nil {
			return err
		}
		ep, err := d.OpenEndpoint(provider.EndpointConfig{Send: cq})
		if err != nil {
			return err
		}
		if err := ep.Send(mk([]byte("here I am"), to, 0)); err != nil {
			return err
		}
		var c [1]provider.Completion
		if _, err := cq.Wait(d.background, c[:]); err != nil || c[0].Err != nil {
			return errors.Join(err, c[0].Err)
		}
		said = append(said, ep.Address())
	}
	fmt.Println("ready", uint64(m.Key()), fmt.Sprint(said...))
	fmt.Fscanln(os.Stdin) // a line, or the end
	if err := d.Close(); err != nil {
		return err
	}
	fmt.Println("closed", ballast[0])
	fmt.Fscanln(os.Stdin) // as above
	return nil
}

// raise starts a mortal and gives its peers here.
func (s *side) raise(t *testing.T, bytes int, disable string, endpoints int) (*testutil.Process, provider.Key, []provider.Peer) {
	t.Helper()
	for range endpoints {
		s.must(s.ep.Recv(recvOp(make([]byte, 100), 1)))
	}
	child := testutil.Child(t, "mortal", string(s.ep.Address()), fmt.Sprint(bytes), disable, fmt.Sprint(endpoints))
	for range endpoints {
		s.good(s.wait(), provider.RecvDone, 1)
	}
	f := strings.Fields(strings.ReplaceAll(child.Expect("ready "), "shm://", " shm://"))
	key, err := strconv.ParseUint(f[0], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	var to []provider.Peer
	for _, a := range f[1:] {
		to = append(to, s.insert(provider.Address(a)))
	}
	return child, provider.Key(key), to
}

// early says whether a peer's end was told by its word of life.
func (s *side) early(p provider.Peer) bool {
	for _, q := range s.d.Peers() {
		if q.Peer == p && q.Why != nil {
			return strings.HasSuffix(q.Why.Error(), ": it has died")
		}
	}
	return false
}

// directed posts a receive from the peer alone, which its death ends.
func (s *side) postFrom(to provider.Peer, context uint64) {
	s.t.Helper()
	o := recvOp(make([]byte, 8), context)
	o.Peer, o.Flags = to, provider.Directed
	s.must(s.ep.Recv(o))
}

// P3: a death is noticed by the word of life, whatever memory the dead has, and else by the socket, after the kernel has
// freed it. The times are those from the kill to the completion.
func TestSoakNotice(t *testing.T) {
	testutil.Require(t, feature(sys.RobustList), feature(sys.FutexWaitv))
	a := newSide(t, provider.DomainConfig{}, provider.EndpointConfig{})
	large := testutil.Count(t, 256<<20, 1<<30)
	median := map[string]time.Duration{}
	for _, c := range []struct {
		what, disable string
		bytes, rounds int
	}{
		{"word, 1 MiB", "", 1 << 20, testutil.Count(t, 3, 200)},
		{"socket, 1 MiB", "robust_list", 1 << 20, testutil.Count(t, 3, 50)},
		{"word, much", "", large, testutil.Count(t, 3, 40)},
		{"socket, much", "robust_list", large, testutil.Count(t, 3, 20)},
	} {
		var took []time.Duration
		early := 0
		for range c.rounds {
			child, _, to := a.raise(t, c.bytes, c.disable, 1)
			a.postFrom(to[0], 9)
			killed := time.Now()
			child.Kill()
			got := a.wait()
			took = append(took, time.Since(killed))
			if !errors.Is(got.Err, provider.ErrPeerGone) || got.Context != 9 {
				t.Fatalf("%+v", got)
			}
			if a.early(to[0]) {
				early++
			}
			<-child.Done()
			testutil.Eventually(t, "the pair has ended", func() bool { return a.d.Stats().Peers == 0 })
			if err := a.d.Remove(to[0]); err != nil {
				t.Fatal(err)
			}
		}
		slices.Sort(took)
		median[c.what] = took[len(took)/2]
		t.Logf("%s (of %d MiB), %d times: noticed after %v (median), %v to %v; %d by the word", c.what, c.bytes>>20, c.rounds, took[len(took)/2], took[0], took[len(took)-1], early)
		if word := c.disable == ""; c.bytes == large && word != (early == c.rounds) || !word && early > 0 {
			t.Errorf("%s: %d of %d by the word", c.what, early, c.rounds)
		}
	}
	if w, s := median["word, much"], median["socket, much"]; w > s/2 {
		t.Errorf("the word took %v, the socket %v", w, s)
	}
}

func feature(f sys.Feature) testutil.Capability {
	return testutil.Capability{Name: "the kernel's " + f.String(), Probe: func() error { return sys.Features{}.Check(f) }}
}

// A program that polls sees the word by itself: in manual mode, where there is no thread.
func TestNoticeByPolling(t *testing.T) {
	testutil.Require(t, feature(sys.RobustList))
	for _, c := range []provider.DomainConfig{
		{Progress: provider.Manual}, {Progress: provider.Auto, Options: map[string]string{"disable": "futex_waitv"}},
	} {
		a := newSide(t, c, provider.EndpointConfig{})
		child, _, to := a.raise(t, 256<<20, "", 1)
		a.postFrom(to[0], 9)
		child.Kill()
		if got := a.wait(a); !errors.Is(got.Err, provider.ErrPeerGone) || got.Context != 9 { // it polls
			t.Fatalf("%+v", got)
		}
		if !a.early(to[0]) {
			t.Errorf("%v: noticed by the socket", c.Progress)
		}
		progress(t, "the pair has ended", func() bool { return a.d.Stats().Peers == 0 }, a)
	}
}

// A peer that has no word, or a side that does not look, hears of a death by the socket. In manual mode nobody owns a word.
func TestNoticeWithout(t *testing.T) {
	for _, c := range []struct {
		here, there string
		mode        provider.Progress
	}{
		{"", "robust_list", provider.Auto}, {"futex_waitv", "", provider.Auto}, {"robust_list,futex_waitv", "robust_list,futex_waitv", provider.Auto},
		{"", "", provider.Manual},
	} {
		a := newSide(t, provider.DomainConfig{Progress: c.mode, Options: map[string]string{"disable": c.here}}, provider.EndpointConfig{})
		child, _, to := a.raise(t, 1<<20, c.there, 1)
		a.d.core.Lock()
		p := a.d.pairs[0]
		if has := p.life.word != nil; has != (c.there == "") && a.d.features.Has(sys.RobustList) {
			t.Errorf("%+v: the peer has a word: %v", c, has)
		}
		if has := p.lent != 0; has != (c.mode == provider.Auto && (sys.Features{}).Has(sys.RobustList) && !strings.Contains(c.here, "robust")) {
			t.Errorf("%+v: we have a word: %v", c, has)
		}
		if c.mode == provider.Manual && a.d.vigil != nil {
			t.Error("a goroutine in manual mode")
		}
		a.d.core.Unlock()
		a.postFrom(to[0], 9)
		child.Kill()
		if got := a.wait(); !errors.Is(got.Err, provider.ErrPeerGone) || got.Context != 9 {
			t.Fatalf("%+v", got)
		}
	}
}

// A peer that closes, or is stopped, has not died; each of many endpoints of a dead process is noticed, also those for which there
// was no word.
func TestNoticeOthers(t *testing.T) {
	testutil.Require(t, feature(sys.RobustList), feature(sys.FutexWaitv))
	a := newSide(t, provider.DomainConfig{}, provider.EndpointConfig{})
	child, key, to := a.raise(t, 1<<20, "", 1)
	read := provider.Op{Local: provider.Segment{Bytes: make([]byte, 100)}, Peer: to[0], Key: key, Context: 3}
	for range 20 {
		if err := child.Signal(syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		a.must(a.ep.Read(read))
		if err := child.Signal(syscall.SIGCONT); err != nil {
			t.Fatal(err)
		}
		a.good(a.wait(), provider.ReadDone, 3)
	}
	a.postFrom(to[0], 9)
	child.Send("close")
	child.Expect("closed")
	if got := a.wait(); !errors.Is(got.Err, provider.ErrPeerGone) || a.early(to[0]) {
		t.Fatalf("%+v, by the word: %v", got, a.early(to[0]))
	}
	const many = lifeWords + 20
	child, _, to = a.raise(t, 64<<20, "", many)
	for i, p := range to {
		a.postFrom(p, uint64(i))
	}
	a.d.core.Lock()
	lent := map[uint32]bool{}
	for _, p := range a.d.pairs {
		if p.lent != 0 && lent[p.lent] {
			t.Errorf("word %d is lent twice", p.lent)
		}
		lent[p.lent] = true
	}
	if v := a.d.vigil; len(lent) != lifeWords+1 || len(v.free) != 0 || v.count() != lifeWords-1 {
		t.Errorf("%d words lent, %d left, %d watched", len(lent), len(v.free), v.count())
	}
	a.d.core.Unlock()
	early := a.mournAlone(child)
	for range to {
		if got := a.wait(); !errors.Is(got.Err, provider.ErrPeerGone) {
			t.Fatalf("%+v", got)
		}
	}
	if len(early) != lifeWords {
		t.Errorf("%d words of %d peers", len(early), len(to))
	}
	for _, p := range early {
		if !a.early(p) {
			t.Errorf("%v was not noticed by the word", p)
		}
	}
	testutil.Eventually(t, "the pairs have ended", func() bool { return a.d.Stats().Peers == 0 })
	a.d.core.Lock()
	defer a.d.core.Unlock()
	if v := a.d.vigil; len(v.free) != lifeWords || v.count() != 0 {
		t.Errorf("%d words are free, %d are watched", len(v.free), v.count())
	}
}

// mournAlone kills a peer and looks once at all words of life, before anybody looks at a socket; it returns those that have one.
func (s *side) mournAlone(child *testutil.Process) (list []provider.Peer) {
	s.d.core.Lock()
	defer s.d.core.Unlock()
	child.Kill()
	pairs := slices.Clone(s.d.pairs)
	tokens := make([]uint64, len(pairs))
	for i, p := range pairs {
		tokens[i], p.token = p.token, 0
		if p.life.word == nil {
			continue
		}
		list = append(list, p.peer.id)
		testutil.Eventually(s.t, "the word is marked", p.life.died)
	}
	s.d.mourn()
	for i, p := range pairs {
		p.token = tokens[i]
	}
	return list
}

// count is how many words it watches.
func (v *vigil) count() int {
	v.mu.Lock()
	defer v.mu.Unlock()
	return len(v.watched)
}

// ownWord is the first word of life of a domain, which has taken up its vigil.
func (s *side) ownWord() *atomic.Uint32 {
	s.d.core.Lock()
	defer s.d.core.Unlock()
	s.d.keepVigil()
	w, _ := shmem.AtomicUint32(s.d.home.m.Bytes()[homeLives:])
	return w
}

// pairWithPeer is the pair of the side's endpoint. Locked.
func (s *side) pairWithPeer(to provider.Peer) *pair {
	return (*s.d.av.Lookup(to)).pair(s.ep.(*endpoint))
}

// watches has s watch a word of a domain of this process, as if it were another one.
func (s *side) watches(to provider.Peer) {
	s.d.core.Lock()
	defer s.d.core.Unlock()
	s.d.keepVigil()
	p := s.pairWithPeer(to)
	p.life = lifeIn(p.home.m, 1)
	s.d.vigil.watch(p, p.life)
}

// A peer that marks its own word has itself taken for dead, hears of it, and harms nobody else. One that writes other things into it is not
// watched any more, and costs nothing.
func TestHostileWord(t *testing.T) {
	testutil.Require(t, feature(sys.RobustList), feature(sys.FutexWaitv))
	a, b, ab, ba := twoSides(t, provider.DomainConfig{})
	friend := newSide(t, provider.DomainConfig{}, provider.EndpointConfig{})
	exchange(t, friend, a)
	exchange(t, b, a)
	w := b.ownWord()
	for _, v := range []uint32{0, 12345, sys.OwnerWaits | 1} {
		honest := w.Load()
		a.watches(ab)
		w.Store(v)
		if _, err := sys.FutexWake(w, 1); err != nil {
			t.Fatal(err)
		}
		testutil.Eventually(t, "it is watched no more", func() bool { return a.d.vigil.count() == 0 })
		if l := lifeIn(b.d.home.m, 1); (l.word != nil) != (v&sys.OwnerWaits != 0) {
			t.Errorf("a peer with %#x has a word: %v", v, l.word != nil)
		}
		w.Store(honest)
		exchange(t, b, a)
	}
	a.watches(ab)
	a.postFrom(ab, 9)
	w.Store(sys.OwnerDied)
	if _, err := sys.FutexWake(w, 1); err != nil {
		t.Fatal(err)
	}
	if c := a.wait(); !errors.Is(c.Err, provider.ErrPeerGone) || c.Context != 9 || !a.early(ab) {
		t.Fatalf("%+v", c)
	}
	b.postFrom(ba, 8)
	if c := b.wait(); !errors.Is(c.Err, provider.ErrPeerGone) || !strings.Contains(c.Err.Error(), "you have died") {
		t.Fatalf("%+v", c)
	}
	exchange(t, friend, a)
	exchange(t, b, a) // as a new peer
}

// What a dying peer's other threads write after the word was marked counts, but is not acknowledged: they may have told others that it was done, and must
// not be told more.
func TestLateWords(t *testing.T) {
	a, b, ab, ba := twoSides(t, provider.DomainConfig{Progress: provider.Manual})
	mem := make([]byte, 1<<20)
	m, err := a.d.Register(memmon.HeapBytes(mem), peerBoth)
	if err != nil {
		t.Fatal(err)
	}
	note := func(context uint64) provider.Op {
		o := provider.Op{Local: provider.Segment{Bytes: pattern(5000, byte(context))}, Peer: ba, Key: m.Key(), Offset: context * 10000, Context: context}
		return o
	}
	b.must(b.ep.Send(mk([]byte("early..."), ba, 0)))
	progress(t, "connected", func() bool { return a.unexpected(ab) > 0 }, b, a)
	b.good(b.wait(), provider.SendDone, 0)
	// A long write is under way; a long message was asked for, and another waits for its receive.
	asked := mk(make([]byte, 300000), ba, 6)
	asked.Tag = 6
	b.must(b.ep.SendTagged(asked))
	b.must(b.ep.Send(mk(make([]byte, 300000), ba, 1)))
	b.must(b.ep.Write(note(2)))
	want := mk(make([]byte, 300000), 0, 13)
	want.Tag = 6
	a.must(a.ep.RecvTagged(want))
	progress(t, "the offer is there", func() bool { return a.unexpected(ab) >= 8+2*keepCost }, a)
	a.postFrom(ab, 9) // takes the early one
	a.good(a.wait(), provider.RecvDone, 9)
	a.must(a.ep.Send(mk(make([]byte, 300000), ab, 10))) // an offer that b does not answer
	a.d.core.Lock()
	p := a.pairWithPeer(ab)
	p.noticed()
	a.d.reap()
	if !p.dying() || p.peer.why == nil {
		t.Errorf("state %d, %v", p.state, p.peer.why)
	}
	a.d.core.Unlock()
	for _, context := range []uint64{10, 13} {
		if c := a.wait(); !errors.Is(c.Err, provider.ErrPeerGone) || c.Context != context {
			t.Errorf("%+v", c)
		}
	}
	if n := a.unexpected(ab); n != 0 {
		t.Errorf("the offer waits on: %d bytes", n)
	}
	a.postFrom(ab, 11) // there is nothing: it ends at once
	if c := a.wait(); !errors.Is(c.Err, provider.ErrPeerGone) || c.Context != 11 {
		t.Errorf("%+v", c)
	}

	// b goes on, for a moment: with the bytes it was asked for, with the rest of its write, with a short write, and with messages that come after these.
	b.d.core.Lock()
	q := b.d.pairs[0]
	for q.pollControl() { // it was asked for the bytes before
	}
	q.push()
	q.publish()
	b.d.core.Unlock()
	short := note(3)
	short.Local.Bytes = short.Local.Bytes[:100]
	b.must(b.ep.Write(short))
	b.must(b.ep.Send(mk([]byte("late one"), ba, 4)))
	b.must(b.ep.Send(mk(make([]byte, 200000), ba, 5)))
	in := make([]byte, 8)
	a.must(a.ep.Recv(recvOp(in, 12)))
	if c := a.good(a.wait(), provider.RecvDone, 12); string(in) != "late one" || c.Source != ab {
		t.Errorf("%q of %d", in, c.Source)
	}
	if !bytes.Equal(mem[20000:25000], pattern(5000, 2)) || !bytes.Equal(mem[30000:30100], pattern(5000, 3)[:100]) {
		t.Error("a message came before the bytes of the writes before it")
	}

	// A message waits for the write before it, but for nothing that can never come.
	b.d.core.Lock()
	put := record{op: opInline, flags: recAfter, after: q.controlSent + 1, payload: []byte("and last")}
	room, err := q.data.Reserve(recordLen(put.op, put.flags) + len(put.payload))
	if err != nil {
		t.Fatal(err)
	}
	put.put(room)
	q.data.Commit()
	q.publish()
	b.d.core.Unlock()
	a.must(a.ep.Recv(recvOp(in, 14)))
	a.drainNone()
	short = note(7)
	short.Local.Bytes = short.Local.Bytes[:100]
	b.must(b.ep.Write(short))
	a.good(a.wait(), provider.RecvDone, 14)
	if string(in) != "and last" || !bytes.Equal(mem[70000:70100], pattern(5000, 7)[:100]) {
		t.Errorf("%q came before the write before it", in)
	}

	// Then it hears of it. Nothing of what was late is done, for b, but the short message, which was with the peer at once.
	for range 7 {
		switch c := b.wait(a); c.Context {
		case 4:
			b.good(c, provider.SendDone, 4)
		default:
			if !errors.Is(c.Err, provider.ErrPeerGone) {
				t.Errorf("%+v", c)
			}
		}
	}
	progress(t, "the pair has ended", func() bool { return a.d.Stats().Peers == 0 }, a, b)
	if n := a.d.ops.Len(); n != 0 {
		t.Errorf("%d operations are left", n)
	}
}

// drainNone fails the test if there is a completion, or comes one while the side polls.
func (s *side) drainNone() {
	s.t.Helper()
	for range 100 {
		var c [1]provider.Completion
		if n, err := s.cq.Read(c[:]); n != 0 || err != nil {
			s.t.Fatalf("%+v, %v", c, err)
		}
	}
}
