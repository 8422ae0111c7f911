package bp

import (
	"errors"
	"fmt"
	"sync"
)

// subfiles opens data files when they are needed and keeps the ones used last
// open. A dataset of a large machine may have more of them than a process may
// have descriptors. Safe for concurrent use.
type subfiles struct {
	dir folder
	max int

	mu     sync.Mutex
	idle   sync.Cond // a handle was released
	open   map[uint64]*handle
	clock  uint64
	closed bool
}

type handle struct {
	f    file
	refs int
	used uint64 // clock of the last use
}

// newSubfiles returns a set in which no file is open yet.
func newSubfiles(dir folder, limit int) *subfiles {
	s := &subfiles{dir: dir, max: limit, open: make(map[uint64]*handle)}
	s.idle.L = &s.mu
	return s
}

// acquire returns data file n; release must follow.
func (s *subfiles) acquire(n uint64) (*handle, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, ErrClosed
	}
	h := s.open[n]
	if h == nil {
		if err := s.evict(s.max - 1); err != nil {
			return nil, err
		}
		f, err := s.dir.Open(dataName(n))
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrIncomplete, err)
		}
		h = &handle{f: f}
		s.open[n] = h
	}
	// A counter, not the time: reads of one instant have an order too.
	s.clock++
	h.used = s.clock
	h.refs++
	return h, nil
}

// release says that a read is done. The file stays open for the next one.
func (s *subfiles) release(h *handle) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if h.refs--; h.refs == 0 {
		s.idle.Broadcast()
	}
}

// evict closes the files that were used longest ago until at most limit are
// open. Files in use are never closed, so there may be more for a while.
func (s *subfiles) evict(limit int) error {
	for len(s.open) > limit {
		oldest, found := uint64(0), false
		for n, h := range s.open {
			if h.refs == 0 && (!found || h.used < s.open[oldest].used) {
				oldest, found = n, true
			}
		}
		if !found {
			return nil
		}
		f := s.open[oldest].f
		delete(s.open, oldest)
		if err := f.Close(); err != nil {
			return err
		}
	}
	return nil
}

// Close waits for reads in progress and closes all files.
func (s *subfiles) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	var errs []error
	for n, h := range s.open {
		for h.refs > 0 {
			s.idle.Wait()
		}
		if s.open[n] == h { // a second Close may have been faster
			delete(s.open, n)
			errs = append(errs, h.f.Close())
		}
	}
	return errors.Join(errs...)
}
