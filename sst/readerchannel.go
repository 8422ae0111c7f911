package sst

import (
	"context"
	"errors"
	"fmt"

	"github.com/weft-fabric/weft/sst/cohort"
	"github.com/weft-fabric/weft/sst/internal/cp"
)

// This file is how the ranks of a reader talk to each other. Rank 0 talks to
// itself through two queues, see readermachine.go, and a reader of one rank has
// no channel at all.

// join opens our end of the reader's channel.
func (r *Reader) join() error {
	if r.ranks == 1 {
		return nil
	}
	r.mu.Lock() // what the others have sent already waits until the channel is ours
	defer r.mu.Unlock()
	ch, err := r.cfg.Cohort.Join("reader "+r.name, (*readerHandler)(r))
	switch {
	case errors.Is(err, cohort.ErrClosed):
		return fmt.Errorf("%w: %w", ErrClosed, err)
	case err != nil:
		return fmt.Errorf("joining the cohort: %w", err)
	}
	r.channel = ch
	return nil
}

// leaveChannel ends our part in the channel, after what was said.
func (r *Reader) leaveChannel() {
	r.mu.Lock()
	ch := r.channel
	r.channel = nil
	r.mu.Unlock()
	if ch != nil {
		ch.Close()
	}
}

// tell sends to other ranks. Whether one is gone the channel tells us by itself.
// The caller holds mu.
func (r *Reader) tell(m cp.Message, ranks ...int) {
	if r.channel == nil || len(ranks) == 0 {
		return
	}
	b := cp.AppendMessage(nil, m)
	for _, rank := range ranks {
		if err := r.channel.Send(rank, b); errors.Is(err, cohort.ErrClosed) {
			r.cutOff(err)
			return
		}
	}
}

// cutOff takes in that the program has closed its cohort under the reader: nobody
// else can tell us. The caller holds mu.
func (r *Reader) cutOff(err error) {
	r.channel = nil
	if r.session == nil {
		return
	}
	r.session.background(func(context.Context) {
		if r.rank != 0 {
			(*readerHandler)(r).Lost(0, err)
			return
		}
		for _, rank := range r.others() {
			(*readerHandler)(r).Lost(rank, err)
		}
	})
}

// others are all ranks but 0.
func (r *Reader) others() []int {
	list := make([]int, 0, r.ranks-1)
	for rank := 1; rank < r.ranks; rank++ {
		list = append(list, rank)
	}
	return list
}

// readerHandler is a Reader as its cohort sees it.
type readerHandler Reader

// Message takes a message of another rank.
func (h *readerHandler) Message(from int, b []byte) {
	r := (*Reader)(h)
	m, err := cp.ParseMessage(b)
	if err != nil {
		h.Lost(from, fmt.Errorf("message of rank %d: %w: %w", from, ErrProtocol, err))
		return
	}
	switch {
	case r.member == nil: // we have nothing but bad news
		return
	case r.rank != 0:
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

// Lost takes in that another rank is gone. Rank 0 tells the others.
func (h *readerHandler) Lost(rank int, err error) {
	r := (*Reader)(h)
	switch {
	case r.member == nil:
	case r.rank == 0:
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
