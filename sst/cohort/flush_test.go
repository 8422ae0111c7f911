package cohort

import (
	"context"
	"net"
	"testing"
	"time"
)

// What was sent before a Flush is with the other processes when it returns, joined
// or not; whoever is gone is not waited for.
func conformFlush(t *testing.T, m maker) {
	const messages = 100
	ranks := m.make(t, 4)
	root := join(t, ranks[0], "s")
	ranks[3].Close()
	waitGone(t, ranks[0], 3)
	for range messages {
		root.send(1, "hello")
		root.send(2, string(filler(100<<10, 0, 2)))
	}
	if err := root.Channel.(Flusher).Flush(bounded(t)); err != nil {
		t.Fatal(err)
	}
	for _, rank := range []int{1, 2} {
		late := join(t, ranks[rank], "s")
		c := late.Channel.(*channel)
		c.hub.mu.Lock()
		here := len(c.inbox)
		c.hub.mu.Unlock()
		taken := len(late.events)
		if here+taken+1 < messages { // one may be between the two
			t.Errorf("rank %d has %d of %d messages", rank, here+taken, messages)
		}
	}
}

// A peer that does not answer holds nobody up for longer than is asked for, and its
// end is the answer as well.
func TestFlushWithoutAnswer(t *testing.T) {
	r, conn := pair(t, 0, nil)
	e := join(t, r, "s")
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	wants(t, "Flush", e.Channel.(Flusher).Flush(ctx), context.DeadlineExceeded)
	done := make(chan error, 1)
	go func() { done <- e.Channel.(Flusher).Flush(bounded(t)) }()
	conn.(*net.TCPConn).CloseWrite()
	if err := <-done; err != nil {
		t.Error(err)
	}
	e.wantsLost(1)
	if err := e.Channel.(Flusher).Flush(bounded(t)); err != nil {
		t.Error(err)
	}
}
