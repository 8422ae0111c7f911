package loop

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/weft-fabric/weft/fabric/provider"
	"github.com/weft-fabric/weft/internal/sys"
)

// loopOn makes an event loop that is told of edges on the queue of a node.
func loopOn(t *testing.T, n *node) *sys.Poller {
	t.Helper()
	number, err := n.cq.Descriptor()
	if err != nil {
		t.Fatal(err)
	}
	p, err := sys.NewPoller()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	fd := sys.NewFD(number, "of the queue")
	defer fd.Disown()
	if err := p.Add(fd, sys.Readable|sys.EdgeOnly, 1); err != nil {
		t.Fatal(err)
	}
	return p
}

// A program that waits in an event loop of its own gets each of its completions, in both modes, while the peer does what
// completes nothing as well, alone and while another goroutine reads another queue of the domain.
func TestEventLoop(t *testing.T) {
	modes(t, func(t *testing.T, p *Provider, mode provider.Progress) {
		t.Run("alone", func(t *testing.T) { eventLoop(t, p, mode, false) })
		t.Run("with another", func(t *testing.T) { eventLoop(t, p, mode, true) })
	})
}

func eventLoop(t *testing.T, p *Provider, mode provider.Progress, another bool) {
	a, b := open(t, p, mode), open(t, p, provider.Auto)
	toA := b.insert(a)
	events := loopOn(t, a)
	other, err := a.d.OpenCompletionQueue(provider.CQConfig{})
	if err != nil {
		t.Fatal(err)
	}
	stop := make(chan struct{})
	var all sync.WaitGroup
	defer all.Wait()
	defer close(stop)
	sent := make(chan struct{}, 1) // something was, since the last look
	all.Go(func() {
		var c [1]provider.Completion
		for {
			select {
			case <-stop:
				return
			case <-sent:
				if another {
					_, _ = other.Read(c[:])
				}
			}
		}
	})
	const messages, burst = 300, 7
	taken := make(chan struct{}, messages)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	for range messages {
		a.must(a.ep.Recv(provider.Op{Local: local(make([]byte, 64))}))
	}
	all.Go(func() {
		for i := range messages {
			if err := b.ep.Send(provider.Op{Local: local(text(i)), Peer: toA, Flags: provider.Quiet}); err != nil {
				t.Error(err)
			}
			select {
			case sent <- struct{}{}:
			default:
			}
			for n := 0; i%burst == burst-1 && n < burst; n++ { // and the loop goes to sleep
				select {
				case <-taken:
				case <-ctx.Done():
					return
				}
			}
		}
	})
	var c [5]provider.Completion
	for got := 0; got < messages; {
		if a.cq.TryWait() {
			if err := events.Park(ctx, nil); err != nil {
				t.Fatalf("after %d messages: %v", got, err)
			}
			var seen [1]sys.Event
			if _, err := events.Poll(seen[:]); err != nil {
				t.Fatal(err)
			}
		}
		n, err := a.cq.Read(c[:])
		if err != nil {
			t.Fatal(err)
		}
		for i := range n {
			if want := len(text(got)); c[i].Err != nil || c[i].Len != uint64(want) {
				t.Fatalf("message %d: %+v", got, c[i])
			}
			got++
			taken <- struct{}{}
		}
	}
	a.none()
}

// history is what a tracer has heard, but for sleeping and waking.
type history struct {
	mu   sync.Mutex
	text []string
}

func (h *history) add(format string, args ...any) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.text = append(h.text, fmt.Sprintf(format, args...))
}

func (h *history) tracer() *provider.Tracer {
	return &provider.Tracer{
		Post:     func(k provider.Kind, op *provider.Op, err error) { h.add("post %v %d %v", k, op.Context, err != nil) },
		Complete: func(c *provider.Completion) { h.add("end %v %d %v", c.Kind, c.Context, c.Err != nil) },
		PeerUp:   func(_ provider.Peer, a provider.Address) { h.add("up %s", a) },
		PeerGone: func(_ provider.Peer, a provider.Address, why error) {
			h.add("gone %s %v", a, errors.Is(why, provider.ErrPeerGone))
		},
	}
}

// The tracer hears of each post, end, peer and death once, in the order in which they came.
func TestTracer(t *testing.T) {
	p := New()
	var h history
	a := open(t, p, provider.Manual, func(c *config) { c.dom.Tracer = h.tracer() })
	b := open(t, p, provider.Manual, func(c *config) { c.ep.Name = "b" })
	to := a.insert(b)
	if err := a.ep.Send(provider.Op{Peer: to + 1, Context: 9}); err == nil {
		t.Error("a post to nobody")
	}
	a.must(a.ep.Send(provider.Op{Local: local([]byte("x")), Peer: to, Context: 1}))
	a.must(a.ep.Send(provider.Op{Local: local([]byte("x")), Peer: to, Context: 2, Flags: provider.DeliveryComplete}))
	b.must(b.ep.Close())
	var c [4]provider.Completion
	for range 3 {
		_, _ = a.cq.Read(c[:])
	}
	want := []string{
		"post send 9 true", "up loop://b", "end send 1 false", "post send 1 false", "post send 2 false",
		"end send 2 true", "gone loop://b true",
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if !slices.Equal(h.text, want) {
		t.Errorf("%q,\nwant %q", h.text, want)
	}
}
