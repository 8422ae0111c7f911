package sys

import (
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// Memfd makes a memory file: memory with a descriptor and without a name, gone with its last user. Its
// bytes are zero and not there before they are touched ([Allocate], [Populate]). It can be sealed.
func Memfd(c MemfdConfig) (*FD, error) {
	flags := unix.MFD_CLOEXEC | unix.MFD_ALLOW_SEALING
	if c.Features.Has(NoExecSeal) {
		flags |= unix.MFD_NOEXEC_SEAL
	}
	if c.Huge {
		if err := c.Features.Check(HugeTLB); err != nil {
			return nil, err
		}
		flags |= unix.MFD_HUGETLB | hugeFlag(c.HugePage)
	}
	n, err := -1, c.Features.Injected(CallMemfd)
	if err != nil {
		return nil, fmt.Errorf("sys: memory file %s: %w", c.Name, err)
	}
	n, err = unix.MemfdCreate(c.Name, flags)
	if err != nil {
		return nil, fmt.Errorf("sys: memory file %s: %w", c.Name, os.NewSyscallError("memfd_create", err))
	}
	fd := NewFD(n, "memory "+c.Name)
	if err := Truncate(fd, c.Size); err != nil {
		_ = fd.Close()
		return nil, fmt.Errorf("sys: memory file %s of %d bytes: %w", c.Name, c.Size, err)
	}
	return fd, nil
}

// Truncate sets the length of a file.
func Truncate(fd *FD, size int64) error {
	_, err := retry(func() (int, error) { return 0, unix.Ftruncate(fd.Int(), size) })
	return os.NewSyscallError("ftruncate", err)
}

// Size is the length of a file.
func Size(fd *FD) (int64, error) {
	var st unix.Stat_t
	if _, err := retry(func() (int, error) { return 0, unix.Fstat(fd.Int(), &st) }); err != nil {
		return 0, os.NewSyscallError("fstat", err)
	}
	return st.Size, nil
}

// Allocate makes sure that memory for n bytes from off is there, so that touching them cannot fail: it
// fails instead, with ENOSPC or ENOMEM.
func Allocate(fd *FD, off, n int64) error {
	_, err := retry(func() (int, error) { return 0, unix.Fallocate(fd.Int(), 0, off, n) })
	return os.NewSyscallError("fallocate", err)
}

// Discard gives whole pages of n bytes from off back to the system; they read as zero afterwards. A
// file with SealWrite or SealFutureWrite refuses it.
func Discard(fd *FD, off, n int64) error {
	_, err := retry(func() (int, error) {
		return 0, unix.Fallocate(fd.Int(), unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, off, n)
	})
	return os.NewSyscallError("fallocate", err)
}

// Seal adds seals to a memory file. SealWrite fails with EBUSY while a writable mapping exists;
// SealFutureWrite needs FutureWrite of the kernel, else EINVAL.
func Seal(fd *FD, s Seals) error {
	if _, err := unix.FcntlInt(uintptr(fd.Int()), unix.F_ADD_SEALS, int(s)); err != nil {
		return fmt.Errorf("sys: seal %v: %w", s, os.NewSyscallError("fcntl", err))
	}
	return nil
}

// SealsOf returns the seals of a memory file; other files fail with EINVAL.
func SealsOf(fd *FD) (Seals, error) {
	n, err := unix.FcntlInt(uintptr(fd.Int()), unix.F_GET_SEALS, 0)
	if err != nil {
		return 0, fmt.Errorf("sys: seals: %w", os.NewSyscallError("fcntl", err))
	}
	return Seals(n), nil
}

// CheckSealed looks at a memory file that a peer sent, before it is mapped: it must be size bytes long
// and have at least the seals want. SealShrink among them is what keeps the peer from making it shorter
// under a mapping, which would kill the reader by SIGBUS.
func CheckSealed(fd *FD, size int64, want Seals) error {
	have, err := SealsOf(fd)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrSeals, err)
	}
	if !have.Has(want) {
		return fmt.Errorf("%w: it has %v, not all of %v", ErrSeals, have, want)
	}
	// After the seals: now the length cannot change any more.
	switch got, err := Size(fd); {
	case err != nil:
		return err
	case got != size:
		return fmt.Errorf("%w: it is %d bytes long, not %d", ErrSeals, got, size)
	}
	return nil
}

// ReadOnly opens a memory file again, for reading only: who gets that descriptor cannot map it
// writable, nor, if another user, open it anew for writing. A process of the same user can give itself
// the right back: only SealFutureWrite keeps those out. It needs /proc.
func ReadOnly(fd *FD) (*FD, error) {
	if err := unix.Fchmod(fd.Int(), 0o400); err != nil {
		return nil, os.NewSyscallError("fchmod", err)
	}
	path := "/proc/self/fd/" + strconv.Itoa(fd.Int())
	n, err := retry(func() (int, error) { return unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0) })
	if err != nil {
		return nil, &os.PathError{Op: "open read-only", Path: path, Err: err}
	}
	return NewFD(n, "memory, read-only"), nil
}
