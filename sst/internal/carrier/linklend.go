package carrier

import (
	"net"

	"github.com/weft-fabric/weft/internal/sys"
)

// Large parts of a record that is Lasting are lent to the kernel: it sends their
// pages, instead of a copy. On one node that is the reader's copy saved, and the
// writer's program has the processor for the next step.

// minLend is the size from which on a part is lent, in bytes: below, to look up its
// pages costs what copying them does.
const minLend = 256 << 10

// lending is what lending needs of who writes.
type lending struct {
	lender *sys.Lender // made at first use
	failed bool        // it does not work here
	tryFn  func(fd uintptr) bool
	part   []byte // being lent
	sent   int    // bytes of it that the kernel has taken
	err    error  // of tryFn
}

// writeVec writes vec, whose slices of lend are to be lent.
func (l *link) writeVec() error {
	w := &l.write
	from := 0
	for _, i := range w.lend {
		if err := l.writeCopies(w.vec[from:i]); err != nil {
			return err
		}
		n := l.lend(w.vec[i])
		l.stats.bytesOut.Add(uint64(n))
		w.vec[i] = w.vec[i][n:] // the rest, of which an error is seen then
		from = i
		if len(w.vec[i]) == 0 {
			from++
		}
	}
	return l.writeCopies(w.vec[from:])
}

// writeCopies writes slices the plain way.
func (l *link) writeCopies(vec net.Buffers) error {
	if len(vec) == 0 {
		return nil
	}
	l.write.pending = vec // consumed by WriteTo
	sent, err := l.write.pending.WriteTo(l.conn)
	l.write.pending = nil
	l.stats.bytesOut.Add(uint64(sent))
	return err
}

// lend writes part without copying it, as far as that works, and returns how many
// of its bytes are written. If it is not all, then the rest must be copied.
func (l *link) lend(part []byte) int {
	w := &l.write.lending
	if w.lender == nil && !l.startLending() {
		return 0
	}
	w.part, w.sent, w.err = part, 0, nil
	err := l.write.raw.Write(w.tryFn)
	w.part = nil
	if err != nil || w.err != nil {
		l.endLending()
		w.failed = true
	}
	return w.sent
}

// startLending makes the lender, if that is possible.
func (l *link) startLending() bool {
	w := &l.write.lending
	if w.failed || l.write.raw == nil {
		return false
	}
	var err error
	if w.lender, err = sys.NewLender(); err != nil { // no descriptors left, say
		w.failed = true
		return false
	}
	w.tryFn = l.tryLend
	return true
}

// tryLend hands the kernel what it takes at once, and reports whether there is no
// need to wait until it takes more.
func (l *link) tryLend(fd uintptr) bool {
	w := &l.write.lending
	n, again, err := w.lender.WriteNow(fd, w.part[w.sent:])
	w.sent += n
	w.err = err
	return !again
}

// endLending gives back what lending has taken.
func (l *link) endLending() {
	if w := &l.write.lending; w.lender != nil {
		w.lender.Close()
		w.lender = nil
	}
}
