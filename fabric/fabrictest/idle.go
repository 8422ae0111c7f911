package fabrictest

import (
	"context"
	"runtime"
	"slices"
	"time"

	"github.com/weft-fabric/weft/fabric/provider"
	"github.com/weft-fabric/weft/internal/testutil"
)

// testIdle: a domain with 50 connected peers and blocked waiters uses no CPU and has no timer, on both sides; then it answers.
func testIdle(e *env) {
	const peers = 50
	a, b := e.side(0), e.side(1)
	a.open(e.spec())
	spec := e.spec()
	spec.Endpoints = peers
	b.open(spec)
	b.knows(a)
	in := b.heap(peers*8, 0)
	var to []provider.Peer
	for i, addr := range b.addrs {
		to = append(to, a.insert(addr))
		for range 2 {
			b.do(request{Verb: "post", EP: i, Op: ptr(recvOp(uint64(i), in.part(8*i, 8)))})
		}
		a.post(sendOp(to[i], 1, a.heap(8, 3).all()))
	}
	a.take(peers)
	b.take(peers)
	period := time.Duration(testutil.Count(e, 1, 10)) * time.Second
	e.quietFor(a, b, period)
	// And it is awake at once.
	out := a.heap(8, 4)
	late := e.lateness()
	began := time.Now()
	a.post(sendOp(to[7], 1, out.all()))
	b.one(provider.RecvDone, 7)
	took := time.Since(began)
	late.stop()
	if took > busy+late.worst() {
		e.Errorf("the first message to an idle domain took %v", took)
	}
	a.take(1)
	e.firstAfterSleep()
}

// wakeBound is how long a message to a sleeping domain may take, of the best of some: a provider that looks from time to time
// takes longer, and what the kernel and the runtime need to wake a goroutine is a tenth of that. What it is to the
// microsecond the benchmarks show.
const wakeBound = time.Millisecond

// firstAfterSleep measures the first message after a sleep, without anything between the queue and the clock.
func (e *env) firstAfterSleep() {
	e.Helper()
	a, b := e.directs()
	e.pingOnce(a, b)
	var all []time.Duration
	for range testutil.Count(e, 10, 50) {
		in := make([]byte, 8)
		if err := b.ep.Recv(provider.Op{Local: provider.Segment{Bytes: in}}); err != nil {
			e.Fatal(err)
		}
		ends := e.waiters(context.Background(), b.q, 1) // returns when it sleeps
		began := time.Now()
		if err := a.ep.Send(provider.Op{Local: provider.Segment{Bytes: in}, Peer: a.to}); err != nil {
			e.Fatal(err)
		}
		end := <-ends
		if end.err != nil || end.n != 1 {
			e.Fatalf("a message to who sleeps: %d completions, %v", end.n, end.err)
		}
		all = append(all, end.when.Sub(began))
		e.until(1, a)
	}
	slices.Sort(all)
	e.Logf("a message to who sleeps took %v at best, %v in the middle", all[0], all[len(all)/2])
	if all[0] > wakeBound {
		e.Errorf("a message to who sleeps took %v at best", all[0])
	}
	for _, d := range []*direct{a, b} {
		if err := d.d.Close(); err != nil {
			e.Error(err)
		}
	}
}

// quietFor measures both processes for a while, in which nobody calls anything: less than 0.1 % of a CPU. A process that does
// nothing at all is woken a few times a second by its own runtime and by this measurement, whose cost is measured too.
func (e *env) quietFor(a, b *side, period time.Duration) {
	e.Helper()
	// In a short time one interrupt that is counted for us counts for much.
	allowance := time.Duration(testutil.Count(e, 9, 0)) * time.Millisecond
	runtime.GC()
	pause(300 * time.Millisecond)
	sides := []*side{a}
	if b.remote != nil {
		sides = append(sides, b)
	}
	// The best of three counts: others may start a collection in this process, never the provider.
	for try := range 3 {
		start := []usage{a.usage(), b.usage()}
		before := []usage{a.usage(), b.usage()}
		pause(period)
		after := []usage{a.usage(), b.usage()}
		bad := false
		for i := range sides {
			cpu, switches := after[i].CPU-before[i].CPU, after[i].Switches-before[i].Switches
			cpu -= before[i].CPU - start[i].CPU
			// Reading the numbers wakes the monitor of Go's runtime, which looks 50 times before it sleeps again.
			if cpu > period/1000+allowance || switches > 70+int64(10*period/time.Second) {
				bad = true
				if try == 2 {
					e.Errorf("an idle side %d used %v of CPU in %v and was woken %d times", i, cpu, period, switches)
				}
			}
		}
		if !bad {
			return
		}
	}
}

// testGoroutines: in manual mode the provider has no goroutine; in auto mode what it has goes with the domain.
func testGoroutines(e *env) {
	before := runtime.NumGoroutine()
	a, b := e.directs()
	e.pingOnce(a, b)
	if e.mode == provider.Manual {
		if got := runtime.NumGoroutine(); got > before {
			e.Fatalf("two manual domains that have talked run %d goroutines", got-before)
		}
	}
	for _, d := range []*direct{a, b} {
		if err := d.d.Close(); err != nil {
			e.Fatal(err)
		}
	}
	if got := runtime.NumGoroutine(); got > before {
		// One that has done its last work may be on its way out.
		e.eventually("all goroutines are gone after Close", func() bool { return runtime.NumGoroutine() <= before })
	}
}
