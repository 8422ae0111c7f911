package carrier

import (
	"fmt"
	"sync"
)

// Placement is memory for the end of one record that is coming in: what
// Config.Place returns. It is filled straight from the connection.
type Placement struct {
	dst    []byte
	offset int

	mu      sync.Mutex // held while dst is written to
	revoked bool
}

// Place returns a placement: bytes of the record from offset on go to dst, which
// must end where the record ends. dst belongs to the carrier until the record is
// delivered, its link is lost, or Revoke.
func Place(dst []byte, offset int) *Placement {
	return &Placement{dst: dst, offset: offset}
}

// Revoke takes the memory back: when it returns nothing writes to it any more. It
// never waits for the peer. What is still to come of the record is dropped.
// Idempotent.
func (p *Placement) Revoke() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.revoked = true
}

// Bytes returns the memory, which holds the end of the record once that is
// delivered; ok is false after Revoke.
func (p *Placement) Bytes() (b []byte, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.dst, !p.revoked
}

// write has into fill the memory from at on, or reports that it is not wanted any
// more. into must not wait.
func (p *Placement) write(at int, into func([]byte)) (revoked bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.revoked {
		into(p.dst[at:])
	}
	return p.revoked
}

// place asks the engine where the end of a record shall go.
func (l *link) place(head []byte, total int) (int, func([]byte, int) (int, error)) {
	l.read.placement = nil
	f, err := l.read.formats.of(head)
	if err != nil || !l.isOpen() {
		return 0, nil
	}
	p := l.owner.config.Place(l, f, head, total)
	if p == nil {
		return 0, nil
	}
	l.read.placement = p
	if p.offset <= 0 || p.offset+len(p.dst) != total {
		bad := fmt.Errorf("%w: place for bytes %d to %d of a record of %d", ErrRecord, p.offset, p.offset+len(p.dst), total)
		return p.offset, func([]byte, int) (int, error) { return 0, bad }
	}
	return p.offset, func(have []byte, rest int) (int, error) {
		p.write(0, func(dst []byte) { copy(dst, have) })
		return l.reader.source.fill(p, len(have), rest)
	}
}
