package cohort

import (
	"fmt"
	"slices"
	"sync"
)

// Solo returns a cohort of one rank. It starts no goroutine.
func Solo() Cohort { return Local(1)[0] }

// Local returns the n ranks of a cohort that lives in this process, in order; n
// below 1 means 1. Messages are handed over without a copy. A rank that is closed
// with open channels is dead for the others.
//
// What a rank has not yet handled is kept without a bound, as are messages for a
// channel that it has not joined: whoever sends much must hear of it in turn, as
// streams do.
func Local(n int) []Cohort {
	ranks := make([]Cohort, max(n, 1))
	group := &localGroup{ranks: make([]*local, len(ranks))}
	for i := range ranks {
		l := &local{hub: newHub(i, len(ranks), &group.mu), group: group}
		l.mover = l
		group.ranks[i], ranks[i] = l, l
	}
	return ranks
}

// localGroup is the ranks of one Local. Their hubs share its lock.
type localGroup struct {
	mu    sync.Mutex
	ranks []*local
}

// local is one of them, and the mover of its hub.
type local struct {
	*hub
	group *localGroup
}

// Close implements Cohort.
func (l *local) Close() error {
	l.mu.Lock()
	if l.shut() {
		err := fmt.Errorf("%w: rank %d of this process left the cohort", ErrRankGone, l.rank)
		l.others(func(o *local) { o.lose(l.rank, err, nil) })
		l.group.forgetNames()
	}
	l.mu.Unlock()
	l.calls.Wait()
	return nil
}

// others calls f for each other rank that is still there.
func (l *local) others(f func(*local)) {
	for _, o := range l.group.ranks {
		if o != l && !o.closed {
			f(o)
		}
	}
}

func (l *local) joined(*channel) {}

// flush implements mover: what is sent has arrived.
func (l *local) flush() []<-chan struct{} { return nil }

// message implements mover. Nothing limits what is kept in one process, so
// deliver has no error.
func (l *local) message(to int, c *channel, msg []byte, _ urgency) error {
	far, err := l.group.ranks[to].deliver(l.rank, c.key, msg)
	if far != nil {
		far.rouse()
	}
	return err
}

// left implements mover; there is no error, as in message.
func (l *local) left(c *channel) {
	l.others(func(o *local) { _ = o.leave(l.rank, c.key) })
	l.group.forgetName(c.key.name)
}

// forgetName has all ranks count the joins of a name from 1 again, if each has
// joined the same ones and left them: then nothing of the name is under way. Who
// makes streams of ever new names does not grow. The caller holds mu.
func (g *localGroup) forgetName(name string) {
	var first *local
	for _, l := range g.ranks {
		switch {
		case l.closed:
			continue
		case first == nil:
			first = l
		}
		if l.records[name] > 0 || l.joins[name] != first.joins[name] {
			return
		}
	}
	for _, l := range g.ranks {
		delete(l.joins, name)
	}
}

// forgetNames is forgetName for all: they may have been kept for a rank that is
// closed now. The caller holds mu.
func (g *localGroup) forgetNames() {
	i := slices.IndexFunc(g.ranks, func(l *local) bool { return !l.closed })
	if i < 0 {
		return
	}
	for name := range g.ranks[i].joins {
		g.forgetName(name)
	}
}
