package sst

import (
	"context"
	"fmt"
	"time"

	"github.com/weft-fabric/weft/internal/wire/sstmsg"
	"github.com/weft-fabric/weft/sst/internal/carrier"
	"github.com/weft-fabric/weft/sst/internal/cp"
)

// This file is what is different in a session with ManualProgress (docs/native.md).

// manualFor refuses what such a session is not for.
func (s *Session) manualFor(ranks int) error {
	if s.cfg.ManualProgress && ranks > 1 {
		return fmt.Errorf("%w: a session with ManualProgress has readers of one rank, not of %d", ErrParam, ranks)
	}
	return nil
}

// manualWrites refuses a writer.
func (s *Session) manualWrites() error {
	if s.cfg.ManualProgress {
		return fmt.Errorf("%w: a session with ManualProgress has no writers: nobody would answer their readers", ErrParam)
	}
	return nil
}

// await waits until done is closed, and meanwhile takes in what comes if nobody else does.
func (s *Session) await(ctx context.Context, done <-chan struct{}) error {
	if !s.cfg.ManualProgress {
		return waitDone(ctx, done)
	}
	n, err := s.near(ctx)
	if err != nil {
		return err
	}
	for !isDone(done) {
		if err := n.links.Wait(ctx, done); err != nil {
			return err
		}
	}
	return nil
}

// wakeManual has a wait look again, whose reason may be there.
func (s *Session) wakeManual() {
	if l := s.asleep.Load(); l != nil {
		l.Wake()
	}
}

// planeOf takes in by which plane a reader reads: from that reader, or the answer of the
// writer, that one link is enough.
func (s *Session) planeOf(l carrier.Link, m *sstmsg.ReaderPlane) error {
	s.mu.Lock()
	r := s.routes[m.WriterID].reader
	s.mu.Unlock()
	if r != nil && s.cfg.ManualProgress {
		r.turnAlone(l)
		return nil
	}
	return s.toPeer(m.WriterID, WriterSide, false, func(r route) { r.writer.readsBy(l, r.key, m) })
}

// turnAlone gives up the socket of the opening: the writer says all on the link beside it.
func (r *Reader) turnAlone(l carrier.Link) {
	r.mu.Lock()
	if l != r.near {
		r.mu.Unlock()
		return
	}
	socket := r.link
	r.link, r.near = l, nil
	if r.routes != nil {
		r.routes.link = nil
	}
	r.mu.Unlock()
	r.session.unuse(socket, r)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.alone = true
	r.changed.notify()
}

// standAlone waits until the socket of the opening is given up, and gone with all that
// served it; or the stream has ended.
func (r *Reader) standAlone(ctx context.Context, socket carrier.Link) error {
	s := r.session
	if !s.cfg.ManualProgress {
		return nil
	}
	for {
		r.mu.Lock()
		streams := !r.alone && r.leader.Phase() == cp.Streaming
		changed := r.changed.wait()
		r.mu.Unlock()
		if !streams {
			break
		}
		if err := s.await(ctx, changed); err != nil {
			return err
		}
	}
	if !s.isClosing(socket) {
		return nil // others need it
	}
	return waitDone(ctx, socket.Done())
}

// seeOff waits, in a session where nobody else does, until the writer has taken in that we
// have left, if that ends the link: the next reader must not come before.
func (r *Reader) seeOff() {
	s := r.session
	if !s.cfg.ManualProgress {
		return
	}
	r.mu.Lock()
	l := r.link
	r.mu.Unlock()
	if l == nil || !s.isClosing(l) {
		return
	}
	ctx, cancel := context.WithTimeout(s.life, lingerManual)
	defer cancel()
	_ = s.await(ctx, l.Done()) // a writer that is stopped has to be left all the same
}

// lingerManual bounds that; it is what the link itself takes at most.
const lingerManual = 3 * time.Second

// isClosing reports whether a link is being closed.
func (s *Session) isClosing(l carrier.Link) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	u := s.links[l]
	return u != nil && u.closing
}
