package sys

import (
	"errors"

	"golang.org/x/sys/unix"
)

// FreeDescriptors is how many descriptors this process may still open, of which it counts up to most. It opens none for that.
func FreeDescriptors(most int) (int, error) {
	limit, err := DescriptorLimit()
	if err != nil {
		return 0, err
	}
	free := 0
	for fd := uint64(0); fd < limit && free < most; fd++ {
		if _, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); errors.Is(err, unix.EBADF) {
			free++
		}
	}
	return free, nil
}
