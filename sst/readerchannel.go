package sst

import (
	"context"

	"github.com/weft-fabric/weft/sst/internal/cp"
)

// This file is how the ranks of a reader talk to each other. Rank 0 talks to
// itself through two queues, see readermachine.go.

// join opens our end of the reader's channel.
func (r *Reader) join() error {
	r.mu.Lock() // what the others have sent already waits until the channel is ours
	defer r.mu.Unlock()
	return r.ranks.join(r.cfg.Cohort, "reader "+contactPath(r.name), r)
}

// leaveChannel ends our part in the channel, after what was said.
func (r *Reader) leaveChannel() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ranks.leave()
}

// undelivered gives up a rank that cannot be told what it has to know. The caller
// holds mu, and may be in the middle of what a machine wants.
func (r *Reader) undelivered(rank int, err error) {
	if r.session == nil {
		return // nothing has begun: the others find that out by themselves
	}
	r.session.background(func(context.Context) { r.lostRank(rank, err) })
}

// heardRank takes a message of another rank.
func (r *Reader) heardRank(from int, m cp.Message) {
	switch {
	case r.member == nil: // we have nothing but bad news
		return
	case r.ranks.rank != 0:
		r.fromLeader(m)
		return
	}
	if _, left := m.(*cp.Left); left {
		r.goodbyeOf(from)
	}
	r.leaderEvent(cp.FromMember{Member: from, Msg: m})
}

func (r *Reader) fromLeader(m cp.Message) {
	r.mu.Lock()
	defer r.unlock()
	switch m := m.(type) {
	case *cp.StepTo:
		if m.Msg != nil {
			r.counts.came(m.Msg.Step)
		}
	case *cp.StreamEnd, *cp.StreamFailed:
		delete(r.here, 0) // from here on nobody needs us
		r.changed.notify()
	}
	r.handle(cp.FromLeader{Msg: m})
}

// lostRank takes in that another rank is gone. Rank 0 tells the others.
func (r *Reader) lostRank(rank int, err error) {
	switch {
	case r.member == nil:
	case r.ranks.rank == 0:
		r.goodbyeOf(rank)
		r.leaderEvent(cp.MemberLost{Member: rank, Err: err})
	case rank == 0:
		r.goodbyeOf(0)
		r.memberEvent(cp.LeaderLost{Err: err})
	}
}

// goodbyeOf notes that a rank has closed, or will never do so.
func (r *Reader) goodbyeOf(rank int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.here, rank)
	r.changed.notify()
}
