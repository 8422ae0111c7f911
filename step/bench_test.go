package step

import (
	"fmt"
	"testing"

	"github.com/weft-fabric/weft/internal/wire/bp5"
)

func BenchmarkGet8MiB(b *testing.B) {
	const n = 1 << 20
	s := newSynth(b, DecoderConfig{})
	st := s.step(0, []put{array[float64]("x", dims{1024, 1024}, blockOf(dims{0, 0}, dims{1024, 1024}, make([]float64, n)...))})
	x := lookup[float64](b, st, "x")
	dst := make([]float64, n)
	b.SetBytes(8 * n)
	b.ReportAllocs()
	for b.Loop() {
		s.data.pieces = s.data.pieces[:0]
		if _, err := x.Get(b.Context(), All, dst); err != nil {
			b.Fatal(err)
		}
	}
}

// manyVariables returns the records of ranks that put n values and arrays each.
func manyVariables(b testing.TB, n, ranks int) (*synth, [][]byte, [][]byte) {
	s := newSynth(b, DecoderConfig{})
	var all [][]put
	for r := range ranks {
		var puts []put
		for k := range n {
			if k%2 == 0 {
				puts = append(puts, value(fmt.Sprintf("v%05d", k), bp5.GlobalValue, float64(k)))
			} else {
				puts = append(puts, array[float64](fmt.Sprintf("v%05d", k), dims{uint64(ranks)}, blockOf(dims{uint64(r)}, dims{1}, float64(k))))
			}
		}
		all = append(all, puts)
	}
	metas, data := s.records(all)
	return s, metas, data
}

func BenchmarkStep(b *testing.B) {
	for _, n := range []int{100, 1000, 10000} {
		for _, ranks := range []int{1, 8} {
			b.Run(fmt.Sprintf("variables=%d/ranks=%d", n, ranks), func(b *testing.B) {
				s, metas, data := manyVariables(b, n, ranks)
				src := &memSource{data: data}
				b.ReportAllocs()
				for b.Loop() {
					if _, err := s.dec.Step(0, metas, src, nil); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n*ranks), "ns/record")
			})
		}
	}
}

// BenchmarkStepChanging has steps of the same variables whose records are never like the one before.
func BenchmarkStepChanging(b *testing.B) {
	for _, n := range []int{100, 1000, 10000} {
		b.Run(fmt.Sprintf("variables=%d", n), func(b *testing.B) {
			s, metas, data := manyVariables(b, n, 1)
			src := &memSource{data: data}
			other := [][]byte{append([]byte(nil), metas[0]...)}
			other[0][len(other[0])-8] ^= 8 // the last block lies elsewhere
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				if _, err := s.dec.Step(0, [][][]byte{metas, other}[i%2], src, nil); err != nil {
					b.Fatal(err)
				}
				i++
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/record")
		})
	}
}

func BenchmarkFetch10000Variables(b *testing.B) {
	s, metas, data := manyVariables(b, 10000, 1)
	src := &memSource{data: data}
	dst := make([]float64, 10000)
	b.ReportAllocs()
	for b.Loop() {
		src.pieces = src.pieces[:0]
		st, err := s.dec.Step(0, metas, src, nil)
		if err != nil {
			b.Fatal(err)
		}
		gets := make([]Get, 0, len(dst))
		for i, v := range st.Variables() {
			gets = append(gets, first(As[float64](v)).Into(All, dst[i:i+1]))
		}
		if err := st.Fetch(b.Context(), gets...); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkBlocks(b *testing.B) {
	for _, n := range []uint64{100, 1000, 10000} {
		b.Run(fmt.Sprintf("blocks=%d", n), func(b *testing.B) {
			s := newSynth(b, DecoderConfig{})
			var blocks []synthBlock
			for k := range n {
				blocks = append(blocks, blockOf(dims{k / 10 * 4, k % 10 * 4}, dims{4, 4}, make([]float64, 16)...))
			}
			metas, data := s.records([][]put{{array[float64]("x", dims{n / 10 * 4, 40}, blocks...)}})
			src := &memSource{data: data}
			dst := make([]float64, 16*n)
			b.SetBytes(int64(128 * n))
			b.ReportAllocs()
			for b.Loop() {
				src.pieces = src.pieces[:0]
				st, err := s.dec.Step(0, metas, src, nil)
				if err != nil {
					b.Fatal(err)
				}
				if _, err := lookup[float64](b, st, "x").Get(b.Context(), All, dst); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(uint64(b.N)*n), "ns/block")
		})
	}
}
