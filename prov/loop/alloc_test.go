package loop

import (
	"testing"

	"github.com/weft-fabric/weft/fabric/provider"
)

// Posts and completions allocate nothing.
func TestNoAllocations(t *testing.T) {
	p := New()
	a, b := open(t, p, provider.Manual), open(t, p, provider.Manual)
	to := a.insert(b)
	m := memories(t, b, 1<<16, provider.PeerRead|provider.PeerWrite)["arena"]
	var c [4]provider.Completion
	take := func(n *node, want int) {
		for want > 0 {
			got, err := n.cq.Read(c[:want])
			if err != nil {
				t.Fatal(err)
			}
			for i := range got {
				if c[i].Err != nil {
					t.Fatal(c[i].Err)
				}
			}
			want -= got
		}
	}
	msg, buf := make([]byte, 1<<16), make([]byte, 1<<16)
	more := []provider.Segment{local(msg[:99])}
	for name, f := range map[string]func(){
		"expected": func() {
			_ = b.ep.Recv(provider.Op{Local: local(buf)})
			_ = a.ep.Send(provider.Op{Local: local(msg[:64]), Peer: to})
			take(a, 1)
			take(b, 1)
		},
		"unexpected": func() {
			_ = a.ep.SendTagged(provider.Op{Local: local(msg[:4000]), Peer: to, Tag: 4})
			take(a, 1)
			_, _ = b.cq.Read(c[:])
			_ = b.ep.RecvTagged(provider.Op{Local: local(buf), Tag: 4})
			take(b, 1)
		},
		"long": func() {
			_ = b.ep.Recv(provider.Op{Local: local(buf)})
			_ = a.ep.Send(provider.Op{Local: local(msg[100:]), Locals: more, Peer: to})
			take(b, 1)
			take(a, 1)
		},
		"read": func() {
			_ = a.ep.Read(provider.Op{Local: local(buf), Peer: to, Key: m.Key()})
			take(a, 1)
		},
		"write": func() {
			_ = a.ep.Write(provider.Op{Local: local(buf[:64]), Peer: to, Key: m.Key(), Flags: provider.Inject | provider.RemoteData})
			take(a, 1)
			take(b, 1)
		},
		"atomic": func() {
			_ = a.ep.Atomic(provider.Atomic{Op: provider.Op{Local: local(buf[:64]), Peer: to, Key: m.Key()}, Code: provider.AtomicSum, Type: provider.Float64})
			take(a, 1)
		},
	} {
		f()
		if n := testing.AllocsPerRun(200, f); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

func BenchmarkMessage(b *testing.B) {
	p := New()
	s, r := open(b, p, provider.Manual), open(b, p, provider.Manual)
	to := s.insert(r)
	var c [4]provider.Completion
	msg, buf := make([]byte, 8), make([]byte, 8)
	b.ReportAllocs()
	for b.Loop() {
		_ = r.ep.Recv(provider.Op{Local: local(buf)})
		_ = s.ep.Send(provider.Op{Local: local(msg), Peer: to})
		_, _ = s.cq.Read(c[:])
		_, _ = r.cq.Read(c[:])
	}
}

func BenchmarkPingPong(b *testing.B) {
	for _, mode := range []provider.Progress{provider.Auto, provider.Manual} {
		b.Run(mode.String(), func(b *testing.B) {
			p := New()
			x, y := open(b, p, mode), open(b, p, mode)
			toX, toY := y.insert(x), x.insert(y)
			msg := make([]byte, 8)
			serve := func(n *node, to provider.Peer, first bool, stop func() bool) {
				buf := make([]byte, 8)
				var c [4]provider.Completion
				for !stop() {
					_ = n.ep.Recv(provider.Op{Local: local(buf), Context: 1})
					if first {
						_ = n.ep.Send(provider.Op{Local: local(msg), Peer: to, Flags: provider.Inject | provider.Quiet})
					}
					if _, err := n.cq.Wait(b.Context(), c[:]); err != nil {
						return
					}
					if !first {
						_ = n.ep.Send(provider.Op{Local: local(msg), Peer: to, Flags: provider.Inject | provider.Quiet})
					}
				}
			}
			done := make(chan struct{})
			go func() {
				defer close(done)
				serve(y, toX, false, func() bool { return false })
			}()
			serve(x, toY, true, func() bool { return !b.Loop() })
			_ = y.d.Close()
			<-done
		})
	}
}
