package sys

import (
	"cmp"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/weft-fabric/weft/internal/invariants"
)

// tracked is what is open: for tests that look for leaks, in builds with the tag invariants only. It is
// keyed by number, not by handle, so that a handle that was forgotten and collected still shows.
var tracked struct {
	sync.Mutex
	next uint64
	open map[uint64]string
}

// track notes that something was made and returns its ticket; 0 in ordinary builds.
func track(what string) uint64 {
	if !invariants.Enabled {
		return 0
	}
	site := what + creation()
	tracked.Lock()
	defer tracked.Unlock()
	if tracked.open == nil {
		tracked.open = make(map[uint64]string)
	}
	tracked.next++
	tracked.open[tracked.next] = site
	return tracked.next
}

// untrack takes the note back.
func untrack(ticket uint64) {
	if ticket == 0 {
		return
	}
	tracked.Lock()
	defer tracked.Unlock()
	delete(tracked.open, ticket)
}

// Open lists the descriptors and mappings that are open, each with the calls that made it, oldest
// first. It is empty in builds without the tag invariants.
func Open() []string {
	tracked.Lock()
	defer tracked.Unlock()
	type entry struct {
		n    uint64
		site string
	}
	var all []entry
	for n, site := range tracked.open {
		all = append(all, entry{n, site})
	}
	slices.SortFunc(all, func(a, b entry) int { return cmp.Compare(a.n, b.n) })
	sites := make([]string, len(all))
	for i, e := range all {
		sites[i] = e.site
	}
	return sites
}

// creation describes the callers outside of this package's handles.
func creation() string {
	var pc [16]uintptr
	n := runtime.Callers(3, pc[:])
	var text strings.Builder
	frames := runtime.CallersFrames(pc[:n])
	for {
		f, more := frames.Next()
		if f.Function != "" {
			fmt.Fprintf(&text, "\n\t%s %s:%d", f.Function, f.File, f.Line)
		}
		if !more {
			return text.String()
		}
	}
}
