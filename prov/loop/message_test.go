package loop

import (
	"bytes"
	"errors"
	"testing"

	"github.com/weft-fabric/weft/fabric/provider"
)

func TestSendRecv(t *testing.T) {
	modes(t, func(t *testing.T, p *Provider, mode provider.Progress) {
		a, b := open(t, p, mode), open(t, p, mode)
		to := a.insert(b)
		for _, size := range []int{0, 1, 64, 4096, 4097, 65536, 1 << 20} {
			for _, early := range []bool{true, false} {
				msg, buf := fill(size, 3), make([]byte, size+5)
				if early {
					b.must(b.ep.Recv(provider.Op{Local: local(buf), Context: 9}))
				}
				a.must(a.ep.Send(provider.Op{Local: local(msg), Peer: to, Context: 7, Data: 0xfeed, Flags: provider.RemoteData}))
				if !early {
					b.must(b.ep.Recv(provider.Op{Local: local(buf), Context: 9}))
				}
				got := b.wait()
				if got.Err != nil || got.Kind != provider.RecvDone || got.Context != 9 || got.Len != uint64(size) ||
					got.Flags != provider.HasData || got.Data != 0xfeed || got.Source == 0 {
					t.Fatalf("%d bytes: %+v", size, got)
				}
				if !bytes.Equal(buf[:size], msg) {
					t.Fatalf("%d bytes: other bytes", size)
				}
				if got := a.wait(); got.Err != nil || got.Kind != provider.SendDone || got.Context != 7 || got.Len != uint64(size) {
					t.Fatalf("%d bytes: %+v", size, got)
				}
			}
		}
	})
}

func TestSelf(t *testing.T) {
	modes(t, func(t *testing.T, p *Provider, mode provider.Progress) {
		a := open(t, p, mode)
		to := a.insert(a)
		for _, size := range []int{8, 1 << 20} {
			msg, buf := fill(size, 1), make([]byte, size)
			a.must(a.ep.SendTagged(provider.Op{Local: local(msg), Peer: to, Tag: 5, Context: 1}))
			a.must(a.ep.RecvTagged(provider.Op{Local: local(buf), Tag: 5, Context: 2}))
			for range 2 {
				if c := a.wait(); c.Err != nil {
					t.Fatal(c.Err)
				}
			}
			if !bytes.Equal(msg, buf) {
				t.Fatal("other bytes")
			}
		}
	})
}

func TestVectors(t *testing.T) {
	modes(t, func(t *testing.T, p *Provider, mode provider.Progress) {
		a, b := open(t, p, mode), open(t, p, mode)
		to := a.insert(b)
		for _, size := range []int{100, 100_000} {
			msg, buf := fill(size, 1), make([]byte, size)
			more := []provider.Segment{local(msg[10:20]), local(nil), local(msg[20:])}
			a.must(a.ep.Send(provider.Op{Local: local(msg[:10]), Locals: more, Peer: to}))
			clear(more) // the list is the caller's again
			more = []provider.Segment{local(buf[3:50]), local(buf[50:])}
			b.must(b.ep.Recv(provider.Op{Local: local(buf[:3]), Locals: more}))
			clear(more)
			if c := b.wait(); c.Err != nil || c.Len != uint64(size) {
				t.Fatalf("%+v", c)
			}
			if !bytes.Equal(msg, buf) {
				t.Fatal("other bytes")
			}
			a.wait()
		}
	})
}

func TestTruncated(t *testing.T) {
	modes(t, func(t *testing.T, p *Provider, mode provider.Progress) {
		a, b := open(t, p, mode), open(t, p, mode)
		to := a.insert(b)
		for _, size := range []int{100, 100_000} {
			msg, buf := fill(size, 1), make([]byte, size/2)
			b.must(b.ep.Recv(provider.Op{Local: local(buf)}))
			a.must(a.ep.Send(provider.Op{Local: local(msg), Peer: to}))
			if c := b.wait(); !errors.Is(c.Err, provider.ErrTruncated) || c.Len != uint64(size/2) {
				t.Fatalf("%+v", c)
			}
			if !bytes.Equal(msg[:size/2], buf) {
				t.Fatal("other bytes")
			}
			if c := a.wait(); c.Err != nil {
				t.Fatal(c.Err)
			}
		}
	})
}

// Messages of all lengths and both kinds meet receives in order.
func TestOrder(t *testing.T) {
	modes(t, func(t *testing.T, p *Provider, mode provider.Progress) {
		a, b := open(t, p, mode), open(t, p, mode)
		to := a.insert(b)
		const n = 300
		bufs := make([][]byte, n)
		post := func(i int) {
			bufs[i] = make([]byte, 20_000)
			b.must(b.ep.RecvTagged(provider.Op{Local: local(bufs[i]), Tag: 1, Ignore: 6, Context: uint64(i)}))
		}
		for i := range n / 2 {
			post(i)
		}
		for i := range n {
			msg := append(text(i), make([]byte, i%3*8000)...)
			a.must(a.ep.SendTagged(provider.Op{Local: local(msg), Peer: to, Tag: uint64(1 | i%4<<1)}))
		}
		for i := n / 2; i < n; i++ {
			post(i)
		}
		for range n {
			c := b.wait()
			i := int(c.Context)
			if c.Err != nil || !bytes.HasPrefix(bufs[i], text(i)) || c.Tag != uint64(1|i%4<<1) {
				t.Fatalf("%+v: %q", c, bufs[i][:20])
			}
		}
		for range n {
			if c := a.wait(); c.Err != nil {
				t.Fatal(c.Err)
			}
		}
	})
}
