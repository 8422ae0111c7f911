package shm

import (
	"os"
	"slices"

	"github.com/weft-fabric/weft/internal/sys"
)

// maxLitter bounds the sockets that are looked at again.
const maxLitter = 256

// clean removes the socket file of a peer that has died, or at the next death, or the end of this domain: the kernel may tell of the
// death by the pair's socket before it has closed the one that the peer listened at, which still answers then.
func (d *domain) clean(at sys.UnixAddress) {
	d.sweepLitter()
	if !cleaned(at) && len(d.litter) < maxLitter {
		d.litter = append(d.litter, at)
	}
}

// sweepLitter looks again at what could not be removed.
func (d *domain) sweepLitter() { d.litter = slices.DeleteFunc(d.litter, cleaned) }

// cleaned says whether there is no file, or no longer.
func cleaned(at sys.UnixAddress) bool {
	if stale(at) {
		return true
	}
	_, err := os.Lstat(at.Name)
	return err != nil
}
