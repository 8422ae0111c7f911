package carrier

import (
	"syscall"

	"github.com/weft-fabric/weft/internal/sys"
)

// A large record comes in hundreds of packets, and to be woken for each costs more
// than to copy it. While much is to come, the kernel is asked to wake us for larger
// parts only.

// Bounds of that, in bytes.
const (
	markBytes = 512 << 10 // what is waited for
	// markFrom is how much must be missing. The end of a record is waited for as it
	// comes: a peer that has not disabled Nagle's algorithm keeps its last packet
	// back until all others are acknowledged, so it would never reach a mark.
	markFrom = 2 * markBytes
)

// readMark is how much must have come before the kernel wakes us. It belongs to
// the reading goroutine.
type readMark struct {
	raw  syscall.RawConn // nil: marks are not to be had
	high bool
}

// expect sets the mark for a read of which rest bytes are missing, before that
// waits. It reports whether the mark was lowered: before a wait the connection is
// to be read once more then.
func (m *readMark) expect(rest int) (lowered bool) {
	high := rest >= markFrom
	if high == m.high || m.raw == nil {
		return false
	}
	n := 1
	if high {
		n = markBytes
	}
	if err := sys.SetReadMark(m.raw, n); err != nil {
		// Where it cannot be raised there are none. It cannot be lowered only if the
		// connection has ended, which the next read tells.
		m.raw = nil
	}
	m.high = high
	return !high
}
