package sst

import (
	"context"
	"errors"
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
	told  bool           // the log has it
}

// tryRoutes looks which writer ranks can be reached, and tells the member. Ranks of one
// process have the same contact. The caller holds mu.
func (r *Reader) tryRoutes(m *cp.TryRoutes) {
	r.dropRoutes()
	if !r.session.background(func(ctx context.Context) { r.tried(m.Try, r.session.reachAll(ctx, m.Contacts)) }) {
		r.answerRoutes(m.Try, &routes{list: make([]dp.Route, len(m.Contacts)), why: ErrClosed})
	}
}

// reachAll tries a route to each rank.
func (s *Session) reachAll(ctx context.Context, contacts []string) *routes {
	ctx, cancel := context.WithTimeoutCause(ctx, tryFor, fmt.Errorf("%w after %v", ErrTimeout, tryFor))
	defer cancel()
	rs := &routes{list: make([]dp.Route, len(contacts))}
	f, err := s.fabric(ctx)
	if err != nil {
		rs.why, rs.told = err, true
		return rs
	}
	known := map[string]dp.Route{}
	for rank, contact := range contacts {
		route, tried := known[contact]
		if !tried && ctx.Err() == nil {
			if p, err := reach(ctx, f, contact); err == nil {
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

var errNoContact = errors.New("its process shares no memory")

// reach tries the route to one process.
func reach(ctx context.Context, f *native.Fabric, contact string) (*native.Peer, error) {
	if contact == "" {
		return nil, errNoContact
	}
	return f.Reach(ctx, contact)
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

// tried takes the routes in, unless they come too late.
func (r *Reader) tried(try int64, rs *routes) {
	r.mu.Lock()
	defer r.unlock()
	if r.released {
		rs.close()
		return
	}
	r.dropRoutes()
	r.routes = rs
	r.answerRoutes(try, rs)
}

// answerRoutes tells the member what was reached. The caller holds mu.
func (r *Reader) answerRoutes(try int64, rs *routes) {
	m := &cp.Routed{Try: try, Native: rs.reached(), Total: len(rs.list)}
	if rs.why != nil {
		m.Cause = cp.NewFault(rs.why)
	}
	r.handle(cp.RoutesTried{Routed: m})
}

// useRoutes begins to read by the plane that was agreed. The caller holds mu.
func (r *Reader) useRoutes(plane string) {
	r.agreed = plane
	rs := r.routes
	switch {
	case rs == nil:
	case plane == cp.PlaneEvpath: // what one rank reaches alone
		r.dropRoutes()
	default:
		r.plane.Use(rs.list)
	}
	if rs != nil && rs.why != nil && !rs.told {
		args := []any{"stream", r.name, "rank", r.ranks.rank, "data plane", plane, "reason", rs.why}
		r.session.background(func(ctx context.Context) {
			r.session.log.InfoContext(ctx, "the writer's memory cannot be looked at; what is out of reach comes through sockets", args...)
		})
	}
}

// dropRoutes gives the routes back. Views stay as they are. The caller holds mu.
func (r *Reader) dropRoutes() {
	if r.routes != nil {
		r.routes.close()
		r.routes = nil
	}
}
