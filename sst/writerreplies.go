package sst

import (
	"fmt"
	"slices"

	"github.com/weft-fabric/weft/sst/internal/carrier"
)

// A block on its way to a reader, asked for or pushed, keeps the memory of its step
// until it is sent. Who gives a step back has its blocks, as a rule; who asks, gives back and takes nothing off
// its connection could make a writer keep every step in spite of all limits.

// maxUnread is how many steps in a row a peer may give back while nothing that is
// queued for it moves.
const maxUnread = 16

// minUnread is how many bytes must be queued for it, at least: an honest peer may give
// back many small steps while one write is under way.
const minUnread = 64 << 20

// noteReply notes that a block of a step goes out on a link. The caller holds mu.
func (w *Writer) noteReply(step int64, l carrier.Link) {
	if w.steps[step] == nil {
		return // it was given back before
	}
	if links := w.replied[step]; !slices.Contains(links, l) {
		w.replied[step] = append(links, l)
	}
}

// checkReplies looks at the links on which a step was sent that nobody needs any
// more. The caller holds mu.
func (w *Writer) checkReplies(step int64) {
	links, ok := w.replied[step]
	if !ok {
		return
	}
	delete(w.replied, step)
	for _, l := range links {
		if !w.session.takesReplies(l) {
			l.Abort(fmt.Errorf("%w: %d steps were given back, and their data is not taken off the connection", ErrProtocol, maxUnread))
		}
	}
}

// takesReplies is called for each step that was sent on a link and is over. It is
// false if nothing has moved there for too many of them.
func (s *Session) takesReplies(l carrier.Link) bool {
	info := l.Info()
	s.mu.Lock()
	defer s.mu.Unlock()
	u := s.links[l]
	switch {
	case u == nil: // it is gone
	case info.QueuedRecords == 0 || info.MessagesOut != u.written || info.QueuedBytes < minUnread:
		u.written, u.unread = info.MessagesOut, 0
	default:
		u.unread++
		return u.unread < maxUnread
	}
	return true
}
