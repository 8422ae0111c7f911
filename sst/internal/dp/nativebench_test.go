package dp

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/weft-fabric/weft/fabric"
	"github.com/weft-fabric/weft/internal/wire/sstmsg"
	"github.com/weft-fabric/weft/step"
)

// benchStep returns a step of one rank whose block of n bytes is all in one extent.
func benchStep(b *testing.B, n int) step.Source {
	p := NewNative(NewEvpath(EvpathConfig{}))
	p.Attach(writerIDs[:1])
	memory := make([]byte, n)
	for i := range memory {
		memory[i] = byte(i)
	}
	p.Use([]Route{ownRoute{memory}})
	b.Cleanup(func() { p.Close(errTest) })
	return p.Step(0, ModeRequest, []sstmsg.Block{{Data: sstmsg.ByteBlob(AppendExtents(nil, []Extent{{0, uint64(n), fabric.Key(1), 0}}))}})
}

func BenchmarkNativeView(b *testing.B) {
	s := benchStep(b, 1<<20).(step.Viewer)
	b.ReportAllocs()
	for b.Loop() {
		_, release, err := s.View(b.Context(), 0, 4096, 65536)
		if err != nil {
			b.Fatal(err)
		}
		release()
	}
}

// BenchmarkNativeRead has small pieces of one extent.
func BenchmarkNativeRead(b *testing.B) {
	for _, pieces := range []int{1, 10000} {
		b.Run(fmt.Sprintf("pieces=%d", pieces), func(b *testing.B) {
			s := benchStep(b, 16*pieces)
			list := make([]step.Piece, pieces)
			for i := range list {
				list[i] = piece(0, uint64(i)*16, 8)
			}
			b.ReportAllocs()
			for b.Loop() {
				if err := s.Read(b.Context(), list); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkNativeCopy has one large piece, by one goroutine and by several.
func BenchmarkNativeCopy(b *testing.B) {
	for _, mib := range []int{1, 2, 4, 8, 64} {
		for _, procs := range []int{1, 2} {
			b.Run(fmt.Sprintf("MiB=%d/procs=%d", mib, procs), func(b *testing.B) {
				defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(procs))
				s := benchStep(b, mib<<20)
				list := []step.Piece{piece(0, 0, mib<<20)}
				b.SetBytes(int64(mib) << 20)
				for b.Loop() {
					if err := s.Read(b.Context(), list); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

func BenchmarkParseExtents(b *testing.B) {
	for _, n := range []int{1, 1000} {
		var list []Extent
		for i := range n {
			list = append(list, Extent{uint64(i) * 100, 90, fabric.Key(i), 0})
		}
		wire := AppendExtents(nil, list)
		b.Run(fmt.Sprintf("extents=%d", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := ParseExtents(wire); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
