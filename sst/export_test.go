package sst

import (
	"github.com/weft-fabric/weft/fabric"
	"github.com/weft-fabric/weft/sst/internal/native"
)

// WaitsForRoom reports whether a call of rank 0 waits although every rank has
// handed in the steps that were begun here, so that nothing but the queue's policy
// can keep it.
func WaitsForRoom(w *Writer) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, s := range w.states {
		if s.tries < w.begun {
			return false
		}
	}
	return w.changed.ch != nil
}

// CloseWaits reports whether Close has done all that it can before the handshakes
// and farewells that it waits for are over.
func CloseWaits(s *Session) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closed && s.pending > 0 && s.settled.ch != nil
}

// WaitsForUnread reports whether an End waits until readers take what they have
// given back.
func WaitsForUnread(w *Writer) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.ending != nil && w.crammed
}

// LimitEarly bounds what writers may push for steps that they have not announced,
// to readers of the session that are opened from now on.
func LimitEarly(s *Session, bytes uint64) { s.early = bytes }

// ShareMemory says how the session opens its share of shared memory, if it has not.
func ShareMemory(s *Session, c native.Config) {
	s.nearMu.Lock()
	defer s.nearMu.Unlock()
	s.share = c
}

// SharedMemory returns what the session's share of shared memory holds; nothing if it
// has not opened any.
func SharedMemory(s *Session) fabric.Stats {
	s.nearMu.Lock()
	defer s.nearMu.Unlock()
	if s.nearby == nil {
		return fabric.Stats{}
	}
	return s.nearby.Stats()
}

// HoldUp keeps a writer from taking anything in until the returned function is called.
func HoldUp(w *Writer) (goOn func()) {
	w.mu.Lock()
	return w.mu.Unlock
}

// Held returns how many registrations wait.
func Held(w *Writer) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.early)
}

// WaitsForStep reports whether a BeginStep waits, or is about to.
func WaitsForStep(r *Reader) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.changed.ch != nil
}

// Links returns how many links a session has.
func Links(s *Session) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.links)
}
