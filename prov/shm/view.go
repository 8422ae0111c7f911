package shm

import (
	"context"
	"fmt"

	"github.com/weft-fabric/weft/fabric/provider"
	"github.com/weft-fabric/weft/internal/provutil"
)

// view is a piece of a peer's arena that stays where it is until it is released.
type view struct {
	pair *pair
	spot spot
	held provutil.HeldView // the domain's lock guards it
}

// Bytes is valid until Release.
func (v *view) Bytes() []byte { return v.spot.bytes }

// Release gives it back.
func (v *view) Release() {
	d := v.pair.d
	d.core.Lock()
	defer d.core.Unlock()
	if !d.views.Remove(&v.held) {
		return
	}
	v.pair.drop(v.spot)
	d.reap()
}

// View maps n bytes of a peer's arena.
func (d *domain) View(ctx context.Context, id provider.Peer, k provider.Key, offset uint64, n int) (provider.View, error) {
	if n < 0 {
		return nil, fail("view", "", fmt.Errorf("%d bytes: %w", n, provider.ErrInvalid))
	}
	if err := ctx.Err(); err != nil {
		return nil, fail("view", "", err) // whether there is something to wait for or not
	}
	v, to, err := d.view(ctx, id, provider.RemoteSegment{Key: k, Offset: offset, Len: uint64(n)})
	if err != nil {
		return nil, fail("view", to, err)
	}
	return v, nil
}

func (d *domain) view(ctx context.Context, id provider.Peer, s provider.RemoteSegment) (*view, provider.Address, error) {
	d.core.Lock()
	defer d.core.Unlock()
	v := d.av.Lookup(id)
	if v == nil {
		_, err := d.av.Address(id)
		return nil, "", err
	}
	to := *v
	for {
		p, err := d.upPair(ctx, to)
		if err != nil {
			return nil, to.text, err
		}
		spot, found, err := p.hold(s, provider.ReadDone)
		switch found {
		case foundSpot:
			v := &view{pair: p, spot: spot}
			d.views.Add(&v.held, s.Len)
			return v, to.text, nil
		case foundError:
			return nil, to.text, err
		case foundElse:
			return nil, to.text, fmt.Errorf("the memory is not in an arena, or of another user: %w", provider.ErrNotSupported)
		}
		if p.state == pairUp { // its segment's descriptor is on its way
			if err := p.news(ctx); err != nil {
				return nil, to.text, err
			}
		}
	}
}

// news waits until something of the pair has changed.
func (p *pair) news(ctx context.Context) error {
	n := provutil.NewCounter(p.d.core)
	p.hears = append(p.hears, n)
	p.d.core.Unlock()
	err := n.Wait(ctx, 1)
	p.d.core.Lock()
	if err != nil {
		p.hears = without(p.hears, n)
	}
	return err
}

// upPair gives a pair with the peer that is up, and waits until there is one.
func (d *domain) upPair(ctx context.Context, to *peer) (*pair, error) {
	for {
		switch {
		case d.closed:
			return nil, provider.ErrClosed
		case to.why != nil:
			return nil, to.why
		case len(d.eps) == 0:
			return nil, fmt.Errorf("the domain has no endpoint to connect from: %w", provider.ErrInvalid)
		}
		for _, p := range to.pairs {
			if p.state == pairUp {
				return p, nil
			}
		}
		if p := d.eps[0].alias(to); p != nil {
			return p, nil
		}
		p := to.pair(d.eps[0])
		if p == nil {
			p = d.eps[0].newPair(to)
		}
		p.start()
		if p.state == pairUp {
			continue
		}
		if p.state != pairEnded {
			if err := p.news(ctx); err != nil {
				return nil, err
			}
		}
		if p.state == pairEnded && p.failed != nil && (len(d.eps) == 0 || d.eps[0].alias(to) == nil) {
			return nil, p.failed
		}
	}
}
