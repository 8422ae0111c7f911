package carrier

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weft-fabric/weft/fabric"
	"github.com/weft-fabric/weft/fabric/provider"
	"github.com/weft-fabric/weft/prov/hook"
	"github.com/weft-fabric/weft/prov/loop"
)

// TestFabricBothWays floods a link in both directions, with bounds so low that both sides are held back all the time.
func TestFabricBothWays(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := FabricConfig{MaxQueued: 2}
		a, b := sitePair(t, c, c)
		la := a.reach(t, b)
		f := testFormat(t, "F")
		if err := la.Send(record(f, 0, 1)); err != nil {
			t.Fatal(err)
		}
		lb := next(t, "record", b.got).link
		const n = 400
		var wg sync.WaitGroup
		for _, l := range []Link{la, lb} {
			wg.Go(func() {
				for i := range n {
					if err := l.Send(record(f, i, i%7*20_000)); err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
		for i := range n {
			for _, s := range []*site{a, b} {
				e := next(t, "record", s.got)
				if number(e.data) != i {
					t.Fatalf("number %d at place %d", number(e.data), i)
				}
				e.free()
			}
		}
	})
}

// TestFabricHoldsBack: while a peer takes nothing, nothing that it sends is handed out, and it may not send without end.
func TestFabricHoldsBack(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p := loop.New()
		a := place(t, p, fabric.DomainConfig{}).settle(t, FabricConfig{MaxQueued: 4})
		o := outside(t, p)
		o.join(a)
		f := testFormat(t, "F")
		o.push(f)
		o.record(f, 0, 10)
		l := next(t, "record", a.got).link
		for i := range 40 { // of which the fabric has some, and the outsider takes none
			if err := l.Send(record(f, i, 1<<20)); err != nil {
				t.Fatal(err)
			}
		}
		o.deaf = true
		for i := range 20 {
			o.record(f, 1+i, 10)
		}
		synctest.Wait()
		nothingIn(t, "record", a.got)
		o.deaf = false
		for i := range 20 {
			o.takeUntil(func() bool { return len(a.got) > 0 })
			e := next(t, "record", a.got)
			if number(e.data) != 1+i || e.queued > 4 {
				t.Errorf("number %d at place %d with %d queued", number(e.data), i, e.queued)
			}
		}
		for i := range 40 {
			if err := l.Send(record(f, i, 1<<20)); err != nil {
				t.Fatal(err)
			}
		}
		o.deaf = true
		for range maxHeld>>14 + 2 {
			o.record(f, 1, 1<<14)
		}
		if e := next(t, "end", a.lost); !errors.Is(e.err, ErrLimit) {
			t.Error(e.err)
		}
	})
}

// TestFabricAbort: Abort ends queued records with its reason, and the peer hears of it.
func TestFabricAbort(t *testing.T) {
	bubble(t, func(t *testing.T) {
		a, b := sitePair(t, FabricConfig{}, FabricConfig{})
		l := a.reach(t, b)
		boom := errors.New("boom")
		done := make(chan error, 100)
		r := record(testFormat(t, "F"), 0, 10<<20)
		r.Done = func(err error) { done <- err }
		for range 10 {
			if err := l.Send(r); err != nil {
				t.Fatal(err)
			}
		}
		l.Abort(boom)
		l.Abort(nil)
		if err := l.Send(record(testFormat(t, "F"), 1, 1)); !errors.Is(err, boom) {
			t.Error(err)
		}
		if e := next(t, "end", a.lost); !errors.Is(e.err, boom) {
			t.Error(e.err)
		}
		if e := next(t, "end", b.lost); !errors.Is(e.err, ErrPeerAborted) {
			t.Error(e.err)
		}
		for range 10 {
			if err := next(t, "Done", done); err != nil && !errors.Is(err, boom) {
				t.Error(err)
			}
		}
		l2 := a.reach(t, b) // a new one, which has nothing of the old one
		if l2 == l {
			t.Fatal("the same link")
		}
		drain(b.got)
		if err := l2.Send(record(testFormat(t, "F"), 7, 1)); err != nil {
			t.Fatal(err)
		}
		if e := next(t, "record", b.got); number(e.data) != 7 {
			t.Errorf("number %d", number(e.data))
		}
	})
}

func drain[T any](ch <-chan T) {
	for len(ch) > 0 {
		<-ch
	}
}

// TestFabricCloseIsBounded: a peer that takes nothing holds Close up for CloseTimeout.
func TestFabricCloseIsBounded(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p := loop.New()
		a := place(t, p, fabric.DomainConfig{}).settle(t, FabricConfig{CloseTimeout: 10 * time.Second})
		o := outside(t, p)
		o.join(a)
		f := testFormat(t, "F")
		o.push(f)
		o.record(f, 0, 10)
		l := next(t, "record", a.got).link
		done := make(chan error, 2)
		for range 2 {
			r := record(f, 0, 4<<20)
			r.Done = func(err error) { done <- err }
			if err := l.Send(r); err != nil {
				t.Fatal(err)
			}
		}
		o.deaf = true
		began := time.Now()
		_ = l.Close()
		e := next(t, "end", a.lost)
		if d := time.Since(began); d != 10*time.Second || e.err == nil {
			t.Errorf("after %v: %v", d, e.err)
		}
		for range 2 {
			if err := next(t, "Done", done); err == nil {
				t.Error("a record that the peer has not taken was sent")
			}
		}
		began = time.Now()
		if _ = a.f.Close(); time.Since(began) != 0 {
			t.Errorf("Close took %v", time.Since(began))
		}
	})
}

// TestFabricDialFails: each reason has its error, which names the peer.
func TestFabricDialFails(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p := loop.New()
		a := place(t, p, fabric.DomainConfig{}).settle(t, FabricConfig{MaxLinks: 1})
		o := outside(t, p)
		answer := func(u unit) func() {
			return func() {
				u.link = o.hello().link
				o.send(u)
			}
		}
		never := errors.New("never")
		for name, c := range map[string]struct {
			to   fabric.Address
			do   func()
			want error
		}{
			"nobody":         {to: "loop://nobody", want: fabric.ErrUnreachable},
			"no address":     {to: "what?", want: fabric.ErrInvalid},
			"no answer":      {to: o.address(), want: never},
			"version":        {to: o.address(), do: answer(unit{kind: unitRefusal, version: 9, code: refusedVersion}), want: ErrVersion},
			"welcome of 9":   {to: o.address(), do: answer(unit{kind: unitWelcome, version: 9}), want: ErrVersion},
			"closing":        {to: o.address(), do: answer(unit{kind: unitRefusal, version: 1, code: refusedClosed}), want: ErrPeerClosed},
			"full":           {to: o.address(), do: answer(unit{kind: unitRefusal, version: 1, code: refusedLimit}), want: ErrLimit},
			"strange":        {to: o.address(), do: answer(unit{kind: unitRefusal, version: 1, code: 77}), want: ErrProtocol},
			"ended":          {to: o.address(), do: answer(unit{kind: unitEnd}), want: ErrPeerAborted},
			"a record first": {to: o.address(), do: answer(unit{kind: unitRecord, total: 20, data: make([]byte, 20)}), want: ErrProtocol},
		} {
			ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, never)
			if c.do != nil {
				go c.do()
			}
			l, err := a.f.Dial(ctx, c.to)
			cancel()
			le, ok := errors.AsType[*LinkError](err)
			if l != nil || !ok || le.Peer != string(c.to) || !errors.Is(err, c.want) {
				t.Errorf("%s: %v", name, err)
			}
			synctest.Wait()
			o.take()
			drain(o.got)
		}
		nothingIn(t, "end", a.lost)
		if n := len(a.f.links); n != 0 {
			t.Errorf("%d links", n)
		}
	})
}

// TestFabricDialTogether: who dials the same peer gets the same link; both sides at once get two.
func TestFabricDialTogether(t *testing.T) {
	bubble(t, func(t *testing.T) {
		a, b := sitePair(t, FabricConfig{}, FabricConfig{})
		var wg sync.WaitGroup
		var links [2][8]Link
		for i := range 8 {
			for j, s := range []*site{a, b} {
				to := []*site{b, a}[j]
				wg.Go(func() { links[j][i] = s.reach(t, to) })
			}
		}
		wg.Wait()
		for j := range 2 {
			for i := range 8 {
				if links[j][i] != links[j][0] {
					t.Error("two links")
				}
			}
		}
		f := testFormat(t, "F")
		for j, l := range []Link{links[0][0], links[1][0]} {
			if err := l.Send(record(f, j, 1)); err != nil {
				t.Fatal(err)
			}
		}
		if e := next(t, "record", b.got); number(e.data) != 0 || e.link == links[1][0] {
			t.Error("not on the link of the other side")
		}
		if e := next(t, "record", a.got); number(e.data) != 1 || e.link == links[0][0] {
			t.Error("not on the link of the other side")
		}
	})
}

// TestFabricWithItself: a process that dials itself has both ends.
func TestFabricWithItself(t *testing.T) {
	bubble(t, func(t *testing.T) {
		a := place(t, loop.New(), fabric.DomainConfig{}).settle(t, FabricConfig{})
		l := a.reach(t, a)
		f := testFormat(t, "F")
		if err := l.Send(record(f, 1, 100_000)); err != nil {
			t.Fatal(err)
		}
		e := next(t, "record", a.got)
		if e.link == l || !e.link.Info().Inbound {
			t.Error("the wrong end")
		}
		if err := e.link.Send(record(f, 2, 1)); err != nil {
			t.Fatal(err)
		}
		if e := next(t, "record", a.got); e.link != l {
			t.Error("the wrong end")
		}
		_ = l.Close()
		for range 2 {
			next(t, "end", a.lost)
		}
	})
}

// TestFabricPeerDies: a link hears of it also while nothing moves, and after everything that the peer has sent.
func TestFabricPeerDies(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p := loop.New()
		a, b := place(t, p, fabric.DomainConfig{}).settle(t, FabricConfig{}), place(t, p, fabric.DomainConfig{}).settle(t, FabricConfig{})
		l := a.reach(t, b)
		f := testFormat(t, "F")
		if err := l.Send(record(f, 0, 1)); err != nil {
			t.Fatal(err)
		}
		lb := next(t, "record", b.got).link
		for i := range 100 {
			if err := lb.Send(record(f, i, 100)); err != nil {
				t.Fatal(err)
			}
		}
		p.Kill(b.address())
		e := next(t, "end", a.lost)
		if le, ok := errors.AsType[*LinkError](e.err); !ok || !errors.Is(e.err, fabric.ErrPeerGone) || le.Peer != string(b.address()) {
			t.Error(e.err)
		}
		if len(a.got) != 100 {
			t.Errorf("%d records came before the end", len(a.got))
		}
		if err := l.Send(record(f, 0, 1)); !errors.Is(err, fabric.ErrPeerGone) {
			t.Error(err)
		}
		next(t, "end", b.lost)
	})
}

// TestFabricCallbacks: a callback may do to a link whatever it likes.
func TestFabricCallbacks(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := testFormat(t, "F")
		h := &callbacks{newRecorder(), record(f, 9, 100_000)}
		a, b := sitePair(t, FabricConfig{}, FabricConfig{Handler: h})
		l := a.reach(t, b)
		for i := range 10 {
			if err := l.Send(record(f, i, 1)); err != nil {
				t.Fatal(err)
			}
		}
		if e := next(t, "answer", a.got); number(e.data) != 9 {
			t.Error(number(e.data))
		}
		if e := next(t, "end", h.lost); e.err != nil {
			t.Error(e.err)
		}
		next(t, "end", a.lost)
		if len(h.got) != 1 {
			t.Errorf("%d messages after Close", len(h.got)-1)
		}
	})
}

// TestFabricBadRecords: what could not be read by the peer is refused.
func TestFabricBadRecords(t *testing.T) {
	bubble(t, func(t *testing.T) {
		a, b := sitePair(t, FabricConfig{}, FabricConfig{})
		l := a.reach(t, b)
		f := testFormat(t, "F")
		bad := record(testFormat(t, "G"), 1, 1)
		bad.Format = f
		calls := 0
		bad.Done = func(err error) {
			calls++
			if !errors.Is(err, ErrRecord) {
				t.Error(err)
			}
		}
		good := record(f, 1, 1)
		if err := l.Send(bad); !errors.Is(err, ErrRecord) {
			t.Error(err)
		}
		if err := l.SendAll([]Record{good, bad}); !errors.Is(err, ErrRecord) {
			t.Error(err)
		}
		if err := l.SendAll([]Record{good, good, good}); err != nil || calls != 2 {
			t.Error(err, calls)
		}
		for range 3 {
			next(t, "record", b.got)
		}
		synctest.Wait()
		nothingIn(t, "record", b.got)
	})
}

// TestFabricManual: without a goroutine, things move in Wait, Poll and Dial.
func TestFabricManual(t *testing.T) {
	p := loop.New()
	c := FabricConfig{Progress: fabric.Manual, CloseTimeout: time.Second}
	d := fabric.DomainConfig{Progress: fabric.Manual}
	a, b := place(t, p, d).settle(t, c), place(t, p, d).settle(t, c)
	ctx, cancel := context.WithCancel(t.Context())
	over := make(chan error, 1)
	go func() {
		for {
			if err := b.f.Wait(ctx, nil); err != nil {
				over <- err
				return
			}
		}
	}()
	l := a.reach(t, b)
	f := testFormat(t, "F")
	for i := range 20 {
		if err := l.Send(record(f, i, i*30_000)); err != nil {
			t.Fatal(err)
		}
	}
	var back Link
	for i := range 20 {
		for len(b.got) == 0 {
			l.Poll()
		}
		e := next(t, "record", b.got)
		if back = e.link; number(e.data) != i {
			t.Fatalf("number %d at place %d", number(e.data), i)
		}
	}
	if err := back.Send(record(f, 77, 1)); err != nil {
		t.Fatal(err)
	}
	for len(a.got) == 0 {
		if err := a.f.Wait(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
	}
	_ = a.f.Close()
	if e := next(t, "end", a.lost); e.err != nil {
		t.Error(e.err)
	}
	next(t, "end", b.lost)
	cancel()
	if err := next(t, "end of Wait", over); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	_ = b.f.Close()
	if err := b.f.Wait(t.Context(), nil); !errors.Is(err, ErrClosed) {
		t.Error(err)
	}
}

// TestFabricPoll: records come once and in order while somebody polls, and also when nobody does any more.
func TestFabricPoll(t *testing.T) {
	a, b := sitePair(t, FabricConfig{}, FabricConfig{})
	l := a.reach(t, b)
	f := testFormat(t, "F")
	if err := l.Send(record(f, 0, 0)); err != nil {
		t.Fatal(err)
	}
	back := next(t, "record", b.got).link
	const n = 3000
	var wg sync.WaitGroup
	wg.Go(func() {
		for i := range n {
			if err := l.Send(record(f, i, i%100*100)); err != nil {
				t.Error(err)
			}
		}
	})
	for len(b.got) < n/2 {
		back.Poll()
	}
	wg.Wait()
	for i := range n {
		if e := next(t, "record", b.got); number(e.data) != i {
			t.Fatalf("number %d at place %d", number(e.data), i)
		}
	}
}

// TestFabricStandsBy: the goroutine leaves the queue to those who poll, and comes back when nobody does.
func TestFabricStandsBy(t *testing.T) {
	bubble(t, func(t *testing.T) {
		a, b := sitePair(t, FabricConfig{}, FabricConfig{})
		l := a.reach(t, b)
		synctest.Wait()
		if !a.f.rota.waiting.Load() {
			t.Error("it does not sleep")
		}
		if l.Poll() {
			t.Error("something came")
		}
		synctest.Wait()
		if a.f.rota.waiting.Load() {
			t.Error("it sleeps in the queue while somebody polls")
		}
		<-time.After(2*lookEach + 1)
		synctest.Wait()
		if !a.f.rota.waiting.Load() {
			t.Error("it has not come back")
		}
	})
}

// TestFabricFaults: posts that have to be tried again, at random, lose nothing; a peer that is found dead is lost.
func TestFabricFaults(t *testing.T) {
	for name, rules := range map[string][]hook.Rule{
		"again": {{At: hook.Send, Chance: 0.3, Err: provider.ErrAgain}, {At: hook.Recv, After: 4, Chance: 0.5, Err: provider.ErrAgain}},
		"kill":  {{At: hook.Send, After: 50, Count: 1, Kill: true}},
		"fails": {{At: hook.Send, After: 50, Count: 1, Err: errors.New("boom")}},
	} {
		t.Run(name, func(t *testing.T) {
			p := hook.Wrap(loop.New(), hook.Config{Seed: 5, Rules: rules})
			c := FabricConfig{CloseTimeout: 2 * time.Second}
			if name == "kill" {
				c.CloseTimeout = 10 * time.Millisecond // b hears nothing of what it waits for
			}
			a, b := place(t, p, fabric.DomainConfig{}).settle(t, c), place(t, p, fabric.DomainConfig{}).settle(t, c)
			l := a.reach(t, b)
			f := testFormat(t, "F")
			const n = 200
			var done atomic.Int64
			for i := range n {
				r := record(f, i, i%10*30_000)
				r.Done = func(error) { done.Add(1) }
				if err := l.Send(r); err != nil && name == "again" {
					t.Fatal(err)
				}
			}
			if name == "again" {
				for i := range n {
					if e := next(t, "record", b.got); number(e.data) != i {
						t.Fatalf("number %d at place %d", number(e.data), i)
					}
				}
				_ = l.Close()
			}
			if e := next(t, "end", a.lost); (e.err == nil) != (name == "again") {
				t.Error(e.err)
			}
			if name != "kill" { // which b does not hear of: it was taken for dead
				next(t, "end", b.lost)
			}
			if done.Load() != n {
				t.Errorf("%d of %d records are done", done.Load(), n)
			}
		})
	}
}

// TestFabricOfAnotherEndpoint: who has opened the endpoint otherwise hears of it.
func TestFabricOfAnotherEndpoint(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p := loop.New()
		a, b := place(t, p, fabric.DomainConfig{}).settle(t, FabricConfig{}), place(t, p, fabric.DomainConfig{})
		if err := b.end.Close(); err != nil {
			t.Fatal(err)
		}
		var err error
		if b.end, err = b.domain.OpenEndpoint(fabric.EndpointConfig{Send: b.queue, Recv: b.queue}); err != nil {
			t.Fatal(err)
		}
		b.settle(t, FabricConfig{})
		l := a.reach(t, b)
		f := testFormat(t, "F")
		for i := range 100 { // some of them are at the end of a buffer
			_ = l.Send(record(f, i, 60_000))
		}
		if e := next(t, "end", b.lost); !errors.Is(e.err, ErrConfig) {
			t.Error(e.err)
		}
		if _, err := b.f.Dial(t.Context(), a.address()); !errors.Is(err, ErrConfig) {
			t.Error(err)
		}
		_ = b.f.Close()
	})
}

// TestFabricLosesItsEndpoint: whoever closes endpoint or domain first ends the links, and Close ends all the same.
func TestFabricLosesItsEndpoint(t *testing.T) {
	for name, end := range map[string]func(*site) error{
		"endpoint": func(s *site) error { return s.end.Close() },
		"domain":   func(s *site) error { return s.domain.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				a, b := sitePair(t, FabricConfig{}, FabricConfig{})
				a.reach(t, b)
				if err := end(a); err != nil {
					t.Fatal(err)
				}
				if e := next(t, "end", a.lost); !errors.Is(e.err, fabric.ErrClosed) {
					t.Error(e.err)
				}
				if e := next(t, "end", b.lost); !errors.Is(e.err, fabric.ErrPeerGone) {
					t.Error(e.err)
				}
				if _, err := a.f.Dial(t.Context(), b.address()); err == nil {
					t.Error("dialled without an endpoint")
				}
				_ = a.f.Close()
			})
		})
	}
}

// TestFabricHistories is TestRandomHistories for this carrier.
func TestFabricHistories(t *testing.T) {
	t.Run("loop", func(t *testing.T) { fabricHistories(t, loop.New()) })
	t.Run("shm", func(t *testing.T) { fabricHistories(t, shmProvider(t)) })
}

func fabricHistories(t *testing.T, p provider.Provider) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	const places, actors, steps = 4, 3, 150
	var all []*site
	var judges []*judge
	for range places {
		j := newJudge(t)
		all = append(all, place(t, p, fabric.DomainConfig{}).settle(t, FabricConfig{Handler: j, MaxQueued: 8, CloseTimeout: 2 * time.Second}))
		judges = append(judges, j)
	}
	f := testFormat(t, "F")
	var serial, sent, done atomic.Int64
	var sending [places]sync.Mutex // numbers rise on each link
	var wg sync.WaitGroup
	for i := range places * actors {
		wg.Go(func() {
			rnd := rand.New(rand.NewPCG(seed, uint64(i)))
			me := i % places
			for range steps {
				l, err := all[me].f.Dial(t.Context(), all[rnd.IntN(places)].address())
				if err != nil {
					t.Error(err)
					continue
				}
				switch rnd.IntN(20) {
				case 0:
					_ = l.Close()
				case 1:
					l.Abort(nil)
				case 2:
					for range 100 {
						l.Poll()
					}
				default:
					sending[me].Lock()
					r := record(f, int(serial.Add(1)), rnd.IntN(100_000))
					var calls atomic.Int32
					r.Done = func(error) {
						if calls.Add(1) != 1 {
							t.Error("a record was done twice")
						}
						done.Add(1)
					}
					sent.Add(1)
					_ = l.Send(r)
					sending[me].Unlock()
				}
			}
		})
	}
	wg.Wait()
	for _, s := range all {
		wg.Go(func() { _ = s.f.Close() })
	}
	wg.Wait()
	if sent.Load() != done.Load() {
		t.Errorf("%d records sent, %d done", sent.Load(), done.Load())
	}
	for i, j := range judges {
		vacant(t, all[i])
		for l := range j.at {
			if !j.is[l] {
				t.Errorf("place %d: a link was never lost", i)
			}
		}
	}
}

// TestFabricWaitDone: a Wait whose end has come does not sleep, and a Wake ends one that
// sleeps, and those that wait for it.
func TestFabricWaitDone(t *testing.T) {
	a, _ := sitePair(t, FabricConfig{Progress: fabric.Manual}, FabricConfig{})
	over := make(chan struct{})
	close(over)
	if err := a.f.Wait(t.Context(), over); err != nil {
		t.Error(err)
	}
	done := make(chan struct{})
	ends := make(chan error, 3)
	for range cap(ends) {
		go func() {
			for {
				if err := a.f.Wait(t.Context(), done); err != nil || isClosed(done) {
					ends <- err
					return
				}
			}
		}()
	}
	close(done)
	a.f.Wake()
	for range cap(ends) {
		if err := next(t, "the end of a Wait", ends); err != nil {
			t.Error(err)
		}
	}
	_ = a.f.Close()
}
