package fabrictest

import (
	"context"
	"errors"

	"github.com/weft-fabric/weft/fabric/provider"
	"github.com/weft-fabric/weft/internal/testutil"
)

// testSharedRoom: one goroutine waits for completions, another posts, and waits on the same queue when it is refused. Whichever of
// them is told that there is room, and when, the one that posts goes on.
func testSharedRoom(e *env) {
	a, b := e.directsOf(endpointConfig{}, provider.CQConfig{Size: 1})
	total := testutil.Count(e, 10000, 100000)
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
			ctx, cancel := e.patient()
			var c [1]provider.Completion
			n, err := a.q.Wait(ctx, c[:])
			cancel()
			if n != 0 || err != nil {
				again := a.ep.Send(op)
				e.Fatalf("message %d was refused; a wait for room, while another one waits: %d completions, %v; the post then: %v", i, n, err, again)
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
