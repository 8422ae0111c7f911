package carrier

import (
	"errors"
	"io"
	"net"

	"github.com/weft-fabric/weft/internal/sys"
)

// scratchBytes is the memory, in bytes, for reading what nobody wants any more.
const scratchBytes = 64 << 10

// fill reads rest bytes of the connection into p, from at on, and returns how many
// it got. It holds p only while the kernel copies, so that p can be revoked at any
// time; a plain Read would hold it while it waits for the peer.
func (q *quickAcker) fill(p *Placement, at, rest int) (n int, err error) {
	f := filler{q: q, p: p, at: at, rest: rest}
	err = q.raw.Read(f.ready)
	if err == nil {
		err = f.err
	}
	return f.n, err
}

// filler is one fill under way.
type filler struct {
	q        *quickAcker
	p        *Placement
	at, rest int
	n        int
	err      error
	scratch  []byte // once p is revoked
}

// ready reads what the kernel has, and reports whether there is no need to wait for
// more.
func (f *filler) ready(fd uintptr) bool {
	for f.n < f.rest {
		n, again, err := f.read(fd)
		switch {
		case again:
			f.q.acknowledge() // the peer may be waiting
			return false
		case errors.Is(err, io.EOF):
			f.err = io.ErrUnexpectedEOF
			return true
		case err != nil:
			f.err = &net.OpError{Op: "read", Net: "tcp", Err: err}
			return true
		}
		f.n += n
	}
	return true
}

// read reads once, without waiting.
func (f *filler) read(fd uintptr) (n int, again bool, err error) {
	revoked := f.p.write(f.at+f.n, func(dst []byte) { n, again, err = sys.ReadNow(fd, dst) })
	if !revoked {
		return n, again, err
	}
	if f.scratch == nil {
		f.scratch = make([]byte, scratchBytes)
	}
	return sys.ReadNow(fd, f.scratch[:min(len(f.scratch), f.rest-f.n)])
}
