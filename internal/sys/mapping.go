package sys

import "sync/atomic"

// Mapping is a file's memory in this process, shared with all who map it. Its bytes must not be touched
// after Close: the process dies, or, worse, they are another mapping's.
type Mapping struct {
	bytes    []byte
	writable bool
	closed   atomic.Bool
	ticket   uint64
}

// Bytes is the memory. Writing to it where the mapping is not writable kills the process.
func (m *Mapping) Bytes() []byte { return m.bytes }

// Writable says whether the memory can be written.
func (m *Mapping) Writable() bool { return m.writable }

// Close unmaps; again, it does nothing.
func (m *Mapping) Close() error {
	if m.closed.Swap(true) {
		return nil
	}
	untrack(m.ticket)
	return unmap(m.bytes)
}
