package provutil

import (
	"errors"
	"fmt"

	"github.com/weft-fabric/weft/fabric/provider"
	"github.com/weft-fabric/weft/internal/sys"
)

// systemBell is the Bell of programs that wait in the kernel.
type systemBell struct {
	event   sys.Eventfd
	sockets [2]sys.Socket // instead of the event: what is sent into the first rings the second
	poller  *sys.Poller   // of the bell and the engine's descriptor; nil if that does not count
}

// SystemBell makes a Bell: an eventfd, and if engine is not negative an epoll descriptor around it and that one.
func SystemBell(engine int) (Bell, error) { return SystemBells(sys.Features{})(engine) }

// SystemBells is SystemBell with what may be used of the kernel: without eventfd, a pair of sockets rings.
func SystemBells(f sys.Features) func(engine int) (Bell, error) {
	return func(engine int) (Bell, error) {
		b := new(systemBell)
		err := b.open(f, engine)
		if err != nil {
			return nil, errors.Join(noBell(err), b.Close())
		}
		return b, nil
	}
}

func (b *systemBell) open(f sys.Features, engine int) (err error) {
	if f.Has(sys.EventFD) {
		b.event, err = sys.NewEventfd(f)
	} else {
		b.sockets[0], b.sockets[1], err = sys.SocketPair(sys.SeqPacket)
	}
	if err != nil || engine < 0 {
		return err
	}
	if b.poller, err = sys.NewPoller(); err == nil {
		err = b.poller.Add(b.fd(), sys.Readable, 0)
	}
	if err == nil {
		borrowed := sys.NewFD(engine, "descriptor of an engine")
		err = b.poller.Add(borrowed, sys.Readable, 0)
		borrowed.Disown()
	}
	return err
}

// fd is what becomes readable.
func (b *systemBell) fd() *sys.FD {
	if b.event.FD != nil {
		return b.event.FD
	}
	return b.sockets[1].FD
}

// noBell says which of the provider's errors it is.
func noBell(err error) error {
	if errors.Is(err, sys.ErrNotSupported) {
		return fmt.Errorf("%w: %w", provider.ErrNotSupported, err)
	}
	return fmt.Errorf("%w: %w", provider.ErrNoMemory, err)
}

// Ring makes the descriptor readable. It cannot fail but for a descriptor that is none; a pair of sockets that is full has rung.
func (b *systemBell) Ring() {
	if b.event.FD != nil {
		_ = b.event.Ring()
		return
	}
	_, _ = b.sockets[0].Send([]byte{1})
}

// Clear ends it.
func (b *systemBell) Clear() {
	if b.event.FD != nil {
		_, _ = b.event.Drain()
		return
	}
	var one [1]byte
	for err := error(nil); err == nil; {
		_, _, err = b.sockets[1].Recv(one[:], 0)
	}
}

func (b *systemBell) Fd() int {
	if b.poller != nil {
		return b.poller.Fd()
	}
	return b.fd().Int()
}

func (b *systemBell) Close() error {
	var err error
	if b.poller != nil {
		err = b.poller.Close()
	}
	sys.CloseAll([]*sys.FD{b.event.FD, b.sockets[0].FD, b.sockets[1].FD})
	return err
}
