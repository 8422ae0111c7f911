package hostwatch

import (
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/weft-fabric/weft/internal/sys"
)

// Watch watches one connection. It has a timer while something is to be
// acknowledged, and none otherwise. Where the system does not tell what it knows,
// a Watch does nothing.
type Watch struct {
	raw  syscall.RawConn
	keep net.KeepAliveConfig
	gone func(error)

	armed atomic.Bool // the timer runs, or check does
	timer *time.Timer

	mu      sync.Mutex // held while check runs
	stopped bool
}

// New returns the watch of a connection. The host has vanished if it does not
// answer within Idle + Count*Interval: that of the keep-alive, so that both find
// out within the same time. Gone is called then, once, on a goroutine of its own;
// its error is an ETIMEDOUT. It must not call Stop.
func New(conn *net.TCPConn, keep net.KeepAliveConfig, gone func(error)) *Watch {
	w := &Watch{keep: keep, gone: gone}
	raw, err := conn.SyscallConn()
	if err != nil {
		w.stopped = true // it is closed already
	}
	w.raw = raw
	if err == nil {
		// Older kernels ask less and less often: they find out later (docs/decisions/0008).
		_ = sys.LimitRetries(raw, keep.Interval)
	}
	w.timer = time.AfterFunc(time.Hour, w.check)
	w.timer.Stop()
	return w
}

// Sent says that something is under way. It is called by one goroutine at a time,
// before a write, which may wait, and after it.
func (w *Watch) Sent() {
	if !w.armed.Load() {
		w.arm()
	}
}

// arm starts the timer, unless it runs.
func (w *Watch) arm() {
	if w.armed.CompareAndSwap(false, true) {
		w.timer.Reset(w.keep.Interval)
	}
}

// Stop ends the watch. Gone is not called any more when it returns; nor must Sent
// be.
func (w *Watch) Stop() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stopped = true
	w.timer.Stop()
}

// check looks whether the host still answers.
func (w *Watch) check() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.stopped {
		return
	}
	u, err := sys.Unanswered(w.raw)
	switch {
	case err != nil: // closed, or not to be known here
		w.stopped = true
	case u.Pending && w.vanished(u):
		w.stopped = true
		w.gone(fmt.Errorf("the host has not answered for %v: %w", u.Silent.Round(time.Second), syscall.ETIMEDOUT))
	case u.Pending:
		w.timer.Reset(w.keep.Interval)
	default:
		w.rest()
	}
}

// rest stops looking. Who writes meanwhile has seen the timer as running: so we
// look once more.
func (w *Watch) rest() {
	w.armed.Store(false)
	if u, err := sys.Unanswered(w.raw); err == nil && u.Pending {
		w.arm()
	}
}

// vanished judges. One lost packet is no proof, nor is a silence in which nothing
// was asked; the next look would come too late by one interval.
func (w *Watch) vanished(u sys.TCPUnanswered) bool {
	return u.Tries >= min(w.keep.Count, 3) && u.Silent >= w.keep.Idle+time.Duration(w.keep.Count-1)*w.keep.Interval
}
