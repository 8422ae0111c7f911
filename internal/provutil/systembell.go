package provutil

import (
	"errors"
	"fmt"

	"github.com/weft-fabric/weft/fabric/provider"
	"github.com/weft-fabric/weft/internal/sys"
)

// systemBell is the Bell of programs that wait in the kernel.
type systemBell struct {
	event  sys.Eventfd
	poller *sys.Poller // of the event and the engine's descriptor; nil if that does not count
}

// SystemBell makes a Bell: an eventfd, and if engine is not negative an epoll descriptor around it and that one.
func SystemBell(engine int) (Bell, error) {
	event, err := sys.NewEventfd(sys.Features{})
	if err != nil {
		return nil, noBell(err)
	}
	b := &systemBell{event: event}
	if engine < 0 {
		return b, nil
	}
	if b.poller, err = sys.NewPoller(); err == nil {
		err = b.poller.Add(event.FD, sys.Readable, 0)
	}
	if err == nil {
		borrowed := sys.NewFD(engine, "descriptor of an engine")
		err = b.poller.Add(borrowed, sys.Readable, 0)
		borrowed.Disown()
	}
	if err != nil {
		return nil, errors.Join(noBell(err), b.Close())
	}
	return b, nil
}

// noBell says which of the provider's errors it is.
func noBell(err error) error {
	if errors.Is(err, sys.ErrNotSupported) {
		return fmt.Errorf("%w: %w", provider.ErrNotSupported, err)
	}
	return fmt.Errorf("%w: %w", provider.ErrNoMemory, err)
}

// Ring makes the descriptor readable. It cannot fail but for a descriptor that is none.
func (b *systemBell) Ring() { _ = b.event.Ring() }

// Clear ends it.
func (b *systemBell) Clear() { _, _ = b.event.Drain() }

func (b *systemBell) Fd() int {
	if b.poller != nil {
		return b.poller.Fd()
	}
	return b.event.Int()
}

func (b *systemBell) Close() error {
	var err error
	if b.poller != nil {
		err = b.poller.Close()
	}
	return errors.Join(err, b.event.Close())
}
