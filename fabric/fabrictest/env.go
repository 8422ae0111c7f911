package fabrictest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/weft-fabric/weft/fabric/provider"
	"github.com/weft-fabric/weft/internal/testutil"
)

// patience bounds every wait of the suite: a provider that hangs fails one group, not the whole run.
const patience = time.Minute

// patient is a context with that bound.
func (e *env) patient() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), e.o.patience)
}

// env is what a group's test gets: the test itself, and the provider in one progress mode.
type env struct {
	testing.TB
	c     Config
	o     opener
	info  provider.Info
	mode  provider.Progress
	way   way
	sides []*side
	procs map[int]*remote
	seed  uint64
	rnd   *rand.Rand
}

// group is a part of the law.
type group struct {
	name   string
	needs  provider.Caps
	auto   bool // for auto progress only
	procs  int  // the least number of processes with which it makes sense; 0 is 1
	denied bool // needs Config.Denied
	run    func(e *env)
}

// check runs a group, or skips it if the provider does not offer what it needs.
func (g group) check(t testing.TB, c Config, p provider.Provider, info provider.Info, mode provider.Progress) {
	t.Helper()
	if !info.Caps.Has(g.needs) {
		t.Skipf("%s does not offer %v", c.Provider, g.needs&^info.Caps)
	}
	if g.auto && mode != provider.Auto {
		t.Skipf("this is about automatic progress")
	}
	if c.Procs < g.procs {
		t.Skipf("this needs %d processes, the run has %d", g.procs, c.Procs)
	}
	if g.denied && c.Denied == nil {
		t.Skipf("the run has no options that deny a fast path")
	}
	e := newEnv(t, c, p, info, mode)
	g.run(e)
	e.finish()
}

func newEnv(t testing.TB, c Config, p provider.Provider, info provider.Info, mode provider.Progress) *env {
	t.Helper()
	return &env{
		TB: t, c: c, o: opener{p, info, c.Options, cmp.Or(c.patience, patience), c.Again}, info: info, mode: mode,
		procs: make(map[int]*remote), rnd: testutil.Rand(t),
	}
}

// has says whether the provider offers all of c.
func (e *env) has(c provider.Caps) bool { return e.info.Caps.Has(c) }

// fresh is a new seed of a pattern.
func (e *env) fresh() uint64 {
	e.seed += 1 << 20
	return e.seed
}

// name is a new name of an endpoint: tests of several runs at the same time do not meet.
func (e *env) name(what string) string { return fmt.Sprintf("%s-%x", what, e.rnd.Uint64()) }

// side makes a program in process where, counted from 0, this process; above the last one it
// begins anew. Nothing is open there.
func (e *env) side(where int) *side {
	e.Helper()
	s := &side{e: e, where: where % e.c.Procs}
	if s.where == 0 {
		s.local = &agent{o: e.o}
	} else {
		s.remote = e.process(s.where)
	}
	e.sides = append(e.sides, s)
	e.Cleanup(s.tidy)
	return s
}

// process starts a child: each side that is not in this process has one of its own.
func (e *env) process(int) *remote {
	e.Helper()
	return launch(e)
}

// tidy ends and closes what a test that failed has left.
func (s *side) tidy() {
	if s.local != nil {
		if s.local.col != nil {
			s.local.col.add(nil, errOver) // a flow that waits goes on, and ends
		}
		for _, flow := range s.waiting {
			<-flow
		}
		if err := s.local.close(); err != nil && !s.e.Failed() {
			s.e.Errorf("closing a side: %v", err)
		}
	}
}

var errOver = errors.New("the test is over")

// spec is how sides open if a test wants nothing of its own.
func (e *env) spec() openSpec { return openSpec{Progress: e.mode, Way: e.way} }

// pair opens two sides in two processes, if there are two.
func (e *env) pair() (a, b *side) {
	e.Helper()
	return e.pairOf(e.spec(), e.spec())
}

func (e *env) pairOf(sa, sb openSpec) (a, b *side) {
	e.Helper()
	a, b = e.side(0), e.side(1)
	a.open(sa)
	b.open(sb)
	return a, b
}

// finish closes every side; processes must end well, with nothing left in them.
func (e *env) finish() {
	e.Helper()
	for _, s := range e.sides {
		if s.remote != nil && s.remote.dead {
			continue
		}
		s.close()
		if s.remote != nil {
			s.nothingLeft()
			if err := s.remote.end(); err != nil {
				e.Errorf("side %d: %v", s.where, err)
			}
		}
	}
}

// nothingLeft fails the test if the child's goroutines, descriptors or mappings have grown; in this process
// testutil.Main looks.
func (s *side) nothingLeft() {
	s.e.Helper()
	var u usage
	ok := func() bool {
		u = s.usage()
		return u.Goroutines <= idleGoroutines && u.Shared == 0
	}
	for range 200 {
		if ok() {
			return
		}
		pause(5 * time.Millisecond)
	}
	s.e.Errorf("after Close side %d still has %d goroutines, %d shared mappings", s.where, u.Goroutines, u.Shared)
}

// idleGoroutines are those of a child without an open domain: the one that serves.
const idleGoroutines = 1

// pause lets time go by where a test is about time, or nothing tells of an event.
func pause(d time.Duration) { <-time.After(d) }

// eventually waits until ok, for what tells nobody when it comes about.
func (e *env) eventually(what string, ok func() bool) {
	e.Helper()
	for end := time.Now().Add(e.o.patience); !ok(); pause(time.Millisecond) {
		if time.Now().After(end) {
			e.Fatalf("not so after %v: %s", e.o.patience, what)
		}
	}
}

// shuffled returns the numbers below n in random order.
func (e *env) shuffled(n int) []int { return e.rnd.Perm(n) }

// sizes are lengths of messages around everything that a provider may treat specially, up to limit.
func (e *env) sizes(limit int) []int {
	all := []int{
		0, 1, 7, 8, 31, 32, 33, 63, 64, 65, 127, 255, 256, 1000, 1023, 1024, 2048, 4000, 4032, 4095, 4096, 4097, 8192, 16000,
		32768, 65535, 65536, 65537, 100000, 262144, 262145, 1 << 20,
	}
	if in := e.info.Limits.Inject; in > 1 && in < 1<<20 {
		all = append(all, int(in)-1, int(in), int(in)+1)
	}
	if m := e.info.Limits.Message; m > 0 {
		limit = int(min(uint64(limit), m))
	}
	slices.Sort(all)
	all = slices.Compact(all)
	return slices.DeleteFunc(all, func(n int) bool { return n > limit })
}

// direct is one side in this process without an agent: for what is about single calls.
type direct struct {
	d  domain
	q  queue
	ep endpoint
	to provider.Peer // the other one
}

// open opens a side in this process and sees to its end.
func (e *env) open(dc provider.DomainConfig, ec endpointConfig, qc provider.CQConfig) *direct {
	e.Helper()
	dc.Progress = e.mode
	d, err := e.o.open(dc)
	if err != nil {
		e.Fatalf("open domain: %v", err)
	}
	e.Cleanup(func() {
		if err := d.Close(); err != nil {
			e.Errorf("close domain: %v", err)
		}
	})
	q, err := d.OpenCompletionQueue(qc)
	if err != nil {
		e.Fatalf("open completion queue: %v", err)
	}
	ec.Send, ec.Recv = q, q
	ep, err := d.OpenEndpoint(ec)
	if err != nil {
		e.Fatalf("open endpoint: %v", err)
	}
	return &direct{d: d, q: q, ep: ep}
}

// directs opens two that know each other.
func (e *env) directs() (a, b *direct) {
	e.Helper()
	return e.directsOf(endpointConfig{}, provider.CQConfig{})
}

func (e *env) directsOf(ec endpointConfig, qc provider.CQConfig) (a, b *direct) {
	e.Helper()
	a, b = e.open(provider.DomainConfig{}, ec, qc), e.open(provider.DomainConfig{}, ec, qc)
	a.to, b.to = e.meet(a, b), e.meet(b, a)
	return a, b
}

func (e *env) meet(a, b *direct) provider.Peer {
	e.Helper()
	p, err := a.d.Insert(b.ep.Address())
	if err != nil {
		e.Fatalf("insert: %v", err)
	}
	return p
}

// until reads the queues of all directs, which drives progress in manual mode, until those of the
// first have given n completions, and returns them.
func (e *env) until(n int, first *direct, others ...*direct) []provider.Completion {
	e.Helper()
	var got []provider.Completion
	var some [16]provider.Completion
	end := time.Now().Add(e.o.patience)
	for len(got) < n {
		for i, d := range append([]*direct{first}, others...) {
			k, err := d.q.Read(some[:])
			if err != nil {
				e.Fatalf("read: %v", err)
			}
			if i == 0 {
				got = append(got, some[:k]...)
			} else if k > 0 {
				e.Fatalf("a completion where none is expected: %s", show(some[0]))
			}
		}
		if time.Now().After(end) {
			e.Fatalf("after %v %d of %d completions", e.o.patience, len(got), n)
		}
	}
	return got
}
