package provutil

import "github.com/weft-fabric/weft/fabric/provider"

// Matcher brings messages and receives of one endpoint together. It is pure: it copies nothing and completes
// nothing. M is what the provider keeps with a message that waits. The lock of the domain guards it.
//
// A message meets the oldest posted receive that takes it, and a receive the oldest waiting message that it takes.
// Messages and tagged messages do not mix.
//
// To post a receive:
//
//	r := m.NewRecv(); *r's fields = ...
//	for msg := m.Find(r); msg != nil; msg = m.Find(r) {
//		part, ok := r.Take(msg.Len, queue)
//		if !ok { r.Stalled = true; break }
//		m.Take(msg); deliver msg to part of r; m.FreeMessage(msg)
//		if part.Last { return }        // always, but for Multi
//	}
//	m.Add(r)
//
// When a message arrives:
//
//	if r := m.Match(tagged, source, tag); r != nil {
//		part, ok := r.Take(length, queue)
//		if !ok { leave the message with its sender }
//		if part.Last { m.Remove(r) }
//		deliver to part of r
//	} else {
//		msg := m.Keep(tagged); *msg's fields = ...
//	}
//
// When a message is delivered:
//
//	ended := r.Complete(&completion, part.At)
//	queue.Push(&completion)
//	if ended { m.FreeRecv(r) }
type Matcher[M any] struct {
	posted  [2]list[Recv, *Recv]
	waiting [2]list[Message[M], *Message[M]]
	claimed list[Message[M], *Message[M]]

	recvs    *Recv       // spare
	messages *Message[M] // spare
}

// Recv is a posted receive.
type Recv struct {
	Buffer  Vector
	Context uint64
	Tagged  bool
	Tag     uint64
	Ignore  uint64
	Peer    provider.Peer // with Directed; 0 takes anybody's
	Flags   provider.Flags

	Least   uint64 // Multi: it is used up when less of its buffer is left
	Used    uint64 // Multi: bytes of the buffer that have messages in them
	Pending int    // Multi: messages on their way into the buffer
	// Stalled, set by the provider, is a Multi receive for whose message there was no place in the completion
	// queue. Match still finds it, but it takes nothing: what would be its message has to wait with the sender.
	Stalled bool
	Ended   error // for the provider: cancelled or closed while messages were on their way into the buffer
	Held    bool  // for the provider: memory of the buffer was closed, see Held

	hook hook[Recv]
}

func (r *Recv) link() *hook[Recv] { return &r.hook }

// Takes says whether the receive takes a message.
func (r *Recv) Takes(source provider.Peer, tag uint64) bool {
	return (r.Peer == 0 || r.Peer == source) && (!r.Tagged || (r.Tag^tag)&^r.Ignore == 0)
}

// Message is one that waits for its receive.
type Message[M any] struct {
	Tagged  bool
	Source  provider.Peer
	Tag     uint64
	Data    uint64
	HasData bool
	Len     uint64
	Bytes   []byte // what has been copied here; nil of a message that is still with its sender
	Extra   M      // the provider's own

	claim uint64 // the context of the claim
	hook  hook[Message[M]]
}

func (msg *Message[M]) link() *hook[Message[M]] { return &msg.hook }

func lane(tagged bool) int {
	if tagged {
		return 1
	}
	return 0
}

// NewRecv returns an empty receive.
func (m *Matcher[M]) NewRecv() *Recv {
	r := m.recvs
	if r == nil {
		return new(Recv)
	}
	m.recvs = r.hook.next
	r.hook.next = nil
	return r
}

// FreeRecv takes back a receive that is not posted.
func (m *Matcher[M]) FreeRecv(r *Recv) {
	*r = Recv{}
	r.hook.next = m.recvs
	m.recvs = r
}

// FreeMessage takes back a message that waits no more.
func (m *Matcher[M]) FreeMessage(msg *Message[M]) {
	*msg = Message[M]{}
	msg.hook.next = m.messages
	m.messages = msg
}

// Add posts a receive, behind those that are there.
func (m *Matcher[M]) Add(r *Recv) { m.posted[lane(r.Tagged)].add(r) }

// Remove takes a posted receive out. One that is not posted is left alone.
func (m *Matcher[M]) Remove(r *Recv) { m.posted[lane(r.Tagged)].remove(r) }

// Match finds the posted receive for a message that arrives, and leaves it posted.
func (m *Matcher[M]) Match(tagged bool, source provider.Peer, tag uint64) *Recv {
	l := &m.posted[lane(tagged)]
	for r := l.head; r != nil; r = l.next(r) {
		if r.Takes(source, tag) {
			return r
		}
	}
	return nil
}

// Keep queues a message that no receive takes, and returns it for its fields to be set.
func (m *Matcher[M]) Keep(tagged bool) *Message[M] {
	msg := m.messages
	if msg == nil {
		msg = new(Message[M])
	} else {
		m.messages = msg.hook.next
	}
	msg.Tagged = tagged
	m.waiting[lane(tagged)].add(msg)
	return msg
}

// Find finds the oldest waiting message that the receive takes, and leaves it waiting.
func (m *Matcher[M]) Find(r *Recv) *Message[M] {
	l := &m.waiting[lane(r.Tagged)]
	for msg := l.head; msg != nil; msg = l.next(msg) {
		if r.Takes(msg.Source, msg.Tag) {
			return msg
		}
	}
	return nil
}

// Take takes a waiting or claimed message out.
func (m *Matcher[M]) Take(msg *Message[M]) {
	if msg.claim != 0 {
		m.claimed.remove(msg)
	} else {
		m.waiting[lane(msg.Tagged)].remove(msg)
	}
}

// Claim takes a waiting message out for the receive that will name the context.
func (m *Matcher[M]) Claim(msg *Message[M], context uint64) {
	m.Take(msg)
	msg.claim = claimOf(context)
	m.claimed.add(msg)
}

// Claimed finds the oldest message that was claimed with the context.
func (m *Matcher[M]) Claimed(context uint64) *Message[M] {
	want := claimOf(context)
	for msg := m.claimed.head; msg != nil; msg = m.claimed.next(msg) {
		if msg.claim == want {
			return msg
		}
	}
	return nil
}

// claimOf makes a context a claim, for which 0 means that there is none. Two contexts share one claim only
// if a program uses 0 and the highest.
func claimOf(context uint64) uint64 {
	if context == 0 {
		return ^uint64(0)
	}
	return context
}

// Posted finds the oldest posted receive with the context, for Cancel.
func (m *Matcher[M]) Posted(context uint64) *Recv {
	for i := range m.posted {
		l := &m.posted[i]
		for r := l.head; r != nil; r = l.next(r) {
			if r.Context == context {
				return r
			}
		}
	}
	return nil
}

// EachRecv calls f for each posted receive, messages before tagged ones. f may remove and free the receive.
func (m *Matcher[M]) EachRecv(f func(r *Recv)) {
	for i := range m.posted {
		l := &m.posted[i]
		for r := l.head; r != nil; {
			next := l.next(r)
			f(r)
			r = next
		}
	}
}

// EachMessage calls f for each message that waits or is claimed. f may take and free the message.
func (m *Matcher[M]) EachMessage(f func(msg *Message[M])) {
	for _, l := range []*list[Message[M], *Message[M]]{&m.waiting[0], &m.waiting[1], &m.claimed} {
		for msg := l.head; msg != nil; {
			next := l.next(msg)
			f(msg)
			msg = next
		}
	}
}

// Len is the number of posted receives and of messages that wait or are claimed.
func (m *Matcher[M]) Len() (posted, waiting int) {
	return m.posted[0].n + m.posted[1].n, m.waiting[0].n + m.waiting[1].n + m.claimed.n
}
