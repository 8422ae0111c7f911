package sst

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/weft-fabric/weft/fabric"
	"github.com/weft-fabric/weft/sst/internal/carrier"
	"github.com/weft-fabric/weft/sst/internal/cp"
	"github.com/weft-fabric/weft/sst/internal/native"
)

// near is what a session has for programs of its node: memory that they look at, and
// links over which messages go without a socket (docs/native.md).
type near struct {
	*native.Fabric
	links *carrier.Fabric
}

// errDenied says that the session was told to do without.
var errDenied = errors.New("SessionConfig.NoSharedMemory is set")

// near returns what the session has for its node, opened at first use. The error says
// why there is nothing in this process, and is the same each time: what a stream falls
// back on must not depend on when it was opened.
func (s *Session) near(ctx context.Context) (*near, error) {
	s.nearMu.Lock()
	defer s.nearMu.Unlock()
	switch {
	case s.nearby != nil || s.nearErr != nil:
		return s.nearby, s.nearErr
	case s.life.Err() != nil:
		return nil, fmt.Errorf("session: %w", ErrClosed)
	}
	n, err := s.openNear(ctx)
	if err != nil && ctx.Err() != nil {
		return nil, err // the next one may have more time
	}
	s.nearby, s.nearErr = n, err
	const without = "no shared memory here: data goes through sockets, also on this node"
	switch {
	case errors.Is(err, errDenied), errors.Is(err, native.ErrNotLinked): // as the program wants it, or has forgotten
		s.log.InfoContext(ctx, without, "reason", err)
	case err != nil:
		s.log.WarnContext(ctx, without, "error", err)
	}
	return n, err
}

// openNear opens it.
func (s *Session) openNear(ctx context.Context) (*near, error) {
	if s.cfg.NoSharedMemory {
		return nil, errDenied
	}
	c := s.share
	progress := fabric.Auto
	if s.cfg.ManualProgress {
		progress = fabric.Manual
	}
	c.Progress = progress
	c.Logger, c.Endpoint = s.log, carrier.FabricEndpoint
	f, err := native.Open(ctx, c)
	if err != nil {
		return nil, err
	}
	n := &near{Fabric: f}
	config := carrier.FabricConfig{Progress: progress, Handler: (*sessionHandler)(s), Logger: s.log}
	config.Domain, config.Endpoint, config.Queue = f.Messages()
	if n.links, err = carrier.NewFabric(config); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	if s.cfg.ManualProgress {
		s.asleep.Store(n.links)
	}
	return n, nil
}

// closeLinks ends the links to programs of the node, after what is queued.
func (s *Session) closeLinks() {
	s.nearMu.Lock()
	n := s.nearby
	if n == nil {
		s.nearErr = ErrClosed
	}
	s.nearMu.Unlock()
	if n != nil {
		n.links.Close()
	}
}

// closeNear ends the rest.
func (s *Session) closeNear() error {
	s.nearMu.Lock()
	n := s.nearby
	s.nearby, s.nearErr = nil, ErrClosed
	s.nearMu.Unlock()
	if n == nil {
		return nil
	}
	return n.Close() // which may wait for the logger
}

// readerPlanes are the data planes that a reader asks for. Whether the native one works
// is seen when there is somebody to share memory with; one that was forced fails now if
// it cannot.
func (s *Session) readerPlanes(ctx context.Context, p *Params) ([]string, error) {
	planes := p.planes()
	if s.cfg.ManualProgress {
		if !slices.Contains(planes, cp.PlaneNative) {
			return nil, fmt.Errorf("%w: DataTransport=%s: a session with ManualProgress has the native plane alone", ErrPlane, p.DataTransport)
		}
		planes = []string{cp.PlaneNative}
	}
	if planes[0] != cp.PlaneNative {
		return planes, nil
	}
	if len(planes) == 1 {
		if _, err := s.near(ctx); err != nil {
			return nil, fmt.Errorf("%w: %s: %w", ErrPlane, s.wantsNative(p), err)
		}
		return planes, nil
	}
	if s.cfg.NoSharedMemory {
		_, _ = s.near(ctx) // which says so
		return planes[1:], nil
	}
	if native.Linked(ctx) != nil {
		return planes[1:], nil
	}
	return planes, nil
}

// wantsNative says why nothing but the native plane will do.
func (s *Session) wantsNative(p *Params) string {
	if s.cfg.ManualProgress {
		return "SessionConfig.ManualProgress"
	}
	return "DataTransport=" + p.DataTransport
}

// dialNear returns a link to an address of the node, for a user of it, until unuse.
func (s *Session) dialNear(ctx context.Context, n *near, a fabric.Address, by linkUser) (carrier.Link, error) {
	for {
		l, err := n.links.Dial(ctx, a)
		if err != nil || s.take(l, by) {
			return l, err
		}
		if err := s.await(ctx, l.Done()); err != nil { // another stream was closing it, or it has just gone
			return nil, err
		}
	}
}
