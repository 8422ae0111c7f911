package shm

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"syscall"

	"github.com/weft-fabric/weft/fabric/provider"
	"github.com/weft-fabric/weft/internal/sys"
	"github.com/weft-fabric/weft/memmon"
)

// Reads of registered memory by process_vm_readv, without the peer: where it sleeps, or is in manual mode and may call
// nothing for long. The home says what is needed for that:
//
//	64 u64 crossOpen | crossManual; 0: nobody may read so
//	72 u64 address of the mark in the owner's memory
//	80 the mark, 16 random bytes
//
// and its table where registered memory lies. The addresses are for the kernel only, which checks them.
//
// What is read is good if the key is still in the table after the copy, since who closes memory takes the key out first:
// then the memory was registered all the time. That the bytes come from the peer, and not from a process that got its number after
// it, the mark tells, which is read by the same call. Neither would do for writes: a copy that has begun cannot be taken
// back, and Close must not wait for a peer that may be stopped. So process_vm_writev is not used.
const (
	crossState  = 64
	crossAt     = 72
	crossMark   = 80
	crossOpen   = 1
	crossManual = 2

	// crossMax is up to where waking the peer costs more than the slower copy.
	crossMax = 256 << 10
)

// The values of the option cma.
const (
	cmaAuto = "auto"
	cmaOff  = "off"
	cmaOn   = "on"
)

// cross is what a pair knows of reading the peer's memory.
type cross struct {
	why    error // it cannot be
	guard  sys.Guard
	manual bool
	reads  uint64
	read   func(pid int, remote uint64, local []byte, g sys.Guard, f sys.Features) error
}

// crossClosed says whether the options keep peers from reading our memory.
func (o *options) crossClosed() bool {
	var missing *sys.UnsupportedError
	return o.cma == cmaOff || errors.As(o.features.Check(sys.CrossMemory), &missing) && missing.Err == nil
}

// announceCross writes the home's part.
func (d *domain) announceCross(mode provider.Progress) error {
	if d.opts.crossClosed() {
		return nil
	}
	b := d.home.m.Bytes()
	if _, err := rand.Read(b[crossMark:][:16]); err != nil {
		return systemError(err)
	}
	word(b, crossAt).Store(sys.Address(b[crossMark:]))
	state := uint64(crossOpen)
	if mode == provider.Manual {
		state |= crossManual
	}
	word(b, crossState).Store(state)
	return nil
}

// crossAddress is where peers may read the memory: 0 if its owner must be asked each time whether it is still the same.
func (d *domain) crossAddress(k memmon.Kind) uint64 {
	if d.opts.crossClosed() || !memmon.Lasting(k) {
		return 0
	}
	return sys.Address(k.Bytes())
}

// holds says whether the key is in the table.
func (h *foreignHome) holds(key provider.Key) bool {
	return word(h.m.Bytes(), homeTable+int(keyPlace(key))*entryLen).Load() == uint64(key)
}

// Why registered memory is not read.
var (
	errCrossOff    = errors.New("the option cma is off")
	errCrossUser   = errors.New("the peer is another user's")
	errCrossPid    = errors.New("the peer is in another process namespace, which this process cannot see")
	errCrossClosed = errors.New("the peer has turned it off")
	errCrossOwner  = errors.New("the memory is not of the Go heap: its owner is asked before each use")
)

// meetCross finds out whether the peer's memory can be read.
func (p *pair) meetCross() {
	b, c := p.home.m.Bytes(), &p.cross
	if c.read == nil {
		c.read = sys.ReadGuarded
	}
	state := word(b, crossState).Load()
	c.manual = state&crossManual != 0
	c.guard.At = word(b, crossAt).Load()
	for i := range 2 {
		binary.NativeEndian.PutUint64(c.guard.Mark[8*i:], word(b, crossMark+8*i).Load())
	}
	switch {
	case p.d.opts.cma == cmaOff:
		c.why = errCrossOff
	case state&crossOpen == 0:
		c.why = errCrossClosed
	case p.uid != p.d.uid:
		c.why = errCrossUser
	case p.pid == 0:
		c.why = errCrossPid
	default:
		p.crossLost(c.read(p.pid, 0, nil, c.guard, p.d.features))
	}
}

// crossLost notes that the peer's memory cannot be read, and tells once what that means. Nil is nothing.
func (p *pair) crossLost(err error) {
	if p.cross.why = err; err == nil || p.d.opts.crossClosed() || p.d.said["cma"] {
		return
	}
	p.d.said["cma"] = true
	p.d.tell(slog.LevelInfo, "reads of registered memory wake its owner, and wait for one in manual mode: process_vm_readv does not work here (ptrace_scope, seccomp, namespaces); nothing else changes",
		"peer", p.peer.text, "error", err)
}

// crosses says whether to read a piece of a block so. An error is that it has to be, and cannot.
func (p *pair) crosses(o *op, b *block, n uint64) (bool, error) {
	c, why := &p.cross, p.cross.why
	if why == nil && b.off == 0 {
		why = errCrossOwner
	}
	switch on := p.d.opts.cma == cmaOn; {
	case errors.Is(why, syscall.ESRCH): // it was dying as it connected: what waits for it will be told so
		return false, nil
	case why != nil && on:
		return false, crossError(why)
	case why != nil || p.self && !on:
		return false, nil
	case on || c.manual || o.within > 0:
		return true, nil
	}
	return n <= crossMax && p.home.armed.Load()&1 == 1, nil
}

func crossError(why error) error {
	return fmt.Errorf("cma=on, and process_vm_readv cannot be used: %w: %w", why, provider.ErrNotSupported)
}

// crossNow reads the whole of the piece that is next, if that is the way; long ones without the lock. It returns what hold
// does: foundElse if the peer is to serve it, foundError with the operation's error set.
func (p *pair) crossNow(o *op) int {
	s := o.following()
	at, found := p.crossWay(o, s)
	if found != foundDone {
		return found
	}
	if s.Len <= lockedCopy {
		return p.crossed(o, s, p.crossCopy(o, at, o.start, s.Len))
	}
	d := p.d
	o.role = roleCopying
	p.ep.copying++
	d.core.Unlock()
	err := p.crossCopy(o, at, o.start, s.Len)
	d.core.Lock()
	o.role = roleQueued
	p.ep.copyDone()
	if p.state != pairUp { // who ended the pair has left the operation to us, with an error
		return foundError
	}
	return p.crossed(o, s, err)
}

// crossPart is crossNow with the lock, for as much as there is budget: foundLater if that is not all.
func (p *pair) crossPart(o *op, s provider.RemoteSegment, budget *uint64) int {
	if o.kind != provider.ReadDone {
		return foundElse
	}
	at, found := p.crossWay(o, s)
	if found != foundDone {
		return found
	}
	n := min(s.Len-o.within, *budget)
	if found = p.crossed(o, s, p.crossCopy(o, at+o.within, o.start+o.within, n)); found != foundDone {
		return found
	}
	*budget -= n
	if o.within += n; o.within < s.Len {
		return foundLater
	}
	return foundDone
}

// crossWay is the address of a piece that is to be read so: then it returns foundDone.
func (p *pair) crossWay(o *op, s provider.RemoteSegment) (uint64, int) {
	if o.kind != provider.ReadDone || p.state != pairUp {
		return 0, foundElse
	}
	b, ok := p.home.find(s.Key)
	if !ok || b.seg != noSegment || s.Offset > b.len || s.Len > b.len-s.Offset || !b.access.Has(provider.PeerRead) {
		return 0, foundElse // it was not so just now, so it was closed, which the peer will say
	}
	use, err := p.crosses(o, &b, s.Len)
	switch {
	case err != nil:
		o.err = err
		return 0, foundError
	case !use:
		return 0, foundElse
	}
	return b.off + s.Offset, foundDone
}

// crossCopy reads bytes at an address into the operation's buffer. It needs no lock.
func (p *pair) crossCopy(o *op, at, pos, n uint64) error {
	for n > 0 {
		to := o.local.At(pos)
		to = to[:min(uint64(len(to)), n, cutEvery)]
		if err := p.cross.read(p.pid, at, to, p.cross.guard, p.d.features); err != nil {
			return err
		}
		k := uint64(len(to))
		if p.cut.Load() {
			return provider.ErrPeerGone // the operation has the reason
		}
		at, pos, n = at+k, pos+k, n-k
	}
	return nil
}

// crossed says what has become of a copy.
func (p *pair) crossed(o *op, s provider.RemoteSegment, err error) int {
	if !p.home.holds(s.Key) {
		if p.hungUp() {
			return foundLater
		}
		o.err = fmt.Errorf("the memory was closed while it was read: %w", provider.ErrKey)
		return foundError
	}
	if err == nil {
		p.cross.reads++
		return foundDone
	}
	switch {
	case errors.Is(err, syscall.ESRCH): // it is dying: what waits for it will be told so
	case p.d.opts.cma == cmaOn:
		if p.hungUp() {
			return foundLater
		}
		o.err = crossError(err)
		return foundError
	case !errors.Is(err, syscall.EFAULT): // there, only this memory is to blame
		p.crossLost(err)
	}
	return foundElse
}
