package sys

import (
	"context"
	"errors"
	"os"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Poller is an epoll descriptor that a goroutine can sleep on without a thread: it is registered in the
// Go runtime's own poller. Park, Kick and Close may run beside anything; Poll, Add, Modify and Remove beside
// anything but Close. One goroutine at a time parks, and one at a time polls.
type Poller struct {
	file   *os.File // owns the descriptor
	raw    syscall.RawConn
	fd     int
	ticket uint64
	found  [pollBatch]unix.EpollEvent
	ready  func(uintptr) bool // made once; called while parked
	asked  bool               // by ready, in this Park

	kicked atomic.Bool
	closed atomic.Bool
}

// pollBatch is how many events one Poll takes at most.
const pollBatch = 64

// NewPoller makes one that watches nothing.
func NewPoller() (*Poller, error) {
	fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("epoll_create1", err)
	}
	// os.NewFile gives to the runtime's poller what has this flag; it means nothing else to an epoll descriptor.
	if err := unix.SetNonblock(fd, true); err != nil {
		_ = unix.Close(fd)
		return nil, os.NewSyscallError("fcntl", err)
	}
	p := &Poller{file: os.NewFile(uintptr(fd), "epoll"), fd: fd, ticket: track("epoll descriptor")}
	p.ready = p.isReady
	// Fails if the runtime did not take the descriptor: then nobody could be woken.
	err = p.file.SetReadDeadline(time.Time{})
	if err == nil {
		p.raw, err = p.file.SyscallConn()
	}
	if err != nil {
		_ = p.Close()
		return nil, err
	}
	return p, nil
}

// Fd is the epoll descriptor, readable while something is ready: for a program's own poller. It stays with
// the Poller.
func (p *Poller) Fd() int { return p.fd }

// Add watches a descriptor. token comes back with its events.
func (p *Poller) Add(fd *FD, want Events, token uint64) error {
	return p.control(unix.EPOLL_CTL_ADD, fd, want, token)
}

// Modify watches it for other events, with another token.
func (p *Poller) Modify(fd *FD, want Events, token uint64) error {
	return p.control(unix.EPOLL_CTL_MOD, fd, want, token)
}

// Remove watches it no more. Call it before the descriptor is closed: the kernel forgets a descriptor by
// itself only when all duplicates of it are closed, those in other processes included.
func (p *Poller) Remove(fd *FD) error { return p.control(unix.EPOLL_CTL_DEL, fd, 0, 0) }

func (p *Poller) control(op int, fd *FD, want Events, token uint64) error {
	if p.closed.Load() {
		return ErrClosed
	}
	// The 64 bits of epoll_data: x/sys has them as two words.
	e := unix.EpollEvent{Events: uint32(want), Fd: int32(uint32(token)), Pad: int32(uint32(token >> 32))}
	return os.NewSyscallError("epoll_ctl", unix.EpollCtl(p.fd, op, fd.Int(), &e))
}

// Poll stores what is ready in events, without waiting, and returns how many.
func (p *Poller) Poll(events []Event) (int, error) {
	if p.closed.Load() {
		return 0, ErrClosed
	}
	found := p.found[:min(len(events), pollBatch)]
	if len(found) == 0 {
		return 0, nil
	}
	n, err := retry(func() (int, error) { return unix.EpollWait(p.fd, found, 0) })
	if err != nil {
		return 0, os.NewSyscallError("epoll_wait", err)
	}
	for i, e := range found[:n] {
		events[i] = Event{Events(e.Events), uint64(uint32(e.Fd)) | uint64(uint32(e.Pad))<<32}
	}
	return n, nil
}

// Park sleeps until something is ready, or the context ends, or wake is closed or has a value, or Kick
// was called since the last Park (each is nil but the context, whose error it returns, and a close of the Poller,
// ErrClosed). It may return for no reason. It takes no thread and no timer. With a nil wake and a context that cannot end it starts no goroutine either; else a
// goroutine watches them and has ended when Park returns.
func (p *Poller) Park(ctx context.Context, wake <-chan struct{}) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if ctx.Done() == nil && wake == nil {
		return p.sleep()
	}
	select {
	case <-wake:
		return nil
	default:
	}
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		select {
		case <-ctx.Done():
			p.Kick()
		case <-wake:
			p.Kick()
		case <-stop:
		}
	}()
	err := p.sleep()
	close(stop)
	<-stopped
	if ctxErr := ctx.Err(); ctxErr != nil && err == nil {
		return ctxErr
	}
	return err
}

// Kick ends the Park that runs, or the next one.
func (p *Poller) Kick() {
	p.kicked.Store(true)
	// A deadline in the past wakes the reader at once, without a timer. It fails only when closed.
	_ = p.file.SetReadDeadline(time.Unix(1, 0))
}

// sleep is Park without a context.
func (p *Poller) sleep() error {
	for {
		p.asked = false
		err := p.raw.Read(p.ready)
		switch {
		case err == nil:
		case errors.Is(err, os.ErrDeadlineExceeded):
			// Of a Kick: ours, or one that an earlier Park has answered already.
			if err := p.file.SetReadDeadline(time.Time{}); err != nil {
				return ErrClosed
			}
			if !p.kicked.Swap(false) {
				continue
			}
			return nil
		default:
			return ErrClosed
		}
		if p.kicked.Swap(false) && p.file.SetReadDeadline(time.Time{}) != nil {
			return ErrClosed
		}
		return nil
	}
}

// isReady says whether a parked goroutine goes on. It takes no event away. The runtime has been told
// to wake us before it is called, so what comes after it is not missed; and who was woken does not ask the kernel
// once more, which costs a microsecond.
func (p *Poller) isReady(fd uintptr) bool {
	if p.asked || p.kicked.Load() {
		return true
	}
	p.asked = true
	fds := [1]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
	n, err := unix.Poll(fds[:], 0)
	return n != 0 || err != nil && err != unix.EINTR
}

// Close ends a Park and closes the descriptor; again, it does nothing.
func (p *Poller) Close() error {
	if p.closed.Swap(true) {
		return nil
	}
	untrack(p.ticket)
	return p.file.Close()
}
