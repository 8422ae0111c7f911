package sys

import (
	"os"
	"path/filepath"
	"testing"
)

func TestMemoryLimit(t *testing.T) {
	n, err := MemoryLimit()
	if err != nil || n < 1<<20 {
		t.Errorf("%d bytes, %v", n, err)
	}
}

// TestMemoryLimitOf reads file systems as kernels and containers show them.
func TestMemoryLimitOf(t *testing.T) {
	const meminfo = "MemTotal:       16384 kB\nMemFree:        1 kB\n"
	for name, c := range map[string]struct {
		files map[string]string
		want  uint64
	}{
		"no groups":        {nil, 16 << 20},
		"no limit, v2":     {map[string]string{"proc/self/cgroup": "0::/a/b\n", "sys/fs/cgroup/a/b/memory.max": "max\n"}, 16 << 20},
		"limit, v2":        {map[string]string{"proc/self/cgroup": "0::/a/b\n", "sys/fs/cgroup/a/b/memory.max": "4194304\n"}, 4 << 20},
		"limit above":      {map[string]string{"proc/self/cgroup": "0::/a/b\n", "sys/fs/cgroup/a/b/memory.max": "4194304\n", "sys/fs/cgroup/a/memory.max": "1048576"}, 1 << 20},
		"in a container":   {map[string]string{"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "2097152\n"}, 2 << 20},
		"hidden path":      {map[string]string{"proc/self/cgroup": "0::/../x\n", "sys/fs/cgroup/memory.max": "2097152\n"}, 2 << 20},
		"limit, v1":        {map[string]string{"proc/self/cgroup": "5:cpu,memory:/j\n1:name=systemd:/\n", "sys/fs/cgroup/memory/j/memory.limit_in_bytes": "3145728\n"}, 3 << 20},
		"no limit, v1":     {map[string]string{"proc/self/cgroup": "5:memory:/j\n", "sys/fs/cgroup/memory/j/memory.limit_in_bytes": "9223372036854771712\n"}, 16 << 20},
		"both":             {map[string]string{"proc/self/cgroup": "5:memory:/j\n0::/k\n", "sys/fs/cgroup/memory/j/memory.limit_in_bytes": "3145728", "sys/fs/cgroup/k/memory.max": "max"}, 3 << 20},
		"nonsense":         {map[string]string{"proc/self/cgroup": "what\n::\n0::/a\n", "sys/fs/cgroup/a/memory.max": "lots"}, 16 << 20},
		"other controller": {map[string]string{"proc/self/cgroup": "5:memoryx:/j\n", "sys/fs/cgroup/memory/j/memory.limit_in_bytes": "1"}, 16 << 20},
	} {
		root := t.TempDir()
		write(t, filepath.Join(root, "proc/meminfo"), meminfo)
		for file, text := range c.files {
			write(t, filepath.Join(root, file), text)
		}
		if got, err := memoryLimit(root); err != nil || got != c.want {
			t.Errorf("%s: %d, %v, want %d", name, got, err, c.want)
		}
	}
	if n, err := memoryLimit(t.TempDir()); err == nil {
		t.Errorf("no file system: %d", n)
	}
	root := t.TempDir()
	write(t, filepath.Join(root, "proc/meminfo"), "MemFree: 7 kB\n")
	if n, err := memoryLimit(root); err == nil {
		t.Errorf("no MemTotal: %d", n)
	}
}

func write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
