package loop

import (
	"bytes"
	"errors"
	"testing"

	"github.com/weft-fabric/weft/fabric/provider"
)

func TestMulti(t *testing.T) {
	modes(t, func(t *testing.T, p *Provider, mode provider.Progress) {
		a, b := open(t, p, mode), open(t, p, mode, func(c *config) { c.ep.MinMultiRecv = 10 })
		to := a.insert(b)
		for _, early := range []bool{true, false} {
			buf := make([]byte, 9100)
			post := func() {
				b.must(b.ep.Recv(provider.Op{Local: local(buf), Context: 5, Flags: provider.Multi}))
			}
			if early {
				post()
			}
			var want []byte
			for i, n := range []int{30, 9000, 0, 35, 28} { // 7 bytes are left
				msg := fill(n, byte(i))
				want = append(want, msg...)
				a.must(a.ep.Send(provider.Op{Local: local(msg), Peer: to}))
			}
			if !early {
				post()
			}
			done, offsets := 0, map[uint64]bool{}
			for i := range 5 {
				c := b.wait()
				if c.Err != nil || c.Context != 5 || offsets[c.Offset] && c.Len > 0 {
					t.Fatalf("%+v", c)
				}
				offsets[c.Offset] = offsets[c.Offset] || c.Len > 0
				if c.Flags&provider.MultiDone != 0 {
					done++
					if i != 4 {
						t.Error("done before the last")
					}
				}
			}
			if done != 1 || !bytes.Equal(buf[:len(want)], want) {
				t.Errorf("done %d times", done)
			}
			for range 5 {
				a.wait()
			}
		}
		b.must(b.ep.Recv(provider.Op{Local: local(make([]byte, 99)), Context: 6, Flags: provider.Multi}))
		if !b.ep.Cancel(6) || b.ep.Cancel(6) {
			t.Error("cancelled not once")
		}
		if c := b.wait(); c.Flags != provider.MultiDone || !errors.Is(c.Err, provider.ErrCancelled) || c.Len != 0 {
			t.Errorf("%+v", c)
		}
	})
}

// A Multi receive whose completions have no place takes its messages later, in order, and none is lost.
func TestMultiStalls(t *testing.T) {
	modes(t, func(t *testing.T, p *Provider, mode provider.Progress) {
		a, b := open(t, p, mode), open(t, p, mode, func(c *config) { c.cq.Size = 3 })
		to := a.insert(b)
		for _, early := range []bool{true, false} {
			buf := make([]byte, 1000)
			post := func() {
				b.must(b.ep.Recv(provider.Op{Local: local(buf), Flags: provider.Multi, Context: 1}))
			}
			if early {
				post()
			}
			for i := range 20 {
				a.must(a.ep.Send(provider.Op{Local: local([]byte{byte(i)}), Peer: to}))
				a.wait()
			}
			if !early {
				b.none()
				post()
			}
			for i := range 20 {
				if c := b.wait(); c.Err != nil || c.Offset != uint64(i) || buf[i] != byte(i) {
					t.Fatalf("%d: %+v", i, c)
				}
			}
			b.none()
			if !b.ep.Cancel(1) {
				t.Error("not cancelled")
			}
			b.wait()
		}
	})
}

func TestDirected(t *testing.T) {
	modes(t, func(t *testing.T, p *Provider, mode provider.Progress) {
		a, b, c := open(t, p, mode), open(t, p, mode), open(t, p, mode)
		toC := c.insert(a)
		_ = toC
		bufA, bufAny := make([]byte, 1), make([]byte, 1)
		c.must(c.ep.Recv(provider.Op{Local: local(bufA), Peer: c.insert(a), Context: 1, Flags: provider.Directed}))
		c.must(c.ep.Recv(provider.Op{Local: local(bufAny), Context: 2}))
		b.must(b.ep.Send(provider.Op{Local: local([]byte("b")), Peer: b.insert(c)}))
		if got := c.wait(); got.Context != 2 || bufAny[0] != 'b' || got.Source != c.insert(b) {
			t.Errorf("%+v", got)
		}
		a.must(a.ep.Send(provider.Op{Local: local([]byte("a")), Peer: a.insert(c)}))
		if got := c.wait(); got.Context != 1 || bufA[0] != 'a' || got.Source != c.insert(a) {
			t.Errorf("%+v", got)
		}
	})
}

// Peek, claim and discard (F57).
func TestF57Peek(t *testing.T) {
	modes(t, func(t *testing.T, p *Provider, mode provider.Progress) {
		a, b := open(t, p, mode), open(t, p, mode)
		to := a.insert(b)
		peek := func(tag uint64, f provider.Flags) provider.Completion {
			t.Helper()
			b.must(b.ep.RecvTagged(provider.Op{Tag: tag, Context: 77, Flags: f | provider.Peek}))
			return b.wait()
		}
		if c := peek(1, 0); !errors.Is(c.Err, provider.ErrNoMessage) || c.Kind != provider.TRecvDone || c.Context != 77 {
			t.Errorf("%+v", c)
		}
		for _, size := range []int{100, 100_000} {
			msg, buf := fill(size, 0), make([]byte, size)
			send := func() {
				a.must(a.ep.SendTagged(provider.Op{Local: local(msg), Peer: to, Tag: 1, Data: 3, Flags: provider.RemoteData | provider.DeliveryComplete}))
			}
			found := func(c provider.Completion, f provider.CompletionFlags) {
				t.Helper()
				if c.Err != nil || c.Len != uint64(size) || c.Tag != 1 || c.Data != 3 || c.Flags != provider.HasData|f || c.Source == 0 {
					t.Errorf("%+v", c)
				}
			}
			send()
			found(peek(1, 0), 0)
			found(peek(1, 0), 0)
			if c := peek(2, 0); c.Err == nil {
				t.Errorf("%+v", c)
			}
			found(peek(1, provider.Claim), provider.Claimed)
			if c := peek(1, 0); c.Err == nil {
				t.Errorf("a claimed message was found: %+v", c)
			}
			a.none()
			b.must(b.ep.RecvTagged(provider.Op{Local: local(buf), Context: 77, Flags: provider.Claim}))
			found(b.wait(), 0)
			if !bytes.Equal(buf, msg) {
				t.Error("other bytes")
			}
			if c := a.wait(); c.Err != nil {
				t.Error(c.Err)
			}
			send()
			found(peek(1, provider.Discard), 0)
			if c := peek(1, 0); c.Err == nil {
				t.Errorf("%+v", c)
			}
			if c := a.wait(); c.Err != nil {
				t.Error(c.Err)
			}
			send()
			found(peek(1, provider.Claim), provider.Claimed)
			b.must(b.ep.RecvTagged(provider.Op{Context: 77, Flags: provider.Claim | provider.Discard}))
			found(b.wait(), 0)
			a.wait()
			b.must(b.ep.RecvTagged(provider.Op{Context: 77, Flags: provider.Claim}))
			if c := b.wait(); !errors.Is(c.Err, provider.ErrNoMessage) {
				t.Errorf("%+v", c)
			}
		}
		if s := b.d.Peers(); len(s) != 1 || s[0].Unexpected != 0 {
			t.Errorf("%+v", s)
		}
	})
}
