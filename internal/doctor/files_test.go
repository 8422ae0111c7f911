package doctor

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// machine makes files, and links where the text begins with "-> ".
func machine(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		file := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		write := func() error { return os.WriteFile(file, []byte(text), 0o644) }
		if to, isLink := strings.CutPrefix(text, "-> "); isLink {
			write = func() error { return os.Symlink(to, file) }
		}
		if err := write(); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

const otherLimits = `Max file size             1000000              unlimited            bytes
Max open files            256                  1048576              files
Max locked memory         unlimited            unlimited            bytes
`

func TestOtherMachine(t *testing.T) {
	root := machine(t, map[string]string{
		"proc/self/limits":                  otherLimits,
		"proc/self/cgroup":                  "0::/job\n",
		"proc/meminfo":                      "MemAvailable: 8000000 kB\n",
		"proc/sys/kernel/yama/ptrace_scope": "1\n",
		"proc/self/ns/user":                 "-> user:[4026531837]",
		"proc/self/ns/pid":                  "-> pid:[4026531836]",
		"proc/self/ns/net":                  "-> net:[4026532000]",
		"proc/1/ns/pid":                     "-> pid:[4026531836]",
		"proc/1/ns/net":                     "-> net:[4026531840]",
		"sys/fs/cgroup/job/memory.max":      "1000000000",
		"sys/fs/cgroup/job/memory.current":  "900000000",
		"sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages":   "8",
		"sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages": "6",
		"sys/class/infiniband/mlx5_0/ports/1/state":               "4: ACTIVE\n",
		"sys/class/infiniband/mlx5_1/ports/1/state":               "1: DOWN\n",
		"etc/ld.so.cache":               "glibc-ld.so.cache1.1\x00\x01libucp.so.0\x00/opt/hpcx/lib/libucp.so.0\x00/opt/none/libfabric.so.1\x00",
		"opt/hpcx/lib/libucp.so.0":      "-> libucp.so.0.0.0",
		"opt/hpcx/lib/libucp.so.0.0.0":  "",
		"usr/lib64/libfabric.so.1":      "-> libfabric.so.1.18.1",
		"usr/lib64/libfabric.so.1.18.1": "",
		"usr/lib64/libfabric.so":        "-> libfabric.so.1",
		"mine/lib/libfabric.so":         "",
	})
	r := Examine(Config{Root: root, LibraryPath: "/none:/mine/lib"})
	want := map[string]Check{
		"memlock":        {State: Works, Found: "no limit"},
		"file_size":      {State: Limited, Found: "1.0 MB"},
		"open_files":     {State: Limited, Found: "256"},
		"memory_room":    {State: Limited, Found: "room for 100.0 MB in cgroup /job"},
		"hugetlb_room":   {State: Works, Found: "6 of 8 pages of 2.1 MB free"},
		"ptrace_scope":   {State: Limited, Found: "1: a process may read the memory of its children only"},
		"user_namespace": {State: Works, Found: "the system's first one"},
		"pid_namespace":  {State: Works, Found: "the system's first one"},
		"net_namespace":  {State: Limited, Found: "one of its own, 4026532000"},
		"rdma":           {State: Works, Found: "mlx5_0 (port 1 is 4: ACTIVE), mlx5_1 (port 1 is 1: DOWN)"},
		"libfabric":      {State: Works, Found: root + "/mine/lib/libfabric.so, " + root + "/usr/lib64/libfabric.so.1.18.1"},
		"ucx":            {State: Works, Found: root + "/opt/hpcx/lib/libucp.so.0.0.0"},
	}
	for name, w := range want {
		if c := r.check(name); c.State != w.State || !strings.Contains(c.Found, w.Found) || (c.Remedy == "") != (c.State == Works) {
			t.Errorf("%s: %+v", name, c)
		}
	}
	if diff := cmp.Diff([]Device{{"mlx5_0", []Port{{"1", "4: ACTIVE"}}}, {"mlx5_1", []Port{{"1", "1: DOWN"}}}}, r.Devices); diff != "" {
		t.Error(diff)
	}
}

func TestBareMachine(t *testing.T) {
	r := Examine(Config{Root: machine(t, map[string]string{
		"sys/class/infiniband/odd/x":                            "",
		"sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages": "8",
		"proc/self/ns/user":                                     "-> pid:[1]",
		"proc/self/ns/net":                                      "-> net:[4026531840]",
	})})
	for name, state := range map[string]State{
		"memlock": Limited, "memory_room": Works, "hugetlb_room": Limited, "ptrace_scope": Works, "user_namespace": Limited, "pid_namespace": Limited,
		"net_namespace": Works, "rdma": Limited, "libfabric": Missing, "ucx": Missing,
	} {
		if c := r.check(name); c.State != state {
			t.Errorf("%s: %+v", name, c)
		}
	}
	if !r.OK {
		t.Error("what cannot be read is not what is needed")
	}
}

func TestPtraceScopes(t *testing.T) {
	for scope, word := range map[int]string{0: "one user", 1: "children", 2: "superuser", 3: "nobody", 9: "nobody"} {
		if c := ptrace(&scope); !strings.Contains(c.Found, word) || (c.State == Works) != (scope == 0) {
			t.Errorf("%+v", c)
		}
	}
}

func TestSize(t *testing.T) {
	for n, want := range map[uint64]string{0: "0 B", 999: "999 B", 1000: "1.0 kB", 65536: "65.5 kB", 1<<64 - 1: "18.4 EB"} {
		if got := size(n); got != want {
			t.Errorf("%d: %s", n, got)
		}
	}
}
