package host

import (
	"io/fs"
	"strconv"
	"strings"
)

// Facts are what was found. What cannot be read is left out: it is the zero value, or nil.
type Facts struct {
	Kernel  string  `json:"kernel"`            // its release, "6.8.0-45-generic"
	Ptrace  *int    `json:"ptrace_scope"`      // of the Yama module: from 1 on, process_vm_* needs a relation of the processes
	Seccomp bool    `json:"seccomp"`           // the process is under a filter that may refuse system calls
	Memlock *Limit  `json:"memlock"`           // bytes that the process may lock, or register with a network device
	File    *Limit  `json:"file_size"`         // bytes of a file, which a memory segment is
	Open    *Limit  `json:"open_files"`        // descriptors
	Free    *uint64 `json:"memory_available"`  // bytes of memory that programs can get, of the machine
	Cgroup  *Cgroup `json:"cgroup"`            // the memory cgroup that has the least room
	Huge    []Pool  `json:"hugetlb,omitempty"` // reserved huge pages, by size
}

// Limit is a soft limit of the process.
type Limit struct {
	Value     uint64 `json:"value"`
	Unlimited bool   `json:"unlimited"` // Value is 0
}

// Cgroup is a memory cgroup with a limit.
type Cgroup struct {
	Path  string `json:"path"`  // below the mount of cgroups
	Limit uint64 `json:"limit"` // bytes
	Used  uint64 `json:"used"`  // bytes; shared memory counts for who touches it first
}

// Room is how many bytes more fit.
func (c *Cgroup) Room() uint64 { return c.Limit - min(c.Used, c.Limit) }

// Pool are the huge pages of one size.
type Pool struct {
	Size  uint64 `json:"size"`  // bytes of a page
	Pages uint64 `json:"pages"` // reserved
	Free  uint64 `json:"free"`  // of these not in use, nor promised to a mapping
}

// Read reads the facts below root, which is the file system of the machine.
func Read(root fs.FS) Facts {
	f := Facts{
		Kernel: text(root, "proc/sys/kernel/osrelease"),
		Free:   available(text(root, "proc/meminfo")),
		Cgroup: tightest(root),
		Huge:   pools(root),
	}
	if n, err := strconv.Atoi(text(root, "proc/sys/kernel/yama/ptrace_scope")); err == nil {
		f.Ptrace = &n
	}
	f.Seccomp = field(text(root, "proc/self/status"), "Seccomp:") == "2"
	limits := text(root, "proc/self/limits")
	f.Memlock, f.File, f.Open = limit(limits, "Max locked memory"), limit(limits, "Max file size"), limit(limits, "Max open files")
	return f
}

// text is a small file, without the space around it; "" if it cannot be read.
func text(root fs.FS, name string) string {
	b, err := fs.ReadFile(root, name)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}

// field is what follows a word at the start of a line.
func field(text, word string) string {
	for line := range strings.Lines(text) {
		if rest, ok := strings.CutPrefix(line, word); ok {
			return strings.TrimSpace(rest)
		}
	}
	return ""
}

// limit reads a line of /proc/PID/limits: name, soft limit, hard limit, unit.
func limit(text, name string) *Limit {
	values := strings.Fields(field(text, name))
	if len(values) == 0 {
		return nil
	}
	if values[0] == "unlimited" {
		return &Limit{Unlimited: true}
	}
	n, err := strconv.ParseUint(values[0], 10, 64)
	if err != nil {
		return nil
	}
	return &Limit{Value: n}
}

// available reads /proc/meminfo, which counts in KiB.
func available(meminfo string) *uint64 {
	const kib = 1024
	n, err := strconv.ParseUint(strings.TrimSuffix(field(meminfo, "MemAvailable:"), " kB"), 10, 54)
	if err != nil {
		return nil
	}
	n *= kib
	return &n
}

// number reads a file that has one.
func number(root fs.FS, name string) (uint64, bool) {
	n, err := strconv.ParseUint(text(root, name), 10, 64)
	return n, err == nil
}
