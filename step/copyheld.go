package step

import (
	"context"
	"fmt"
)

// copyHeld copies small strips straight from the memory of the source, those that are close
// together from one piece of it. It returns how many of gets, from the front, need no more, as far as
// they are strips: all, unless the source does not hold something.
func (s *Step) copyHeld(ctx context.Context, gets []Get) (copied int, err error) {
	src, ok := s.src.(Holder)
	for ok && copied < len(gets) {
		n, g := near(gets[copied:])
		if n == 0 {
			break
		}
		if g.count > 0 {
			ok, err = copyGroup(ctx, src, &g, gets[copied:copied+n])
		}
		if err != nil {
			return copied, fmt.Errorf("step %d: reading %q%s: %w", s.number, gets[copied].variable().def.name, others(n > 1), err)
		}
		if ok {
			copied += n
		}
	}
	return copied, nil
}

// others says in an error text that more than one variable was being read.
func others(more bool) string {
	if more {
		return " and others"
	}
	return ""
}

// near returns how many of gets, from the front, have strips that make one group, and that; 0 if the
// first is large, and so worth a read of its own. Readings among them do not count.
func near(gets []Get) (n int, g group) {
	for ; n < len(gets); n++ {
		if gets[n].r != nil {
			continue
		}
		s := read{rank: gets[n].s.rank, off: gets[n].s.off, n: uint64(len(gets[n].dst))}
		switch {
		case s.n >= directMin:
			return n, g
		case g.count == 0:
			g = group{rank: s.rank, off: s.off, n: s.n}
		case s.off < g.off || !g.takes(&s):
			return n, g
		}
		g.n = max(g.n, s.off+s.n-g.off)
		g.count++
	}
	return n, g
}

// copyGroup copies the strips of a group; false if the source does not hold it.
func copyGroup(ctx context.Context, src Holder, g *group, gets []Get) (bool, error) {
	// Here and not in the source alone: what is in memory already takes time too.
	if err := context.Cause(ctx); err != nil {
		return false, err
	}
	mem, release, err := src.Held(ctx, g.rank, g.off, g.n)
	if err != nil || mem == nil {
		return false, err
	}
	defer release()
	for i := range gets {
		if gets[i].r == nil {
			copy(gets[i].dst, mem[gets[i].s.off-g.off:])
		}
	}
	return true, nil
}
