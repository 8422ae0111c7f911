package sys

import (
	"bytes"
	"os"
	"slices"
	"strings"
)

// guardedMappings lists the mappings of this process of which some userfaultfd, whosever, watches writes. Asking takes as long as the kernel needs to
// look at all memory that the process uses.
func guardedMappings() ([]MappingInfo, error) {
	b, err := os.ReadFile("/proc/self/smaps")
	if err != nil {
		return nil, err
	}
	return parseGuarded(b)
}

// parseGuarded reads proc_pid_smaps(5): a line as in maps for each mapping, and then "Name:   what" in each. VmFlags has "uw" for what is
// registered for write protection (since Linux 5.7, which has that first).
func parseGuarded(b []byte) (list []MappingInfo, err error) {
	var m MappingInfo
	for l := range bytes.Lines(b) {
		line := strings.TrimSuffix(string(l), "\n")
		name, what, _ := strings.Cut(line, ":")
		switch {
		case name == "VmFlags" && slices.Contains(strings.Fields(what), "uw"):
			list = append(list, m)
		case strings.Contains(name, "-"):
			if m, err = parseMapping(line); err != nil {
				return nil, err
			}
		}
	}
	return list, nil
}
