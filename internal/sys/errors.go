package sys

import "errors"

var (
	// ErrNotSupported is what every UnsupportedError is.
	ErrNotSupported = errors.New("sys: not supported by this kernel")
	// ErrWouldBlock says that nothing is there now, or no room: the descriptor does not block.
	ErrWouldBlock = errors.New("sys: would block")
	// ErrClosed ends the use of a handle that was closed.
	ErrClosed = errors.New("sys: closed")
	// ErrTimeout ends a wait that took as long as was asked.
	ErrTimeout = errors.New("sys: timed out")
	// ErrMessage is a message of a peer that is longer, or has more descriptors, than was agreed.
	ErrMessage = errors.New("sys: message of another form than agreed")
	// ErrDescriptors says that this process has no room for the descriptors of a message.
	ErrDescriptors = errors.New("sys: no room for the descriptors of a message")
	// ErrSeals is a memory file that its peer could still change in a way that was excluded.
	ErrSeals = errors.New("sys: memory is not sealed as agreed")
)

// UnsupportedError says which feature is missing, and why. It is ErrNotSupported and
// errors.ErrUnsupported.
type UnsupportedError struct {
	Feature Feature
	Err     error // what the kernel said; nil if the caller turned the feature off
}

// Error names the feature and the reason.
func (e *UnsupportedError) Error() string {
	if e.Err == nil {
		return "sys: " + e.Feature.String() + " is turned off"
	}
	return "sys: this kernel gives no " + e.Feature.String() + ": " + e.Err.Error()
}

// Is makes it ErrNotSupported.
func (e *UnsupportedError) Is(target error) bool {
	return target == ErrNotSupported || target == errors.ErrUnsupported
}

// Unwrap is what the kernel said.
func (e *UnsupportedError) Unwrap() error { return e.Err }
