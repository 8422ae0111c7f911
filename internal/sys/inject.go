package sys

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
)

// Call is a kind of system call that can be made to fail, for tests of what programs do then: each may fail on a good
// machine too, for want of descriptors or memory, or because a sandbox forbids it.
type Call uint8

// The calls.
const (
	CallMemfd     Call = iota // memfd_create: as without descriptors
	CallAllocate              // fallocate, and bringing pages in: as without memory
	CallProcessVM             // process_vm_readv and _writev: as in a sandbox
	numCalls
)

var calls = [numCalls]struct {
	name, call string
	errno      syscall.Errno
}{
	CallMemfd:     {"memfd", "memfd_create", syscall.EMFILE},
	CallAllocate:  {"fallocate", "fallocate", syscall.ENOMEM},
	CallProcessVM: {"process_vm", "process_vm_readv", syscall.EPERM},
}

// Failures make calls fail, by their number. They are counted for all that has the same Failures.
type Failures struct {
	calls [numCalls]struct {
		from, to uint64 // the numbers that fail, from 1 on; to 0: none
		made     atomic.Uint64
	}
}

// ParseFailures reads a list as "memfd@3,process_vm": the third memory file cannot be made, and no process's memory can be read.
// After the @ stands one number, or the first and the last that fail, as 3-5, or the first alone, as 3-. Nil is "".
func ParseFailures(list string) (*Failures, error) {
	if strings.TrimSpace(list) == "" {
		return nil, nil //nolint:nilnil // no failures are none
	}
	f := new(Failures)
next:
	for word := range strings.SplitSeq(list, ",") {
		name, at, some := strings.Cut(strings.TrimSpace(word), "@")
		from, to, err := uint64(1), ^uint64(0), error(nil)
		if some {
			from, to, err = parseSpan(at)
		}
		for c := range calls {
			if name == calls[c].name && err == nil {
				f.calls[c].from, f.calls[c].to = from, to
				continue next
			}
		}
		return nil, fmt.Errorf("sys: %q is no failure; memfd, fallocate or process_vm, with @3, @3-5 or @3- if only some calls fail", word)
	}
	return f, nil
}

func parseSpan(s string) (from, to uint64, err error) {
	first, last, more := strings.Cut(s, "-")
	if from, err = strconv.ParseUint(first, 10, 64); err != nil || from == 0 {
		return 0, 0, strconv.ErrSyntax
	}
	switch {
	case !more:
		return from, from, nil
	case last == "":
		return from, ^uint64(0), nil
	}
	if to, err = strconv.ParseUint(last, 10, 64); err != nil || to < from {
		return 0, 0, strconv.ErrSyntax
	}
	return from, to, nil
}

// Failing is s with calls that fail.
func (s Features) Failing(f *Failures) Features {
	s.failures = f
	return s
}

// Injected is the error of a call that is to fail now, else nil. Who makes the call asks first.
func (s Features) Injected(c Call) error {
	if s.failures == nil {
		return nil
	}
	f := &s.failures.calls[c]
	if n := f.made.Add(1); n < f.from || n > f.to {
		return nil
	}
	return fmt.Errorf("injected: %w", os.NewSyscallError(calls[c].call, calls[c].errno))
}
