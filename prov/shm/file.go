package shm

import (
	"fmt"

	"github.com/weft-fabric/weft/internal/sys"
)

// file is memory of this process that peers map: only this process writes it, unless it was made for all to
// write.
type file struct {
	m  *sys.Mapping
	fd *sys.FD // what peers get
}

// lengthSeals are what each file must have: without them its owner could make it shorter, and reading it would
// kill the reader.
const lengthSeals = sys.SealShrink | sys.SealGrow

// newFile makes a file of n bytes of zeros. For shared, peers get the right to write. Without the seal of newer
// kernels the others get a descriptor that is open for reading only, which keeps peers of other users out.
func newFile(what string, n int, shared bool, f sys.Features) (_ *file, err error) {
	fd, err := sys.Memfd(sys.MemfdConfig{Name: "weft " + what, Size: int64(n), Features: f})
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			_ = fd.Close()
		}
	}()
	m, err := sys.Map(fd, 0, n, true)
	if err != nil {
		return nil, err
	}
	if err := protect(&fd, shared, f); err != nil {
		_ = m.Close()
		return nil, err
	}
	return &file{m: m, fd: fd}, nil
}

// protect seals a file that has its one writable mapping, and changes the descriptor if need be.
func protect(fd **sys.FD, shared bool, f sys.Features) error {
	seals := lengthSeals | sys.SealSeal
	if !shared && f.Has(sys.FutureWrite) {
		return sys.Seal(*fd, seals|sys.SealFutureWrite)
	}
	if err := sys.Seal(*fd, seals); err != nil || shared {
		return err
	}
	ro, err := sys.ReadOnly(*fd)
	if err != nil {
		return err
	}
	_ = (*fd).Close()
	*fd = ro
	return nil
}

// close unmaps; peers keep what they have mapped.
func (f *file) close() {
	if f == nil {
		return
	}
	_ = f.m.Close()
	_ = f.fd.Close()
}

// mapForeign maps what a peer has sent, and closes the descriptor. What is not sealed, or not as long as it
// should be, is refused.
func mapForeign(fd *sys.FD, n uint64, writable bool) (*sys.Mapping, error) {
	defer fd.Close()
	if err := checkForeign(fd, n); err != nil {
		return nil, err
	}
	return sys.Map(fd, 0, int(n), writable)
}

// mapBoth is mapForeign for reading, and if w is to be, for writing at another place.
func mapBoth(fd *sys.FD, n uint64, writable bool) (m, w *sys.Mapping, err error) {
	defer fd.Close()
	if err = checkForeign(fd, n); err != nil {
		return nil, nil, err
	}
	if m, err = sys.Map(fd, 0, int(n), false); err != nil || !writable {
		return m, nil, err
	}
	if w, err = sys.Map(fd, 0, int(n), true); err != nil {
		_ = m.Close()
		return nil, nil, err
	}
	return m, w, nil
}

// checkForeign says whether a file can be mapped.
func checkForeign(fd *sys.FD, n uint64) error {
	if n == 0 || n > 1<<46 || n%pageSize != 0 {
		return fmt.Errorf("memory of %d bytes", n)
	}
	if err := sys.CheckSealed(fd, int64(n), lengthSeals); err != nil {
		return err
	}
	return sys.CheckPages(fd, int64(n))
}
