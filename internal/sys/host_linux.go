package sys

import (
	"encoding/hex"
	"fmt"
	"os"
	"strings"
	"syscall"
)

// BootID is a random number that the system has drawn when it started: processes that see the same one
// are on the same kernel.
func BootID() ([16]byte, error) { return bootID("/proc/sys/kernel/random/boot_id") }

func bootID(path string) (id [16]byte, err error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return id, fmt.Errorf("sys: boot id: %w", err)
	}
	digits := strings.ReplaceAll(strings.TrimSpace(string(text)), "-", "")
	if len(digits) != 2*len(id) {
		return id, fmt.Errorf("sys: boot id: %s holds %q", path, text)
	}
	if _, err := hex.Decode(id[:], []byte(digits)); err != nil {
		return id, fmt.Errorf("sys: boot id: %s holds %q: %w", path, text, err)
	}
	return id, nil
}

// NetNamespace is the number of this process's network namespace, in which abstract sockets have their
// names. It is unique on one kernel while the namespace exists.
func NetNamespace() (uint64, error) {
	info, err := os.Stat("/proc/self/ns/net")
	if err != nil {
		return 0, fmt.Errorf("sys: network namespace: %w", err)
	}
	return info.Sys().(*syscall.Stat_t).Ino, nil
}
