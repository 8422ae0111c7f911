package host

import (
	"os"
	"runtime"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

func files(list map[string]string) fstest.MapFS {
	m := fstest.MapFS{}
	for name, text := range list {
		m[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return m
}

func ptr[T any](v T) *T { return &v }

const limits = `Limit                     Soft Limit           Hard Limit           Units     
Max cpu time              unlimited            unlimited            seconds   
Max file size             unlimited            unlimited            bytes     
Max open files            1024                 1048576              files     
Max locked memory         8388608              8388608              bytes     
`

func TestRead(t *testing.T) {
	for name, c := range map[string]struct {
		files map[string]string
		want  Facts
	}{
		"nothing can be read": {},
		"a machine": {
			map[string]string{
				"proc/sys/kernel/osrelease":         "6.8.0-45-generic\n",
				"proc/sys/kernel/yama/ptrace_scope": "1\n",
				"proc/self/status":                  "Name:\tweft\nSeccomp:\t2\nSeccomp_filters:\t1\n",
				"proc/self/limits":                  limits,
				"proc/meminfo":                      "MemTotal:        8000 kB\nMemAvailable:    1000 kB\n",
			},
			Facts{
				Kernel: "6.8.0-45-generic", Ptrace: ptr(1), Seccomp: true, Memlock: &Limit{Value: 8388608}, File: &Limit{Unlimited: true},
				Open: &Limit{Value: 1024}, Free: ptr(uint64(1024000)),
			},
		},
		"rubbish": {
			map[string]string{
				"proc/sys/kernel/yama/ptrace_scope": "yes",
				"proc/self/status":                  "Seccomp:\t0\n",
				"proc/self/limits":                  "Max locked memory   many\nMax file size",
				"proc/meminfo":                      "MemAvailable: 99999999999999999999999 kB\n",
				"proc/self/cgroup":                  "0:\n::\nx",
				"sys/kernel/mm/hugepages/hugepages-bigkB/nr_hugepages":    "1",
				"sys/kernel/mm/hugepages/other":                           "1",
				"sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages":   "3",
				"sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages": "?",
			},
			Facts{Huge: []Pool{{Size: 2 << 20, Pages: 3}}},
		},
		"huge pages": {
			map[string]string{
				"sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages":      "10\n",
				"sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages":    "7\n",
				"sys/kernel/mm/hugepages/hugepages-2048kB/resv_hugepages":    "2\n",
				"sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages":   "1\n",
				"sys/kernel/mm/hugepages/hugepages-1048576kB/free_hugepages": "1\n",
				"sys/kernel/mm/hugepages/hugepages-64kB/nr_hugepages":        "0\n",
			},
			Facts{Huge: []Pool{{Size: 2 << 20, Pages: 10, Free: 5}, {Size: 1 << 30, Pages: 1, Free: 1}}},
		},
		"cgroup of its own": {
			map[string]string{
				"proc/self/cgroup":                     "0::/a/b\n",
				"sys/fs/cgroup/a/b/memory.max":         "max\n",
				"sys/fs/cgroup/a/b/memory.current":     "50\n",
				"sys/fs/cgroup/a/memory.max":           "1000\n",
				"sys/fs/cgroup/a/memory.current":       "300\n",
				"sys/fs/cgroup/memory.max":             "2000\n",
				"sys/fs/cgroup/memory.current":         "1900\n",
				"sys/fs/cgroup/a/b/other/memory.max":   "1\n",
				"sys/fs/cgroup/memory/x/memory.max":    "1\n",
				"sys/fs/cgroup/a/b/memory.high":        "1\n",
				"sys/fs/cgroup/a/b/other/memory.usage": "1\n",
			},
			Facts{Cgroup: &Cgroup{Path: "/", Limit: 2000, Used: 1900}},
		},
		"a path that is not there, and used beyond the limit": {
			map[string]string{
				"proc/self/cgroup":             "0::/docker/../x/gone\n",
				"sys/fs/cgroup/memory.max":     "10\n",
				"sys/fs/cgroup/memory.current": "30\n",
			},
			Facts{Cgroup: &Cgroup{Path: "/", Limit: 10, Used: 30}},
		},
		"first version": {
			map[string]string{
				"proc/self/cgroup": "12:cpu,cpuacct:/c\n9:blkio,memory:/m\n1:name=systemd:/s\n",
				"sys/fs/cgroup/memory/m/memory.limit_in_bytes": "4096\n",
				"sys/fs/cgroup/memory/m/memory.usage_in_bytes": "96\n",
				"sys/fs/cgroup/memory/memory.limit_in_bytes":   "9223372036854771712\n",
				"sys/fs/cgroup/memory/memory.usage_in_bytes":   "100\n",
			},
			Facts{Cgroup: &Cgroup{Path: "/m", Limit: 4096, Used: 96}},
		},
	} {
		if diff := cmp.Diff(c.want, Read(files(c.files))); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	if c := (Cgroup{Limit: 10, Used: 30}); c.Room() != 0 {
		t.Errorf("beyond the limit there is room for %d", c.Room())
	}
}

// The files of a real kernel look as the tests believe.
func TestThisMachine(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("files of Linux")
	}
	f := Read(os.DirFS("/"))
	if f.Kernel == "" || f.Memlock == nil || f.File == nil || f.Open == nil || f.Free == nil {
		t.Errorf("%+v", f)
	}
}

func FuzzRead(f *testing.F) {
	f.Add(limits, "0::/a", "10", "MemAvailable: 10 kB")
	f.Fuzz(func(t *testing.T, limits, cgroup, number, meminfo string) {
		Read(files(map[string]string{
			"proc/self/limits": limits, "proc/self/status": limits, "proc/self/cgroup": cgroup, "proc/meminfo": meminfo,
			"sys/fs/cgroup/memory.max": number, "sys/fs/cgroup/memory.current": number, "sys/fs/cgroup/memory/memory.limit_in_bytes": number,
			"sys/kernel/mm/hugepages/hugepages-" + "2048kB/nr_hugepages": number, "proc/sys/kernel/yama/ptrace_scope": number,
		}))
	})
}
