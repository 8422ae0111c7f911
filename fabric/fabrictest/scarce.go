package fabrictest

import (
	"errors"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/weft-fabric/weft/fabric/provider"
	"github.com/weft-fabric/weft/internal/testutil"
)

// limitDescriptors lets the process open about n descriptors more than it has; 0 lets it open as many as it may.
func limitDescriptors(n int) error {
	var l syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &l); err != nil {
		return err
	}
	l.Cur = l.Max
	if n > 0 {
		highest, err := highestDescriptor()
		if err != nil {
			return err
		}
		l.Cur = min(l.Max, uint64(highest+1+n))
	}
	return syscall.Setrlimit(syscall.RLIMIT_NOFILE, &l)
}

func highestDescriptor() (int, error) {
	files, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return 0, err
	}
	highest := 0
	for _, f := range files {
		if n, err := strconv.Atoi(f.Name()); err == nil {
			highest = max(highest, n)
		}
	}
	return highest, nil
}

// testDescriptors (F53): a program whose descriptors run out connects to many peers. What works goes on working; what does
// not ends once, with an error that says so, or waits; nobody spins. When there are descriptors again, all works.
func testDescriptors(e *env) {
	const room = 24
	peers := testutil.Count(e, 40, 200)
	poor, rich := e.side(1), e.side(0)
	spec := e.spec()
	spec.Endpoints, spec.CQSize = peers, 4*peers
	rich.open(spec)
	poor.open(e.spec())
	first, back := poor.knows(rich), rich.knows(poor)
	e.message(poor, rich, first, back, 100, false)
	in, out := rich.heap(8*peers, 0), poor.heap(8, 1)
	for i := range peers {
		op := recvOp(uint64(i), in.part(8*i, 8))
		rich.do(request{Verb: "post", EP: i, Op: &op})
	}
	before := poor.usage()
	began := time.Now()
	poor.do(request{Verb: "descriptors", N: room})
	e.Cleanup(func() {
		if poor.local != nil {
			_ = limitDescriptors(0)
		}
	})
	waiting := map[uint64]bool{}
	for i := 1; i < peers; i++ {
		waiting[uint64(i)] = true
		op := sendOp(poor.insert(rich.addrs[i]), uint64(i), out.all()).with(provider.DeliveryComplete, 0)
		if err := poor.tryPost(op); err != nil {
			e.scarce(err)
			delete(waiting, uint64(i))
		}
	}
	ended, _ := poor.tryTake(len(waiting), 500*time.Millisecond)
	arrived := e.settled(ended, waiting)
	other := e.side(1)
	if other.local != nil { // one more domain in the poor process
		if _, err := other.try(request{Verb: "open", Open: ptr(e.spec())}); err != nil {
			e.scarce(err)
		}
		other.close()
	}
	poor.do(request{Verb: "descriptors"})
	took := time.Since(began)
	if used := poor.usage().CPU - before.CPU; used > took*9/10+100*time.Millisecond {
		e.Errorf("the program that has no descriptors has used %v of CPU in %v", used, took)
	}
	arrived += e.settled(poor.take(len(waiting)), waiting)
	// Endpoint 0 still has the receive of its own; the others have those that no message came for.
	got, _ := rich.tryTake(arrived, e.o.patience)
	for _, c := range got {
		if c.Err != nil || c.Kind != provider.RecvDone {
			e.Fatalf("the peer got %s", show(c))
		}
	}
	if len(got) != arrived {
		e.Fatalf("%d messages were sent and confirmed, %d have come", arrived, len(got))
	}
	rich.none("a message that was not sent, or whose send has failed")
	for i := range peers { // each works now: those that have a receive left get it used
		op := sendOp(poor.insert(rich.addrs[i]), uint64(1000+i), out.all()).with(provider.DeliveryComplete, 0)
		again := recvOp(uint64(1000+i), in.part(8*i, 8))
		rich.do(request{Verb: "post", EP: i, Op: &again})
		poor.post(op)
		poor.one(provider.SendDone, uint64(1000+i))
		if c := rich.take(1)[0]; c.Err != nil || c.Kind != provider.RecvDone {
			e.Fatalf("peer %d got %s", i, show(c))
		}
	}
}

// settled takes ends of sends out of those that wait, and counts those that ended well.
func (e *env) settled(ended []provider.Completion, waiting map[uint64]bool) (well int) {
	e.Helper()
	for _, c := range ended {
		if !waiting[c.Context] || c.Kind != provider.SendDone {
			e.Fatalf("a second end, or of nothing: %s", show(c))
		}
		delete(waiting, c.Context)
		if c.Err != nil {
			e.scarce(c.Err)
		} else {
			well++
		}
	}
	return well
}

// scarce fails the test unless the error says what failed, for want of descriptors here or of an answer there.
func (e *env) scarce(err error) {
	e.Helper()
	oe, ok := errors.AsType[*provider.OpError](err)
	if !ok || oe.Op == "" || oe.Provider != e.c.Provider {
		e.Fatalf("without descriptors: %v", err)
	}
	for _, want := range []error{provider.ErrNoMemory, provider.ErrUnreachable, provider.ErrPeerGone} {
		if errors.Is(err, want) {
			return
		}
	}
	e.Fatalf("without descriptors: %v", err)
}

// testDenied (F38, F39): where a fast path is denied, all bytes arrive nevertheless, and the log has one line about it for
// a process, not one for each message.
func testDenied(e *env) {
	spec := e.spec()
	spec.Options, spec.Log = e.c.Denied, true
	a, b := e.pairOf(spec, spec)
	to, from := a.knows(b), b.knows(a)
	const n = 300_000
	out, in := a.heap(n, 1), b.heap(n+8, 2)
	count := testutil.Count(e, 12, 1000)
	for i := range count {
		seed := e.fresh()
		a.fill(out.all(), seed)
		e.deliver(a, b, to, from, out, in, seed, i%2 == 0)
	}
	if e.has(provider.RMA) {
		m, l := b.private(n, 3, readWrite), a.heap(n, 4)
		for range count {
			e.rma(a, b, to, l, m, 0, n)
		}
	}
	lines := 0
	sides := []*side{a, b}
	for _, s := range sides {
		text := s.do(request{Verb: "log"}).Text
		lines += strings.Count(text, "\n")
		if text != "" {
			e.Logf("side %d says:\n%s", s.where, text)
		}
	}
	if lines > min(len(sides), e.c.Procs) {
		e.Errorf("%d lines in the log of %d processes", lines, e.c.Procs)
	}
}

// journal keeps what is logged; it is safe for concurrent use.
type journal struct {
	mu   sync.Mutex
	text strings.Builder
}

func (j *journal) Write(b []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.Write(b)
}

func (j *journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.String()
}
