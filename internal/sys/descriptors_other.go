//go:build !linux

package sys

// FreeDescriptors is not available here.
func FreeDescriptors(int) (int, error) { return 0, ErrNotSupported }
