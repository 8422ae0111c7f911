package sst_test

import (
	"context"
	"sync"
)

// group runs functions side by side. The first error ends the context that the
// others have got.
type group struct {
	wg     sync.WaitGroup
	once   sync.Once
	err    error
	cancel context.CancelFunc
}

func newGroup(ctx context.Context) (*group, context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	return &group{cancel: cancel}, ctx
}

// Go starts f.
func (g *group) Go(f func() error) {
	g.wg.Go(func() {
		if err := f(); err != nil {
			g.once.Do(func() {
				g.err = err
				g.cancel()
			})
		}
	})
}

// Wait returns the first error, when all have ended.
func (g *group) Wait() error {
	g.wg.Wait()
	g.cancel()
	return g.err
}
