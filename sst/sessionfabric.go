package sst

import (
	"context"
	"errors"
	"fmt"

	"github.com/weft-fabric/weft/sst/internal/cp"
	"github.com/weft-fabric/weft/sst/internal/native"
)

// errDenied says that the session was told to do without.
var errDenied = errors.New("SessionConfig.NoSharedMemory is set")

// fabric returns the session's share of shared memory, opened at first use. The error
// says why there is none in this process, and is the same each time: what a stream
// falls back on must not depend on when it was opened.
func (s *Session) fabric(ctx context.Context) (*native.Fabric, error) {
	s.fabricMu.Lock()
	defer s.fabricMu.Unlock()
	switch {
	case s.shared != nil || s.sharedErr != nil:
		return s.shared, s.sharedErr
	case s.life.Err() != nil:
		return nil, fmt.Errorf("session: %w", ErrClosed)
	}
	f, err := s.openFabric(ctx)
	if err != nil && ctx.Err() != nil {
		return nil, err // the next one may have more time
	}
	s.shared, s.sharedErr = f, err
	const without = "no shared memory here: data goes through sockets, also on this node"
	switch {
	case errors.Is(err, errDenied): // as the program wants it
		s.log.InfoContext(ctx, without, "reason", err)
	case err != nil && !errors.Is(err, native.ErrNotLinked):
		s.log.WarnContext(ctx, without, "error", err)
	}
	return f, err
}

func (s *Session) openFabric(ctx context.Context) (*native.Fabric, error) {
	if s.cfg.NoSharedMemory {
		return nil, errDenied
	}
	c := s.share
	c.Logger = s.log
	return native.Open(ctx, c)
}

// closeFabric ends what fabric has opened, at the end of the session.
func (s *Session) closeFabric() error {
	s.fabricMu.Lock()
	defer s.fabricMu.Unlock()
	if s.shared == nil {
		return nil
	}
	f := s.shared
	s.shared, s.sharedErr = nil, ErrClosed
	return f.Close()
}

// readerPlanes are the data planes that a reader asks for. Whether the native one works
// is seen when there is somebody to share memory with; one that was forced fails now if
// it cannot.
func (s *Session) readerPlanes(ctx context.Context, p *Params) ([]string, error) {
	planes := p.planes()
	if planes[0] != cp.PlaneNative {
		return planes, nil
	}
	if len(planes) == 1 {
		if _, err := s.fabric(ctx); err != nil {
			return nil, fmt.Errorf("%w: DataTransport=%s: %w", ErrPlane, p.DataTransport, err)
		}
		return planes, nil
	}
	if s.cfg.NoSharedMemory {
		_, _ = s.fabric(ctx) // which says so
		return planes[1:], nil
	}
	if native.Linked(ctx) != nil {
		return planes[1:], nil
	}
	return planes, nil
}
