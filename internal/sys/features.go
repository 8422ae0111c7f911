package sys

import (
	"fmt"
	"strings"
	"sync"
	"syscall"
)

// Feature is something that not every kernel from 4.18 on does, or not in every container.
type Feature uint8

// The features, with the release of Linux that brought them.
const (
	FutureWrite   Feature = iota // F_SEAL_FUTURE_WRITE: memory that only mappings made before can write (5.1)
	NoExecSeal                   // MFD_NOEXEC_SEAL: memory that cannot be run (6.3)
	PopulatePages                // MADV_POPULATE_READ and _WRITE (5.14)
	FutexWaitv                   // futex_waitv (5.16)
	HugeTLB                      // memory files of huge pages; whether some are reserved is another matter
	CrossMemory                  // process_vm_readv and _writev (some containers forbid them)
	EventFD                      // eventfd (as above)
	RobustList                   // set_robust_list (as above)
	IOUring                      // io_uring with buffers that can be exchanged (5.13; administrators and containers forbid it)
	SendZC                       // IORING_OP_SEND_ZC: sending from such a buffer without copying (6.0)
	numFeatures
)

// numOptional is how many a provider can use and do without, which come first; the others are for tests.
const numOptional = IOUring

var featureNames = [numFeatures]string{
	"future_write", "noexec_seal", "populate", "futex_waitv", "hugetlb", "cma", "eventfd", "robust_list", "io_uring", "send_zc",
}

// String is the feature's name, as DisableFeatures takes it.
func (f Feature) String() string {
	if f < numFeatures {
		return featureNames[f]
	}
	return fmt.Sprintf("feature %d", uint8(f))
}

// AllFeatures lists the features that a provider can do without.
func AllFeatures() []Feature {
	all := make([]Feature, numOptional)
	for i := range all {
		all[i] = Feature(i)
	}
	return all
}

// FeatureNames lists their names, the words of the option "disable".
func FeatureNames() []string { return append([]string(nil), featureNames[:numOptional]...) }

// Features is what may be used. The zero value is all that the kernel has.
type Features struct {
	off      uint64
	failures *Failures // calls that are made to fail; nil: none
}

// Without is s with some features turned off.
func (s Features) Without(off ...Feature) Features {
	for _, f := range off {
		s.off |= 1 << f
	}
	return s
}

// DisableFeatures returns the Features without those named in a list as "eventfd,cma". Spaces around a
// name do not count, and "" is none.
func DisableFeatures(list string) (Features, error) {
	var s Features
next:
	for name := range strings.SplitSeq(list, ",") {
		name = strings.TrimSpace(name)
		if name == "" {
			continue
		}
		for f, known := range featureNames[:numOptional] {
			if name == known {
				s = s.Without(Feature(f))
				continue next
			}
		}
		return s, fmt.Errorf("sys: no feature is called %q; there are %s", name, strings.Join(FeatureNames(), ", "))
	}
	return s, nil
}

// Has says whether a feature may be used and the kernel has it.
func (s Features) Has(f Feature) bool { return s.Check(f) == nil }

// Check is nil if a feature may be used and the kernel has it, else mostly an *UnsupportedError. The
// kernel is asked once in a process; if it could not tell (for want of descriptors, say) it is asked
// again, and the error is not an UnsupportedError.
func (s Features) Check(f Feature) error {
	if s.off&(1<<f) != 0 || f >= numFeatures {
		return &UnsupportedError{Feature: f}
	}
	return probes[f].check(f)
}

// probe remembers what the kernel said.
type probe struct {
	sync.Mutex
	done bool
	err  error
}

// probes is the one memory of the process: a kernel does not change under it.
var probes [numFeatures]probe

func (p *probe) check(f Feature) error {
	p.Lock()
	defer p.Unlock()
	if p.done {
		return p.err
	}
	err := probeFeature(f)
	if errno, ok := err.(syscall.Errno); ok && transient(errno) { //nolint:errorlint // probes return what the kernel said, unwrapped
		return fmt.Errorf("sys: asking for %s: %w", f, err)
	}
	p.done = true
	if err != nil {
		p.err = &UnsupportedError{Feature: f, Err: err}
	}
	return p.err
}

// transient says whether an error tells of a moment, not of the kernel.
func transient(e syscall.Errno) bool {
	switch e {
	case syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM, syscall.EAGAIN, syscall.EINTR:
		return true
	}
	return false
}
