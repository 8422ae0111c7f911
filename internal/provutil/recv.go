package provutil

import "github.com/weft-fabric/weft/fabric/provider"

// Part is where in a receive's buffer a message goes.
type Part struct {
	At, Len uint64 // Len is less than the message's length if it has no room
	Last    bool   // the receive takes no message after it: it is to be taken out of the matcher
}

// Kind is what the receive's completions end.
func (r *Recv) Kind() provider.Kind {
	if r.Tagged {
		return provider.TRecvDone
	}
	return provider.RecvDone
}

// Take counts in a message of n bytes that is for the receive: it gets a part of the buffer, and its completion a place in q,
// which may be nil. The place that the receive came with is for its last message. False if there is none, or if an older
// message waits for one: q will say when there is. Each message that was taken ends with Complete.
func (r *Recv) Take(n uint64, q *CQ) (p Part, ok bool) {
	left := r.Buffer.Len() - r.Used
	p = Part{At: r.Used, Len: min(n, left), Last: true}
	if !r.Flags.Has(provider.Multi) {
		return p, true
	}
	p.Last = left-p.Len < r.Least
	if r.Stalled {
		return Part{}, false
	}
	if !p.Last && q != nil && !q.Reserve(1) {
		q.Stall()
		return Part{}, false
	}
	r.Used += p.Len
	r.Pending++
	return p, true
}

// Complete ends Take of a message whose part began at so many bytes, and fills in what the receive adds to its completion. It
// says whether the receive has ended with it.
func (r *Recv) Complete(c *provider.Completion, at uint64) (ended bool) {
	if !r.Flags.Has(provider.Multi) {
		return true
	}
	c.Offset = at
	r.Pending--
	if r.Pending > 0 || r.Buffer.Len()-r.Used >= r.Least {
		return false
	}
	c.Flags |= provider.MultiDone
	return true
}

// Unstall calls f for each posted receive that was stalled, and is no more.
func (m *Matcher[M]) Unstall(f func(r *Recv)) {
	m.EachRecv(func(r *Recv) {
		if r.Stalled {
			r.Stalled = false
			f(r)
		}
	})
}
