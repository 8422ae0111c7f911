package sys

import (
	"bytes"
	"cmp"
	"fmt"
	"math/bits"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// hugeFlag tells memfd_create the size of the pages.
func hugeFlag(page uint64) int {
	if page == 0 {
		return 0
	}
	return (bits.Len64(page) - 1) << unix.MFD_HUGE_SHIFT
}

// HugePools lists the sizes of huge pages that the kernel has, the smallest first.
func HugePools() []HugePool { return hugePools("/sys/kernel/mm/hugepages") }

func hugePools(dir string) []HugePool {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil // a kernel without
	}
	var list []HugePool
	for _, e := range entries { // hugepages-2048kB
		name, ok := strings.CutPrefix(e.Name(), "hugepages-")
		kib, err := strconv.ParseUint(strings.TrimSuffix(name, "kB"), 10, 54)
		if !ok || err != nil {
			continue
		}
		number := func(file string) uint64 { // what cannot be read is none
			b, _ := os.ReadFile(filepath.Join(dir, e.Name(), file))
			n, _ := strconv.ParseUint(string(bytes.TrimSpace(b)), 10, 64)
			return n
		}
		free := number("free_hugepages")
		list = append(list, HugePool{
			Page: kib << 10, Pages: number("nr_hugepages"), Free: free - min(number("resv_hugepages"), free),
		})
	}
	slices.SortFunc(list, func(a, b HugePool) int { return cmp.Compare(a.Page, b.Page) })
	return list
}

// CheckPages looks at a memory file that a peer sent, after [CheckSealed]: if it is of huge pages, all size bytes must be
// there, and stay. A huge page that is not there when it is touched, and not to be had, kills who touches it by
// SIGBUS, and it goes away by a hole, which SealFutureWrite forbids.
func CheckPages(fd *FD, size int64) error {
	var fs unix.Statfs_t
	if _, err := retry(func() (int, error) { return 0, unix.Fstatfs(fd.Int(), &fs) }); err != nil {
		return os.NewSyscallError("fstatfs", err)
	}
	if uint32(fs.Type) != unix.HUGETLBFS_MAGIC { //nolint:gosec // the type is as wide as the machine likes, the number is not
		return nil
	}
	if s, err := SealsOf(fd); err != nil || !s.Has(SealFutureWrite) {
		return fmt.Errorf("%w: huge pages that its owner can take away", ErrSeals)
	}
	var st unix.Stat_t
	if _, err := retry(func() (int, error) { return 0, unix.Fstat(fd.Int(), &st) }); err != nil {
		return os.NewSyscallError("fstat", err)
	}
	if st.Blocks*512 < size {
		return fmt.Errorf("%w: %d of %d bytes of huge pages are there", ErrSeals, st.Blocks*512, size)
	}
	return nil
}
