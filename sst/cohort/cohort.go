package cohort

import (
	"context"
	"errors"
)

// Errors of cohorts.
var (
	// ErrClosed says that this rank has left the cohort or the channel.
	ErrClosed = errors.New("cohort: closed")
	// ErrRankGone says that another rank is gone without having left, or cannot
	// be reached any more.
	ErrRankGone = errors.New("cohort: rank is gone")
	// ErrRank says that a message was sent to a rank that cannot be addressed.
	ErrRank = errors.New("cohort: no such rank to send to")
	// ErrConfig says that a configuration, or the environment of a launcher,
	// contradicts itself or lacks something.
	ErrConfig = errors.New("cohort: bad configuration")
	// ErrRefused says that the two sides of a connection do not belong to one
	// cohort, as far as they could prove it to each other.
	ErrRefused = errors.New("cohort: refused")
	// ErrProtocol says that the other side sent what does not belong here.
	ErrProtocol = errors.New("cohort: protocol error")
	// ErrLimit says that something is larger than a limit of the configuration.
	ErrLimit = errors.New("cohort: limit exceeded")
)

// Cohort connects the ranks of one side of a stream, as a communicator does in
// MPI. Rank 0 leads: messages go between rank 0 and each other rank, in order,
// and nowhere else. One cohort serves any number of streams, each through a
// channel of its own. It is safe for concurrent use.
//
// Ranks may be processes, or goroutines of one process. Who has an own way to
// connect ranks, MPI say, can implement it.
type Cohort interface {
	// Rank returns the number of this rank, from 0.
	Rank() int
	// Size returns the number of ranks, at least 1.
	Size() int
	// Join opens this rank's end of a channel. The n-th Join of a name here meets
	// the n-th Join of that name on the other ranks: streams are opened in the
	// same order everywhere only as far as they have the same name. It does not
	// wait for the others; what they send before is kept for h. No call of h
	// happens inside Join, but one may come before it has returned.
	Join(name string, h Handler) (Channel, error)
	// Close leaves the cohort: channels that are still open end as if this
	// process had died, but what was sent before is still delivered if the others
	// take it in time. Here the handlers of those channels are told what has come,
	// and that every rank they exchange messages with is lost. It has joined every
	// goroutine when it returns, so it must not be called in a Handler. Idempotent.
	Close() error
}

// Channel is one rank's end of a channel.
type Channel interface {
	// Send queues a message to a rank and returns; it never waits for the peer, and
	// the queue has no limit: whoever speaks over the channel bounds it. Rank 0
	// sends to any other rank, others to rank 0 only. The message belongs to the
	// channel and is not changed by anybody afterwards, so the same bytes can go to
	// many ranks. An error wraps ErrClosed, ErrRankGone, ErrRank or ErrLimit. What
	// was queued when a rank dies is lost without an error of its own; the Handler
	// hears of the rank. A message for a rank that has left the channel is dropped.
	Send(to int, msg []byte) error
	// Close leaves the channel after what was sent; nothing comes in any more, but
	// a call of the Handler that is running may outlast it. The others are not told:
	// that is up to what speaks over the channel. Idempotent; may be called in a
	// Handler.
	Close() error
}

// Flusher is a Channel that knows when what was sent has arrived. A program that
// fails exits at once, often, and its peers should learn why: so a stream that
// cannot be opened waits for that, for a moment. A Channel that does without costs
// them the reason.
type Flusher interface {
	// Flush waits until what was sent before is with the processes that it was sent
	// to, whether or not they have joined the channel, or they are gone. It returns
	// an error, the cause, if ctx ends first. It must not be called in a Handler.
	Flush(ctx context.Context) error
}

// Delayer is a Channel that can put a message off. To wake a process costs more than to
// tell it something: what is in no hurry waits a moment for what is.
type Delayer interface {
	// SendLater is Send for a message that may wait until the next one goes to its rank,
	// but no longer than some milliseconds. The order is kept.
	SendLater(to int, msg []byte) error
}

// Handler is told what comes in on a channel. Calls come one at a time, with no
// lock held, on a goroutine of the cohort; they may Send and Close the channel,
// but must not block for long.
type Handler interface {
	// Message hands over a message of a rank, in the order it sent them. It belongs
	// to the receiver, who must not change it.
	Message(from int, msg []byte)
	// Lost says that a rank is gone: dead, closed without leaving the channel, or
	// not reachable, which it is as well once this rank has closed the cohort: then
	// the error wraps ErrClosed, too. Every rank hears of every other, once for each, after its
	// last message. A rank that had left the channel before is not lost. A rank
	// that leaves the cohort without having joined the channel is.
	//
	// At a rank that is not 0, the loss of rank 0 is the last call: the other ranks
	// are out of reach with it, and are not reported one by one. The error wraps
	// ErrRankGone.
	Lost(rank int, err error)
}

// QuickHandler is a Handler whose calls never wait for anything but a lock that is held
// for moments. A cohort may then call it on the goroutine that reads from the rank, which
// saves a hand-over for each message; what else comes from that rank waits meanwhile.
type QuickHandler interface {
	Handler
	// Quick does nothing.
	Quick()
}
