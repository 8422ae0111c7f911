package sys

import (
	"errors"
	"os"
	"strings"
	"syscall"
	"testing"
)

// TestCanUring holds the answer against what the administrator has set; a filter of system calls may be stricter.
func TestCanUring(t *testing.T) {
	err := CanUring()
	b, _ := os.ReadFile("/proc/sys/kernel/io_uring_disabled")
	switch off := strings.TrimSpace(string(b)); {
	case err == nil && off == "2":
		t.Error("it is disabled for all")
	case err == nil && off == "1" && os.Geteuid() != 0:
		t.Log("allowed to this user by the group io_uring_group")
	case err != nil && !errors.Is(err, syscall.EPERM) && !errors.Is(err, syscall.ENOSYS) && !errors.Is(err, syscall.EACCES):
		t.Error(err)
	}
}
