package sst_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/weft-fabric/weft/internal/testutil"
	"github.com/weft-fabric/weft/sst"
)

// memoryBound is what the arenas of a session with one writer hold at most
// (docs/native.md, "Memory of a step"): in steps of up to size bytes, and in segments, of
// which the provider has more than that while steps grow.
func memoryBound(queue int, size uint64) (used, arena uint64) {
	const slack = 64 << 10
	used = uint64(queue+2) * (size + size/8 + slack)
	return used + slack, 2*used + 1<<20
}

// TestNativeMemoryBound: a writer that is ahead of a slow reader holds as many steps as its
// queue and one more, whether steps are equal, grow, or shrink; none when it is closed.
func TestNativeMemoryBound(t *testing.T) {
	const limit, most = 2, 512 << 10 // values
	for name, values := range map[string]func(n int) int{
		"equal":  func(int) int { return most },
		"grow":   func(n int) int { return most / 32 * (n + 1) },
		"shrink": func(n int) int { return most / 32 * (32 - n) },
		"both":   func(n int) int { return most >> (n % 4) },
	} {
		t.Run(name, func(t *testing.T) {
			s, stream := quickSession(t), streamName(t)
			x := define(t, create(t, stream, sst.WriterConfig{Session: s, Params: sst.Params{QueueLimit: limit}}), most)
			r := attach(t, stream, sst.ReaderConfig{})
			mostUsed, mostArena := memoryBound(limit, most*8)
			if name == "shrink" || name == "both" {
				mostUsed *= 2
			}
			var usedMost, arenaMost, bytesMost uint64
			var mu sync.Mutex
			sample := func() {
				mu.Lock()
				defer mu.Unlock()
				m := sst.SharedMemory(s)
				usedMost, arenaMost, bytesMost = max(usedMost, m.ArenaUsed), max(arenaMost, m.Arena), max(bytesMost, x.w.Info().Bytes)
			}
			const steps = 32
			written := async(func() error {
				for n := range steps {
					x.n = values(n)
					if err := x.v.SetShape(uint64(x.n)); err != nil {
						return err
					}
					if err := x.write(bounded(t)); err != nil {
						return err
					}
					sample()
				}
				return nil
			})
			for range steps { // as slowly as can be
				testutil.Eventually(t, "the queue is full", func() bool { return len(written) > 0 || sst.WaitsForRoom(x.w) })
				sample()
				takeStep(t, r)
			}
			if err := next(t, "writing", written); err != nil {
				t.Fatal(err)
			}
			sample()
			t.Logf("at most %.1f MiB in blocks, %.1f MiB in segments, %.1f MiB by Info", float64(usedMost)/(1<<20), float64(arenaMost)/(1<<20), float64(bytesMost)/(1<<20))
			if usedMost > mostUsed || arenaMost > mostArena {
				t.Errorf("%d bytes in blocks, at most %d are right; %d in segments, at most %d are", usedMost, mostUsed, arenaMost, mostArena)
			}
			if bytesMost > mostUsed || bytesMost == 0 {
				t.Errorf("Info.Bytes is %d", bytesMost)
			}
			finished := async(x.w.Close)
			beginEOF(t, r)
			if err := next(t, "Close", finished); err != nil {
				t.Error(err)
			}
			if used(s) > base {
				t.Errorf("%d bytes are in use after Close", used(s))
			}
			if n := x.w.Info().Bytes; n != 0 {
				t.Errorf("Info.Bytes is %d after Close", n)
			}
		})
	}
}

// TestNativeInfoBytes counts what steps in arenas hold, and the one that is being filled.
func TestNativeInfoBytes(t *testing.T) {
	name := streamName(t)
	x := define(t, create(t, name, sst.WriterConfig{}), viewValues)
	r := attach(t, name, sst.ReaderConfig{})
	const size = 8 * viewValues
	for n := range uint64(3) {
		x.must(t)
		if got := x.w.Info().Bytes; got < (n+1)*size || got > (n+1)*(size+size/4) {
			t.Errorf("%d bytes in %d steps of %d", got, n+1, size)
		}
	}
	for range 3 {
		takeStep(t, r)
	}
	testutil.Eventually(t, "nothing is kept", func() bool { return x.w.Info().Bytes == 0 })
}

// TestNativeWritersInARow: one session serves writer after writer, and holds no more after
// the last one than after the first.
func TestNativeWritersInARow(t *testing.T) {
	ws, rs := quickSession(t), quickSession(t)
	var first uint64
	for n := range 20 {
		name := streamName(t) + fmt.Sprint(n)
		x := define(t, create(t, name, sst.WriterConfig{Session: ws}), viewValues)
		r := attach(t, name, sst.ReaderConfig{Session: rs})
		x.must(t)
		takeStep(t, r)
		r.Close()
		x.w.Close()
		if used(ws) > base {
			t.Fatalf("writer %d leaves %d bytes", n, used(ws))
		}
		if a := sst.SharedMemory(ws).Arena; n == 0 {
			first = a
		} else if a > first {
			t.Fatalf("writer %d: segments of %d bytes, %d after the first", n, a, first)
		}
	}
}
