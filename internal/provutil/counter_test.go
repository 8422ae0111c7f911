package provutil

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weft-fabric/weft/fabric/provider"
)

func TestCounter(t *testing.T) {
	bothModes(t, func(t *testing.T, cfg CoreConfig) {
		synctest.Test(t, func(t *testing.T) {
			e := rig(t, cfg, 4)
			defer e.core.Stop()
			n := NewCounter(e.core)
			if own, err := OwnCounter(e.core, n); own != n || err != nil || n.core != e.core {
				t.Error(err)
			}
			if _, err := OwnCounter(NewCore(e, CoreConfig{}), n); !errors.Is(err, provider.ErrInvalid) {
				t.Error(err)
			}
			done := func(err error) {
				e.core.Lock()
				defer e.core.Unlock()
				n.Done(err)
			}
			results := make(chan error, 3)
			wait := func(target uint64) {
				go func() { results <- n.Wait(t.Context(), target) }()
				synctest.Wait()
			}
			wait(3)
			wait(2)
			done(nil)
			n.Add(1)
			if err := <-results; err != nil {
				t.Error(err)
			}
			n.Set(3)
			if err := <-results; err != nil {
				t.Error(err)
			}
			wait(10)
			done(provider.ErrKey)
			if err := <-results; !errors.Is(err, provider.ErrKey) {
				t.Error(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			if err := n.Wait(ctx, 10); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("an error of before the wait counts: %v", err)
			}
			if n.Value() != 3 || n.Errors() != 1 {
				t.Error(n.Value(), n.Errors())
			}
			wait(10)
			if err := n.Close(); err != nil {
				t.Error(err)
			}
			if err := <-results; !errors.Is(err, provider.ErrClosed) {
				t.Error(err)
			}
			(*Counter)(nil).Done(nil)
		})
	})
}
