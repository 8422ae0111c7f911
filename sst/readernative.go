package sst

import (
	"context"
	"fmt"
	"time"

	"github.com/weft-fabric/weft/sst/internal/cp"
	"github.com/weft-fabric/weft/sst/internal/dp"
	"github.com/weft-fabric/weft/sst/internal/native"
)

// This file is a reader rank's way to the memory of writer ranks on its node
// (docs/native.md).

// tryFor bounds the try of all routes. On a node that works it takes a few ms.
const tryFor = 5 * time.Second

// routes are the ways that a reader rank has to the memory of the writer's ranks.
type routes struct {
	peers []*native.Peer // to be closed
	list  []dp.Route     // by writer rank, nil: none
	why   error          // why there is not one to each
}

// tryRoutes looks which writer ranks can be reached, and tells the member. Contacts
// are those of the ranks; ranks of one process have the same.
func (r *Reader) tryRoutes(contacts []string) {
	ok := r.session.background(func(ctx context.Context) {
		ctx, cancel := context.WithTimeoutCause(ctx, tryFor, fmt.Errorf("%w after %v", ErrTimeout, tryFor))
		defer cancel()
		r.tried(r.session.reachAll(ctx, contacts))
	})
	if !ok {
		r.memberEvent(cp.RoutesTried{Total: len(contacts), Cause: cp.NewFault(ErrClosed)})
	}
}

// reachAll tries a route to each rank.
func (s *Session) reachAll(ctx context.Context, contacts []string) *routes {
	rs := &routes{list: make([]dp.Route, len(contacts))}
	f, err := s.fabric(ctx)
	if err != nil {
		rs.why = err
		return rs
	}
	known := map[string]dp.Route{}
	for rank, contact := range contacts {
		route, tried := known[contact]
		if !tried {
			if p, err := f.Reach(ctx, contact); err == nil {
				rs.peers, route = append(rs.peers, p), p
			} else if rs.why == nil {
				rs.why = fmt.Errorf("writer rank %d: %w", rank, err)
			}
			known[contact] = route
		}
		rs.list[rank] = route
	}
	return rs
}

// reached counts the ranks that have a route.
func (rs *routes) reached() int {
	n := 0
	for _, route := range rs.list {
		if route != nil {
			n++
		}
	}
	return n
}

func (rs *routes) close() {
	for _, p := range rs.peers {
		p.Close()
	}
}

// tried takes the routes in, and says so.
func (r *Reader) tried(rs *routes) {
	r.mu.Lock()
	defer r.unlock()
	if r.released {
		rs.close()
		return
	}
	r.routes = rs
	r.plane.Use(rs.list)
	e := cp.RoutesTried{Native: rs.reached(), Total: len(rs.list)}
	if rs.why != nil {
		e.Cause = cp.NewFault(rs.why)
	}
	r.handle(e)
}

// closeRoutes gives the routes back. Views stay as they are.
func (r *Reader) closeRoutes() {
	r.mu.Lock()
	rs := r.routes
	r.routes = nil
	r.mu.Unlock()
	if rs != nil {
		rs.close()
	}
}
