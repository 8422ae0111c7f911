package bp

import (
	"errors"
	"fmt"
	"io"
)

const firstWindow = 64 << 10

// growing reads a file of records front to back while the file may grow. What
// was parsed is not kept.
type growing struct {
	f    file
	pos  int64 // parsed so far
	left int64 // bytes behind pos at the last scan
}

// scan hands the bytes behind pos to parse in windows. parse returns the bytes
// it used, and, when the window ends in the middle of a record, the bytes that
// this record needs (0 if it does not know). A window never exceeds what the
// file holds.
func (g *growing) scan(parse func(b []byte) (used int, need int64, err error)) error {
	size, err := g.f.Size()
	if err != nil {
		return err
	}
	if size < g.pos {
		return fmt.Errorf("%d bytes are left of %d: %w", size, g.pos, ErrReplaced)
	}
	window := int64(firstWindow)
	for {
		g.left = size - g.pos
		// Small windows: an index of gigabytes must not be in memory at once.
		n := min(window, g.left)
		if n == 0 {
			return nil
		}
		b := make([]byte, n)
		if err := readFull(g.f, b, g.pos); err != nil {
			return err
		}
		used, need, err := parse(b)
		g.pos += int64(used)
		g.left -= int64(used)
		switch {
		case err != nil:
			return err
		case used > 0: // on with what follows
			window = firstWindow
			if need > window {
				window = need
			}
		case n == size-g.pos || need > g.left:
			return nil // the rest of the record is not there
		case need > n:
			window = need
		case need > 0:
			return nil // enough bytes, and still no record
		default:
			window *= 2
		}
	}
}

// readFull fills b from position off; a file that ends before gives
// io.ErrUnexpectedEOF.
func readFull(f io.ReaderAt, b []byte, off int64) error {
	n, err := f.ReadAt(b, off)
	if n == len(b) {
		return nil
	}
	if err == nil || errors.Is(err, io.EOF) {
		return cutOff("cut off: of %d bytes at %d only %d are there", len(b), off, n)
	}
	return fmt.Errorf("%d of %d bytes at %d: %w", n, len(b), off, err)
}

// readRange returns n bytes at off. It looks at the size of the file before it
// allocates.
func readRange(f file, off, n uint64) ([]byte, error) {
	size, err := f.Size()
	if err != nil {
		return nil, err
	}
	if off > uint64(size) || n > uint64(size)-off {
		return nil, cutOff("cut off: of %d bytes at %d not all are there, it has %d", n, off, size)
	}
	b := make([]byte, n)
	return b, readFull(f, b, int64(off))
}
