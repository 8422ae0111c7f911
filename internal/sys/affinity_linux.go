package sys

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// maxCPUs is what the kernel's own type of a set holds; more are not seen.
const maxCPUs = 1024

// Affinity lists the processors that a thread may run on, in order. Thread 0 is the calling one.
func Affinity(tid int) ([]int, error) {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(tid, &set); err != nil {
		return nil, fmt.Errorf("sys: processors of thread %d: %w", tid, os.NewSyscallError("sched_getaffinity", err))
	}
	var list []int
	for cpu := range maxCPUs {
		if set.IsSet(cpu) {
			list = append(list, cpu)
		}
	}
	return list, nil
}

// SetAffinity says which processors a thread may run on; threads and processes that it starts inherit that.
// Thread 0 is the calling one.
func SetAffinity(tid int, cpus []int) error {
	var set unix.CPUSet
	for _, cpu := range cpus {
		set.Set(cpu)
	}
	if err := unix.SchedSetaffinity(tid, &set); err != nil {
		return fmt.Errorf("sys: thread %d on processors %v: %w", tid, cpus, os.NewSyscallError("sched_setaffinity", err))
	}
	return nil
}
