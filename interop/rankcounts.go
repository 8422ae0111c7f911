package interop

import (
	"fmt"
	"net"
	"os"
	"runtime"
	"runtime/pprof"
	"strings"
	"time"
)

// RankStats is what a rank tells of itself when it is asked.
type RankStats struct {
	Bytes      uint64   // of steps that a writer holds
	Held       int      // steps that a writer holds
	Readers    int      // attached to a writer
	Planes     []string // of these, with the software: "Weft native"
	Heap       uint64   // bytes in use after a collection
	Shared     uint64   // bytes of shared memory that are mapped
	Files      int      // open descriptors
	Goroutines int
}

// counts are the things that a process must give back.
type counts struct {
	heap, shared      uint64
	files, goroutines int
}

// takeCounts looks at this process, after a garbage collection. The poller's own
// descriptors are made first, so that they are no news later.
func takeCounts() counts {
	if l, err := net.Listen("tcp", "127.0.0.1:0"); err == nil {
		l.Close()
	}
	runtime.GC()
	runtime.GC() // the second one frees what cleanups of the first let go
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	c := counts{heap: m.HeapAlloc, goroutines: runtime.NumGoroutine()}
	names, err := os.ReadDir("/proc/self/fd")
	if err == nil {
		c.files = len(names) - 1 // one is the folder's
	}
	c.shared = sharedMapped()
	return c
}

// sharedMapped adds the shared mappings of this process up.
func sharedMapped() (bytes uint64) {
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(maps)) {
		var from, to uint64
		var rights string
		if n, err := fmt.Sscanf(line, "%x-%x %s", &from, &to, &rights); err == nil && n == 3 && strings.HasSuffix(rights, "s") {
			bytes += to - from
		}
	}
	return bytes
}

// settleTime is how long something may take to go that is on its way out.
const settleTime = 2 * time.Second

// left says what is there that was not there before, once it had time to go.
func (c counts) left() string {
	var now counts
	for deadline := time.Now().Add(settleTime); ; {
		now = takeCounts()
		if now.files <= c.files && now.goroutines <= c.goroutines && now.shared <= c.shared {
			return ""
		}
		if time.Now().After(deadline) {
			break
		}
		<-time.After(look)
	}
	_ = pprof.Lookup("goroutine").WriteTo(os.Stderr, 1)
	return fmt.Sprintf("descriptors %d before and %d after, goroutines %d and %d, shared bytes %d and %d",
		c.files, now.files, c.goroutines, now.goroutines, c.shared, now.shared)
}
