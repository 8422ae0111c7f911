package shm

import (
	"testing"

	"github.com/weft-fabric/weft/fabric/provider"
)

// Nothing is allocated from post to completion, whatever way the bytes go.
func TestNoAllocations(t *testing.T) {
	for _, how := range []string{cmaAuto, cmaOff} { // the owner serves reads of its private memory with off only
		t.Run("cma="+how, func(t *testing.T) { noAllocations(t, how) })
	}
}

func noAllocations(t *testing.T, how string) {
	a, b, ab, _ := twoSides(t, manual(cma(how)))
	arena, err := b.d.Alloc(1<<20, provider.PeerRead|provider.PeerWrite)
	if err != nil {
		t.Fatal(err)
	}
	private, err := b.d.Register(heapBytes(1<<20), provider.PeerRead|provider.PeerWrite)
	if err != nil {
		t.Fatal(err)
	}
	one := func(post func() error, received bool) func() {
		var c [4]provider.Completion
		return func() {
			if err := post(); err != nil {
				t.Fatal(err)
			}
			want := 1
			if received {
				want = 2
			}
			for want > 0 {
				for _, s := range []*side{a, b} {
					n, err := s.cq.Read(c[:])
					if err != nil {
						t.Fatal(err)
					}
					for i := range n {
						if c[i].Err != nil {
							t.Fatal(c[i].Err)
						}
					}
					want -= n
				}
			}
		}
	}
	buf, in := make([]byte, 1<<20), make([]byte, 1<<20)
	for _, n := range []int{8, 4096, 60000, 300000} {
		message := one(func() error {
			if err := b.ep.RecvTagged(provider.Op{Local: provider.Segment{Bytes: in[:n]}, Tag: 1}); err != nil {
				return err
			}
			return a.ep.SendTagged(provider.Op{Local: provider.Segment{Bytes: buf[:n]}, Peer: ab, Tag: 1})
		}, true)
		late := one(func() error {
			if err := a.ep.SendTagged(provider.Op{Local: provider.Segment{Bytes: buf[:n]}, Peer: ab, Tag: 1}); err != nil {
				return err
			}
			b.d.core.Lock()
			b.d.core.Progress()
			b.d.core.Unlock()
			return b.ep.RecvTagged(provider.Op{Local: provider.Segment{Bytes: in[:n]}, Tag: 1})
		}, true)
		ops := map[string]func(){"message": message, "late receive": late}
		for name, m := range map[string]provider.Memory{"arena": arena, "private": private} {
			o := provider.Op{Local: provider.Segment{Bytes: buf[:n]}, Peer: ab, Key: m.Key()}
			ops["read "+name] = one(func() error { return a.ep.Read(o) }, false)
			ops["write "+name] = one(func() error { return a.ep.Write(o) }, false)
			at := provider.Atomic{Op: o, Code: provider.AtomicSum, Type: provider.Uint64}
			at.Local.Bytes = buf[:8]
			ops["atomic "+name] = one(func() error { return a.ep.Atomic(at) }, false)
		}
		for name, f := range ops {
			for range 100 { // queues and pools grow
				f()
			}
			if got := testing.AllocsPerRun(200, f); got != 0 {
				t.Errorf("%s of %d bytes: %v allocations", name, n, got)
			}
		}
	}
}
