package fabrictest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weft-fabric/weft/fabric/provider"
	"github.com/weft-fabric/weft/internal/testutil"
)

const (
	// endBound is how soon a wait ends that was told to.
	endBound = 50 * time.Millisecond
	// busy is what the suite allows a machine that does other things at the same time, where it does not measure that.
	busy = 450 * time.Millisecond
)

// promptly fails the test if what do measures takes longer than endBound, and longer than the machine is late, three times
// in a row: what is always slow is the provider's fault.
func (e *env) promptly(what string, do func() time.Duration) {
	e.Helper()
	var all []time.Duration
	for range 3 {
		late := e.lateness()
		took := do()
		late.stop()
		if e.Failed() || took <= endBound+late.worst() {
			return
		}
		all = append(all, took)
	}
	e.Errorf("%s: waits ended after %v", what, all)
}

// testWays has every way of waiting collect the completions of both sides.
func testWays(e *env) {
	for _, w := range []way{byWait, byRead, byReady, byDescriptor} {
		if w == byReady && e.mode == provider.Manual {
			continue // nothing is sent on it while nobody calls
		}
		spec := e.spec()
		spec.Way = w
		a, b := e.pairOf(spec, spec)
		to, from := a.knows(b), b.knows(a)
		for _, n := range []int{8, 5000, 100000} {
			for _, late := range []bool{false, true} {
				e.message(a, b, to, from, n, late)
				pause(3 * time.Millisecond) // so that both sleep
				e.message(b, a, from, to, n, late)
			}
		}
		f := flow{Kind: "all", Count: 100, Sizes: []int{8, 5000, 300}, Peers: []provider.Peer{to}, Seeds: []uint64{1 << 50}, Seed: 1 << 51}
		g := f
		g.Peers, g.Seeds, g.Seed = []provider.Peer{from}, []uint64{1 << 51}, 1<<50
		e.flows(a, f, b, g)
		a.close()
		b.close()
	}
}

// testWaitEnds (F48, F49): a wait that nobody satisfies ends by its context, by Signal, by Close, in time; not before, although
// other traffic goes on.
func testWaitEnds(e *env) {
	a, b := e.directs()
	idle := a.queue(e)
	e.promptly("a deadline beside traffic", func() time.Duration { return e.waitWithTraffic(a, b, idle) })
	for range testutil.Count(e, 1, 50) {
		for _, waiters := range []int{1, 8} {
			e.promptly("cancel", func() time.Duration { return e.waitCancelled(idle, waiters) })
			e.promptly("signal", func() time.Duration { return e.waitSignalled(idle, waiters) })
		}
		e.promptly("a signal without a wait", func() time.Duration { return e.signalIsKept(idle) })
		e.counterEnds(a)
		e.promptly("close", func() time.Duration { return e.waitClosed(a.queue(e)) })
	}
	e.waitClosed(idle)
	// The end of the domain ends all waits of it.
	e.promptly("close of the domain", func() time.Duration {
		c, d := e.directs()
		defer func() { _ = d.d.Close() }()
		ends := e.waiters(context.Background(), c.queue(e), 4)
		busy := e.waiters(context.Background(), c.q, 4)
		began := time.Now()
		if err := c.d.Close(); err != nil {
			e.Fatal(err)
		}
		return max(e.must("close of the domain", ends, 4, began, provider.ErrClosed), e.must("close of the domain", busy, 4, began, provider.ErrClosed))
	})
}

// queue opens one more.
func (d *direct) queue(e *env) queue {
	e.Helper()
	q, err := d.d.OpenCompletionQueue(provider.CQConfig{})
	if err != nil {
		e.Fatal(err)
	}
	return q
}

// waitWithTraffic waits on an idle queue while others are busy, and says how much longer than it was to.
func (e *env) waitWithTraffic(a, b *direct, idle queue) time.Duration {
	e.Helper()
	limit := time.Duration(testutil.Count(e, 300, 2000)) * time.Millisecond
	began := time.Now()
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	ends := make(chan ended, 1)
	go func() {
		var c [1]provider.Completion
		n, err := idle.Wait(ctx, c[:])
		ends <- ended{n, err, time.Now()}
	}()
	for {
		select {
		case end := <-ends:
			took := end.when.Sub(began)
			if end.n != 0 || !errors.Is(end.err, context.DeadlineExceeded) || took < limit {
				e.Errorf("a wait of %v for nothing ended after %v with %d completions and %v", limit, took, end.n, end.err)
			}
			return took - limit
		default:
			e.pingOnce(a, b)
		}
	}
}

// pingOnce sends a message from a to b.
func (e *env) pingOnce(a, b *direct) {
	e.Helper()
	var out, in [64]byte
	if err := b.ep.Recv(provider.Op{Local: provider.Segment{Bytes: in[:]}}); err != nil {
		e.Fatal(err)
	}
	if err := a.ep.Send(provider.Op{Local: provider.Segment{Bytes: out[:]}, Peer: a.to}); err != nil {
		e.Fatal(err)
	}
	e.gather(1, 1, a, b)
}

// ended is how a wait ended.
type ended struct {
	n    int
	err  error
	when time.Time
}

// waiters starts n waits, and returns when they have had time to fall asleep.
func (e *env) waiters(ctx context.Context, q queue, n int) <-chan ended {
	e.Helper()
	ends := make(chan ended, n)
	for range n {
		go func() {
			var c [4]provider.Completion
			k, err := q.Wait(ctx, c[:])
			ends <- ended{k, err, time.Now()}
		}()
	}
	pause(20 * time.Millisecond)
	return ends
}

// must takes n ends, which must come for this reason, and says when the last one did.
func (e *env) must(what string, ends <-chan ended, n int, began time.Time, want error) (took time.Duration) {
	e.Helper()
	limit := time.NewTimer(e.o.patience)
	defer limit.Stop()
	for i := range n {
		select {
		case end := <-ends:
			if end.n != 0 || !errors.Is(end.err, want) {
				e.Fatalf("%s: a wait ended with %d completions and %v, want %q", what, end.n, end.err, want)
			}
			took = max(took, end.when.Sub(began))
		case <-limit.C:
			e.Fatalf("%s: %d of %d waits have not ended after %v", what, n-i, n, e.o.patience)
		}
	}
	select {
	case end := <-ends:
		e.Fatalf("%s: one more wait ended: %v", what, end.err)
	default:
	}
	return took
}

func (e *env) waitCancelled(q queue, n int) time.Duration {
	e.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	ends := e.waiters(ctx, q, n)
	began := time.Now()
	cancel()
	return e.must("cancel", ends, n, began, context.Canceled)
}

// waitSignalled wakes n waits by n signals, one each.
func (e *env) waitSignalled(q queue, n int) (took time.Duration) {
	e.Helper()
	ctx, cancel := e.patient()
	defer cancel()
	ends := e.waiters(ctx, q, n)
	for range n {
		began := time.Now()
		q.Signal()
		select {
		case end := <-ends:
			if end.n != 0 || !errors.Is(end.err, provider.ErrSignal) {
				e.Fatalf("a signalled wait ended with %d completions and %v", end.n, end.err)
			}
			took = max(took, end.when.Sub(began))
		case <-ctx.Done():
			e.Fatalf("of %d waits and as many signals, one is lost", n)
		}
	}
	return took
}

// signalIsKept: one without a wait is for the next.
func (e *env) signalIsKept(q queue) time.Duration {
	e.Helper()
	q.Signal()
	began := time.Now()
	ctx, cancel := e.patient()
	defer cancel()
	var c [1]provider.Completion
	if _, err := q.Wait(ctx, c[:]); !errors.Is(err, provider.ErrSignal) {
		e.Fatalf("a wait after a signal ended with %v", err)
	}
	took := time.Since(began)
	short, cancelShort := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancelShort()
	if _, err := q.Wait(short, c[:]); !errors.Is(err, context.DeadlineExceeded) {
		e.Fatalf("one signal ended a second wait: %v", err)
	}
	return took
}

func (e *env) waitClosed(q queue) time.Duration {
	e.Helper()
	ctx, cancel := e.patient()
	defer cancel()
	ends := e.waiters(ctx, q, 8)
	began := time.Now()
	if err := q.Close(); err != nil {
		e.Fatal(err)
	}
	took := e.must("close", ends, 8, began, provider.ErrClosed)
	var c [1]provider.Completion
	if _, err := q.Read(c[:]); !errors.Is(err, provider.ErrClosed) {
		e.Fatalf("a read of a closed queue: %v", err)
	}
	if err := q.Close(); err != nil {
		e.Fatalf("closing a queue for the second time: %v", err)
	}
	return took
}

// counterEnds: waits for a counter end by context and Close.
func (e *env) counterEnds(a *direct) {
	e.Helper()
	c, err := a.d.OpenCounter()
	if err != nil {
		e.Fatal(err)
	}
	wait := func(ctx context.Context) <-chan ended {
		ends := make(chan ended, 8)
		for range 8 {
			go func() {
				err := c.Wait(ctx, 5)
				ends <- ended{0, err, time.Now()}
			}()
		}
		pause(20 * time.Millisecond)
		return ends
	}
	e.promptly("cancel of a counter", func() time.Duration {
		ctx, cancel := context.WithCancel(context.Background())
		ends := wait(ctx)
		began := time.Now()
		cancel()
		return e.must("cancel of a counter", ends, 8, began, context.Canceled)
	})
	ends := wait(context.Background())
	c.Add(5)
	for range 8 {
		if end := <-ends; end.err != nil {
			e.Fatalf("a wait for 5 ended at 5 with %v", end.err)
		}
	}
	c.Set(0)
	e.promptly("close of a counter", func() time.Duration {
		if c, err = a.d.OpenCounter(); err != nil {
			e.Fatal(err)
		}
		ends := wait(context.Background())
		began := time.Now()
		if err := c.Close(); err != nil {
			e.Fatal(err)
		}
		return e.must("close of a counter", ends, 8, began, provider.ErrClosed)
	})
}

// testSharedQueue (F49): 10 000 completions, read by four goroutines that wait and four that read, are each seen once.
func testSharedQueue(e *env) {
	total := testutil.Count(e, 2000, 10000)
	a, b := e.directs()
	out, in := make([]byte, 8), make([]byte, 8)
	seen := make([]atomic.Int32, 2*total)
	var left atomic.Int64
	left.Store(int64(2 * total))
	ctx, cancel := e.patient()
	defer cancel()
	all, stop := context.WithCancel(ctx)
	defer stop()
	take := func(list []provider.Completion) {
		for _, c := range list {
			if c.Err != nil {
				e.Errorf("got %s", show(c))
			}
			seen[c.Context].Add(1)
			if left.Add(-1) == 0 {
				stop()
			}
		}
	}
	var readers sync.WaitGroup
	for _, q := range []queue{a.q, b.q} {
		for i := range 4 {
			readers.Go(func() { e.reader(all, q, i%2 == 0, take) })
		}
	}
	for i := range total {
		e.insist(ctx, func() error {
			return b.ep.Recv(provider.Op{Local: provider.Segment{Bytes: in}, Context: uint64(total + i)})
		})
		e.insist(ctx, func() error {
			return a.ep.Send(provider.Op{Local: provider.Segment{Bytes: out}, Peer: a.to, Context: uint64(i)})
		})
	}
	<-all.Done()
	readers.Wait()
	for i := range seen {
		if n := seen[i].Load(); n != 1 {
			e.Fatalf("completion %d of %d was seen %d times", i, len(seen), n)
		}
	}
}

func (e *env) reader(ctx context.Context, q queue, waits bool, take func([]provider.Completion)) {
	var some [7]provider.Completion
	for ctx.Err() == nil {
		var n int
		var err error
		if waits {
			n, err = q.Wait(ctx, some[:])
		} else {
			n, err = q.Read(some[:])
		}
		take(some[:n])
		if err != nil && ctx.Err() == nil {
			e.Errorf("read: %v", err)
			return
		}
		if n == 0 {
			pause(10 * time.Microsecond)
		}
	}
}

// insist posts until it is accepted.
func (e *env) insist(ctx context.Context, post func() error) {
	e.Helper()
	for {
		err := post()
		if err == nil {
			return
		}
		if !errors.Is(err, provider.ErrAgain) || ctx.Err() != nil {
			e.Fatalf("a post: %v", err)
		}
		pause(20 * time.Microsecond)
	}
}

// testQueueRules: order, batches, and what a queue refuses.
func testQueueRules(e *env) {
	a, b := e.directs()
	const n = 100
	in := make([]byte, 8*n)
	for i := range n {
		if err := b.ep.Recv(provider.Op{Local: provider.Segment{Bytes: in[8*i : 8*i+8]}, Context: uint64(i)}); err != nil {
			e.Fatal(err)
		}
	}
	for i := range n {
		if err := a.ep.Send(provider.Op{Local: provider.Segment{Bytes: []byte("01234567")}, Peer: a.to, Context: uint64(i)}); err != nil {
			e.Fatal(err)
		}
	}
	got := e.gather(n, n, a, b)
	for side := range got {
		for i, c := range got[side] {
			if c.Context != uint64(i) || c.Err != nil {
				e.Fatalf("completion %d of side %d is %s", i, side, show(c))
			}
		}
	}
	if k, err := a.q.Read(nil); k != 0 || err != nil {
		e.Fatalf("a read into nothing: %d, %v", k, err)
	}
	if err := a.q.Close(); !errors.Is(err, provider.ErrBusy) {
		e.Fatalf("closing the queue of an open endpoint: %v", err)
	}
	if _, err := a.d.OpenEndpoint(endpointConfig{Send: b.q, Recv: b.q}); !errors.Is(err, provider.ErrInvalid) {
		e.Fatalf("an endpoint with the queue of another domain: %v", err)
	}
	e.pingOnce(a, b)
}

// testDescriptor: the descriptor is not readable while there is nothing, and becomes readable, for level-triggered event loops too.
func testDescriptor(e *env) {
	a, b := e.directs()
	e.pingOnce(a, b)
	fd, err := b.q.Descriptor()
	if err != nil {
		e.Fatal(err)
	}
	if again, err := b.q.Descriptor(); err != nil || again != fd {
		e.Fatalf("the descriptor was %d, and is %d, %v", fd, again, err)
	}
	in := make([]byte, 8)
	for round := range 20 {
		e.armed(b)
		if ok, err := readable(fd, 5*time.Millisecond); err != nil || ok && b.q.TryWait() {
			e.Fatalf("round %d: a queue without completions is readable: %v, %v", round, ok, err)
		}
		if err := b.ep.Recv(provider.Op{Local: provider.Segment{Bytes: in}}); err != nil {
			e.Fatal(err)
		}
		e.armed(b)
		if err := a.ep.Send(provider.Op{Local: provider.Segment{Bytes: []byte("01234567")}, Peer: a.to}); err != nil {
			e.Fatal(err)
		}
		e.awaken(a, b, fd, round)
	}
}

// armed reads nothing until the queue says that one may wait.
func (e *env) armed(b *direct) {
	e.Helper()
	var c [1]provider.Completion
	for end := time.Now().Add(e.o.patience); !b.q.TryWait(); {
		if n, err := b.q.Read(c[:]); n != 0 || err != nil {
			e.Fatalf("a read between messages: %d, %v", n, err)
		}
		if time.Now().After(end) {
			e.Fatalf("a queue without completions never lets one wait")
		}
	}
}

// awaken waits on the descriptor until the message is there.
func (e *env) awaken(a, b *direct, fd, round int) {
	e.Helper()
	var c [1]provider.Completion
	for end := time.Now().Add(e.o.patience); ; {
		ok, err := readable(fd, e.o.patience)
		if err != nil || !ok {
			e.Fatalf("round %d: the descriptor does not say that there is a completion: %v", round, err)
		}
		n, err := b.q.Read(c[:])
		if err != nil {
			e.Fatal(err)
		}
		if n == 1 {
			break
		}
		if time.Now().After(end) {
			e.Fatalf("round %d: readable, and nothing to read", round)
		}
		for !b.q.TryWait() {
			if n, _ := b.q.Read(c[:]); n == 1 {
				e.until(1, a)
				return
			}
		}
	}
	e.until(1, a)
}

var errDescriptor = errors.New("descriptor")

func describe(fd int, err error) error { return fmt.Errorf("%w %d: %w", errDescriptor, fd, err) }
