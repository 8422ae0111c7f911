package fabrictest

import (
	"errors"
	"syscall"
	"time"
)

// readable asks the kernel whether a descriptor can be read, as an event loop that is told of states does; it
// waits up to limit.
func readable(fd int, limit time.Duration) (bool, error) {
	var set syscall.FdSet
	const bits = 64
	if fd < 0 || fd >= len(set.Bits)*bits {
		return false, describe(fd, errors.New("above what select can wait for"))
	}
	for {
		clear(set.Bits[:])
		set.Bits[fd/bits] = 1 << (fd % bits)
		tv := syscall.NsecToTimeval(int64(limit))
		n, err := syscall.Select(fd+1, &set, nil, nil, &tv)
		if errors.Is(err, syscall.EINTR) {
			continue
		}
		if err != nil {
			return false, describe(fd, err)
		}
		return n > 0, nil
	}
}
