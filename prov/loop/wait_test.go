package loop

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weft-fabric/weft/fabric/provider"
	"github.com/weft-fabric/weft/internal/testutil"
)

// A wait returns with completions, or when its time is up, and not for what does not concern it (F48).
func TestF48WaitInBubble(t *testing.T) {
	modes(t, func(t *testing.T, _ *Provider, mode provider.Progress) {
		synctest.Test(t, func(t *testing.T) {
			p := New()
			a, b := open(t, p, mode), open(t, p, mode)
			to := a.insert(b)
			var c [1]provider.Completion
			traffic := func() { // for b, but for no receive of it
				a.must(a.ep.SendTagged(provider.Op{Peer: to, Tag: 3, Flags: provider.Quiet}))
			}
			start := time.Now()
			stop := make(chan struct{})
			var wg sync.WaitGroup
			wg.Go(func() {
				for {
					select {
					case <-stop:
						return
					case <-time.After(100 * time.Millisecond):
						traffic()
					}
				}
			})
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
			defer cancel()
			n, err := b.cq.Wait(ctx, c[:])
			if took := time.Since(start); n != 0 || !errors.Is(err, context.DeadlineExceeded) || took != 2*time.Second {
				t.Errorf("%d, %v after %v", n, err, took)
			}
			b.must(b.ep.Recv(provider.Op{}))
			start = time.Now()
			wg.Go(func() {
				<-time.After(700 * time.Millisecond)
				a.must(a.ep.Send(provider.Op{Peer: to}))
			})
			if n, err := b.cq.Wait(t.Context(), c[:]); n != 1 || err != nil || time.Since(start) != 700*time.Millisecond {
				t.Errorf("%d, %v after %v", n, err, time.Since(start))
			}
			close(stop)
			wg.Wait()
			// An idle domain has no timer: the bubble's clock can go as far as it likes at once.
			ctx, cancel = context.WithTimeout(t.Context(), 1000*time.Hour)
			defer cancel()
			if _, err := b.cq.Wait(ctx, c[:]); !errors.Is(err, context.DeadlineExceeded) {
				t.Error(err)
			}
			a.must(a.d.Close())
			b.must(b.d.Close())
		})
	})
}

// Eight waits: four are cancelled, the others signalled, then closed (F49).
func TestF49Unblock(t *testing.T) {
	modes(t, func(t *testing.T, _ *Provider, mode provider.Progress) {
		synctest.Test(t, func(t *testing.T) {
			a := open(t, New(), mode)
			ctx, cancel := context.WithCancel(t.Context())
			results := make(chan error, 12)
			wait := func(ctx context.Context) {
				go func() {
					var c [1]provider.Completion
					n, err := a.cq.Wait(ctx, c[:])
					if n != 0 {
						t.Errorf("%d completions", n)
					}
					results <- err
				}()
			}
			expect := func(n int, want error) {
				t.Helper()
				for range n {
					if err := <-results; !errors.Is(err, want) {
						t.Errorf("%v, want %v", err, want)
					}
				}
				synctest.Wait()
				if len(results) != 0 {
					t.Errorf("%d waits too many ended, %v", len(results), <-results)
				}
			}
			for range 4 {
				wait(ctx)
				wait(t.Context())
			}
			synctest.Wait()
			cancel()
			expect(4, context.Canceled)
			for range 2 {
				a.cq.Signal()
			}
			expect(2, provider.ErrSignal)
			a.must(a.ep.Close())
			a.must(a.cq.Close())
			expect(2, provider.ErrClosed)
			wait(t.Context())
			expect(1, provider.ErrClosed)
			a.must(a.d.Close())
		})
	})
}

// A signal without a wait is for the next one, once.
func TestSignalIsKept(t *testing.T) {
	a := open(t, New(), provider.Auto)
	a.cq.Signal()
	a.cq.Signal()
	var c [1]provider.Completion
	if _, err := a.cq.Wait(t.Context(), c[:]); !errors.Is(err, provider.ErrSignal) {
		t.Error(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if _, err := a.cq.Wait(ctx, c[:]); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
}

// Readers and waiters of one queue see each of 10 000 completions once (F49).
func TestSoakF49EachOnce(t *testing.T) {
	modes(t, func(t *testing.T, p *Provider, mode provider.Progress) {
		a, b := open(t, p, mode), open(t, p, mode, func(c *config) { c.cq.Size = 64 })
		to := a.insert(b)
		n := testutil.Count(t, 1000, 10_000)
		seen := make([]atomic.Int32, n)
		var left atomic.Int32
		left.Store(int32(n))
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var wg sync.WaitGroup
		take := func(c []provider.Completion) {
			for i := range c {
				if c[i].Err != nil {
					t.Error(c[i].Err)
				}
				seen[c[i].Data].Add(1)
			}
			if left.Add(-int32(len(c))) <= 0 {
				cancel()
			}
		}
		for i := range 4 {
			wg.Go(func() {
				c := make([]provider.Completion, 1+i)
				for ctx.Err() == nil {
					var got int
					if i%2 == 0 {
						got, _ = b.cq.Read(c)
						runtime.Gosched() // else the lock is mostly taken
					} else {
						got, _ = b.cq.Wait(ctx, c)
					}
					take(c[:got])
				}
			})
		}
		wg.Go(func() {
			for posted := 0; posted < n && ctx.Err() == nil; {
				switch err := b.ep.Recv(provider.Op{}); {
				case err == nil:
					posted++
				case errors.Is(err, provider.ErrAgain):
					runtime.Gosched()
				default:
					t.Error(err)
					return
				}
			}
		})
		for i := 0; i < n && ctx.Err() == nil; {
			err := a.ep.Send(provider.Op{Peer: to, Data: uint64(i), Flags: provider.RemoteData | provider.Quiet | provider.Inject})
			if err == nil {
				i++
				continue
			}
			var c [4]provider.Completion
			if _, err := a.cq.Wait(ctx, c[:]); err != nil && ctx.Err() == nil {
				t.Error(err)
			}
		}
		for ctx.Err() == nil && mode == provider.Manual { // what waits at the sender moves here
			var c [4]provider.Completion
			_, _ = a.cq.Read(c[:])
			runtime.Gosched()
		}
		wg.Wait()
		for i := range seen {
			if s := seen[i].Load(); s != 1 {
				t.Fatalf("%d was seen %d times", i, s)
			}
		}
	})
}

// In auto mode operations complete although the target makes no call (F46, F52).
func TestF52TargetComputes(t *testing.T) {
	p := New()
	a, b := open(t, p, provider.Auto), open(t, p, provider.Auto)
	to := a.insert(b)
	for _, size := range []int{8, 1 << 20} {
		buf := make([]byte, size)
		b.must(b.ep.Recv(provider.Op{Local: local(buf)}))
		a.must(a.ep.Send(provider.Op{Local: local(fill(size, 1)), Peer: to, Flags: provider.DeliveryComplete}))
		if c := a.wait(); c.Err != nil {
			t.Error(c.Err)
		}
		if buf[1] != fill(2, 1)[1] {
			t.Error("not delivered")
		}
	}
}

// In manual mode a send is accepted at once, and completes when the peer looks (F46).
func TestF46Manual(t *testing.T) {
	p := New()
	a, b := open(t, p, provider.Manual), open(t, p, provider.Manual)
	to := a.insert(b)
	b.must(b.ep.Recv(provider.Op{Local: local(make([]byte, 9))}))
	a.must(a.ep.Send(provider.Op{Local: local([]byte("hi")), Peer: to, Flags: provider.DeliveryComplete}))
	a.none()
	b.wait()
	a.wait()
}

func TestReady(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := New()
		a, b := open(t, p, provider.Auto), open(t, p, provider.Auto)
		to := a.insert(b)
		ready := b.cq.Ready()
		var c [4]provider.Completion
		for range 5 {
			b.must(b.ep.Recv(provider.Op{}))
			b.none()
			start := time.Now()
			go func() {
				<-time.After(time.Minute)
				a.must(a.ep.Send(provider.Op{Peer: to}))
			}()
			<-ready
			if n, err := b.cq.Read(c[:]); n != 1 || err != nil || time.Since(start) != time.Minute {
				t.Errorf("%d, %v after %v", n, err, time.Since(start))
			}
		}
		a.must(a.d.Close())
		b.must(b.d.Close())
		<-ready
		if _, err := b.cq.Read(c[:]); !errors.Is(err, provider.ErrClosed) {
			t.Error(err)
		}
	})
}

func TestCounters(t *testing.T) {
	modes(t, func(t *testing.T, p *Provider, mode provider.Progress) {
		a, b := open(t, p, mode), open(t, p, mode)
		to := a.insert(b)
		var counters [2]provider.Counter
		for i := range counters {
			var err error
			if counters[i], err = a.d.OpenCounter(); err != nil {
				t.Fatal(err)
			}
		}
		ep, err := a.d.OpenEndpoint(provider.EndpointConfig{Counters: provider.Counters{Send: counters[0], Write: counters[1]}})
		if err != nil {
			t.Fatal(err)
		}
		m := memories(t, b, 8, provider.PeerWrite)["heap"]
		for range 3 {
			a.must(ep.Send(provider.Op{Peer: to}))
			a.must(ep.Write(provider.Op{Local: local([]byte("x")), Peer: to, Key: m.Key()}))
		}
		for _, n := range counters {
			a.must(n.Wait(t.Context(), 3))
			if n.Value() != 3 || n.Errors() != 0 {
				t.Errorf("%d, %d", n.Value(), n.Errors())
			}
		}
		go func() { _ = ep.Write(provider.Op{Local: local([]byte("x")), Peer: to, Key: m.Key() + 1}) }()
		if err := counters[1].Wait(t.Context(), 4); !errors.Is(err, provider.ErrKey) || counters[1].Errors() != 1 {
			t.Error(err)
		}
		ended := make(chan error)
		go func() { ended <- counters[0].Wait(t.Context(), 99) }()
		a.must(counters[0].Close())
		if err := <-ended; !errors.Is(err, provider.ErrClosed) {
			t.Error(err)
		}
	})
}
