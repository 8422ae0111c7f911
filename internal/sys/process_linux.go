package sys

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// crossChunk bounds one call, so that a thread stands in the kernel for milliseconds only. The kernel's own
// bound is a little under 2 GiB, and it may copy less than asked: both are why there is a loop.
const crossChunk = 64 << 20

// ReadProcess fills local from the memory of another process at address remote there ([Address]). It
// returns how many bytes it has copied, fewer than all with an error only: EFAULT where the other has no
// memory, EPERM or ESRCH if it may not, or is gone. It needs CrossMemory.
func ReadProcess(pid int, remote uint64, local []byte, f Features) (int, error) {
	if err := f.Check(CrossMemory); err != nil {
		return 0, err
	}
	if err := f.Injected(CallProcessVM); err != nil {
		return 0, crossError("process_vm_readv", pid, err)
	}
	n, err := cross(local, remote, func(b []byte, at uint64) (int, error) { return readProcess(pid, at, b) })
	return n, crossError("process_vm_readv", pid, err)
}

// WriteProcess copies local to another process. See ReadProcess.
func WriteProcess(pid int, remote uint64, local []byte, f Features) (int, error) {
	if err := f.Check(CrossMemory); err != nil {
		return 0, err
	}
	if err := f.Injected(CallProcessVM); err != nil {
		return 0, crossError("process_vm_writev", pid, err)
	}
	n, err := cross(local, remote, func(b []byte, at uint64) (int, error) {
		l, r := vectors(b, at)
		return unix.ProcessVMWritev(pid, l, r, 0)
	})
	return n, crossError("process_vm_writev", pid, err)
}

func crossError(call string, pid int, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("sys: memory of process %d: %w", pid, os.NewSyscallError(call, err))
}

func readProcess(pid int, at uint64, b []byte) (int, error) {
	l, r := vectors(b, at)
	return unix.ProcessVMReadv(pid, l, r, 0)
}

func vectors(b []byte, at uint64) ([]unix.Iovec, []unix.RemoteIovec) {
	l := []unix.Iovec{{Base: &b[0]}}
	l[0].SetLen(len(b))
	return l, []unix.RemoteIovec{{Base: uintptr(at), Len: len(b)}}
}

// cross calls copy for one piece after the other until all is copied.
func cross(b []byte, at uint64, piece func(b []byte, at uint64) (int, error)) (int, error) {
	done := 0
	for done < len(b) {
		n, err := piece(b[done:min(len(b), done+crossChunk)], at+uint64(done))
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err == nil && n == 0 {
			err = io.ErrUnexpectedEOF
		}
		if err != nil {
			return done, err
		}
		done += n
	}
	return done, nil
}

// Yield lets others of the system run on this core, if there are any.
func Yield() {
	// Not a raw call: it may take as long as others run, and Go's own threads go on meanwhile.
	_, _, _ = unix.Syscall(unix.SYS_SCHED_YIELD, 0, 0, 0)
}

// FateOf says what the system shows of a process. All of its threads count: the first one may have ended in a process that lives, and
// each dies by itself when the process is killed.
func FateOf(pid int) Fate {
	if pid <= 0 {
		return FateUnknown
	}
	return fateOf("/proc", pid)
}

func fateOf(proc string, pid int) Fate {
	tasks := filepath.Join(proc, strconv.Itoa(pid), "task")
	list, err := os.ReadDir(tasks)
	if err != nil {
		if _, no := os.Stat(filepath.Join(proc, "self")); no != nil || !errors.Is(err, os.ErrNotExist) && !errors.Is(err, unix.ESRCH) {
			return FateUnknown
		}
		return FateGone
	}
	fate := FateGone
	for _, e := range list {
		switch threadFate(filepath.Join(tasks, e.Name())) {
		case FateLives:
			return FateLives
		case FateExits:
			fate = FateExits
		}
	}
	return fate
}

// threadFate is that of one thread. What was killed and has not run since has its signal still to take.
func threadFate(dir string) Fate {
	const exiting = 0x4 // PF_EXITING, in the flags of /proc/PID/stat
	status, err := os.ReadFile(filepath.Join(dir, "status"))
	if err != nil { // it has ended meanwhile
		return FateGone
	}
	stat, err := os.ReadFile(filepath.Join(dir, "stat"))
	if err != nil {
		return FateGone
	}
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:])) // the name before it has any bytes
	if len(fields) < 7 {
		return FateLives
	}
	if fields[0] == "Z" || fields[0] == "X" {
		return FateGone
	}
	if flags, err := strconv.ParseUint(fields[6], 10, 64); err == nil && flags&exiting != 0 {
		return FateExits
	}
	_, pending, _ := strings.Cut(string(status), "\nSigPnd:")
	pending, _, _ = strings.Cut(pending, "\n")
	if set, err := strconv.ParseUint(strings.TrimSpace(pending), 16, 64); err == nil && set>>(unix.SIGKILL-1)&1 != 0 {
		return FateExits
	}
	return FateLives
}
