package shm

import (
	"testing"

	"github.com/weft-fabric/weft/fabric/provider"
)

// BenchmarkOneThread is what a message costs in instructions: one goroutine plays both sides, so nothing waits.
func BenchmarkOneThread(b *testing.B) {
	for _, c := range []struct {
		name string
		n    int
	}{{"8", 8}, {"1K", 1 << 10}, {"4K", 4 << 10}, {"64K", 64 << 10}} {
		b.Run(c.name, func(b *testing.B) {
			x, y, to, _ := twoSides(b, provider.DomainConfig{Progress: provider.Manual})
			msg, in := make([]byte, c.n), make([]byte, c.n)
			send := provider.Op{Local: provider.Segment{Bytes: msg}, Peer: to, Tag: 1}
			recv := provider.Op{Local: provider.Segment{Bytes: in}, Tag: 1}
			var done [4]provider.Completion
			b.SetBytes(int64(c.n))
			b.ReportAllocs()
			for b.Loop() {
				if y.ep.RecvTagged(recv) != nil || x.ep.SendTagged(send) != nil {
					b.Fatal("refused")
				}
				for left := 2; left > 0; {
					n, _ := y.cq.Read(done[:])
					m, _ := x.cq.Read(done[:])
					left -= n + m
				}
			}
		})
	}
}

// BenchmarkRead is reading a peer's arena and its private memory.
func BenchmarkRead(b *testing.B) {
	for _, c := range []struct {
		name  string
		n     int
		arena bool
	}{{"arena/8", 8, true}, {"arena/64K", 64 << 10, true}, {"arena/1M", 1 << 20, true}, {"private/8", 8, false}, {"private/1M", 1 << 20, false}} {
		b.Run(c.name, func(b *testing.B) {
			x, y, to, _ := twoSides(b, provider.DomainConfig{Progress: provider.Manual})
			m, err := y.d.Register(heapBytes(c.n), provider.PeerRead)
			if c.arena {
				m, err = y.d.Alloc(c.n, provider.PeerRead)
			}
			if err != nil {
				b.Fatal(err)
			}
			op := provider.Op{Local: provider.Segment{Bytes: make([]byte, c.n)}, Peer: to, Key: m.Key()}
			var done [4]provider.Completion
			b.SetBytes(int64(c.n))
			b.ReportAllocs()
			for b.Loop() {
				if x.ep.Read(op) != nil {
					b.Fatal("refused")
				}
				for left := 1; left > 0; {
					n, _ := x.cq.Read(done[:])
					if left -= n; left > 0 {
						_, _ = y.cq.Read(done[:])
					}
				}
			}
		})
	}
}
