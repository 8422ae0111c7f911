package sys

import (
	"errors"
	"io/fs"
	"os"
	"strconv"
)

// ProcessMemory reads the memory of a process, also of this one: where there is none, reading fails, and nobody faults. Its methods are safe for
// concurrent use, but Close with ReadAt.
type ProcessMemory struct {
	pid  int
	f    Features
	file *os.File // nil: by process_vm_readv
}

// OpenProcessMemory needs the right to trace the process, which everybody has of itself. Without CrossMemory the memory is read as a file.
func OpenProcessMemory(pid int, f Features) (*ProcessMemory, error) {
	m := &ProcessMemory{pid: pid, f: f}
	if f.Has(CrossMemory) {
		return m, nil
	}
	name := strconv.Itoa(pid)
	if pid == os.Getpid() { // not by its number: /proc may be of another pid namespace
		name = "self"
	}
	var err error
	m.file, err = os.Open("/proc/" + name + "/mem")
	return m, err
}

// ReadAt fills b from an address.
func (m *ProcessMemory) ReadAt(b []byte, addr int64) (int, error) {
	switch {
	case addr < 0:
		return 0, &fs.PathError{Op: "read", Path: "memory of process " + strconv.Itoa(m.pid), Err: errors.ErrUnsupported}
	case len(b) == 0:
		return 0, nil
	case m.file != nil:
		return m.file.ReadAt(b, addr)
	}
	return ReadProcess(m.pid, uint64(addr), b, m.f)
}

// Close lets go of it.
func (m *ProcessMemory) Close() error {
	if m.file == nil {
		return nil
	}
	return m.file.Close()
}
