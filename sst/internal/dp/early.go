package dp

import (
	"errors"
	"fmt"

	"github.com/weft-fabric/weft/internal/wire/sstmsg"
)

// Blocks can come before the metadata of their step: over another connection, or
// while the step waits in a queue of rank 0. A writer could push for steps that it
// never announces, so such blocks have a bound of their own: in bytes, because
// nobody can say by how many steps an honest writer may be ahead.

// ErrEarly says that a writer has pushed too much for steps that it has not announced.
var ErrEarly = errors.New("too many blocks of steps that were not announced")

// defaultMaxEarly is for systems that do not say how much memory there is.
const defaultMaxEarly = 4 << 30

// blockCost is what a block takes beside its bytes.
const blockCost = 512

// earlyBlocks are those of steps that were not announced.
type earlyBlocks struct {
	cost  map[int64]uint64 // by step
	total uint64
}

// admit counts a block if it is early, and refuses it if that would be too much.
// The caller holds mu.
func (e *Evpath) admit(m *sstmsg.Preload) error {
	cost := uint64(m.Data.Len()) + blockCost
	switch {
	case m.Step <= e.announced:
		return nil
	case cost > e.cfg.MaxEarly-e.early.total:
		return fmt.Errorf("step %d of writer rank %d, %d bytes more than %d; announced was step %d: %w", m.Step, m.WriterRank, cost, e.early.total, e.announced, ErrEarly)
	}
	e.early.cost[m.Step] += cost
	e.early.total += cost
	return nil
}

// Announce says that the metadata of a step are here, although it may still have
// to wait before it begins. They come in rising order: steps before it that were
// not announced never begin. It can be said again.
func (e *Evpath) Announce(number int64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if number <= e.announced {
		return
	}
	e.drop(e.announced+1, number-1)
	e.announce(number)
}

// announce takes steps up to a number off the early ones. The caller holds mu.
func (e *Evpath) announce(number int64) {
	if number <= e.announced {
		return
	}
	e.announced = number
	for n, cost := range e.early.cost {
		if n <= e.announced {
			e.early.total -= cost
			delete(e.early.cost, n)
		}
	}
}
