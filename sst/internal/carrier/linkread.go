package carrier

import (
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/weft-fabric/weft/internal/wire/cm"
)

// reading is what who reads touches: the one who holds turn.
type reading struct {
	turn      sync.Mutex
	formats   formatTable
	placement *Placement            // of the record that was read last, or nil
	readyFn   func(fd uintptr) bool // ready, made once
	pollFn    func(fd uintptr)      // pollNow, made once
	await     awaiting              // of the reading goroutine alone
	pollErr   error                 // of pollNow
}

// awaiting is what a wait for the next unit has come to.
type awaiting struct {
	polled bool // Poll is reading: look again when it is done
	err    error
}

// readLoop hands units out until the connection ends, and returns why it did.
func (l *link) readLoop() error {
	for {
		if l.waitRoom() == linkDown {
			return ErrClosed
		}
		if err := l.awaitUnit(); err != nil {
			return err
		}
		if err := l.readUnits(); err != nil {
			return err
		}
	}
}

// awaitUnit waits until the next unit is in the read buffer, or too long for that.
// It does not keep the turn while it waits, so that Poll can read meanwhile.
func (l *link) awaitUnit() error {
	raw := l.reader.source.raw
	if raw == nil {
		return nil
	}
	for {
		l.read.await = awaiting{}
		if err := raw.Read(l.read.readyFn); err != nil {
			return err
		}
		if !l.read.await.polled {
			return l.read.await.err
		}
		if err := l.readPolled(); err != nil {
			return err
		}
	}
}

// readPolled waits until Poll is done.
func (l *link) readPolled() error {
	l.read.turn.Lock()
	defer l.read.turn.Unlock()
	return l.readBuffered()
}

// ready reports that there is no need to wait for the connection any more. It does
// not wait for the turn either: who has it may close the connection, which waits for
// us.
func (l *link) ready(fd uintptr) bool {
	if l.read.await.polled = !l.read.turn.TryLock(); l.read.await.polled {
		return true
	}
	defer l.read.turn.Unlock()
	for {
		if !l.lacks() {
			return true
		}
		err := l.fillNow(fd)
		if errors.Is(err, errNothing) {
			return false
		}
		if err != nil {
			l.read.await.err = readError(err)
			return true
		}
	}
}

// lacks reports whether awaitUnit has to wait. The caller has the turn.
func (l *link) lacks() bool {
	n := l.reader.Missing()
	return n > 0 && n <= l.reader.Room()
}

// fillNow reads what is there into the read buffer. The caller has the turn.
func (l *link) fillNow(fd uintptr) error {
	src := l.reader.source
	src.now, src.fd = true, fd
	err := l.reader.Fill()
	src.now = false
	return err
}

// readUnits hands out the next unit, of which a long one is still to come, and then
// those that have come with it.
func (l *link) readUnits() error {
	l.read.turn.Lock()
	defer l.read.turn.Unlock()
	if l.reader.source.raw != nil && l.lacks() {
		return nil // Poll was faster
	}
	if err := l.readUnit(); err != nil {
		return err
	}
	return l.readBuffered()
}

// readBuffered hands out the units that are in the read buffer. The caller has the
// turn.
func (l *link) readBuffered() error {
	for l.reader.Missing() == 0 && l.hasRoom() {
		if err := l.readUnit(); err != nil {
			return err
		}
	}
	return nil
}

// endReading waits for a Poll that is in a Message. None begins any more: the link is
// down.
func (l *link) endReading() {
	l.read.turn.Lock()
	defer l.read.turn.Unlock()
	l.read.placement = nil
}

// readUnit hands out one unit. The caller has the turn.
func (l *link) readUnit() error {
	u, err := l.reader.Next()
	l.stats.bytesIn.Store(uint64(l.reader.Offset()))
	if err != nil {
		return readError(err)
	}
	return l.take(u)
}

func readError(err error) error {
	if errors.Is(err, io.EOF) {
		return ErrPeerClosed
	}
	return err
}

// Poll implements Link.
func (l *link) Poll() bool {
	raw := l.reader.source.raw
	if raw == nil || !l.read.turn.TryLock() {
		return false
	}
	defer l.read.turn.Unlock()
	if !l.hasRoom() {
		return false
	}
	// Only the reading is done inside: closing a connection waits for the end of it.
	if raw.Control(l.read.pollFn) != nil {
		return false
	}
	nothing := errors.Is(l.read.pollErr, errNothing)
	if nothing && l.reader.Missing() > 0 {
		return false
	}
	err := l.readWhole()
	if err == nil && !nothing {
		err = l.read.pollErr
	}
	if err != nil {
		l.fail("read", readError(err)) // which wakes the reading goroutine
	}
	return true
}

// readWhole hands out all units that are in the read buffer, whether or not there is
// room: the kernel does not wake the reading goroutine for what is read already. The
// caller has the turn.
func (l *link) readWhole() error {
	for l.reader.Missing() == 0 {
		if err := l.readUnit(); err != nil {
			return err
		}
	}
	return nil
}

// pollNow reads what is there. The caller has the turn.
func (l *link) pollNow(fd uintptr) { l.read.pollErr = l.fillNow(fd) }

// hasRoom reports whether reading is not held back.
func (l *link) hasRoom() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.state == linkOpen && l.queued <= l.owner.config.MaxQueued
}

// waitRoom holds reading back while too much is queued for a peer that does not
// take it: what it sends would only make more. It returns the link's state.
func (l *link) waitRoom() linkState {
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.state == linkOpen && l.queued > l.owner.config.MaxQueued {
		l.room.Wait()
	}
	return l.state
}

// take deals with one unit of the peer.
func (l *link) take(u cm.Unit) error {
	switch u := u.(type) {
	case cm.FormatMessage:
		if err := l.read.formats.push(u); err != nil {
			return err
		}
		l.stats.formatsKnown.Store(int32(len(l.read.formats.byID)))
		return nil
	case cm.Handshake:
		return fmt.Errorf("%w: a second handshake", ErrProtocol)
	}
	record, ok := cm.Record(u)
	if !ok {
		return fmt.Errorf("%w: unexpected %T", ErrProtocol, u)
	}
	return l.deliver(record)
}

// deliver hands a record to the Handler, unless Close was called.
func (l *link) deliver(record []byte) error {
	free := l.owner.buffers.releaser(record)
	f, err := l.read.formats.of(record)
	if err != nil {
		free()
		return err
	}
	if !l.isOpen() {
		free()
		return nil
	}
	in := Inbound{Format: f, Data: record, Free: free}
	if l.reader.Placed() > 0 {
		in.Placed = l.read.placement
	}
	l.read.placement = nil
	l.stats.messagesIn.Add(1)
	l.owner.config.Handler.Message(l, in)
	return nil
}
