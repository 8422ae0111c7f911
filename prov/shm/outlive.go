package shm

import (
	"context"
	"errors"
	"time"

	"github.com/weft-fabric/weft/internal/sys"
)

// wake is a connection to where a dead peer listens in the folder. The kernel closes the sockets of a dead process in any order, and
// after it has freed the memory, so the one in the folder may listen still when the death is noticed. Its end is this connection's, and then its file is
// removed.
type wake struct {
	d     *domain
	at    sys.UnixAddress
	sock  sys.Socket
	token uint64
}

const (
	maxWakes = 64          // at a time
	wakeTime = time.Second // that a close waits for them
)

// outlive sees to it that nothing of a dead peer stays in the folder.
func (d *domain) outlive(p *pair) {
	a := p.peer.addr
	if d.opts.folder == "" || a.path != d.opts.folder || p.saidEnd {
		return
	}
	w := &wake{d: d, at: folderName(a.path, a.name)}
	for _, other := range d.wakes {
		if other.at == w.at {
			return
		}
	}
	var err error
	if w.sock, err = sys.ConnectUnix(w.at, sys.SeqPacket); err != nil {
		stale(w.at) // it has ended since it was looked at
		return
	}
	// Of somebody who has taken the name meanwhile nothing is to be removed.
	if cred, err := w.sock.Peer(); err != nil || cred.PID != p.pid {
		_ = w.sock.Close()
		return
	}
	if w.token, err = d.watch(w.sock.FD, w); err != nil {
		_ = w.sock.Close()
		return
	}
	if d.wakes = append(d.wakes, w); len(d.wakes) > maxWakes {
		d.wakes[0].end()
	}
}

// ready ends it with the other side, which has nothing to say.
func (w *wake) ready(sys.Events) {
	var b [1]byte
	_, _, err := w.sock.Recv(b[:], 0)
	if errors.Is(err, sys.ErrWouldBlock) {
		return
	}
	w.end()
	stale(w.at)
}

func (w *wake) end() {
	w.d.unwatch(w.sock.FD, w.token)
	_ = w.sock.Close()
	w.d.wakes = without(w.d.wakes, w)
}

// sitOut waits for the end of peers that were noticed to die, at a close. Nobody else parks. It lets the lock go.
func (d *domain) sitOut() {
	ctx, cancel := context.WithTimeout(d.background, wakeTime)
	defer cancel()
	for len(d.wakes) > 0 && ctx.Err() == nil {
		d.core.Unlock()
		_ = d.poller.Park(ctx, nil)
		d.core.Lock()
		d.poll()
	}
	for len(d.wakes) > 0 {
		d.wakes[0].end()
	}
}
