package host

import (
	"io/fs"
	"path"
	"strings"
)

// hierarchy is where a version of cgroups has its files.
type hierarchy struct {
	mount, limit, used string
}

var (
	unified = hierarchy{"sys/fs/cgroup", "memory.max", "memory.current"}
	legacy  = hierarchy{"sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes"}
)

// noLimit is from where on a number of the first version means that there is none: the kernel's is the
// greatest number of pages.
const noLimit = 1 << 62

// tightest finds the memory cgroup with the least room, of the process's own and those above. In a container
// the path may be one of the host, which is not there: then those above are what can be seen.
func tightest(root fs.FS) *Cgroup {
	var least *Cgroup
	for line := range strings.Lines(text(root, "proc/self/cgroup")) {
		// 0::/user.slice/session or 9:memory:/user.slice
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) != 3 {
			continue
		}
		h := legacy
		switch {
		case parts[0] == "0" && parts[1] == "":
			h = unified
		case !strings.Contains(","+parts[1]+",", ",memory,"):
			continue
		}
		for dir := path.Clean("/" + parts[2]); ; dir = path.Dir(dir) {
			if c := h.at(root, dir); c != nil && (least == nil || c.Room() < least.Room()) {
				least = c
			}
			if dir == "/" {
				break
			}
		}
	}
	return least
}

// at reads one cgroup; nil if it has no limit.
func (h hierarchy) at(root fs.FS, dir string) *Cgroup {
	base := path.Join(h.mount, dir)
	most, ok := number(root, path.Join(base, h.limit)) // "max" is no number
	if !ok || most >= noLimit {
		return nil
	}
	used, ok := number(root, path.Join(base, h.used))
	if !ok {
		return nil
	}
	return &Cgroup{Path: dir, Limit: most, Used: used}
}
