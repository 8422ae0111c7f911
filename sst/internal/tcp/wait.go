package tcp

import (
	"context"
	"net"
	"time"
)

// Pause waits for d, or for the end of ctx, whose cause it returns.
func Pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// EndWith ends what is done with conn when ctx ends: reads and writes fail. release
// lifts that, and is called once; it returns the cause of ctx if that has ended,
// else its argument. A deadline that was set before stays.
func EndWith(ctx context.Context, conn net.Conn) (release func(error) error) {
	past := time.Unix(1, 0)
	// An error means that the connection is gone already.
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(past) })
	return func(err error) error {
		if !stop() {
			return context.Cause(ctx)
		}
		return err
	}
}
