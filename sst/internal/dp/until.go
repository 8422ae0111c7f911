package dp

import (
	"context"
	"sync"
)

// until is a context that ends with another one, or with the plane. Most views wait for
// nothing, so what it takes to wait is made when somebody does.
type until struct {
	context.Context
	plane *Evpath
	once  sync.Once
	done  <-chan struct{}
	stop  context.CancelFunc
}

// Done returns what is closed at the end. A goroutine looks after it until the view is
// there.
func (u *until) Done() <-chan struct{} {
	u.once.Do(func() {
		ctx, stop := context.WithCancel(u.Context)
		u.done, u.stop = ctx.Done(), stop
		go func() {
			select {
			case <-u.plane.failed:
				stop()
			case <-u.done:
			}
		}()
	})
	return u.done
}

// Err returns why it has ended, nil before.
func (u *until) Err() error {
	if err := u.Context.Err(); err != nil {
		return err
	}
	if isClosed(u.plane.failed) {
		return context.Canceled
	}
	return nil
}

// end gives up what Done has made. Nobody must use the context afterwards.
func (u *until) end() {
	u.once.Do(func() {})
	if u.stop != nil {
		u.stop()
	}
}
