package dp

import (
	"context"
	"sync/atomic"

	"github.com/weft-fabric/weft/fabric"
	"github.com/weft-fabric/weft/internal/wire/sstmsg"
	"github.com/weft-fabric/weft/step"
)

// Route is the way to the memory of one writer process.
type Route interface {
	// View returns n bytes at offset at of the memory that key names there, n is never
	// 0. They are read-only, and stay valid until release is called, exactly once and
	// from any goroutine, also with locks held: it does not block. The context is used
	// until View returns.
	//
	// Errors are those of fabric.Domain.View. One that wraps fabric.ErrNotSupported or
	// fabric.ErrNoMemory means that the range is to be had by messages.
	View(ctx context.Context, key fabric.Key, at uint64, n int) (b []byte, release func(), err error)
}

// Native is the reading side of the native plane for one reader rank: what lies in
// memory that the writer has told of, and to which there is a route, is looked at, or
// copied from there. All else is asked for by messages, as by the [Evpath] in it, which
// also has what the two have in common.
//
// A failure of the plane (Fail) or its end (Close) ends what waits for the writer, and
// nothing begins any more. Copies that run need nobody and go on; views stay valid.
type Native struct {
	*Evpath
	routes []Route     // by writer rank; guarded by Evpath.mu
	seen   []rankViews // by writer rank; guarded by Evpath.mu, but for the numbers
	uses   uses
}

// rankViews counts what was seen of one writer rank's memory.
type rankViews struct {
	views          atomic.Int64
	viewed, copied atomic.Uint64
}

// NewNative returns a plane that asks for everything through e, until it is told of
// routes.
func NewNative(e *Evpath) *Native {
	return &Native{Evpath: e, uses: uses{steps: map[int64]*use{}}}
}

// Use tells the plane the routes by writer rank, nil for those that are asked by
// messages. It is called once, before the first step.
func (p *Native) Use(routes []Route) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.routes, p.seen = routes, make([]rankViews, len(routes))
}

// Fail ends the plane as Evpath.Fail does: nothing begins any more, and what is in use stays.
func (p *Native) Fail(err error) {
	p.Evpath.Fail(err)
	p.uses.finish()
}

// Close ends the plane as Evpath.Close does. Views stay.
func (p *Native) Close(err error) {
	p.Evpath.Close(err)
	p.uses.finish()
}

// Step begins a step as Evpath.Step does; extents tells for each writer rank where its
// block lies, and may be short, or nil.
//
// A list that makes no sense is an error of every read that needs it: what the other
// ranks wrote can be read all the same, and the step has to be given back by its end.
func (p *Native) Step(number int64, mode int32, extents []sstmsg.Block) step.Source {
	asked := p.begin(number, mode)
	p.mu.Lock()
	routes, seen := p.routes, p.seen
	p.mu.Unlock()
	ranks := locate(routes, extents)
	if ranks == nil {
		return asked
	}
	return &nativeStep{evpathStep: asked, ranks: ranks, seen: seen, uses: &p.uses, use: p.uses.open(number)}
}

// located is where a rank's block of one step lies.
type located struct {
	route   Route // nil if it is asked for
	extents []Extent
	err     error // of the list
}

// locate parses the lists of those ranks to which there is a route; nil if none has any.
func locate(routes []Route, extents []sstmsg.Block) []located {
	n, total := 0, 0 // ranks up to the last one that has a list, and bytes of lists
	for rank := range min(len(routes), len(extents)) {
		if size := extents[rank].Data.Len(); size > 0 && routes[rank] != nil {
			n, total = rank+1, total+size
		}
	}
	if n == 0 {
		return nil
	}
	ranks := make([]located, n)
	all := make([]Extent, 0, total/ExtentSize)
	for rank := range ranks {
		if routes[rank] == nil {
			continue
		}
		first := len(all)
		var err error
		all, err = appendParsed(all, extents[rank].Data.Bytes())
		ranks[rank] = located{routes[rank], all[first:], err}
	}
	return ranks
}

// Stats returns the counts of every writer rank; before Attach there is none.
func (p *Native) Stats() []RankStats {
	list := p.Evpath.Stats()
	p.mu.Lock()
	seen := p.seen
	p.mu.Unlock()
	for rank := range min(len(list), len(seen)) {
		s := &seen[rank]
		list[rank].Views, list[rank].Viewed, list[rank].Copied = s.views.Load(), s.viewed.Load(), s.copied.Load()
	}
	return list
}
