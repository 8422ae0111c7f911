package fabrictest

import (
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/weft-fabric/weft/fabric/provider"
	"github.com/weft-fabric/weft/internal/testutil"
)

// testUnexpected (F35): 600 messages of one size before any receive; then the receives in reverse order of the tags.
// The sender sees success or ErrAgain, and all arrive.
func testUnexpected(e *env) {
	count := testutil.Count(e, 60, 600)
	for _, n := range []int{100, 1000, 4095, 4096, 4097, 65536} {
		spec := e.spec()
		a, b := e.pairOf(spec, spec)
		to, from := a.knows(b), b.knows(a)
		out := a.heap(count*64+n, e.fresh())
		seed := e.seed
		posted := 0
		for ; posted < count; posted++ {
			err := a.tryPost(tsendOp(to, uint64(posted), uint64(posted), out.part(64*posted, n)))
			if errors.Is(err, provider.ErrAgain) {
				break
			}
			if err != nil {
				e.Fatalf("message %d of %d bytes that nobody has received: %v", posted, n, err)
			}
		}
		if posted < 16 {
			e.Fatalf("only %d messages of %d bytes may wait for a receive", posted, n)
		}
		in := b.heap(count*n, 0)
		for i := posted - 1; i >= 0; i-- {
			b.post(trecvOp(uint64(i), 0, uint64(i), in.part(i*n, n)))
		}
		whole := pattern(count*64+n, seed)
		for context, c := range b.each(posted) {
			i := int(context)
			if c.Tag != context || c.Len != uint64(n) || c.Source != from {
				e.Fatalf("message %d came as %s", i, show(c))
			}
			if got := b.get(in.part(i*n, n)); string(got) != string(whole[64*i:64*i+n]) {
				e.Fatalf("message %d of %d bytes has other bytes", i, n)
			}
		}
		a.each(posted)
		e.message(a, b, to, from, n, false)
		a.close()
		b.close()
	}
}

// testSlowReceiver (F37): many senders, a receiver that does nothing at first. Nobody sees anything but back-pressure, memory
// is bounded, all arrive once and in order.
func testSlowReceiver(e *env) {
	senders, count := testutil.Count(e, 4, 16), testutil.Count(e, 500, 10000)
	const n = 1000
	recv := e.side(0)
	recv.open(e.spec())
	var sides []*side
	var from []provider.Peer
	var seeds []uint64
	for i := range senders {
		s := e.side(1 + i)
		if e.c.Procs > 1 && s.where == 0 {
			s = e.side(1) // not in the process of the receiver, whose memory is looked at
		}
		s.open(e.spec())
		to := s.knows(recv)
		seeds = append(seeds, uint64(i+1)<<40)
		s.start(request{Verb: "flow", Flow: &flow{Kind: "send", Peers: []provider.Peer{to}, Count: count, Sizes: []int{n}, Seed: seeds[i], Window: 256}})
		sides, from = append(sides, s), append(from, recv.knows(s))
	}
	before := recv.usage()
	pause(time.Duration(testutil.Count(e, 100, 2000)) * time.Millisecond)
	during := recv.usage()
	// Each peer may have 1 MiB of messages here, and its rings.
	if grown := during.Resident - before.Resident; e.c.Procs > 1 && grown > senders*4<<10 {
		e.Errorf("%d peers whose messages nobody receives cost %d KiB", senders, grown)
	}
	recv.start(request{Verb: "flow", Flow: &flow{Kind: "recv", Peers: from, Seeds: seeds, Count: count, Sizes: []int{n}, Window: 256}})
	var errs []error
	for i, s := range sides {
		if _, err := s.join(); err != nil {
			errs = append(errs, fmt.Errorf("sender %d: %w", i, err))
		}
	}
	_, err := recv.join()
	if err := errors.Join(append(errs, err)...); err != nil {
		e.Fatal(err)
	}
	recv.none("all messages")
}

// testSmallQueue (F51): a queue of 8 and 1000 sends: what could overflow it gets ErrAgain, and no completion is lost.
func testSmallQueue(e *env) {
	const size, total = 8, 1000
	a := e.open(provider.DomainConfig{}, endpointConfig{}, provider.CQConfig{Size: size})
	b := e.open(provider.DomainConfig{}, endpointConfig{}, provider.CQConfig{})
	a.to, b.to = e.meet(a, b), e.meet(b, a)
	msg := make([]byte, 64)
	into := make([]byte, 64)
	var done, received int
	var seen [total]bool
	read := func() {
		var some [size]provider.Completion
		n, err := b.q.Read(some[:])
		if err != nil {
			e.Fatal(err)
		}
		received += n
		if n, err = a.q.Read(some[:]); err != nil {
			e.Fatal(err)
		}
		for _, c := range some[:n] {
			if c.Err != nil || seen[c.Context] {
				e.Fatalf("got %s", show(c))
			}
			seen[c.Context] = true
			done++
		}
	}
	posted, refusals := 0, 0
	recvs := 0
	end := time.Now().Add(e.o.patience)
	for posted < total || done < total || received < total {
		for recvs < total && recvs-received < 500 {
			if err := b.ep.Recv(provider.Op{Local: provider.Segment{Bytes: into}}); err != nil {
				break
			}
			recvs++
		}
		for posted < total {
			err := a.ep.Send(provider.Op{Local: provider.Segment{Bytes: msg}, Peer: a.to, Context: uint64(posted)})
			if errors.Is(err, provider.ErrAgain) {
				refusals++
				break
			}
			if err != nil {
				e.Fatal(err)
			}
			posted++
			if posted-done > size {
				e.Fatalf("%d operations are outstanding or unread in a queue of %d", posted-done, size)
			}
		}
		read()
		if time.Now().After(end) {
			e.Fatalf("%d posted, %d completed, %d received: it does not go on", posted, done, received)
		}
		runtime.Gosched()
	}
	if refusals == 0 {
		e.Fatalf("%d sends into a queue of %d, and never ErrAgain", total, size)
	}
	if got := a.d.Stats().Again; got < uint64(refusals) {
		e.Errorf("%d posts were refused, Stats.Again is %d", refusals, got)
	}
}

// testRoom: who was refused is told when there is room again, although no completion comes: the sends are quiet.
func testRoom(e *env) {
	a, b := e.directsOf(endpointConfig{Depth: 16, Unexpected: 4096}, provider.CQConfig{})
	e.roomForReceives(b, 16)
	e.pingOnce(a, b) // so that what is refused is not for want of a connection
	msg := make([]byte, 2000)
	send := func() error {
		return a.ep.Send(provider.Op{Local: provider.Segment{Bytes: msg}, Peer: a.to, Flags: provider.Quiet})
	}
	posted := 0
	var err error
	for ; posted < 100000; posted++ {
		if err = send(); err != nil {
			break
		}
	}
	if !errors.Is(err, provider.ErrAgain) {
		e.Fatalf("%d messages of %d bytes for a receiver that does nothing and allows 4096: %v", posted, len(msg), err)
	}
	e.boundedWaiting(a, b, 4096)
	into := make([]byte, 2000)
	if e.mode == provider.Manual {
		e.receiveSome(a, b, into, posted)
		if err := send(); err != nil {
			e.Fatalf("the receiver has taken all messages, and a send: %v", err)
		}
		return
	}
	told := make(chan error, 1)
	ctx, cancel := e.patient()
	defer cancel()
	go func() {
		for {
			select {
			case <-a.q.Ready():
			case <-ctx.Done():
				told <- ctx.Err()
				return
			}
			if err := send(); !errors.Is(err, provider.ErrAgain) {
				told <- err
				return
			}
		}
	}()
	pause(5 * time.Millisecond)
	e.receiveSome(a, b, into, posted)
	if err := <-told; err != nil {
		e.Fatalf("the receiver has taken %d messages, and who waits for room: %v", posted, err)
	}
}

// boundedWaiting looks at the messages that wait here for a receive, when more were sent than may.
func (e *env) boundedWaiting(a, b *direct, bound uint64) {
	e.Helper()
	var none [1]provider.Completion
	look := func() (waiting uint64) {
		for _, d := range []*direct{a, b} { // in manual mode they come now
			if n, err := d.q.Read(none[:]); n != 0 || err != nil {
				e.Fatalf("%d completions, %v", n, err)
			}
		}
		for _, p := range b.d.Peers() {
			waiting += p.Unexpected
		}
		return waiting
	}
	e.eventually("messages wait for a receive", func() bool { return look() > 0 })
	for range 20 {
		if waiting := look(); waiting > bound {
			e.Fatalf("%d bytes of messages wait for a receive, where %d may", waiting, bound)
		}
		pause(time.Millisecond)
	}
}

// roomForReceives posts as many receives as may be outstanding, and one in the place of one that was cancelled.
func (e *env) roomForReceives(b *direct, depth int) {
	e.Helper()
	into := make([]byte, 8)
	post := func(context int) error {
		return b.ep.Recv(provider.Op{Local: provider.Segment{Bytes: into}, Context: uint64(context)})
	}
	for i := range depth {
		if err := post(i); err != nil {
			e.Fatalf("receive %d of %d that may be outstanding: %v", i, depth, err)
		}
	}
	if err := post(depth); !errors.Is(err, provider.ErrAgain) {
		e.Fatalf("a receive beyond the %d that may be outstanding: %v", depth, err)
	}
	cancel := func(context int) {
		if !b.ep.Cancel(uint64(context)) {
			e.Fatalf("receive %d cannot be cancelled", context)
		}
	}
	cancel(0)
	if err := post(depth); err != nil {
		e.Fatalf("a receive in the place of one that was cancelled: %v", err)
	}
	for i := range depth {
		cancel(i + 1)
	}
	e.until(depth+1, b)
}

// receiveSome receives n messages with one buffer, from a sender that may need progress.
func (e *env) receiveSome(a, b *direct, into []byte, n int) {
	e.Helper()
	ctx, cancel := e.patient()
	defer cancel()
	for got := range n {
		if err := b.ep.Recv(provider.Op{Local: provider.Segment{Bytes: into}}); err != nil {
			e.Fatal(err)
		}
		if e.mode == provider.Manual {
			e.until(1, b, a)
			continue
		}
		var c [1]provider.Completion
		if _, err := b.q.Wait(ctx, c[:]); err != nil {
			e.Fatalf("after %d of %d messages: %v", got, n, err)
		}
	}
}
