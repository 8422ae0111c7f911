package sst

import (
	"fmt"
	"sync/atomic"

	"github.com/weft-fabric/weft/internal/wire/sstmsg"
	"github.com/weft-fabric/weft/sst/internal/carrier"
)

// Steps that wait for a reader are bounded by the limits of the queue. What is said of
// steps that it does not get is not: with policy Discard, and to an observer, one
// message goes out for each. A reader that is stopped, or does not read from its
// connection, would have them pile up for as long as the stream runs.

// Bounds of what one reader can be told and has not taken.
const (
	maxNotices     = 1 << 16  // steps
	maxNoticeBytes = 64 << 20 // each names all writer ranks
)

// notices counts what is on its way. Records are done on the goroutine of a link.
type notices struct{ records, bytes atomic.Int64 }

// add counts a record that is about to be queued, until it is done.
func (n *notices) add(r *carrier.Record) {
	size := int64(0)
	for _, p := range r.Parts {
		size += int64(len(p))
	}
	n.records.Add(1)
	n.bytes.Add(size)
	r.Done = func(error) {
		n.records.Add(-1)
		n.bytes.Add(-size)
	}
}

// tooMany reports whether no more may be queued.
func (n *notices) tooMany() bool {
	return n.records.Load() > maxNotices || n.bytes.Load() > maxNoticeBytes
}

// isNotice reports whether a message tells of a step that the reader does not get.
func isNotice(m sstmsg.Message) bool {
	s, ok := m.(*sstmsg.TimestepMetadata)
	return ok && s.Metadata == nil
}

// chaseNotices drops a reader that has not read very many of them. The caller holds mu.
func (w *Writer) chaseNotices(key readerKey, r *attached) {
	if !r.notices.tooMany() {
		return
	}
	n := r.notices.records.Load()
	w.expel(key, fmt.Errorf("%w: it does not read from its connection: %d messages about steps that it did not get wait there", ErrReaderFailed, n))
	w.cut(r)
}
