package carrier

import (
	"errors"
	"fmt"
	"io"

	"github.com/weft-fabric/weft/internal/wire/cm"
)

// reading is what only the reading goroutine touches.
type reading struct {
	formats   formatTable
	placement *Placement // of the record that was read last, or nil
}

// readLoop hands units out until the connection ends, and returns why it did.
func (l *link) readLoop() error {
	for {
		if l.waitRoom() == linkDown {
			return ErrClosed
		}
		u, err := l.reader.Next()
		l.stats.bytesIn.Store(uint64(l.reader.Offset()))
		if errors.Is(err, io.EOF) {
			return ErrPeerClosed
		}
		if err != nil {
			return err
		}
		if err := l.take(u); err != nil {
			return err
		}
	}
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
