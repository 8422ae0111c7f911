package cp

import "slices"

// NextStep returns the number that the next step will have.
func (w *WriterLeader) NextStep() int64 { return w.next }

// Active returns the number of readers that have activated, observers aside.
func (w *WriterLeader) Active() int { return w.active }

// Held returns the number of steps that the members keep data of.
func (w *WriterLeader) Held() int { return w.queue.steps.len() }

// HeldBytes returns the size of the data of these steps.
func (w *WriterLeader) HeldBytes() uint64 { return w.queue.held }

// RankBytes returns the same for each writer rank, in a slice of the caller.
func (w *WriterLeader) RankBytes() []uint64 { return slices.Clone(w.queue.rankBytes) }

// Dropped returns how many steps no reader got that wanted one: discarded by
// policy, or taken back from a reader that went, and too old for the others.
func (w *WriterLeader) Dropped() int64 { return w.dropped }

// Ranks returns the number of writer ranks of the stream, 0 before every member
// is there.
func (w *WriterLeader) Ranks() int { return w.ranks }

// Ended reports whether the stream is over, normally or not: nobody can join any
// more.
func (w *WriterLeader) Ended() bool { return w.drained || w.failure != nil }

// Failure returns why the stream was given up, nil while it was not.
func (w *WriterLeader) Failure() error { return w.failure }

// Laggards returns the readers that a wait is for, in order of registration:
// those that hold the oldest step or may take it, or, if there is none, that are
// still opening.
func (w *WriterLeader) Laggards() []ReaderKey {
	var oldest *heldStep
	for _, s := range w.queue.steps.live() {
		if s.use == useQueue {
			oldest = s
			break
		}
	}
	var keys []ReaderKey
	for _, r := range w.readers {
		late := r.state != attending
		if oldest != nil {
			late = oldest.open && r.could(oldest)
			if _, has := r.held.find(oldest.number); has {
				late = true
			}
		}
		if late && !r.observer {
			keys = append(keys, r.key)
		}
	}
	return keys
}

// Reader returns the counts of one reader, none of a stranger.
func (w *WriterLeader) Reader(k ReaderKey) Counts {
	r := w.reader(k)
	if r == nil {
		return Counts{}
	}
	c := Counts{
		Active: r.state == attending, Observer: r.observer, Plane: r.plane,
		Sent: r.sent, Released: r.released, Dropped: r.dropped, Lag: w.lag(r), Held: r.held.len(),
	}
	for _, s := range r.held.live() {
		c.HeldBytes += s.size
	}
	return c
}
