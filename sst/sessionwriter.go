package sst

import (
	"fmt"

	"github.com/weft-fabric/weft/internal/wire/cm"
	"github.com/weft-fabric/weft/sst/internal/carrier"
)

// This file is what a session does for writers only.

// addWriter makes the session answer for a stream.
func (s *Session) addWriter(stream int64, w *Writer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.writers[stream] = w
}

// removeWriter says from now on that the stream has ended.
func (s *Session) removeWriter(stream int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.writers, stream)
	s.retireLocked(stream)
}

// weft reports whether the peer of a link has said that it is Weft.
func (s *Session) weft(l carrier.Link) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.linkUse(l).weft
}

// dataContact is how peers reach this process for data.
func (s *Session) dataContact(p *Params) (cm.Contact, error) {
	if p.DataInterface == "" {
		return s.cm.Contact(), nil
	}
	c, err := s.cm.ContactVia(p.DataInterface)
	if err != nil {
		return nil, fmt.Errorf("%w: DataInterface=%q: %w", ErrParam, p.DataInterface, err)
	}
	return c, nil
}
