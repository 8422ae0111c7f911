package provutil

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/weft-fabric/weft/fabric/provider"
	"github.com/weft-fabric/weft/internal/testutil"
)

// Waits for random targets against a model: each ends when its target is reached, with the error of what fails, when it
// is cancelled or the counter closed, and not before.
func TestCounterModel(t *testing.T) {
	for range testutil.Count(t, 50, 2000) {
		r := testutil.Rand(t)
		synctest.Test(t, func(t *testing.T) {
			e := rig(t, CoreConfig{Progress: provider.Progress(r.IntN(2))}, 4)
			defer e.core.Stop()
			n := NewCounter(e.core)
			type running struct {
				target uint64
				cancel context.CancelFunc
				ended  bool
				err    error
			}
			var mu sync.Mutex
			var waits []*running
			value, failures := uint64(0), uint64(0)
			told := true // no failure waits to be told of
			check := func(what string, over func(w *running) (bool, error)) {
				synctest.Wait()
				mu.Lock()
				defer mu.Unlock()
				left := waits[:0]
				for _, w := range waits {
					want, err := over(w)
					if w.ended != want || want && !errors.Is(w.err, err) {
						t.Fatalf("%s: a wait for %d at %d: ended %v with %v, want %v with %v", what, w.target, value, w.ended, w.err, want, err)
					}
					if !w.ended {
						left = append(left, w)
					}
				}
				waits = left
			}
			reached := func(w *running) (bool, error) { return value >= w.target, nil }
			for range 40 {
				switch r.IntN(6) {
				case 0, 1:
					ctx, cancel := context.WithCancel(t.Context())
					w := &running{target: value + uint64(r.IntN(4)), cancel: cancel}
					waits = append(waits, w)
					go func() {
						err := n.Wait(ctx, w.target)
						mu.Lock()
						defer mu.Unlock()
						w.ended, w.err = true, err
					}()
					first := !told
					check("wait", func(x *running) (bool, error) {
						if x == w && value < w.target && first {
							told = true
							return true, provider.ErrKey
						}
						return reached(x)
					})
				case 2:
					e.core.Lock()
					n.Done(nil)
					e.core.Unlock()
					value++
					check("done", reached)
				case 3:
					by := uint64(r.IntN(3))
					n.Add(by)
					value += by
					check("add", reached)
				case 4:
					e.core.Lock()
					n.Done(provider.ErrKey)
					e.core.Unlock()
					failures++
					told = len(waits) > 0
					check("error", func(*running) (bool, error) { return true, provider.ErrKey })
				default:
					if len(waits) > 0 {
						w := waits[r.IntN(len(waits))]
						w.cancel()
						check("cancel", func(x *running) (bool, error) {
							if x == w {
								return true, context.Canceled
							}
							return reached(x)
						})
					}
				}
				if n.Value() != value || n.Errors() != failures {
					t.Fatalf("%d and %d, want %d and %d", n.Value(), n.Errors(), value, failures)
				}
			}
			_ = n.Close()
			check("close", func(*running) (bool, error) { return true, provider.ErrClosed })
		})
	}
}
