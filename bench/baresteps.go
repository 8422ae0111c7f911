package main

import (
	"context"
	"errors"
	"math"
	"time"

	"github.com/weft-fabric/weft/internal/sys"
)

// bareEnd is the tally of steps when no more come.
const bareEnd = math.MaxUint64

// step is where step n lies.
func (b *bareSteps) step(n uint64) []int64 { return b.places[b.which[n%uint64(len(b.which))]] }

// place finds a place for step n; there is one when the steps before it are out.
func (b *bareSteps) place(n uint64) {
	for taken := b.taken.count.Load(); b.back < taken; b.back++ {
		b.free = append(b.free, b.which[b.back%uint64(len(b.which))])
	}
	last := len(b.free) - 1
	b.which[n%uint64(len(b.which))] = b.free[last]
	b.free = b.free[:last]
}

// write writes steps for the time of a, and waits until all are taken.
func (b *bareSteps) write(ctx context.Context, a roleArgs) (said, error) {
	c := a.clock()
	limit := time.Duration((a.seconds + a.warmup) * float64(time.Second))
	queue := uint64(a.queue)
	n := uint64(0)
	for start, now := time.Now(), time.Now(); now.Sub(start) < limit; n++ {
		b.fill(n)
		if _, err := b.taken.reach(ctx, max(n+1, queue)-queue); err != nil {
			return said{}, err
		}
		if err := b.written.raise(n + 1); err != nil {
			return said{}, err
		}
		now = time.Now()
		c.tick(now)
	}
	s, err := c.said()
	if err != nil {
		return said{}, err
	}
	if _, err := b.taken.reach(ctx, n); err != nil {
		return said{}, err
	}
	return s, b.written.raise(bareEnd)
}

// fill makes step n.
func (b *bareSteps) fill(n uint64) {
	b.place(n)
	if b.own == nil {
		fill(b.step(n), int64(n))
		return
	}
	fill(b.own, int64(n))
	copy(b.step(n), b.own)
}

// read reads steps to their end.
func (b *bareSteps) read(ctx context.Context, a roleArgs) (said, error) {
	c := a.clock()
	var bad int64
	for n := uint64(0); ; n++ {
		have, err := b.written.reach(ctx, n+1)
		if err != nil {
			return said{}, err
		}
		if have == bareEnd {
			s, err := c.said()
			s.Bad, s.Viewed = bad, b.own == nil
			return s, err
		}
		if !b.right(n) {
			bad++
		}
		if err := b.taken.raise(n + 1); err != nil {
			return said{}, err
		}
		c.tick(time.Now())
	}
}

// right checks step n.
func (b *bareSteps) right(n uint64) bool {
	data := b.step(n)
	if b.own != nil {
		copy(b.own, data)
		data = b.own
	}
	return sum(data) == expected(len(data), n)
}

// bareStream is the work of a process of bareMemory.
func bareStream(ctx context.Context, a roleArgs) (said, error) {
	work, own, bell := (*bareSteps).write, a.access != inPlace, fromPeer
	if a.role == "reader" {
		work, own, bell = (*bareSteps).read, a.access == copying, toPeer
	}
	fd := sys.NewFD(bareFD, "memory")
	b, err := openBare(a, fd, fromPeer, toPeer, own)
	err = errors.Join(err, fd.Close())
	if err != nil {
		return said{}, err
	}
	stop := context.AfterFunc(ctx, func() { _ = bell.Add(1) }) // where nobody sleeps it may fail
	defer stop()
	s, err := work(b, ctx, a)
	return s, errors.Join(err, b.close())
}
