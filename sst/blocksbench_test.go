package sst_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/weft-fabric/weft/sst"
	"github.com/weft-fabric/weft/step"
)

// BenchmarkBlocks passes steps of one block: the writer fills, the reader gets into
// memory of its own, or views, and sums. Mode On has every block pushed.
func BenchmarkBlocks(b *testing.B) {
	for _, kib := range []int{1, 64, 256, 512, 1 << 10, 2 << 10, 4 << 10, 8 << 10, 64 << 10} {
		for _, queue := range []int{1, 4} {
			for _, mode := range []string{"On", "Auto", "Off"} {
				for _, view := range []bool{false, true} {
					b.Run(fmt.Sprintf("%d KiB/queue %d/preload %s/view %v", kib, queue, mode, view), func(b *testing.B) {
						passBlocks(b, kib<<10, sst.Params{QueueLimit: queue}, sst.Params{SpeculativePreloadMode: mode}, view)
					})
				}
			}
		}
	}
}

func passBlocks(b *testing.B, size int, wp, rp sst.Params, view bool) {
	name := streamName(b)
	w := create(b, name, sst.WriterConfig{Params: wp})
	v, err := sst.Define[int64](w, "n", step.GlobalArray(uint64(size/8)))
	if err != nil {
		b.Fatal(err)
	}
	r := attach(b, name, sst.ReaderConfig{Params: rp})
	ctx, stop := context.WithCancel(b.Context())
	data := make([]int64, size/8)
	written := async(func() error {
		for n := int64(0); ; n++ {
			st, err := w.BeginStep(ctx)
			if err != nil {
				return err
			}
			for i := range data {
				data[i] = n
			}
			if err := v.Put(st, step.All, data); err != nil {
				return err
			}
			if err := st.End(ctx); err != nil {
				return err
			}
		}
	})
	dst := make([]int64, size/8)
	b.SetBytes(int64(size))
	b.ReportAllocs()
	n := int64(0)
	for b.Loop() {
		if err := takeBlock(ctx, r, dst, n, view); err != nil {
			b.Fatal(err)
		}
		n++
	}
	stop()
	r.Close()
	<-written
}

func takeBlock(ctx context.Context, r *sst.Reader, dst []int64, n int64, view bool) error {
	st, err := r.BeginStep(ctx)
	if err != nil {
		return err
	}
	defer st.End()
	v, err := step.Lookup[int64](st, "n")
	if err != nil {
		return err
	}
	got := dst
	if view {
		seen, err := v.View(ctx, step.All)
		if err != nil {
			return err
		}
		defer seen.Release()
		got = seen.Data()
	} else if _, err := v.Get(ctx, step.All, dst); err != nil {
		return err
	}
	sum := int64(0)
	for _, x := range got {
		sum += x
	}
	if sum != n*int64(len(got)) {
		return fmt.Errorf("step %d: sum %d", n, sum)
	}
	return nil
}
