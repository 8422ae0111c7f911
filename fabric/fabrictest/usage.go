package fabrictest

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// usage is what a process has used, and what it holds.
type usage struct {
	CPU        time.Duration // user and system
	Switches   int64         // times a thread gave its CPU up: every sleep is one
	Goroutines int
	Files      int
	Shared     int // shared mappings
	Resident   int // KiB
}

// measure asks the kernel and the runtime.
func measure() (usage, error) {
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		return usage{}, err
	}
	u := usage{
		CPU:        time.Duration(r.Utime.Nano() + r.Stime.Nano()),
		Switches:   r.Nvcsw,
		Goroutines: runtime.NumGoroutine(),
	}
	files, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return usage{}, err
	}
	u.Files = len(files) - 1 // the one that lists them
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		return usage{}, err
	}
	for line := range strings.Lines(string(maps)) {
		if f := strings.Fields(line); len(f) > 1 && strings.HasSuffix(f[1], "s") {
			u.Shared++
		}
	}
	u.Resident, err = resident()
	return u, err
}

func resident() (int, error) {
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		var n int
		if _, err := fmt.Sscanf(line, "VmRSS: %d kB", &n); err == nil {
			return n, nil
		}
	}
	return 0, nil
}
