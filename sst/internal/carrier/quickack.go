package carrier

import (
	"net"
	"syscall"

	"github.com/weft-fabric/weft/internal/sys"
)

// quickAcker reads from a connection and has what arrived acknowledged at once.
//
// Real peers mean to disable Nagle's algorithm and do not (docs/wire/cm.md §3):
// the second of two small writes waits in the peer's kernel until the first is
// acknowledged, which ours would delay by 40 ms, in each step.
type quickAcker struct {
	conn *net.TCPConn
	raw  syscall.RawConn // nil where the option does not exist
}

func newQuickAcker(c *net.TCPConn) *quickAcker {
	raw, err := c.SyscallConn()
	if err != nil || sys.QuickAck(raw) != nil {
		raw = nil
	}
	return &quickAcker{conn: c, raw: raw}
}

// Read reads once. A short read means that the peer may be waiting.
func (q *quickAcker) Read(b []byte) (int, error) {
	n, err := q.conn.Read(b)
	if err == nil && n < len(b) {
		q.acknowledge()
	}
	return n, err
}

// acknowledge has the kernel acknowledge what it has.
func (q *quickAcker) acknowledge() {
	if q.raw != nil {
		// A failure means that the connection ends, which the next read tells.
		_ = sys.QuickAck(q.raw)
	}
}
