package carrier

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/weft-fabric/weft/fabric"
)

// BenchmarkTurn is BenchmarkPingPong without the scheduler: one goroutine polls both ends, which are in this process. It is the time that the
// processors spend, and so says something also of a machine that has other work.
func BenchmarkTurn(b *testing.B) {
	b.Run("shm", func(b *testing.B) {
		near, far := &counter{}, &reflector{}
		p := shmProvider(b)
		d, c := fabric.DomainConfig{Progress: fabric.Manual}, FabricConfig{Progress: fabric.Manual}
		c.Handler = near
		n := place(b, p, d).settle(b, c)
		c.Handler = far
		f := place(b, p, d).settle(b, c)
		ctx, cancel := context.WithCancel(b.Context())
		over := make(chan struct{})
		go func() {
			defer close(over)
			for f.f.Wait(ctx, nil) == nil {
			}
		}()
		l := n.reach(b, f)
		cancel()
		<-over
		turn(b, l, func() { f.f.poll() }, &near.n)
	})
	b.Run("tcp", func(b *testing.B) {
		near, far := &counter{}, &reflector{}
		n, _ := open(b, Config{Handler: near})
		f, _ := open(b, Config{Handler: far})
		turn(b, dial(b, n, f.Contact()), func() {
			if l, ok := far.last.Load().(Link); ok {
				l.Poll()
			}
		}, &near.n)
	})
}

func turn(b *testing.B, l Link, far func(), came *atomic.Int64) {
	out := record(testFormat(b, "F"), 1, 200-24-variantHeader)
	b.ReportAllocs()
	for b.Loop() {
		was := came.Load()
		if err := l.Send(out); err != nil {
			b.Fatal(err)
		}
		for came.Load() == was {
			far()
			l.Poll()
		}
	}
}
