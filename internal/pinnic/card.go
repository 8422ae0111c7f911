package pinnic

import (
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"syscall"

	"github.com/weft-fabric/weft/internal/sys"
)

var (
	// ErrHandle refuses a handle that is not registered any more, or never was.
	ErrHandle = errors.New("pinnic: not registered")
	// ErrRange refuses to reach beyond what was registered.
	ErrRange = errors.New("pinnic: outside of what was registered")
	// ErrSlots says that as much is registered at a time as was configured.
	ErrSlots = errors.New("pinnic: no room for another registration")
)

// defaultSlots is how many registrations there may be at a time.
const defaultSlots = 1024

// Config says how a card is to be.
type Config struct {
	Slots    int          // registrations at a time; 0 means 1024, and 16384 is the most
	ZeroCopy bool         // send by IORING_OP_SEND_ZC (sys.SendZC), else by IORING_OP_WRITE_FIXED: the same is on the wire
	Features sys.Features // of the kernel
}

// Card is the card.
type Card struct {
	wire *net.TCPConn
	raw  syscall.RawConn // of wire
	send sys.UringCode

	mu     sync.Mutex // of what follows
	ring   *sys.Uring
	slots  []slot
	free   []int
	serial uint64
}

// slot is a place for a registration.
type slot struct {
	serial uint64 // of the registration; 0: none
	addr   uint64
	n      int
}

// Handle is a registration. It can be compared, and is never another one's again.
type Handle struct {
	slot   int
	serial uint64
}

// New makes a card, and returns the far end of its wire as well, which the caller closes. Where io_uring is missing or forbidden it fails with an
// sys.UnsupportedError.
func New(c Config) (*Card, *net.TCPConn, error) {
	if c.Slots == 0 {
		c.Slots = defaultSlots
	}
	k := &Card{send: sys.WriteFixed, slots: make([]slot, max(c.Slots, 0))}
	if c.ZeroCopy {
		if err := c.Features.Check(sys.SendZC); err != nil {
			return nil, nil, fmt.Errorf("pinnic: %w", err)
		}
		k.send = sys.SendFixed
	}
	for i := range k.slots {
		k.free = append(k.free, len(k.slots)-1-i)
	}
	var err error
	if k.ring, err = sys.NewUring(1, c.Slots, c.Features); err != nil {
		return nil, nil, fmt.Errorf("pinnic: %w", err)
	}
	far, err := k.connect()
	if err != nil {
		_ = k.ring.Close()
		return nil, nil, fmt.Errorf("pinnic: wire: %w", err)
	}
	return k, far, nil
}

// connect makes the wire: TCP, because nothing is sent from pages over a unix socket without copying.
func (c *Card) connect() (far *net.TCPConn, err error) {
	l, err := net.ListenTCP("tcp4", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		return nil, err
	}
	defer l.Close()
	if c.wire, err = net.DialTCP("tcp4", nil, l.Addr().(*net.TCPAddr)); err != nil {
		return nil, err
	}
	far, err = l.AcceptTCP()
	if err == nil {
		c.raw, err = c.wire.SyscallConn()
	}
	if err != nil {
		_ = c.wire.Close()
	}
	return far, err
}

// Register pins the pages that b lies in, which are then the card's as well until Deregister. It keeps nothing alive: what becomes of b is for the
// caller to know. It fails with ENOMEM beyond RLIMIT_MEMLOCK, with EFAULT if b is not mapped, and with [ErrSlots].
func (c *Card) Register(b []byte) (Handle, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.free) == 0 {
		return Handle{}, fmt.Errorf("register %d bytes: %w", len(b), ErrSlots)
	}
	i := c.free[len(c.free)-1]
	if err := c.ring.SetBuffer(i, b); err != nil {
		return Handle{}, fmt.Errorf("pinnic: register: %w", err)
	}
	c.free = c.free[:len(c.free)-1]
	c.serial++
	c.slots[i] = slot{c.serial, sys.Address(b), len(b)}
	return Handle{i, c.serial}, nil
}

// Deregister lets go of the pages. Operations of the handle that have not begun fail with [ErrHandle].
func (c *Card) Deregister(h Handle) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, err := c.find(h, 0, 0); err != nil {
		return err
	}
	if err := c.ring.ClearBuffer(h.slot); err != nil {
		return fmt.Errorf("pinnic: deregister: %w", err)
	}
	c.slots[h.slot] = slot{}
	c.free = append(c.free, h.slot)
	return nil
}

// find looks a registration up, and whether it has these bytes.
func (c *Card) find(h Handle, offset, n int) (slot, error) {
	if h.serial == 0 || h.slot >= len(c.slots) || c.slots[h.slot].serial != h.serial {
		return slot{}, ErrHandle
	}
	s := c.slots[h.slot]
	if offset < 0 || n < 0 || n > s.n || offset > s.n-n {
		return slot{}, fmt.Errorf("%d bytes from %d of %d: %w", n, offset, s.n, ErrRange)
	}
	return s, nil
}

// Pinned is how many registrations there are, and of how many bytes.
func (c *Card) Pinned() (registrations, bytes int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range c.slots {
		if s.serial != 0 {
			registrations++
			bytes += s.n
		}
	}
	return registrations, bytes
}

// Send puts n bytes on the wire, from offset in what was registered. It waits while there is no room, and with ZeroCopy until
// the far end's kernel has them; all else that is asked of the card waits as well then.
func (c *Card) Send(h Handle, offset, n int) error {
	return c.transfer(c.raw.Write, c.send, h, offset, n)
}

// Recv waits for n bytes from the wire, and puts them at offset in what was registered. At the end of the wire it is
// io.ErrUnexpectedEOF.
func (c *Card) Recv(h Handle, offset, n int) error {
	return c.transfer(c.raw.Read, sys.ReadFixed, h, offset, n)
}

// transfer does operations until all is done; ready calls back when the wire may be ready for one.
func (c *Card) transfer(ready func(func(fd uintptr) bool) error, code sys.UringCode, h Handle, offset, n int) error {
	done, err := 0, error(nil)
	closed := ready(func(fd uintptr) (end bool) {
		for {
			var m int
			m, err = c.operate(code, fd, h, offset+done, n-done)
			if errors.Is(err, syscall.EAGAIN) {
				err = nil
				return false
			}
			if done += m; err != nil || done == n {
				return true
			}
		}
	})
	if err == nil {
		err = closed
	}
	return err
}

// operate does one operation, as far as the wire takes it.
func (c *Card) operate(code sys.UringCode, fd uintptr, h Handle, offset, n int) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s, err := c.find(h, offset, n)
	if err != nil || n == 0 {
		return 0, err
	}
	err = c.ring.Submit(sys.UringOp{Code: code, FD: int(fd), NoWait: true, Buffer: h.slot, Addr: s.addr + uint64(offset), Len: n})
	if err != nil {
		return 0, fmt.Errorf("pinnic: %w", err)
	}
	first, err := c.ring.Wait()
	for last := first; last.More && err == nil; {
		last, err = c.ring.Wait()
	}
	switch {
	case err != nil:
		return 0, fmt.Errorf("pinnic: %w", err)
	case first.Err != nil:
		return 0, fmt.Errorf("pinnic: %w", first.Err)
	case first.N == 0:
		return 0, io.ErrUnexpectedEOF
	}
	return first.N, nil
}

// Close ends the card, its registrations, and whoever waits in Send or Recv, with net.ErrClosed; again, it does nothing. A Send with ZeroCopy whose
// bytes the far end's kernel has no room for it does not end, and waits for it: close the far end first.
func (c *Card) Close() error {
	wire := c.wire.Close() // first: it ends who waits
	c.mu.Lock()
	defer c.mu.Unlock()
	clear(c.slots)
	if errors.Is(wire, net.ErrClosed) {
		wire = nil
	}
	return errors.Join(wire, c.ring.Close())
}
