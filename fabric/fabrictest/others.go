package fabrictest

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/weft-fabric/weft/fabric/provider"
	"github.com/weft-fabric/weft/internal/testutil"
)

// testOthersGoOn (F34): a peer that is stopped at a random moment holds up its own operations only. Those of others end as always, and its
// own when it goes on.
func testOthersGoOn(e *env) {
	a, b, c := e.side(0), e.side(1), e.side(2)
	for _, s := range []*side{a, b, c} {
		s.open(e.spec())
	}
	toB, toC := a.knows(b), a.knows(c)
	fromB, fromC := b.knows(a), c.knows(a)
	e.message(a, b, toB, fromB, 100, false)
	e.message(a, c, toC, fromC, 100, false)
	out, in := a.heap(300000, 1), b.heap(300000, 0)
	var m mem
	if e.has(provider.RMA) {
		m = b.private(300000, 1, readWrite)
	}
	for round := range testutil.Count(e, 3, 100) {
		// Messages before, so that it is stopped in the middle of something.
		const before = 20
		for i := range uint64(before) {
			b.post(recvOp(i, in.part(0, 5000)))
			a.post(sendOp(toB, i, out.part(0, 5000)))
		}
		pause(time.Duration(e.rnd.IntN(500)) * time.Microsecond)
		b.stop()
		a.post(sendOp(toB, 100, out.all()).with(provider.DeliveryComplete, 0))
		waits := 1
		if e.has(provider.RMA) {
			a.post(rmaOp(provider.ReadDone, toB, m, 0, 101, a.heap(300000, 0).all()))
			waits++
		}
		early, _ := a.tryTake(before, 10*time.Millisecond) // those that had reached it
		for i := range 5 {
			n := 1000 * (i + 1) * (round%4 + 1)
			in := c.heap(n, 0)
			c.post(recvOp(51, in.all()))
			began := time.Now()
			a.post(sendOp(toC, 50, a.heap(n, 2).all()))
			for done := false; !done; { // what b's operations still have to say comes in between
				for _, got := range a.take(1) {
					if done = got.Context == 50; !done {
						early = append(early, got)
					}
				}
			}
			c.one(provider.RecvDone, 51)
			c.holds("a message beside a stopped peer", in.all(), 2)
			if took := time.Since(began); took > busy {
				e.Errorf("a message to another peer than the stopped one took %v", took)
			}
		}
		for _, got := range early {
			if got.Context == 100 { // 101 may need nobody
				e.Fatalf("a stopped peer has done %s", show(got))
			}
		}
		b.signal(syscall.SIGCONT)
		b.post(recvOp(99, in.all()))
		for _, got := range append(early, a.take(before+waits-len(early))...) {
			if got.Err != nil {
				e.Fatalf("round %d: after a stop: %s", round, show(got))
			}
		}
		for range before + 1 {
			if got := b.take(1)[0]; got.Err != nil {
				e.Fatalf("round %d: a peer that was stopped: %s", round, show(got))
			}
		}
	}
	a.none("all has ended")
}

// stop stops the side's process, and returns when none of its threads runs: the first to hear of the signal tells the others, when it
// gets to run.
func (s *side) stop() {
	s.e.Helper()
	s.signal(syscall.SIGSTOP)
	group := s.remote.p.Pid()
	s.e.eventually("the process is stopped", func() bool {
		all, err := filepath.Glob("/proc/[0-9]*/task/[0-9]*/stat")
		if err != nil {
			s.e.Fatal(err)
		}
		stopped := 0
		for _, name := range all {
			text, err := os.ReadFile(name)
			if err != nil {
				continue // it has ended
			}
			var state string
			var parent, of int
			rest := string(text[strings.LastIndexByte(string(text), ')')+1:]) // behind the name
			if _, err := fmt.Sscan(rest, &state, &parent, &of); err != nil || of != group {
				continue
			}
			if state != "T" {
				return false
			}
			stopped++
		}
		return stopped > 0
	})
}
