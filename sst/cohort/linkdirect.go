package cohort

import (
	"net"
	"syscall"
	"time"

	"github.com/weft-fabric/weft/internal/sys"
)

// Small frames are written by whoever posts them, when nothing is before them: ranks
// say a few words in each step, and to wake the writing goroutine for them costs more
// than the write does. What the kernel does not take at once is left to that goroutine,
// so post never waits.

// maxDirect is the most that a post writes itself, in bytes. It copies them into one
// piece first.
const maxDirect = 16 << 10

// maxDelay is how long a frame waits that is to go out with the next one.
const maxDelay = 2 * time.Millisecond

// direct is what writes of a post need. The link's lock guards it.
type direct struct {
	raw   syscall.RawConn       // nil where the writing goroutine does all
	tryFn func(fd uintptr) bool // tryWrite, made once
	flat  []byte                // frames in one piece
	wrote int                   // bytes of it that the kernel has taken
	err   error                 // of tryWrite

	delay   *time.Timer // nil until a frame was put off
	delayed bool        // it runs
}

// initDirect prepares writes of post.
func (l *link) initDirect(c *net.TCPConn) {
	if !sys.CanWriteNow {
		return
	}
	if raw, err := c.SyscallConn(); err == nil {
		l.raw, l.tryFn = raw, l.tryWrite
	}
}

// postLater queues a frame that is in no hurry: it goes out with the next one, so that
// the peer wakes once for both, or after maxDelay.
func (l *link) postLater(f frame) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.state != linkOpen {
		return
	}
	l.queue = append(l.queue, f)
	switch {
	case l.delayed:
		return
	case l.delay == nil:
		l.delay = time.AfterFunc(maxDelay, l.delayOver)
	default:
		l.delay.Reset(maxDelay)
	}
	l.delayed = true
}

// delayOver sends what was put off, if it is still there.
func (l *link) delayOver() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.delayed = false
	if l.state == linkOpen && len(l.queue) > 0 {
		l.dispatch()
	}
}

// stopDelay lets nothing be put off any more. The caller holds mu, and the link is down.
func (l *link) stopDelay() {
	if l.delay != nil {
		l.delay.Stop()
	}
}

// dispatch sees to it that the queue is written. The caller holds mu.
func (l *link) dispatch() {
	if l.busy || l.raw == nil || !l.flatten() {
		l.rouse()
		return
	}
	clear(l.queue)
	l.queue = l.queue[:0]
	l.wrote, l.err = 0, nil
	l.sent()
	err := l.raw.Write(l.tryFn)
	l.sent()
	switch {
	case err != nil || l.err != nil:
		l.giveUp()
		l.rouse()
	case l.wrote < len(l.flat):
		l.queue = append(l.queue, frame{kind: frameRest, body: l.flat[l.wrote:]})
		l.flat = nil
		l.rouse()
	}
}

// flatten puts the frames of the queue in one piece, unless that is too long.
func (l *link) flatten() bool {
	size := 0
	for i := range l.queue {
		if size += frameHeader + len(l.queue[i].body); size > maxDirect || l.queue[i].kind == frameRest {
			return false
		}
	}
	l.flat = l.flat[:0]
	for i := range l.queue {
		l.flat = append(l.queue[i].appendHeader(l.flat), l.queue[i].body...)
	}
	return true
}

// tryWrite hands the kernel what it takes at once. That it never asks to wait is what
// keeps post from it.
func (l *link) tryWrite(fd uintptr) bool {
	l.wrote, _, l.err = sys.WriteNow(fd, l.flat)
	return true
}
