package fabrictest

import (
	"runtime"
	"time"

	"github.com/weft-fabric/weft/fabric/provider"
	"github.com/weft-fabric/weft/internal/testutil"
)

// testIdle: a domain with 50 connected peers and a blocked waiter uses no CPU and has no timer, on both sides; then it answers.
func testIdle(e *env) {
	const peers = 50
	a, b := e.side(0), e.side(1)
	a.open(e.spec())
	spec := e.spec()
	spec.Endpoints = peers
	b.open(spec)
	from := b.knows(a)
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
	_ = from
	period := time.Duration(testutil.Count(e, 1, 10)) * time.Second
	e.quietFor(a, b, period)
	// And it is awake at once.
	out := a.heap(8, 4)
	began := time.Now()
	a.post(sendOp(to[7], 1, out.all()))
	b.one(provider.RecvDone, 7)
	if took := time.Since(began); took > busy {
		e.Errorf("the first message to an idle domain took %v", took)
	}
	a.take(1)
}

// quietFor measures both processes for a while, in which nobody calls anything. A process that does nothing at all is woken
// a few times a second by its own runtime and by this measurement.
func (e *env) quietFor(a, b *side, period time.Duration) {
	e.Helper()
	// For reading the numbers, and a garbage collection.
	allowance := time.Duration(testutil.Count(e, 10, 3)) * time.Millisecond
	runtime.GC()
	pause(300 * time.Millisecond)
	sides := []*side{a}
	if b.remote != nil {
		sides = append(sides, b)
	}
	// The best of three counts: others may start a collection in this process, never the provider.
	for try := range 3 {
		before := []usage{a.usage(), b.usage()}
		pause(period)
		after := []usage{a.usage(), b.usage()}
		bad := false
		for i := range sides {
			cpu, switches := after[i].CPU-before[i].CPU, after[i].Switches-before[i].Switches
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
