package fabrictest

import (
	"context"
	"errors"
	"fmt"

	"github.com/weft-fabric/weft/fabric/provider"
	"github.com/weft-fabric/weft/internal/testutil"
)

// testSharedRoom: one goroutine waits for completions, another posts, and waits on the same queue when it is refused, in Wait or in an
// event loop. Whichever of them is told that there is room, and when, the one that posts goes on.
func testSharedRoom(e *env) {
	e.sharedRoom(testutil.Count(e, 10000, 100000), e.roomByWait)
	e.sharedRoom(testutil.Count(e, 2000, 20000), e.roomByDescriptor)
}

// roomByWait waits for room; an error says what is wrong.
func (e *env) roomByWait(a *direct) error {
	ctx, cancel := e.patient()
	defer cancel()
	var c [1]provider.Completion
	n, err := a.q.Wait(ctx, c[:])
	if n != 0 || err != nil {
		return errors.Join(fmt.Errorf("a wait for room: %d completions", n), err)
	}
	return nil
}

// roomByDescriptor is roomByWait of an event loop.
func (e *env) roomByDescriptor(a *direct) error {
	fd, err := a.q.Descriptor()
	if err != nil {
		return err
	}
	if a.q.TryWait() {
		if ok, err := readable(fd, e.o.patience); !ok || err != nil {
			return errors.Join(fmt.Errorf("TryWait said that one may wait, and the descriptor is silent for %v", e.o.patience), err)
		}
	}
	var c [1]provider.Completion
	if n, err := a.q.Read(c[:]); n != 0 || err != nil {
		return errors.Join(fmt.Errorf("a read: %d completions", n), err)
	}
	return nil
}

// sharedRoom posts total messages; wait is how it waits when it is refused.
func (e *env) sharedRoom(total int, wait func(*direct) error) {
	a, b := e.directsOf(endpointConfig{}, provider.CQConfig{Size: 1})
	all, stop := context.WithCancel(context.Background())
	defer stop()
	ended := make(chan error, 2)
	go func() {
		var c [1]provider.Completion
		for {
			n, err := a.q.Wait(all, c[:])
			if all.Err() != nil {
				err = nil
			} else if n > 0 && err == nil {
				err = errors.Join(errors.New("a quiet send has a completion"), c[0].Err)
			}
			if err != nil || all.Err() != nil {
				ended <- err
				return
			}
		}
	}()
	go func() { ended <- takeAll(all, b, total) }()
	msg := make([]byte, 8)
	op := provider.Op{Local: provider.Segment{Bytes: msg}, Peer: a.to, Flags: provider.Quiet | provider.DeliveryComplete}
	refused := 0
	for i := range total {
		for {
			err := a.ep.Send(op)
			if err == nil {
				break
			}
			if !errors.Is(err, provider.ErrAgain) {
				e.Fatalf("message %d: %v", i, err)
			}
			refused++
			if err := wait(a); err != nil {
				again := a.ep.Send(op)
				e.Fatalf("message %d was refused; while another one waits: %v; the post then: %v", i, err, again)
			}
		}
	}
	err := <-ended // that all have come
	stop()
	if err := errors.Join(err, <-ended); err != nil {
		e.Fatal(err)
	}
	if refused == 0 {
		e.Fatalf("%d sends, each with the only place of its queue until it has arrived, and none was refused", total)
	}
}

// takeAll receives n messages, one after the other.
func takeAll(ctx context.Context, b *direct, n int) error {
	var in [8]byte
	var c [1]provider.Completion
	for range n {
		for {
			err := b.ep.Recv(provider.Op{Local: provider.Segment{Bytes: in[:]}})
			if err == nil {
				break
			}
			if !errors.Is(err, provider.ErrAgain) {
				return err
			}
			if _, err := b.q.Wait(ctx, c[:]); err != nil {
				return err
			}
		}
		for {
			k, err := b.q.Wait(ctx, c[:])
			if err = errors.Join(err, c[0].Err); err != nil {
				return err
			}
			if k > 0 {
				break
			}
		}
	}
	return nil
}
