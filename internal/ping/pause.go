package ping

import (
	"context"
	"time"
)

// MaxPause bounds a pause: after a second whoever waits has slept long enough.
const MaxPause = time.Second

// Pause waits for d, or until ctx ends.
func Pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
