package carrier

import (
	"github.com/weft-fabric/weft/internal/sys"
)

// Small records are written by whoever sends them, when nothing is before them: a
// step of few bytes is a handful of messages, and to wake the writing goroutine
// for each costs several times what the write does. What the kernel does not take
// at once is left to that goroutine, so Send never waits.

// maxDirect is the most that a Send writes itself, in bytes of parts: a block of
// 64 KiB and what belongs to it. It copies them into one piece first; and what takes
// the kernel longer than it takes to wake a goroutine is not for a caller who may
// hold a lock.
const maxDirect = 96 << 10

// initDirect prepares writes of Send. Without a raw connection, or where ReadNow's
// counterpart is missing, the writing goroutine does all.
func (l *link) initDirect() {
	if !sys.CanWriteNow {
		return
	}
	if raw, err := l.conn.SyscallConn(); err == nil {
		l.write.raw, l.write.tryFn = raw, l.tryWrite
	}
}

// dispatch sees to what was queued. The caller holds mu, which dispatch gives up.
func (l *link) dispatch() {
	if l.busy || l.write.raw == nil || l.bytes > maxDirect || len(l.write.hand) > 0 {
		l.mu.Unlock()
		l.rouse()
		return
	}
	l.busy = true
	batch := l.queue
	l.queue, l.write.spare = l.write.spare[:0], nil
	l.mu.Unlock()
	l.writeDirect(batch)
	l.mu.Lock()
	l.busy = false
	more := len(l.queue) > 0 || len(l.write.hand) > 0 || l.state != linkOpen
	l.mu.Unlock()
	if more {
		l.rouse()
	}
}

// writeDirect writes small records as far as the kernel takes them at once.
func (l *link) writeDirect(batch []Record) {
	w := &l.write
	w.vec, w.headers, w.flat = w.vec[:0], w.headers[:0], w.flat[:0]
	for i := range batch {
		l.compose(batch[i])
	}
	for _, p := range w.vec {
		w.flat = append(w.flat, p...)
	}
	clear(w.vec)
	w.wrote, w.err = 0, nil
	l.watch.Sent()
	err := w.raw.Write(w.tryFn)
	l.watch.Sent()
	l.stats.bytesOut.Add(uint64(w.wrote))
	if err == nil {
		err = w.err
	}
	switch {
	case err != nil:
		l.fail("write", err)
		l.end(batch)
	case w.wrote < len(w.flat):
		w.hand = batch
	default:
		l.settle(batch)
		l.keepSpare(batch)
	}
}

// tryWrite hands the kernel what it takes at once. That it never asks to wait is
// what keeps Send from it.
func (l *link) tryWrite(fd uintptr) bool {
	w := &l.write
	n, _, err := sys.WriteNow(fd, w.flat)
	w.wrote, w.err = n, err
	return true
}

// finishHand writes the rest of what a Send has begun. It reports whether that
// worked; if not the link is down and the records are done with its error.
func (l *link) finishHand() bool {
	w := &l.write
	if len(w.hand) == 0 {
		return true
	}
	l.watch.Sent()
	n, err := l.conn.Write(w.flat[w.wrote:])
	l.watch.Sent()
	l.stats.bytesOut.Add(uint64(n))
	hand := w.hand
	w.hand = nil
	if err != nil {
		l.fail("write", err)
		l.end(hand)
		return false
	}
	l.settle(hand)
	return true
}
