package sys

import "strings"

// Seals are what nobody can do any more with a memory file.
type Seals uint32

// The seals, by their numbers in the kernel's interface (fcntl(2), F_ADD_SEALS).
const (
	SealSeal        Seals = 1 << iota // add seals
	SealShrink                        // make it shorter
	SealGrow                          // make it longer
	SealWrite                         // write it
	SealFutureWrite                   // write it but by writable mappings that are there already
	SealExec                          // make it something to run, or no longer so; the kernel adds it where it has NoExecSeal
)

var sealNames = []string{"seal", "shrink", "grow", "write", "future-write", "exec"}

// Has says whether all of want are set.
func (s Seals) Has(want Seals) bool { return s&want == want }

// String lists the seals, as "shrink|grow".
func (s Seals) String() string {
	var parts []string
	for i, name := range sealNames {
		if s.Has(1 << i) {
			parts = append(parts, name)
		}
	}
	if parts == nil {
		return "none"
	}
	return strings.Join(parts, "|")
}

// MemfdConfig says how a memory file is to be.
type MemfdConfig struct {
	Name     string // shown in /proc/PID/maps, for people; any, up to 249 bytes
	Size     int64  // bytes; of huge pages a multiple of their size
	Huge     bool   // of huge pages; it needs HugeTLB
	HugePage uint64 // their size, a power of two; 0 means the default one
	Features Features
}
