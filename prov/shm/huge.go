package shm

import (
	"errors"
	"fmt"
	"strings"

	"github.com/weft-fabric/weft/fabric/provider"
	"github.com/weft-fabric/weft/internal/sys"
)

// The values of the option hugetlb, besides the sizes of pages.
const (
	hugeOff  = "off"
	hugeAuto = "auto"
	hugeOn   = "on"
)

// hugeSizes are pages that can be asked for by size.
var hugeSizes = map[string]uint64{"2M": 2 << 20, "1G": 1 << 30}

// hugeNames are all values of the option.
func hugeNames() []string { return []string{hugeOff, hugeAuto, hugeOn, "2M", "1G"} }

// segmentFile makes the file of a segment of size bytes, or more if it is of huge pages, but no more than room (0: no
// bound). Of huge pages it is if the option says so: all of them are there before anybody gets the first, since one that
// is missing later kills who touches it.
func (a *arena) segmentFile(size, room uint64, access provider.Access) (*file, error) {
	if a.huge == "" || a.huge == hugeOff {
		return newFile("arena", int(size), access.Has(provider.PeerWrite), a.features)
	}
	f, err := a.hugeFile(size, room, access)
	switch {
	case f != nil:
		return f, nil
	case a.huge != hugeAuto:
		return nil, fmt.Errorf("hugetlb=%s: %w", a.huge, err)
	}
	return newFile("arena", int(size), access.Has(provider.PeerWrite), a.features)
}

// hugeFile is a segment on the largest pages that fit and are free.
func (a *arena) hugeFile(size, room uint64, access provider.Access) (*file, error) {
	if access.Has(provider.PeerWrite) {
		return nil, fmt.Errorf("memory that peers may write cannot be kept from losing its pages: %w", provider.ErrNotSupported)
	}
	for _, f := range []sys.Feature{sys.HugeTLB, sys.FutureWrite} {
		if err := a.features.Check(f); err != nil {
			return nil, fmt.Errorf("%w: %w", err, provider.ErrNotSupported)
		}
	}
	why, pools := []string{}, a.pools()
	for i := len(pools) - 1; i >= 0; i-- {
		p := pools[i]
		if want := hugeSizes[a.huge]; want != 0 && want != p.Page || want == 0 && p.Page > size && (i > 0 || a.huge == hugeAuto) {
			continue // smaller ones do, or none for what needs no whole page
		}
		n := roundUp(size, p.Page)
		state := fmt.Sprintf("%d bytes take %d pages of %d KiB; the system has %d, %d of them free", size, n/p.Page, p.Page>>10, p.Pages, p.Free)
		if room > 0 && n > room {
			why = append(why, fmt.Sprintf("%s, and arenas may grow by %d bytes", state, room))
			continue
		}
		if p.Free < n/p.Page {
			why = append(why, state)
			continue
		}
		f, err := a.newHuge(n, p.Page)
		if err == nil {
			return f, nil
		}
		why = append(why, fmt.Sprintf("%s: %v", state, err)) // somebody was faster, or a cgroup has less
	}
	if len(why) == 0 {
		why = append(why, "the system has no such pages")
	}
	return nil, fmt.Errorf("%s (/sys/kernel/mm/hugepages): %w", strings.Join(why, "; "), provider.ErrNoMemory)
}

// newHuge makes a file of n bytes of huge pages, with all of them.
func (a *arena) newHuge(n, page uint64) (_ *file, err error) {
	fd, err := sys.Memfd(sys.MemfdConfig{Name: "weft arena", Size: int64(n), Huge: true, HugePage: page, Features: a.features})
	if err != nil {
		return nil, err
	}
	if err = a.features.Injected(sys.CallAllocate); err == nil {
		err = sys.Allocate(fd, 0, int64(n))
	}
	if err != nil {
		return nil, errors.Join(err, fd.Close())
	}
	m, err := sys.Map(fd, 0, int(n), true)
	if err != nil {
		return nil, errors.Join(err, fd.Close())
	}
	if err = protect(&fd, false, a.features); err == nil {
		err = sys.CheckPages(fd, int64(n)) // as peers do
	}
	if err != nil {
		return nil, errors.Join(err, m.Close(), fd.Close())
	}
	return &file{m: m, fd: fd}, nil
}

// hugeRoom says what huge pages there are, for people.
func hugeRoom(pools []sys.HugePool) string {
	var parts []string
	for _, p := range pools {
		parts = append(parts, fmt.Sprintf("%d of %d pages of %d KiB free", p.Free, p.Pages, p.Page>>10))
	}
	if parts == nil {
		return "none"
	}
	return strings.Join(parts, ", ")
}
