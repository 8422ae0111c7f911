package loop

import (
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"syscall"

	"github.com/weft-fabric/weft/fabric/provider"
	"github.com/weft-fabric/weft/internal/sys"
)

// arena is memory that is there twice: to write for its owner, to read for its viewers. It goes with the last who
// uses it.
type arena struct {
	bytes    []byte
	readable []byte // the same, read-only; nil where views are not supported
	users    atomic.Int64
	end      func() // called when it has gone
	maps     [2]*sys.Mapping
}

// Generation is the same as long as the owner uses it.
func (r *arena) Generation() uint64 { return 0 }

func (r *arena) retain() { r.users.Add(1) }

func (r *arena) release() {
	if r.users.Add(-1) > 0 {
		return
	}
	for _, m := range r.maps {
		if m != nil {
			_ = m.Close()
		}
	}
	if r.end != nil {
		r.end()
	}
}

const (
	pageAligned = 64 << 10 // a size from which on Go aligns memory to pages
	maxPlain    = 1 << 30  // bytes of an arena in ordinary memory: Go ends a program that asks it for more than there is
)

// plain is ordinary memory.
func plain(n int) ([]byte, error) {
	if n > maxPlain {
		return nil, fmt.Errorf("%d bytes of ordinary memory, at most %d: %w", n, maxPlain, provider.ErrNoMemory)
	}
	return make([]byte, max(n, pageAligned))[:n], nil
}

// newArena makes one with one user. Where memory cannot be mapped twice it is ordinary memory.
func newArena(n int) (*arena, error) {
	r := new(arena)
	r.users.Store(1)
	err := r.mapTwice(n)
	if errors.Is(err, sys.ErrNotSupported) || errors.Is(err, syscall.ENOSYS) || errors.Is(err, syscall.EPERM) {
		if r.bytes, err = plain(n); err != nil {
			r.release()
			return nil, err
		}
		return r, nil
	}
	if err != nil {
		r.release()
		return nil, fmt.Errorf("%w: %w", provider.ErrNoMemory, err)
	}
	r.bytes, r.readable = r.maps[0].Bytes(), r.maps[1].Bytes()
	return r, nil
}

func (r *arena) mapTwice(n int) error {
	fd, err := sys.Memfd(sys.MemfdConfig{Name: "weft-loop", Size: int64(n)})
	if err != nil {
		return err
	}
	defer func() { _ = fd.Close() }() // the mappings hold the memory
	for i, writable := range []bool{true, false} {
		if r.maps[i], err = sys.Map(fd, 0, n, writable); err != nil {
			return err
		}
	}
	return nil
}

// viewsFeature says whether memory can be mapped twice.
func viewsFeature() provider.Feature {
	f := provider.Feature{Name: "views", Detail: "a second, read-only mapping"}
	r, err := newArena(os.Getpagesize())
	switch {
	case err != nil:
		f.Detail = err.Error()
	case r.readable == nil:
		f.Detail = "memory cannot be mapped twice here"
	default:
		f.On = true
	}
	if r != nil {
		r.release()
	}
	return f
}
