package mrcache

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/weft-fabric/weft/internal/sys"
	"github.com/weft-fabric/weft/memmon"
)

// What can be measured from outside, hits and what follows on a miss, has a table: go run ./bench -table registrations. Here is what only the
// inside shows. cpu-ns/op is what a machine that has other work as well can be judged by: the processor time of the whole process.

// withOwners runs a benchmark with caches that hold some pages, each with an owner of its own.
func withOwners(b *testing.B, run func(b *testing.B, c *bench, kinds []memmon.Kind, rnd *rand.Rand)) {
	for _, n := range []int{10, 1000, 100_000} {
		b.Run(fmt.Sprintf("entries=%d", n), func(b *testing.B) {
			c := newBench(b, newDevice(), Config{MaxCount: n, MaxBytes: ^uint64(0)})
			m, kinds := pages(b, n).Bytes(), make([]memmon.Kind, n)
			for i := range kinds {
				kinds[i] = memmon.Mapped(m[i*int(pageSize):(i+1)*int(pageSize)], new(owner))
				c.pass(b, kinds[i])
			}
			b.ReportAllocs()
			b.ResetTimer()
			cpu := sys.ProcessorTime()
			run(b, c, kinds, rand.New(rand.NewPCG(1, 1)))
			b.ReportMetric(float64(sys.ProcessorTime()-cpu)/float64(b.N), "cpu-ns/op")
		})
	}
}

// BenchmarkMiss is a look-up of what is not kept, and no more: memory of other owners, at addresses that are known.
func BenchmarkMiss(b *testing.B) {
	withOwners(b, func(b *testing.B, c *bench, kinds []memmon.Kind, rnd *rand.Rand) {
		other := new(owner)
		for b.Loop() {
			k := memmon.Mapped(kinds[rnd.IntN(len(kinds))].Bytes(), other)
			if r, _ := c.find(k, memmon.RangeOf(k.Bytes()), 0); r.entry != nil {
				b.Error("a hit")
			}
		}
	})
}

// BenchmarkGone is what it costs to be told of memory of which nothing is kept.
func BenchmarkGone(b *testing.B) {
	withOwners(b, func(b *testing.B, c *bench, _ []memmon.Kind, rnd *rand.Rand) {
		for b.Loop() {
			c.look(memmon.Range{Addr: 1<<40 + rnd.Uint64N(1<<20)*pageSize, Len: pageSize})
		}
	})
}
