package mrcache

import (
	"testing"

	"github.com/weft-fabric/weft/memmon"
)

// TestRegistrarPanics has a program go on after the panic: nothing is counted, held, or watched of what was not made.
func TestRegistrarPanics(t *testing.T) {
	for _, count := range []int{2, -1} {
		d := newDevice()
		b := newBench(t, d, Config{MaxCount: count})
		p := []memmon.Kind{memmon.Mapped(pages(t, 1).Bytes(), nil), memmon.HeapBytes(make([]byte, 100)), memmon.Mapped(pages(t, 1).Bytes(), new(owner))}
		d.before = func([]byte) { panic(errDevice) }
		for _, k := range p {
			func() {
				defer func() {
					if recover() == nil {
						t.Error("acquired")
					}
				}()
				_, _ = b.Acquire(k)
			}()
		}
		d.before = nil
		if n := b.live.Load(); n != 1 || b.count != 0 || b.bytes != 0 || b.monitor.open.Load() != 0 {
			t.Errorf("%d live, %d counted of %d bytes, %d watches", n, b.count, b.bytes, b.monitor.open.Load())
		}
		for _, k := range p {
			b.pass(t, k)
		}
	}
}
