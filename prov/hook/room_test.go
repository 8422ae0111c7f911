package hook

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weft-fabric/weft/fabric"
	"github.com/weft-fabric/weft/fabric/provider"
	"github.com/weft-fabric/weft/prov/loop"
)

// refusing is a side whose first send is refused by a rule.
func refusing(t *testing.T) *pair {
	t.Helper()
	p := &pair{h: Wrap(loop.New(), Config{Rules: []Rule{{At: Send, Count: 1, Err: provider.ErrAgain}}})}
	p.a, p.aq, p.ae = open(t, p.h, "a", fabric.DomainConfig{})
	var err error
	if p.to, err = p.a.Insert(p.ae.Address()); err != nil {
		t.Fatal(err)
	}
	return p
}

// waits starts n waits.
func (p *pair) waits(ctx context.Context, n int) <-chan error {
	ends := make(chan error, n)
	for range n {
		go func() {
			var c [1]fabric.Completion
			_, err := p.aq.Wait(ctx, c[:])
			ends <- err
		}()
	}
	return ends
}

// All who wait are told that a refused post may be tried again.
func TestRoomForAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := refusing(t)
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		ends := p.waits(ctx, 3)
		synctest.Wait()
		began := time.Now()
		if err := p.send(1); !errors.Is(err, fabric.ErrAgain) {
			t.Fatal(err)
		}
		for range 3 {
			if err := <-ends; err != nil {
				t.Errorf("a wait was not told of room: %v", err)
			}
		}
		if took := time.Since(began); took > 0 {
			t.Errorf("told after %v", took)
		}
	})
}

// Who was refused hears of room also if another one waits, and is told, before it does; who has nothing to post is rarely told.
func TestRoomIsForThePoster(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := refusing(t)
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		words := 0
		go func() {
			var c [1]fabric.Completion
			for {
				if _, err := p.aq.Wait(ctx, c[:]); err != nil {
					return
				}
				words++
			}
		}()
		synctest.Wait()
		if err := p.send(1); !errors.Is(err, fabric.ErrAgain) {
			t.Fatal(err)
		}
		synctest.Wait()
		if err := <-p.waits(ctx, 1); err != nil {
			t.Errorf("who was refused was not told of room: %v", err)
		}
		<-ctx.Done()
		synctest.Wait()
		if words < 1 || words > 40 {
			t.Errorf("%d words of room in an hour", words)
		}
	})
}

// Who was refused and goes on in an event loop hears of room that one who waits was told of before.
func TestRoomIsForTheEventLoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := refusing(t)
		if _, err := p.aq.Descriptor(); err != nil {
			t.Fatal(err)
		}
		ends := p.waits(t.Context(), 1)
		synctest.Wait()
		if err := p.send(1); !errors.Is(err, fabric.ErrAgain) {
			t.Fatal(err)
		}
		if err := <-ends; err != nil {
			t.Error(err)
		}
		if p.aq.TryWait() {
			t.Error("TryWait lets the event loop sleep, though there is room")
		}
		if !p.aq.TryWait() {
			t.Error("TryWait says twice that there is room")
		}
	})
}

// Only waits remind: while nobody waits nothing runs, and a wait on a queue that is closed leaves nothing behind.
func TestNobodyWaitsNobodyReminds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := refusing(t)
		if err := p.send(1); !errors.Is(err, fabric.ErrAgain) {
			t.Fatal(err)
		}
		wait := func() error {
			ctx, cancel := context.WithTimeout(t.Context(), time.Nanosecond)
			defer cancel()
			var c [1]fabric.Completion
			_, err := p.aq.Wait(ctx, c[:])
			return err
		}
		if err := wait(); err != nil {
			t.Error(err)
		}
		if err := wait(); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		q := p.hookQueue()
		before := q.remind
		<-time.After(time.Hour)
		synctest.Wait()
		if after := q.remind; after != before {
			t.Errorf("nobody waits, and the reminder was %+v and is %+v", before, after)
		}
		if err := wait(); err != nil {
			t.Errorf("a wait when it is past the time: %v", err)
		}
		if err := p.a.Close(); err != nil {
			t.Error(err)
		}
		if err := wait(); !errors.Is(err, fabric.ErrClosed) {
			t.Error(err)
		}
	})
}

// A wait that ends by a signal leaves the word of room to the next one.
func TestSignalLeavesRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := refusing(t)
		q := p.hookQueue()
		round := q.begin() // a wait, which sleeps
		q.makeRoom()
		q.Signal()
		_, done, err := q.own(nil, &round)
		if !done || !errors.Is(err, provider.ErrSignal) {
			t.Fatal(done, err)
		}
		q.leave(round, err)
		began := time.Now()
		if err := <-p.waits(t.Context(), 1); err != nil || time.Since(began) > 0 {
			t.Errorf("of room: %v, after %v", err, time.Since(began))
		}
	})
}

// hookQueue is the hook's part of the queue of side a, the only one.
func (p *pair) hookQueue() *queue {
	for d := range p.h.domains {
		for q := range d.queues {
			return q
		}
	}
	return nil
}
