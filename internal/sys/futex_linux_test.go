package sys

import (
	"errors"
	"math"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weft-fabric/weft/internal/testutil"
)

func TestFutex(t *testing.T) {
	var w atomic.Uint32
	if err := FutexWait(&w, 1, 0); err != nil {
		t.Error("another value:", err)
	}
	if err := FutexWait(&w, 0, time.Millisecond); !errors.Is(err, ErrTimeout) {
		t.Error(err)
	}
	if n, err := FutexWake(&w, math.MaxInt); n != 0 || err != nil {
		t.Error(n, err)
	}
	wait := func(name string, sleep func() error) {
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() {
				for w.Load() == 0 {
					if err := sleep(); err != nil {
						t.Errorf("%s: %v", name, err)
						return
					}
				}
			})
		}
		runtime.GC() // does not wait for sleepers
		w.Store(1)
		if _, err := FutexWake(&w, 3); err != nil {
			t.Error(err)
		}
		wg.Wait()
		w.Store(0)
	}
	wait("futex", func() error { return FutexWait(&w, 0, 0) })
	if (Features{}).Has(FutexWaitv) {
		var other atomic.Uint32
		words := []WaitWord{{&other, 0}, {&w, 0}}
		wait("waitv", func() error { return FutexWaitAny(words, 0, Features{}) })
		if err := FutexWaitAny(words, time.Millisecond, Features{}); !errors.Is(err, ErrTimeout) {
			t.Error(err)
		}
		other.Store(1)
		if err := FutexWaitAny(words, 0, Features{}); err != nil {
			t.Error(err)
		}
		for _, bad := range [][]WaitWord{nil, make([]WaitWord, 129), make([]WaitWord, 1)} {
			if err := FutexWaitAny(bad, time.Second, Features{}); err == nil {
				t.Errorf("%d words", len(bad))
			}
		}
	}
	if err := FutexWaitAny(nil, 0, Features{}.Without(FutexWaitv)); !errors.Is(err, ErrNotSupported) {
		t.Error(err)
	}
	if _, err := FutexWake(nil, 1); err == nil {
		t.Error("a word that is none")
	}
}

// TestFutexReadOnly sleeps on a word in memory that the sleeper cannot write, and is woken by a process
// that cannot write it either.
func TestFutexReadOnly(t *testing.T) {
	nothingOpen(t)
	fd := memory(t, 4096)
	rw, ro := mapped(t, fd, 4096, true), mapped(t, fd, 4096, false)
	mine, theirs := word32(rw.Bytes()), word32(ro.Bytes())
	child, conn := childWithFD(t, "wake", fd)
	defer conn.Close()
	if err := FutexWait(theirs, 0, time.Millisecond); !errors.Is(err, ErrTimeout) {
		t.Fatal(err)
	}
	done := make(chan error)
	go func() {
		for mine.Load() == 0 {
			if err := FutexWait(theirs, 0, 0); err != nil {
				done <- err
				return
			}
		}
		done <- nil
	}()
	mine.Store(1)
	child.Send("wake") // until it has woken somebody, or nobody sleeps any more
	if err := <-done; err != nil {
		t.Error(err)
	}
	if err := child.Wait(); err != nil {
		t.Error(err)
	}
}

func TestYield(t *testing.T) {
	Yield()
	testutil.Eventually(t, "a yield that returns", func() bool { Yield(); return true })
}

func BenchmarkYield(b *testing.B) {
	for b.Loop() {
		Yield()
	}
}
