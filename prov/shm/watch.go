package shm

import (
	"github.com/weft-fabric/weft/internal/sys"
)

// source is what a watched descriptor belongs to. ready is called with the lock held.
type source interface {
	ready(e sys.Events)
}

// watcher is the domain's descriptors: listeners, sockets and bells.
type watcher struct {
	poller  *sys.Poller
	sources map[uint64]source
	next    uint64
	found   [32]sys.Event
}

// watch has s told when fd is readable or its peer is gone.
func (w *watcher) watch(fd *sys.FD, s source) (token uint64, err error) {
	w.next++
	if err := w.poller.Add(fd, sys.Readable|sys.PeerClosed, w.next); err != nil {
		return 0, err
	}
	w.sources[w.next] = s
	return w.next, nil
}

// wantWrite has s told as well, or no longer, when fd can be written.
func (w *watcher) wantWrite(fd *sys.FD, token uint64, want bool) {
	e := sys.Readable | sys.PeerClosed
	if want {
		e |= sys.WriteReady
	}
	_ = w.poller.Modify(fd, e, token)
}

// unwatch is called before fd is closed. Token 0 is none.
func (w *watcher) unwatch(fd *sys.FD, token uint64) {
	if token == 0 {
		return
	}
	_ = w.poller.Remove(fd)
	delete(w.sources, token)
}

// poll tells the sources. A source may end others: those are told no more.
func (w *watcher) poll() bool {
	n, err := w.poller.Poll(w.found[:])
	if err != nil {
		return false
	}
	for _, e := range w.found[:n] {
		if s, ok := w.sources[e.Token]; ok {
			s.ready(e.Events)
		}
	}
	return n > 0
}
