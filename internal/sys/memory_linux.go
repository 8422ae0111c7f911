package sys

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
)

// MemoryLimit returns how many bytes of memory this process may use: the
// smallest limit of its control groups (cgroups(7), version 2 or 1), or what the
// machine has.
func MemoryLimit() (uint64, error) { return memoryLimit("/") }

// memoryLimit is MemoryLimit with the file system at root.
func memoryLimit(root string) (uint64, error) {
	limit, err := installedMemory(filepath.Join(root, "proc/meminfo"))
	if err != nil {
		return 0, fmt.Errorf("sys: memory: %w", err)
	}
	groups, err := os.ReadFile(filepath.Join(root, "proc/self/cgroup"))
	if err != nil {
		return limit, nil // a kernel without control groups
	}
	for line := range strings.Lines(string(groups)) {
		// hierarchy-ID:controllers:path; version 2 has ID 0 and no controllers.
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) != 3 {
			continue
		}
		switch {
		case parts[0] == "0" && parts[1] == "":
			limit = min(limit, groupLimit(filepath.Join(root, "sys/fs/cgroup"), parts[2], "memory.max", limit))
		case strings.Contains(","+parts[1]+",", ",memory,"):
			limit = min(limit, groupLimit(filepath.Join(root, "sys/fs/cgroup/memory"), parts[2], "memory.limit_in_bytes", limit))
		}
	}
	return limit, nil
}

// groupLimit returns the smallest limit of a group and of those above it, or
// none if they have none. In a container the path may not be what is mounted
// there: what cannot be read sets no limit.
func groupLimit(mount, group, file string, none uint64) uint64 {
	limit := none
	for p := path.Clean("/" + group); ; p = path.Dir(p) {
		b, err := os.ReadFile(filepath.Join(mount, p, file))
		if err == nil {
			if n, err := strconv.ParseUint(string(bytes.TrimSpace(b)), 10, 64); err == nil { // else "max"
				limit = min(limit, n)
			}
		}
		if p == "/" {
			return limit
		}
	}
}

// installedMemory reads MemTotal of proc_meminfo(5).
func installedMemory(name string) (uint64, error) {
	f, err := os.Open(name)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		fields := strings.Fields(s.Text())
		if len(fields) >= 2 && fields[0] == "MemTotal:" {
			kib, err := strconv.ParseUint(fields[1], 10, 54)
			return kib << 10, err
		}
	}
	return 0, fmt.Errorf("%s: no MemTotal: %w", name, errors.ErrUnsupported)
}
