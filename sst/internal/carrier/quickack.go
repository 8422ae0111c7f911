package carrier

import (
	"net"
	"sync/atomic"

	"github.com/weft-fabric/weft/internal/sys"
	"github.com/weft-fabric/weft/internal/wire/cm"
)

// inflow is the reading side of a connection.
type inflow struct {
	*cm.Reader
	source *quickAcker // what it reads from
}

// quickAcker reads from a connection and has what arrived acknowledged at once.
//
// Real peers mean to disable Nagle's algorithm and do not (docs/wire/cm.md §3):
// the second of two small writes waits in the peer's kernel until the first is
// acknowledged, which ours would delay by 40 ms, in each step. Weft's peers do
// disable it, and each acknowledgement costs a call and a packet.
type quickAcker struct {
	conn *net.TCPConn
	ack  *sys.QuickAcker // nil where the option does not exist
	off  atomic.Bool     // the peer needs none
}

func newQuickAcker(c *net.TCPConn) *quickAcker {
	q := &quickAcker{conn: c}
	if raw, err := c.SyscallConn(); err == nil {
		if ack, err := sys.NewQuickAcker(raw); err == nil {
			q.ack = ack
		}
	}
	return q
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
	if q.ack != nil && !q.off.Load() {
		// A failure means that the connection ends, which the next read tells.
		_ = q.ack.Acknowledge()
	}
}
