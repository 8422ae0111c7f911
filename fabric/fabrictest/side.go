package fabrictest

import (
	"errors"
	"syscall"
	"time"

	"github.com/weft-fabric/weft/fabric/provider"
)

// side is one program of a test, wherever it runs: here, or in a child process. Its methods fail
// the test if the agent reports an error, but for those called try. They are called from the test's goroutine.
type side struct {
	e       *env
	where   int     // number of its process; 0 is this one
	local   *agent  // in this process
	remote  *remote // or in a child
	addrs   []provider.Address
	waiting []chan reply // of local requests that were started
	target  *flow        // the keys of what others' storms use of it
}

// mem is a buffer of a side.
type mem struct {
	s    *side
	id   int
	n    int
	key  provider.Key
	base uint64
}

// part is a piece of a buffer.
func (m mem) part(off, n int) seg { return seg{Buf: m.id, Off: off, N: n} }

// all is the buffer.
func (m mem) all() seg { return m.part(0, m.n) }

// raw is a piece as raw bytes.
func (m mem) raw(off, n int) seg { return seg{Buf: m.id, Off: off, N: n, Raw: true} }

// try sends a request and returns the answer and its error.
func (s *side) try(r request) (reply, error) {
	s.e.Helper()
	s.start(r)
	return s.join()
}

// start sends a request and does not wait: sides of other processes work at the same time. Join
// returns the answer; requests that were started are joined in their order.
func (s *side) start(r request) {
	s.e.Helper()
	if s.remote != nil {
		if s.remote.dead {
			s.e.Fatalf("%s: the side was killed", r.Verb)
		}
		s.remote.ask(r)
		return
	}
	done := make(chan reply, 1)
	s.waiting = append(s.waiting, done)
	if r.Verb == "flow" {
		go func() { done <- s.local.do(r) }()
		return
	}
	done <- s.local.do(r)
}

// join waits for the answer to the oldest request that was started.
func (s *side) join() (reply, error) {
	s.e.Helper()
	if s.remote != nil {
		a := s.remote.answer()
		s.readable(a)
		return a, a.Err.err()
	}
	done := s.waiting[0]
	s.waiting = s.waiting[1:]
	a := <-done
	s.readable(a)
	return a, a.Err.err()
}

// readable fails the test if an error of the answer names operation and peer twice, or a completion's another operation than its own.
func (s *side) readable(a reply) {
	s.e.Helper()
	failures := []*failure{a.Err}
	for _, d := range a.Done {
		failures = append(failures, d.Failure)
		s.names(d.Kind, d.Failure.err())
	}
	for _, p := range a.Peers {
		failures = append(failures, p.Failure)
	}
	for _, f := range failures {
		if f.nests() {
			s.e.Errorf("side %d: an error says twice what failed: %s", s.where, f.Text)
			return
		}
	}
}

// names fails the test unless the error of an operation names it.
func (s *side) names(k provider.Kind, err error) {
	s.e.Helper()
	if err == nil {
		return
	}
	if oe, ok := errors.AsType[*provider.OpError](err); !ok || oe.Op != k.String() {
		s.e.Errorf("side %d: the error of a %v names another operation, or none: %v", s.where, k, err)
	}
}

// do sends a request that must succeed.
func (s *side) do(r request) reply {
	s.e.Helper()
	a, err := s.try(r)
	if err != nil {
		s.e.Fatalf("side %d: %s: %v", s.where, r.Verb, err)
	}
	return a
}

// addr is the address of the first endpoint.
func (s *side) addr() provider.Address { return s.addrs[0] }

func (s *side) open(o openSpec) {
	s.e.Helper()
	s.addrs, s.target = s.do(request{Verb: "open", Open: &o}).Addresses, nil
}

func (s *side) insert(a provider.Address) provider.Peer {
	s.e.Helper()
	return s.do(request{Verb: "insert", Address: a}).Peer
}

// knows makes a peer of the other side's first endpoint.
func (s *side) knows(o *side) provider.Peer {
	s.e.Helper()
	return s.insert(o.addr())
}

func (s *side) mem(verb string, n int, a provider.Access) mem {
	s.e.Helper()
	r := s.do(request{Verb: verb, N: n, Access: a})
	return mem{s, r.N, n, r.Key, r.Base}
}

// heap makes a buffer of ordinary memory with a pattern in it.
func (s *side) heap(n int, seed uint64) mem {
	s.e.Helper()
	m := s.mem("heap", n, 0)
	s.fill(m.all(), seed)
	return m
}

// arena and private make memory that peers may use, with a pattern in it.
func (s *side) arena(n int, seed uint64, a provider.Access) mem {
	s.e.Helper()
	m := s.mem("alloc", n, a)
	s.fill(m.all(), seed)
	return m
}

func (s *side) private(n int, seed uint64, a provider.Access) mem {
	s.e.Helper()
	m := s.mem("register", n, a)
	s.fill(m.all(), seed)
	return m
}

func (s *side) fill(p seg, seed uint64) {
	s.e.Helper()
	if p.N > 0 {
		s.do(request{Verb: "fill", Buf: p.Buf, Off: p.Off, N: p.N, Seed: seed})
	}
}

// holds fails the test unless the piece has the pattern.
func (s *side) holds(what string, p seg, seed uint64) {
	s.e.Helper()
	if at := s.do(request{Verb: "wrong", Buf: p.Buf, Off: p.Off, N: p.N, Seed: seed}).N; at >= 0 {
		s.e.Fatalf("%s: byte %d of %d is wrong", what, at, p.N)
	}
}

func (s *side) get(p seg) []byte {
	s.e.Helper()
	return s.do(request{Verb: "get", Buf: p.Buf, Off: p.Off, N: p.N}).Bytes
}

func (s *side) set(m mem, off int, b []byte) {
	s.e.Helper()
	s.do(request{Verb: "set", Buf: m.id, Off: off, Bytes: b})
}

// post starts an operation that must be accepted.
func (s *side) post(op opSpec) {
	s.e.Helper()
	if err := s.tryPost(op); err != nil {
		s.e.Fatalf("side %d: posting a %v was refused: %v", s.where, op.Kind, err)
	}
}

func (s *side) tryPost(op opSpec) error {
	s.e.Helper()
	_, err := s.try(request{Verb: "post", Op: &op})
	if !errors.Is(err, errNothing) {
		s.names(op.Kind, err)
	}
	return err
}

// take waits for n completions, in their order.
func (s *side) take(n int) []provider.Completion {
	s.e.Helper()
	list, err := s.tryTake(n, s.e.o.patience)
	if err != nil {
		s.e.Fatalf("side %d: waiting for %d completions: got %d: %v%s", s.where, n, len(list), err, showAll(list))
	}
	return list
}

func showAll(list []provider.Completion) string {
	text := ""
	for _, c := range list {
		text += "\n\t" + show(c)
	}
	return text
}

func (s *side) tryTake(n int, limit time.Duration) ([]provider.Completion, error) {
	s.e.Helper()
	r, err := s.try(request{Verb: "take", N: n, Millis: int(limit / time.Millisecond)})
	taken := unpackAll(r.Done)
	for _, c := range taken {
		if text := outOfOrder(c.Err); text != "" {
			s.e.Errorf("a completion of %v: %s", c.Kind, text)
		}
	}
	return taken, err
}

func unpackAll(list []done) []provider.Completion {
	var out []provider.Completion
	for _, d := range list {
		out = append(out, d.unpack())
	}
	return out
}

// none fails the test if a completion comes within a short time.
func (s *side) none(what string) {
	s.e.Helper()
	if list, err := s.tryTake(1, 30*time.Millisecond); err == nil {
		s.e.Fatalf("%s: side %d got%s", what, s.where, showAll(list))
	}
}

// one waits for one completion, which must be a success of this kind with this context.
func (s *side) one(k provider.Kind, context uint64) provider.Completion {
	s.e.Helper()
	c := s.take(1)[0]
	if c.Kind != k || c.Context != context || c.Err != nil {
		s.e.Fatalf("side %d: got %s, want a %v with context %d", s.where, show(c), k, context)
	}
	return c
}

// fails waits for one completion, which must be the end of this operation by this error.
func (s *side) fails(k provider.Kind, context uint64, want error) provider.Completion {
	s.e.Helper()
	c := s.take(1)[0]
	if c.Kind != k || c.Context != context || !errors.Is(c.Err, want) {
		s.e.Fatalf("side %d: got %s, want a %v with context %d and the error %q", s.where, show(c), k, context, want)
	}
	return c
}

// each waits for n completions, which must all be successes, and returns them by context.
func (s *side) each(n int) map[uint64]provider.Completion {
	s.e.Helper()
	got := make(map[uint64]provider.Completion, n)
	for _, c := range s.take(n) {
		if _, twice := got[c.Context]; twice || c.Err != nil {
			s.e.Fatalf("side %d: a second completion or an error: %s", s.where, show(c))
		}
		got[c.Context] = c
	}
	return got
}

func (s *side) cancel(context uint64) bool {
	s.e.Helper()
	return s.do(request{Verb: "cancel", Context: context}).N == 1
}

// value is a counter's; see agent.counter.
func (s *side) value(n int) int {
	s.e.Helper()
	return s.do(request{Verb: "value", Buf: n}).N
}

func (s *side) stats() provider.Stats {
	s.e.Helper()
	return *s.do(request{Verb: "stats"}).Stats
}

func (s *side) usage() usage {
	s.e.Helper()
	return *s.do(request{Verb: "usage"}).Usage
}

// close closes all of the side's.
func (s *side) close() {
	s.e.Helper()
	s.do(request{Verb: "close"})
}

// kill ends the side's process with SIGKILL and waits until the kernel has done it. A side of this process
// closes its domain, without a word to anybody: the nearest to a death that one process has.
func (s *side) kill() {
	s.e.Helper()
	s.shoot()
	if s.remote != nil {
		<-s.remote.p.Done()
		_ = s.remote.conn.Close()
	}
}

// shoot is kill without the waiting.
func (s *side) shoot() {
	s.e.Helper()
	if s.remote == nil {
		s.close()
		return
	}
	s.remote.dead = true
	s.remote.p.Kill()
}

// signal sends a signal to the side's process and all of its group.
func (s *side) signal(sig syscall.Signal) {
	s.e.Helper()
	if err := syscall.Kill(-s.remote.p.Pid(), sig); err != nil {
		s.e.Fatal(err)
	}
}
