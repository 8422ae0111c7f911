package testutil

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// runEnv marks every process that descends from this one, by inheritance: also the ones whose
// parents have died and that are nobody's children any more (ranks of a killed mpirun).
const runEnv = "WEFT_TEST_RUN"

// markDescendants gives this process a mark of its own that its descendants will carry.
func markDescendants() error {
	return os.Setenv(runEnv, fmt.Sprintf("%d-%016x", os.Getpid(), rand.Uint64()))
}

// descendants lists the processes that this one started, directly or not: its children (zombies
// that nobody waited for included), and whoever carries our mark.
func descendants() (map[int]string, error) {
	self, mark := os.Getpid(), runEnv+"="+os.Getenv(runEnv)
	return processes(func(pid, parent int) bool { return parent == self || hasEnv(pid, mark) })
}

// carriers lists the living processes that have the setting "NAME=value" in their environment,
// without this one.
func carriers(setting string) (map[int]string, error) {
	return processes(func(pid, _ int) bool { return hasEnv(pid, setting) })
}

// processes describes all processes, this one excepted, for which want holds.
func processes(want func(pid, parent int) bool) (map[int]string, error) {
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return nil, err
	}
	found := make(map[int]string)
	for _, path := range stats {
		stat, err := os.ReadFile(path)
		if err != nil {
			continue // gone meanwhile
		}
		pid, name, state, parent, ok := parseStat(stat)
		if ok && pid != os.Getpid() && want(pid, parent) {
			found[pid] = fmt.Sprintf("%s, state %s, parent %d: %s", name, state, parent, commandLine(pid))
		}
	}
	return found, nil
}

// parseStat reads the first four fields of /proc/PID/stat: pid (name) state parent. The name may
// hold anything, brackets and blanks too.
func parseStat(b []byte) (pid int, name, state string, parent int, ok bool) {
	s := string(b)
	open, end := strings.IndexByte(s, '('), strings.LastIndexByte(s, ')')
	if open < 0 || end < open {
		return 0, "", "", 0, false
	}
	rest := strings.Fields(s[end+1:])
	if len(rest) < 2 {
		return 0, "", "", 0, false
	}
	pid, err1 := strconv.Atoi(strings.TrimSpace(s[:open]))
	parent, err2 := strconv.Atoi(rest[1])
	return pid, s[open+1 : end], rest[0], parent, err1 == nil && err2 == nil
}

// hasEnv reports whether a process started with a setting in its environment. A zombie has none.
func hasEnv(pid int, setting string) bool {
	env, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
	if err != nil {
		return false // another user's, or gone
	}
	for v := range bytes.SplitSeq(env, []byte{0}) {
		if string(v) == setting {
			return true
		}
	}
	return false
}

func commandLine(pid int) string {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	if err != nil {
		return "?"
	}
	return strings.TrimSpace(string(bytes.ReplaceAll(b, []byte{0}, []byte{' '})))
}
