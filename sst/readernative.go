package sst

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/weft-fabric/weft/internal/wire/sstmsg"
	"github.com/weft-fabric/weft/sst/internal/carrier"
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
	link  carrier.Link   // to writer rank 0, for messages; nil: they go on as before
	why   error          // why there is not one to each
	told  bool           // the log has it
}

// tryRoutes looks which writer ranks can be reached, and tells the member. Ranks of one
// process have the same contact. The caller holds mu.
func (r *Reader) tryRoutes(m *cp.TryRoutes) {
	r.dropRoutes()
	r.trying = m.Try
	if !r.session.background(func(ctx context.Context) { r.tried(m.Try, r.reachAll(ctx, m.Contacts)) }) {
		r.answerRoutes(m.Try, &routes{list: make([]dp.Route, len(m.Contacts)), why: ErrClosed})
	}
}

// reachAll tries a route to each rank.
func (r *Reader) reachAll(ctx context.Context, contacts []string) *routes {
	ctx, cancel := context.WithTimeoutCause(ctx, tryFor, fmt.Errorf("%w after %v", ErrTimeout, tryFor))
	defer cancel()
	rs := &routes{list: make([]dp.Route, len(contacts))}
	near, err := r.session.near(ctx)
	if err != nil {
		rs.why, rs.told = err, true
		return rs
	}
	known := map[string]dp.Route{}
	for rank, contact := range contacts {
		route, tried := known[contact]
		if !tried && ctx.Err() == nil {
			if p, err := reach(ctx, near.Fabric, contact); err == nil {
				rs.peers, route = append(rs.peers, p), p
			} else if rs.why == nil {
				rs.why = fmt.Errorf("writer rank %d: %w", rank, err)
			}
			known[contact] = route
		}
		rs.list[rank] = route
	}
	if r.leader != nil && len(rs.list) > 0 && rs.list[0] != nil {
		if rs.link, err = r.linkNear(ctx, near, contacts[0]); err != nil && r.session.cfg.ManualProgress {
			rs.unreached(fmt.Errorf("messages to writer rank 0: %w", err))
		}
	}
	return rs
}

// linkNear returns a link to writer rank 0 that needs no socket; without one messages go
// on as before.
func (r *Reader) linkNear(ctx context.Context, n *near, contact string) (carrier.Link, error) {
	c, err := native.ParseContact(contact)
	if err == nil {
		var l carrier.Link
		if l, err = r.session.dialNear(ctx, n, c.Address, r); err == nil {
			return l, nil
		}
	}
	r.session.log.InfoContext(ctx, "messages to the writer go through a socket, although its memory can be looked at", "stream", r.name, "error", err)
	return nil, err
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

// unreached says that no route is of use.
func (rs *routes) unreached(why error) {
	clear(rs.list)
	rs.why = why
}

// closeRoutes gives routes back. Views stay as they are.
func (r *Reader) closeRoutes(rs *routes) {
	for _, p := range rs.peers {
		p.Close()
	}
	if rs.link != nil {
		r.session.unuse(rs.link, r)
	}
}

// tried takes the routes in, unless they come too late.
func (r *Reader) tried(try int64, rs *routes) {
	r.mu.Lock()
	defer r.unlock()
	if r.released || try != r.trying {
		r.closeRoutes(rs)
		return
	}
	r.routes = rs
	if rs.link != nil && isDone(rs.link.Done()) { // before we had it to be told
		rs.link = nil
		if r.session.cfg.ManualProgress {
			rs.unreached(errors.New("the link for messages was lost"))
		}
	}
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
	if rs != nil {
		r.apart = rs.why
	}
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

// turnNear has messages go over the link that needs no socket, from the one on that says
// which plane it is. The caller holds mu.
func (r *Reader) turnNear(m sstmsg.Message) {
	if p, ok := m.(*sstmsg.ReaderPlane); ok && p.Plane != cp.PlaneEvpath && r.routes != nil {
		r.near = r.routes.link
	}
}

// forgetNear takes back a link that was lost before a message went over it: they go on
// as before. The caller holds mu.
func (r *Reader) forgetNear(l carrier.Link) {
	if r.near == nil && r.routes != nil && l == r.routes.link {
		r.routes.link = nil
	}
}

// nearGrace is how long the loss of a socket is taken for no more than that, while there
// is a link beside it: what the peer has said last may still be on its way there, that
// it leaves, say. When the peer has died that link ends as well, and mostly earlier.
const nearGrace = 500 * time.Millisecond

// afterNear calls f, after a grace if the link that was lost has another one beside it.
func afterNear(beside bool, f func()) {
	if !beside {
		f()
		return
	}
	time.AfterFunc(nearGrace, f)
}

// dropRoutes gives the routes back. Views stay as they are. The caller holds mu.
func (r *Reader) dropRoutes() {
	if r.routes != nil {
		r.closeRoutes(r.routes)
		r.routes = nil
	}
}
