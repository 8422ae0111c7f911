package carrier

import (
	"fmt"
	"net"
	"syscall"

	"github.com/weft-fabric/weft/internal/sys"
	"github.com/weft-fabric/weft/internal/wire/cm"
	"github.com/weft-fabric/weft/internal/wire/ffs"
)

// Bounds of one write.
const (
	maxVec        = 512      // slices
	maxWriteBytes = 1 << 20  // bytes before a large record
	maxBehind     = 16 << 10 // bytes of a record that follows a large one
	maxSpare      = 1024     // records of queue memory that are kept for the next round
)

// writing is what only who writes touches: the one who has set busy.
type writing struct {
	pushed   map[ffs.ID]struct{} // formats that the peer has from us on this link
	spare    []Record            // queue memory for the next round
	vec      [][]byte
	lend     []int  // indexes of slices of vec that are lent, not copied
	headers  []byte // unit headers and format pushes that vec points into
	pending  net.Buffers
	lending  lending
	complete bool // everything queued before Close was written; mu guards it

	// Of writes that Send makes itself.
	raw   syscall.RawConn
	tryFn func(fd uintptr) bool // try, made once: it is called for each record
	flat  []byte                // units of the records in hand, in one piece
	wrote int                   // bytes of flat that the kernel has taken
	err   error                 // of try
	hand  []Record              // records whose first bytes are written and whose last are not
}

// writeLoop writes the queue until the link is down, or closed and empty.
func (l *link) writeLoop() {
	defer close(l.written)
	defer l.endLending()
	for {
		batch, state := l.nextBatch()
		if state == linkDown {
			l.end(l.write.hand)
			l.drop(batch)
			return
		}
		if !l.finishHand() {
			l.drop(batch)
			return
		}
		if len(batch) == 0 && state == linkClosing { // and nothing is queued any more
			l.endOfStream()
			return
		}
		if !l.writeBatch(batch) {
			l.drop(nil)
			return
		}
		l.mu.Lock()
		l.busy = false
		l.mu.Unlock()
	}
}

// nextBatch waits for records or for the end, and takes all that are queued; from
// then on Send does not write. It returns none if the link is closing and there are
// no more.
func (l *link) nextBatch() ([]Record, linkState) {
	for {
		l.mu.Lock()
		batch, state := l.queue, l.state
		if !l.busy && (len(batch) > 0 || len(l.write.hand) > 0 || state != linkOpen) {
			l.busy = true
			l.queue, l.write.spare = l.write.spare[:0], nil
			l.mu.Unlock()
			return batch, state
		}
		l.mu.Unlock()
		<-l.wake
	}
}

// writeBatch writes the records of batch, several to one write where they are
// small. It reports whether all were written; if not the link is down and they
// are done with its error.
func (l *link) writeBatch(batch []Record) bool {
	for rest := batch; len(rest) > 0; {
		n, err := l.writeSome(rest)
		if err != nil {
			l.fail("write", err)
			l.drop(rest)
			return false
		}
		l.settle(rest[:n])
		rest = rest[n:]
	}
	l.keepSpare(batch)
	return true
}

// keepSpare keeps the memory of records that are written for the queue.
func (l *link) keepSpare(batch []Record) {
	clear(batch)
	if cap(batch) <= maxSpare {
		l.write.spare = batch[:0]
	}
}

// writeSome writes the first records of rest, whole, in one go: a real peer reads
// each unit with blocking reads on a thread that serves all its connections. It
// returns how many.
func (l *link) writeSome(rest []Record) (int, error) {
	w := &l.write
	n := l.gather(rest)
	l.watch.Sent()
	err := l.writeVec()
	l.watch.Sent()
	clear(w.vec)
	return n, err
}

// gather makes vec of the first records of rest, and returns how many.
func (l *link) gather(rest []Record) int {
	w := &l.write
	w.vec, w.headers, w.lend = w.vec[:0], w.headers[:0], w.lend[:0]
	n, bytes := 0, 0
	for n < len(rest) && (n == 0 || len(w.vec)+len(rest[n].Parts)+2 <= maxVec && (bytes < maxWriteBytes || small(rest[n]))) {
		bytes += l.compose(rest[n])
		n++
	}
	return n
}

// small reports whether a record may follow a large one in the same write: the
// metadata of a step go out behind its data, and the peer should not have to wake
// for them once more.
func small(r Record) bool { return partsSize(r.Parts) <= maxBehind }

// compose adds the units of one record to vec and returns the record's size.
func (l *link) compose(r Record) int {
	w := &l.write
	from := len(w.headers)
	if r.Begun != nil {
		r.Begun.Store(true)
	}
	if id := r.Format.ID(); !w.has(id) {
		w.headers = cm.Push(id[:], r.Format.Body()).Append(w.headers)
		w.pushed[id] = struct{}{}
		l.stats.formatsSent.Store(int32(len(w.pushed)))
	}
	w.headers = cm.AppendDataHeader(w.headers, r.Parts)
	// If headers moved while it grew, earlier slices still hold the old memory.
	w.vec = append(w.vec, w.headers[from:len(w.headers):len(w.headers)])
	size := 0
	for _, p := range r.Parts {
		if len(p) > 0 {
			if r.Lasting && sys.CanLend && len(p) >= minLend {
				w.lend = append(w.lend, len(w.vec))
			}
			w.vec = append(w.vec, p)
			size += len(p)
		}
	}
	return size
}

// has reports whether the peer has the format from us.
func (w *writing) has(id ffs.ID) bool {
	if w.pushed == nil {
		w.pushed = make(map[ffs.ID]struct{})
	}
	_, ok := w.pushed[id]
	return ok
}

// settle takes written records off the books and gives their parts back.
func (l *link) settle(records []Record) {
	l.stats.messagesOut.Add(uint64(len(records)))
	l.forget(records)
	for i := range records {
		records[i].finish(nil)
	}
}

// forget takes records off the books.
func (l *link) forget(records []Record) {
	var bytes int64
	for i := range records {
		bytes += partsSize(records[i].Parts)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	full := l.queued > l.owner.config.MaxQueued
	l.queued -= len(records)
	l.bytes -= bytes
	if full && l.queued <= l.owner.config.MaxQueued {
		l.room.Broadcast()
	}
}

// drop ends the records that a link which is down will not write: batch, and
// whatever is queued. Nothing can be queued afterwards.
func (l *link) drop(batch []Record) {
	l.mu.Lock()
	queue := l.queue
	l.queue = nil
	l.mu.Unlock()
	l.end(batch)
	l.end(queue)
}

// end ends records because the link is down.
func (l *link) end(records []Record) {
	l.mu.Lock()
	err := l.err
	l.mu.Unlock()
	l.forget(records)
	for i := range records {
		records[i].finish(fmt.Errorf("record not sent: %w", err))
	}
}

// endOfStream tells the peer that no more will come. The reading goroutine waits
// for the peer to close in turn: closing now, with bytes of the peer unread,
// would reset the connection and could cost it what we have just written.
func (l *link) endOfStream() {
	l.mu.Lock()
	l.write.complete = true
	l.mu.Unlock()
	_ = l.conn.CloseWrite()
}
