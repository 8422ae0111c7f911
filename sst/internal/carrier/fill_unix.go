//go:build unix

package carrier

import (
	"io"
	"net"
	"os"
	"syscall"
)

// canPlace says that fill works on this system.
const canPlace = true

// scratchBytes is the memory, in bytes, for reading what nobody wants any more.
const scratchBytes = 64 << 10

// fill reads rest bytes of the connection into p, from at on, and returns how many
// it got. It holds p only while the kernel copies, so that p can be revoked at any
// time; a plain Read would hold it while it waits for the peer.
func (q *quickAcker) fill(p *Placement, at, rest int) (n int, err error) {
	raw, err := q.conn.SyscallConn()
	if err != nil {
		return 0, err
	}
	f := filler{q: q, p: p, at: at, rest: rest}
	err = raw.Read(f.ready)
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
		n, err := f.read(int(fd))
		switch {
		case err == syscall.EAGAIN: //nolint:errorlint // the kernel's own word
			f.q.acknowledge() // the peer may be waiting
			return false
		case err == syscall.EINTR: //nolint:errorlint // as above
		case err != nil:
			f.err = &net.OpError{Op: "read", Net: "tcp", Err: os.NewSyscallError("read", err)}
			return true
		case n == 0:
			f.err = io.ErrUnexpectedEOF
			return true
		}
		f.n += max(n, 0)
	}
	return true
}

// read reads once, without waiting.
func (f *filler) read(fd int) (n int, err error) {
	n, revoked := f.p.write(f.at+f.n, func(dst []byte) int {
		var got int
		got, err = syscall.Read(fd, dst)
		return got
	})
	if !revoked {
		return n, err
	}
	if f.scratch == nil {
		f.scratch = make([]byte, scratchBytes)
	}
	return syscall.Read(fd, f.scratch[:min(len(f.scratch), f.rest-f.n)])
}
