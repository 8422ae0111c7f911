package loop

import (
	"errors"
	"testing"

	"github.com/weft-fabric/weft/fabric/provider"
)

// A queue of 8 and 1000 sends without reading: ErrAgain, and nothing is lost.
func TestF51QueueFull(t *testing.T) {
	modes(t, func(t *testing.T, p *Provider, mode provider.Progress) {
		a, b := open(t, p, mode, func(c *config) { c.cq.Size = 8 }), open(t, p, mode)
		to := a.insert(b)
		var c [3]provider.Completion
		sent, done := 0, 0
		for sent < 1000 {
			err := a.ep.Send(provider.Op{Local: local([]byte("x")), Peer: to, Context: uint64(sent)})
			if err == nil {
				if sent++; sent-done > 8 {
					t.Fatalf("%d posts without a place", sent-done)
				}
				continue
			}
			if !errors.Is(err, provider.ErrAgain) {
				t.Fatal(err)
			}
			n, err := a.cq.Wait(t.Context(), c[:])
			if err != nil {
				t.Fatal(err)
			}
			for i := range n {
				if c[i].Err != nil || c[i].Context != uint64(done) {
					t.Fatalf("%+v, want %d", c[i], done)
				}
				done++
			}
		}
		for ; done < sent; done++ {
			a.wait()
		}
		a.none()
	})
}

// A receiver that posts nothing makes its sender wait; every message arrives once when it does, in reverse order of tags
// (F35), and the memory for them is bounded.
func TestF35Unexpected(t *testing.T) {
	modes(t, func(t *testing.T, p *Provider, mode provider.Progress) {
		for _, size := range []int{0, 1000, 4095, 4096, 4097, 65536} {
			a := open(t, p, mode, func(c *config) { c.ep.Depth = 64 })
			b := open(t, p, mode, func(c *config) { c.ep.Depth = 64; c.ep.Unexpected = 64 << 10 })
			to := a.insert(b)
			msg := fill(size, 1)
			sent, ended := 0, 0
			var c [8]provider.Completion
			for again := 0; again < 3; {
				err := a.ep.SendTagged(provider.Op{Local: local(msg), Peer: to, Tag: uint64(sent)})
				if err == nil {
					if sent++; sent == 600 {
						break
					}
					continue
				}
				if !errors.Is(err, provider.ErrAgain) {
					t.Fatal(err)
				}
				n, _ := a.cq.Read(c[:])
				ended += n
				b.none()
				if n == 0 {
					again++
				}
			}
			if s := b.d.Peers(); len(s) > 0 && s[0].Unexpected > 64<<10 {
				t.Errorf("%d bytes wait, 64 KiB are the bound", s[0].Unexpected)
			}
			buf := make([]byte, size)
			for tag := range sent {
				b.must(b.ep.RecvTagged(provider.Op{Local: local(buf), Tag: uint64(tag)}))
				for {
					n, err := b.cq.Read(c[:])
					if err != nil || n > 1 || n == 1 && (c[0].Err != nil || c[0].Len != uint64(size)) {
						t.Fatalf("%d bytes: %d, %v, %+v", size, n, err, c[0])
					}
					if n == 1 {
						break
					}
					n, _ = a.cq.Read(c[:]) // in manual mode what waits at the sender moves here
					ended += n
				}
			}
			for ; ended < sent; ended++ {
				if c := a.wait(); c.Err != nil {
					t.Fatal(c.Err)
				}
			}
			a.none()
		}
	})
}

// A sender that waits because of its receiver hears when there is room, also if none of its operations is to complete.
func TestRoom(t *testing.T) {
	modes(t, func(t *testing.T, p *Provider, mode provider.Progress) {
		a := open(t, p, mode, func(c *config) { c.ep.Depth = 4 })
		b := open(t, p, mode, func(c *config) { c.ep.Depth = 4; c.ep.Unexpected = 1 })
		to := a.insert(b)
		send := func() error {
			return a.ep.Send(provider.Op{Local: local([]byte("hello")), Peer: to, Flags: provider.Inject | provider.Quiet})
		}
		sent := 0
		for send() == nil {
			b.none()
			sent++
		}
		if sent < 8 || sent > 12 {
			t.Errorf("%d messages", sent)
		}
		go func() {
			for range 20 {
				for b.ep.Recv(provider.Op{Local: local(make([]byte, 8))}) != nil {
					var c [8]provider.Completion
					if _, err := b.cq.Wait(t.Context(), c[:]); err != nil {
						return
					}
				}
			}
			var c [8]provider.Completion
			for t.Context().Err() == nil {
				_, _ = b.cq.Wait(t.Context(), c[:])
			}
		}()
		for sent < 20 {
			var c [1]provider.Completion
			if n, err := a.cq.Wait(t.Context(), c[:]); n != 0 || err != nil {
				t.Fatalf("%d, %v", n, err)
			}
			for sent < 20 && send() == nil {
				sent++
			}
		}
	})
}

// Reads and writes do not wait behind messages that their peer does not take.
func TestAccessPassesMessages(t *testing.T) {
	modes(t, func(t *testing.T, p *Provider, mode provider.Progress) {
		a := open(t, p, mode, func(c *config) { c.ep.Depth = 16 })
		b := open(t, p, provider.Manual, func(c *config) { c.ep.Depth = 4 })
		to := a.insert(b)
		m := memories(t, b, 64, provider.PeerWrite)["heap"]
		for range 8 {
			a.must(a.ep.Send(provider.Op{Local: local([]byte("x")), Peer: to, Context: 1}))
		}
		a.must(a.ep.Write(provider.Op{Local: local([]byte("y")), Peer: to, Key: m.Key(), Context: 2}))
		for range 5 { // four messages have room
			if c := a.wait(); c.Context == 2 {
				if m.Bytes()[0] != 'y' {
					t.Error("not written")
				}
				return
			}
		}
		t.Error("the write waits")
	})
}

// Fence waits for everything that was posted before.
func TestFence(t *testing.T) {
	modes(t, func(t *testing.T, p *Provider, mode provider.Progress) {
		a, b := open(t, p, mode), open(t, p, mode)
		to := a.insert(b)
		m := memories(t, b, 64, provider.PeerWrite)["heap"]
		a.must(a.ep.Send(provider.Op{Local: local(make([]byte, 9)), Peer: to, Context: 1, Flags: provider.DeliveryComplete}))
		a.must(a.ep.Write(provider.Op{Local: local([]byte("y")), Peer: to, Key: m.Key(), Context: 2, Flags: provider.Fence | provider.Inject}))
		a.none()
		b.none()
		a.none()
		b.must(b.ep.Recv(provider.Op{Local: local(make([]byte, 9))}))
		for want := uint64(1); want <= 2; want++ {
			if c := a.wait(); c.Err != nil || c.Context != want {
				t.Errorf("%+v, want %d", c, want)
			}
		}
		// What waits can be cancelled; what stood behind it goes on.
		a.must(a.ep.Send(provider.Op{Local: local(make([]byte, 9)), Peer: to, Context: 3, Flags: provider.DeliveryComplete}))
		a.must(a.ep.Write(provider.Op{Local: local([]byte("z")), Peer: to, Key: m.Key(), Context: 4, Flags: provider.Fence}))
		a.must(a.ep.Write(provider.Op{Local: local([]byte("v")), Peer: to, Key: m.Key(), Context: 5}))
		if a.ep.Cancel(3) || !a.ep.Cancel(4) {
			t.Error("cancel")
		}
		wants(t, a.wait(), provider.ErrCancelled, b.addr)
		if c := a.wait(); c.Context != 5 || c.Err != nil || m.Bytes()[0] != 'v' {
			t.Errorf("%+v", c)
		}
	})
}
