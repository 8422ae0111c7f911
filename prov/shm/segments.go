package shm

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"syscall"

	"github.com/weft-fabric/weft/fabric/provider"
	"github.com/weft-fabric/weft/internal/sys"
)

// foreignSegment is a segment of a peer's arena, mapped here.
type foreignSegment struct {
	m       *sys.Mapping // read-only
	w       *sys.Mapping // writable; nil of most
	users   int          // copies and views
	dropped bool

	pair *pair // whose quota it counts against, with so much
	maps int
	size uint64
}

// maxForeign bounds the segments of one peer: the kernel has few mappings for a process.
const maxForeign = 16384

// addSegment maps a segment. The descriptor is used up.
func (p *pair) addSegment(s segmentInfo, fd *sys.FD) error {
	if _, ok := p.segments[s.index]; ok || len(p.segments) >= maxForeign || s.index == noSegment {
		_ = fd.Close()
		return fmt.Errorf("%w: segment %d", errMessage, s.index)
	}
	write, maps := provider.Access(s.access).Has(provider.PeerWrite) && p.uid == p.d.uid, 1
	if write {
		maps = 2
	}
	if err := p.afford(maps, uint64(maps)*min(s.size, maxForeignBytes)); err != nil {
		_ = fd.Close()
		return fmt.Errorf("segment %d: %w", s.index, err)
	}
	m, w, err := mapBoth(fd, s.size, write)
	if err != nil {
		return fmt.Errorf("segment %d: %w", s.index, err)
	}
	if p.segments == nil {
		p.segments = make(map[uint32]*foreignSegment)
	}
	f := &foreignSegment{m: m, w: w}
	f.account(p)
	p.segments[s.index] = f
	return nil
}

// moreSegments is an announcement.
func (p *pair) moreSegments(body []byte, fds []*sys.FD) error {
	list, err := parseAnnouncement(body)
	if err == nil && len(list) != len(fds) {
		err = fmt.Errorf("%w: %d segments and %d descriptors", errMessage, len(list), len(fds))
	}
	for i := range list {
		if err != nil {
			return err
		}
		err = p.addSegment(list[i], fds[i])
	}
	p.tell()
	return err
}

// fewerSegments is a drop.
func (p *pair) fewerSegments(body []byte) error {
	list, err := parseDrop(body)
	for _, i := range list {
		if s := p.segments[i]; s != nil {
			delete(p.segments, i)
			s.dropped = true
			s.unmap()
		}
	}
	return err
}

// unmap lets go of a segment that is dropped and that nobody uses; without the lock, since it may take the kernel long.
func (s *foreignSegment) unmap() {
	if !s.dropped || s.users > 0 {
		return
	}
	s.release()
	s.pair.d.core.After(func() {
		_ = s.m.Close()
		if s.w != nil {
			_ = s.w.Close()
		}
	})
}

// segment gives a segment of the peer's, looking once for news if it is unknown: what names it may have come faster than
// the socket's message that brings it.
func (p *pair) segment(i uint32) *foreignSegment {
	if s, ok := p.segments[i]; ok {
		return s
	}
	if p.self {
		p.mapOwn(i)
	} else {
		p.catchUp()
	}
	return p.segments[i]
}

// mapOwn maps one of our own segments as a peer does.
func (p *pair) mapOwn(i uint32) {
	s, fd, err := p.d.arena.lend(i)
	if err == nil && fd != nil {
		err = p.addSegment(s, fd)
	}
	if err != nil {
		p.d.warnOnce("map", "a segment of our own cannot be mapped again", err)
	}
}

// lend gives a segment as peers get it; a nil descriptor if it is none.
func (a *arena) lend(i uint32) (segmentInfo, *sys.FD, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	s := a.segment(i)
	if s == nil {
		return segmentInfo{}, nil, nil
	}
	fd, err := s.file.fd.Dup()
	return s.info(), fd, err
}

// bytes is a piece of the segment, for reading; nil if it does not lie inside.
func (s *foreignSegment) bytes(off, n uint64) []byte { return cut(s.m.Bytes(), off, n) }

// writable is bytes for writing.
func (s *foreignSegment) writable(off, n uint64) []byte { return cut(s.w.Bytes(), off, n) }

func cut(b []byte, off, n uint64) []byte {
	if off > uint64(len(b)) || n > uint64(len(b))-off {
		return nil
	}
	return b[off : off+n : off+n]
}

// mapped is the bytes mapped for the pair.
func (p *pair) mapped() uint64 {
	n := uint64(0)
	for _, s := range p.segments {
		n += uint64(len(s.m.Bytes()))
	}
	if p.theirs.m != nil {
		n += lanesSize*2 + p.growth.bytes()
	}
	return n
}

// announce tells the peer of segments that it has not heard of. What the socket has no room for is told when it has.
func (p *pair) announce() {
	if p.state != pairUp || p.self {
		if p.self {
			p.announced = p.d.arena.known()
			p.dropOwn()
		}
		return
	}
	err := p.announceNew()
	if err == nil {
		err = p.announceDropped()
	}
	p.jam(errors.Is(err, sys.ErrWouldBlock))
	switch {
	case err == nil, p.jammed:
	case errors.Is(err, syscall.EPIPE), errors.Is(err, syscall.ECONNRESET): // we shall hear of it
	default:
		p.d.announceLater(err)
	}
}

// announceNew tells the peer of new segments.
func (p *pair) announceNew() error {
	a := p.d.arena
	a.mu.Lock() // so that no descriptor is closed meanwhile
	defer a.mu.Unlock()
	for {
		list, next := a.since(p.announced, p.uid != p.d.uid, maxSegments)
		if len(list) > 0 {
			var a announcement
			var fds []*sys.FD
			for _, s := range list {
				a, fds = append(a, s.info()), append(fds, s.file.fd)
			}
			if _, err := p.sock.Send(a.Append(nil), fds...); err != nil {
				return err
			}
		}
		p.announced = next
		if len(list) < maxSegments {
			return nil
		}
	}
}

// since lists segments from index on, and gives the index to go on from. Peers of another user see none that they could write.
func (a *arena) since(index int, foreign bool, most int) (list []*segment, next int) {
	i, _ := a.at(uint32(index))
	for _, s := range a.segments[i:] {
		if len(list) == most {
			return list, int(s.index)
		}
		if !(foreign && s.access.Has(provider.PeerWrite)) {
			list = append(list, s)
		}
	}
	return list, int(a.made)
}

// announceDropped tells the peer of segments that are no more.
func (p *pair) announceDropped() error {
	for {
		d := p.d.arena.drops(p.untold)
		if len(d) == 0 {
			return nil
		}
		if _, err := p.sock.Send(d.Append(nil)); err != nil {
			return err
		}
		p.untold += len(d)
	}
}

// announce tells all peers.
func (d *domain) announce() {
	least := math.MaxInt
	for _, p := range d.pairs {
		p.announce()
		if p.state == pairUp {
			least = min(least, p.untold)
		}
	}
	d.arena.forget(least)
}

// dropOwn unmaps segments of ours that are no more, in the pair of an endpoint with itself.
func (p *pair) dropOwn() {
	for list := p.d.arena.drops(p.untold); len(list) > 0; list = p.d.arena.drops(p.untold) {
		p.untold += len(list)
		for _, i := range list {
			if s := p.segments[i]; s != nil {
				delete(p.segments, i)
				s.dropped = true
				s.unmap()
			}
		}
	}
}

// known is how many segments there are, or have been.
func (a *arena) known() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return int(a.made)
}

// drops lists the dropped segments from the n-th drop on, at most as many as fit in a message.
func (a *arena) drops(n int) drop {
	a.mu.Lock()
	defer a.mu.Unlock()
	list := a.dropped[n-a.told:]
	return drop(slices.Clone(list[:min(len(list), maxSegments)]))
}

// dropsNow is how many there were: a peer that was told of no segment need not be told of these.
func (a *arena) dropsNow() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.told + len(a.dropped)
}

// forget ends the memory of the first n drops, which all peers were told of.
func (a *arena) forget(n int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	n = min(n-a.told, len(a.dropped))
	a.dropped = slices.Delete(a.dropped, 0, n)
	a.told += n
}
