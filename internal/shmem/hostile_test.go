package shmem

import (
	"errors"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/weft-fabric/weft/internal/testutil"
)

// TestSoakHostileProducer reads a ring that a peer scribbles on without a pause, with words that are nearly right: what comes out
// is a record within the ring, or an end with ErrProtocol.
func TestSoakHostileProducer(t *testing.T) {
	const size = 1024
	config := RingConfig{MinBody: 8, MaxBody: 200}
	rw, ro := shared(t, 4096)
	ring, err := rw.Sub(0, size)
	if err != nil {
		t.Fatal(err)
	}
	seen, err := ro.Sub(0, size)
	if err != nil {
		t.Fatal(err)
	}
	rng := testutil.Rand(t)
	scribbler := rand.New(rand.NewPCG(rng.Uint64(), 1))
	var stop atomic.Bool
	var wg sync.WaitGroup
	wg.Go(func() {
		for !stop.Load() {
			at := uint64(scribbler.IntN(size/slot)) * slot
			low := uint64(scribbler.IntN(210))
			if scribbler.IntN(20) == 0 {
				low = skip
			}
			word64(ring.bytes, at).Store(at/slot<<32 | low)
		}
	})
	records, ends := 0, 0
	rounds := testutil.Count(t, 5000, 2000000)
	for i := 0; i < rounds || records == 0 || ends == 0; i++ { // the scribbler may come late to a core
		if i%64 == 0 {
			runtime.Gosched()
		}
		c, err := NewConsumer(seen, new(atomic.Uint64), config)
		if err != nil {
			t.Fatal(err)
		}
		for c.tail < size { // the scribbler's words are of the first lap
			rec, err := c.Peek()
			if err != nil {
				if !errors.Is(err, ErrProtocol) || rec != nil {
					t.Error(rec, err)
				}
				ends++
				break
			}
			if rec == nil {
				break
			}
			if len(rec) < 8 || len(rec) > 200 {
				t.Errorf("a record of %d bytes", len(rec))
			}
			_ = append([]byte(nil), rec...)
			records++
			c.Advance()
		}
	}
	stop.Store(true)
	wg.Wait()
	t.Logf("%d records, %d ends", records, ends)
}
