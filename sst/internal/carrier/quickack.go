package carrier

import (
	"errors"
	"net"
	"sync/atomic"
	"syscall"

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
	raw  syscall.RawConn // nil where reading at once is not possible
	now  bool            // do not wait: read from fd what is there
	fd   uintptr         // of conn, while now is set
	ack  *sys.QuickAcker // nil where the option does not exist
	off  atomic.Bool     // the peer needs none
}

func newQuickAcker(c *net.TCPConn) *quickAcker {
	q := &quickAcker{conn: c}
	raw, err := c.SyscallConn()
	if err != nil {
		return q
	}
	if sys.CanReadNow {
		q.raw = raw
	}
	if ack, err := sys.NewQuickAcker(raw); err == nil {
		q.ack = ack
	}
	return q
}

// errNothing is that of a Read that does not wait, if nothing is there.
var errNothing = errors.New("nothing to read now")

// Read reads once. A short read means that the peer may be waiting.
func (q *quickAcker) Read(b []byte) (n int, err error) {
	if q.now {
		n, err = q.readNow(b)
	} else {
		n, err = q.conn.Read(b)
	}
	if err == nil && n < len(b) {
		q.acknowledge()
	}
	return n, err
}

func (q *quickAcker) readNow(b []byte) (int, error) {
	n, again, err := sys.ReadNow(q.fd, b)
	if again {
		return 0, errNothing
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
