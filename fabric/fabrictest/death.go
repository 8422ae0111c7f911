package fabrictest

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/weft-fabric/weft/fabric/provider"
	"github.com/weft-fabric/weft/internal/testutil"
)

// testDeath (F29): a peer dies with operations under way. Each ends once, with an error that names the peer; so does what is
// posted later. ErrAgain does not mean death. Receives that anybody could answer stay.
func testDeath(e *env) {
	a := e.side(0)
	a.open(e.spec())
	for _, ballast := range []int{1 << 20, testutil.Count(e, 1<<20, 1<<30)} {
		b := e.side(1)
		b.do(request{Verb: "ballast", N: ballast})
		spec := e.spec()
		spec.Way = byHand // it answers nothing
		b.open(spec)
		to := a.knows(b)
		e.acquaint(a, b, to)
		out := a.heap(300000, 1)
		ops := e.doomed(a, b, to, out)
		for _, op := range ops {
			a.post(op)
		}
		free := recvOp(500, a.heap(8, 0).all())
		a.post(free)
		// What ended well before the death is no concern of this test.
		early, _ := a.tryTake(len(ops), 300*time.Millisecond)
		b.kill()
		left := len(ops) - len(early)
		var late []provider.Completion
		within(e, deathBound, "the end of the last operation towards a dead peer", func() { late = a.take(left) })
		e.mourned(a, b, ops, early, late)
		for i := range uint64(10) {
			e.refused(a, "a send to the dead", sendOp(to, 600+i, out.part(0, 8)), provider.ErrPeerGone)
		}
		a.none("the dead stay dead")
		if !a.cancel(500) {
			e.Fatalf("a receive for anybody has gone with one peer")
		}
		a.fails(provider.RecvDone, 500, provider.ErrCancelled)
		e.rememberedAs(a, to)
	}
}

// doomed are operations that do not end before the peer does something.
func (e *env) doomed(a, b *side, to provider.Peer, out mem) []opSpec {
	e.Helper()
	ops := []opSpec{
		sendOp(to, 1, out.part(0, 8)).with(provider.DeliveryComplete, 0),
		sendOp(to, 2, out.all()).with(provider.DeliveryComplete, 0),
	}
	if e.has(provider.Tagged) {
		ops = append(ops, tsendOp(to, 3, 3, out.all()).with(provider.DeliveryComplete, 0))
	}
	if e.has(provider.DirectedRecv) {
		op := recvOp(4, a.heap(8, 0).all()).with(provider.Directed, 0)
		op.Peer = to
		ops = append(ops, op)
	}
	if e.has(provider.RMA) {
		m := b.private(300000, 1, readWrite)
		ops = append(ops, rmaOp(provider.ReadDone, to, m, 0, 5, a.heap(300000, 0).all()), rmaOp(provider.WriteDone, to, m, 0, 6, out.all()))
	}
	return ops
}

// mourned checks the ends of the doomed. A read needs nothing of its target where the initiator can do it by
// itself, and may have ended well before the death, also if that was seen later: then it has brought what was there.
func (e *env) mourned(a, b *side, ops []opSpec, early, late []provider.Completion) {
	e.Helper()
	seen := map[uint64]bool{}
	for i, c := range append(early, late...) {
		if seen[c.Context] || c.Context > uint64(len(ops))+1 {
			e.Fatalf("a second end, or of nothing: %s", show(c))
		}
		seen[c.Context] = true
		switch {
		case i < len(early) && c.Err == nil:
		case c.Err == nil && c.Kind == provider.ReadDone:
			op := ops[slices.IndexFunc(ops, func(op opSpec) bool { return op.Context == c.Context })]
			a.holds("what a read has brought of a peer that died then", op.Segs[0], 1)
		default:
			e.named(b, c.Err)
		}
	}
}

// named fails the test unless the error says that this peer is gone.
func (e *env) named(b *side, err error) {
	e.Helper()
	oe, ok := errors.AsType[*provider.OpError](err)
	if !ok || !errors.Is(err, provider.ErrPeerGone) || oe.Addr != b.addr() {
		e.Fatalf("an operation towards the dead peer %s ended with: %v", b.addr(), err)
	}
	if text := outOfOrder(err); text != "" {
		e.Fatal(text)
	}
}

// refusedGone posts to a dead peer: the post or its completion says so. A send is one that completes when the
// message has arrived: others may end well as long as nobody has heard of the death.
func (e *env) refusedGone(a, b *side, op opSpec) {
	e.Helper()
	if op.Kind == provider.SendDone {
		op = op.with(provider.DeliveryComplete, 0)
	}
	if err := a.tryPost(op); err != nil {
		e.named(b, err)
		return
	}
	c := a.take(1)[0]
	if c.Context != op.Context {
		e.Fatalf("got %s", show(c))
	}
	e.named(b, c.Err)
}

// rememberedAs: the list of peers says that it is gone, and why.
func (e *env) rememberedAs(a *side, to provider.Peer) {
	e.Helper()
	for _, p := range a.do(request{Verb: "peers"}).Peers {
		if p.Peer == to {
			if p.State != "gone" || !errors.Is(p.Failure.err(), provider.ErrPeerGone) {
				e.Errorf("a dead peer is listed as %q, because: %v", p.State, p.Failure.err())
			}
			return
		}
	}
	e.Errorf("a dead peer is not listed")
}

// testKill: kill -9 of the other side at random moments of a storm. The survivor's operations end once, with an error that names the
// peer, in time; its memory, descriptors and goroutines return to base; the name works again at once.
func testKill(e *env) {
	a := e.side(0)
	spec := e.spec()
	spec.Name = e.name("survivor")
	a.open(spec)
	name := e.name("victim")
	sizes := []int{1 << 20}
	if testutil.Count(e, 0, 1) == 1 {
		sizes = append(sizes, 1<<30)
	}
	var base usage
	took := map[int][]time.Duration{}
	rounds := testutil.Count(e, 4, 500)
	for round := range rounds {
		if round == min(3, rounds-1) {
			base = a.usage()
		}
		ballast := sizes[0]
		if len(sizes) > 1 && round%50 == 49 {
			ballast = sizes[1]
		}
		took[ballast] = append(took[ballast], e.killRound(a, name, ballast))
	}
	for _, n := range sizes {
		if t := took[n]; len(t) > 0 {
			slices.Sort(t)
			e.Logf("all had ended %v after the kill (median; %v to %v): a peer of %d MiB was killed, %d times", t[len(t)/2], t[0], t[len(t)-1], n>>20, len(t))
		}
	}
	e.noTraces(name)
	var u usage
	defer func() { e.Logf("held before: %+v, after: %+v", base, u) }()
	e.eventually("nothing has grown", func() bool {
		_, _ = a.tryTake(1, time.Millisecond) // a peer that was noticed early is let go by a later call
		u = a.usage()
		return u.Goroutines <= base.Goroutines+1 && u.Files <= base.Files+2 && u.Shared <= base.Shared+2 && u.Resident <= base.Resident+64<<10
	})
}

// noTraces: no file anywhere is called by a name of the dead.
func (e *env) noTraces(name string) {
	e.Helper()
	for _, dir := range []string{"/dev/shm", os.TempDir(), filepath.Join("/run/user", strconv.Itoa(os.Getuid())), e.c.Options["folder"]} {
		found, err := filepath.Glob(filepath.Join(dir, "*"+name+"*"))
		if err != nil {
			e.Fatal(err)
		}
		if dir != "" && len(found) > 0 {
			e.Errorf("the dead have left %q", found)
		}
	}
}

// killRound kills once, and returns how long after it the last operation of the survivor had ended.
func (e *env) killRound(a *side, name string, ballast int) time.Duration {
	e.Helper()
	b := e.side(1)
	b.do(request{Verb: "ballast", N: ballast})
	spec := e.spec()
	spec.Name = name
	b.open(spec)
	e.storms(a, b)
	pause(time.Duration(e.rnd.IntN(30000)) * time.Microsecond)
	killed := time.Now()
	b.shoot()
	r, err := a.try(request{Verb: "join-storm", Millis: int(noticeBound / time.Millisecond)})
	if err != nil {
		e.Fatal(err)
	}
	took := time.Since(killed)
	b.kill() // it is gone when the next one wants its name
	if !strings.Contains(r.Text, string(b.addr())) {
		e.Fatalf("the storm ended by %q, which does not name %s", r.Text, b.addr())
	}
	if r.N == 0 {
		e.Fatalf("the storm posted nothing")
	}
	return took
}

// storms lets both sides storm at each other, with memory of both kinds.
func (e *env) storms(a, b *side) {
	e.Helper()
	fa, fb := e.stormAt(a, b), e.stormAt(b, a)
	b.do(request{Verb: "storm", Flow: &fb})
	a.do(request{Verb: "storm", Flow: &fa})
}

// stormAt is a storm of s, with memory of o.
func (e *env) stormAt(s, o *side) flow {
	e.Helper()
	f := flow{Peers: []provider.Peer{s.knows(o)}, Bytes: stormLong}
	if !e.has(provider.RMA) {
		return f
	}
	if o.target == nil { // a survivor of many storms has it already
		o.target = &flow{Key: o.mem("register", stormLong, readWrite).key}
		if e.has(provider.Arena) {
			o.target.Arena = o.mem("alloc", stormLong, readWrite).key
		}
	}
	f.Key, f.Arena = o.target.Key, o.target.Arena
	return f
}

// testStop: SIGSTOP of the other side at random moments. Nothing here blocks; after SIGCONT all goes on; a domain closes in time although
// its peer is stopped.
func testStop(e *env) {
	for range testutil.Count(e, 2, 100) {
		a, b := e.pair()
		e.storms(a, b)
		pause(time.Duration(e.rnd.IntN(20000)) * time.Microsecond)
		b.signal(syscall.SIGSTOP)
		pause(20 * time.Millisecond)
		within(e, time.Second, "Stats with a stopped peer", func() { a.stats() })
		if e.rnd.IntN(2) == 0 {
			b.signal(syscall.SIGCONT)
			pause(5 * time.Millisecond)
			a.do(request{Verb: "stop-storm"})
			e.joinStorm(a)
		} else {
			a.do(request{Verb: "stop-storm"})
			e.joinStorm(a)
			within(e, time.Second, "Close with a stopped peer", func() { a.close() })
			b.signal(syscall.SIGCONT)
		}
		if a.local != nil && a.local.d != nil {
			a.close()
		}
		e.joinStorm(b) // it ends by the end of a
		b.close()
	}
}

func (e *env) joinStorm(s *side) {
	e.Helper()
	if _, err := s.try(request{Verb: "join-storm", Millis: int(noticeBound / time.Millisecond)}); err != nil {
		e.Fatalf("side %d: %v", s.where, err)
	}
}

// within runs do and fails the test if it takes longer.
func within(e *env, limit time.Duration, what string, do func()) {
	e.Helper()
	late := e.lateness()
	defer late.stop()
	began := time.Now()
	do()
	if took := time.Since(began); took > limit+late.worst() {
		e.Errorf("%s took %v, on a machine that is late by %v", what, took, late.worst())
	}
}

// testOnePeerDies: the death of one peer is nothing to the others.
func testOnePeerDies(e *env) {
	a := e.side(0)
	a.open(e.spec())
	c := e.side(2)
	c.open(e.spec())
	toC, fromA := a.knows(c), c.knows(a)
	for round := range 3 {
		b := e.side(1)
		b.open(e.spec())
		to := a.knows(b)
		e.message(a, b, to, b.knows(a), 100, false)
		a.post(sendOp(toC, 50, a.heap(100, 1).all()).with(provider.DeliveryComplete, 0))
		b.kill()
		in := c.heap(100, 0)
		c.post(recvOp(51, in.all()))
		c.one(provider.RecvDone, 51)
		a.one(provider.SendDone, 50)
		for i := range 5 {
			e.message(a, c, toC, fromA, 1000*(i+1)*(round+1), i%2 == 1)
		}
		e.refusedGone(a, b, sendOp(to, 1, a.heap(8, 0).all()))
	}
}
