package tcp

import (
	"context"
	"errors"
	"net"
	"time"
)

// The pause after a failed accept: it doubles until one succeeds.
const (
	firstPause   = 5 * time.Millisecond
	longestPause = time.Second
)

// Accept hands each connection of a listener to take, one after the other, until
// the listener is closed or ctx ends. accept is the method of the listener. Take
// owns the connection, also one that comes when ctx has just ended.
//
// Any other error of accept most likely means that the process is out of
// descriptors. No event says when there are some again, so Accept tells failed,
// which may log it, and tries again after retry.
func Accept[C net.Conn](ctx context.Context, accept func() (C, error), take func(C), failed func(err error, retry time.Duration)) {
	var retry time.Duration
	for {
		conn, err := accept()
		switch {
		case err == nil:
			retry = 0
			take(conn)
			continue
		case errors.Is(err, net.ErrClosed) || ctx.Err() != nil:
			return
		}
		retry = min(max(2*retry, firstPause), longestPause)
		failed(err, retry)
		if Pause(ctx, retry) != nil {
			return
		}
	}
}
