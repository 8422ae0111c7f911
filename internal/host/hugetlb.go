package host

import (
	"cmp"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
)

// pools lists the sizes of huge pages of which some are reserved; nil if that is not known.
func pools(root fs.FS) []Pool {
	const base = "sys/kernel/mm/hugepages"
	entries, err := fs.ReadDir(root, base)
	if err != nil {
		return nil
	}
	list := []Pool{}
	for _, e := range entries { // hugepages-2048kB
		name, isPool := strings.CutPrefix(e.Name(), "hugepages-")
		kib, err := strconv.ParseUint(strings.TrimSuffix(name, "kB"), 10, 54)
		if !isPool || err != nil {
			continue
		}
		at := func(file string) uint64 {
			n, _ := number(root, path.Join(base, e.Name(), file)) // what cannot be read is none
			return n
		}
		if n := at("nr_hugepages"); n > 0 {
			free := at("free_hugepages")
			list = append(list, Pool{Size: kib << 10, Pages: n, Free: free - min(at("resv_hugepages"), free)})
		}
	}
	slices.SortFunc(list, func(a, b Pool) int { return cmp.Compare(a.Size, b.Size) })
	return list
}
