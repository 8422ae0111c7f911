package sst_test

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/weft-fabric/weft/internal/testutil"
)

// usage returns how many descriptors and goroutines there are.
func usage(t testing.TB) (fds, goroutines int) {
	t.Helper()
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(list), runtime.NumGoroutine()
}

// settled waits until there are no more than that. What an own session leaves is
// on its way out when Close returns; nothing tells of the last goroutine's end.
func settled(t testing.TB, fds, goroutines int) {
	t.Helper()
	testutil.Eventually(t, fmt.Sprintf("no more than %d descriptors and %d goroutines", fds, goroutines), func() bool {
		f, g := usage(t)
		return f <= fds && g <= goroutines
	})
}

// openSockets counts the established TCP connections of this process, by ends.
func openSockets(t testing.TB) int {
	t.Helper()
	inodes := established(t)
	links, err := filepath.Glob("/proc/self/fd/*")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, l := range links {
		target, err := os.Readlink(l)
		if err == nil && inodes[strings.TrimSuffix(strings.TrimPrefix(target, "socket:["), "]")] {
			n++
		}
	}
	return n
}

// established reads /proc/net/tcp (proc_net(5)): state 01, inode in column 10.
func established(t testing.TB) map[string]bool {
	t.Helper()
	text, err := os.ReadFile("/proc/self/net/tcp")
	if err != nil {
		t.Fatal(err)
	}
	inodes := map[string]bool{}
	for line := range strings.Lines(string(text)) {
		if f := strings.Fields(line); len(f) > 9 && f[3] == "01" {
			inodes[f[9]] = true
		}
	}
	return inodes
}
