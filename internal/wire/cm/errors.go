package cm

import (
	"errors"
	"fmt"
	"io"
)

// Errors of this package. Everything that a Parse function or a Reader returns
// wraps one of them, io.EOF, io.ErrUnexpectedEOF, or the error of the
// underlying io.Reader.
var (
	// ErrContact means: not a contact string, or one that breaks a limit.
	ErrContact = errors.New("cm: bad contact string")
	// ErrNoAddress means: a well-formed contact without an IPv4 address and
	// port that can be dialled.
	ErrNoAddress = errors.New("cm: contact has no usable IPv4 address and port")
	// ErrMagic means: the four bytes that should open a unit open none.
	ErrMagic = errors.New("cm: unknown magic")
	// ErrByteOrder means: the bytes of a big-endian peer.
	ErrByteOrder = errors.New("cm: big-endian peer")
	// ErrUnsupported means: a unit that EVPath knows and SST never sends.
	ErrUnsupported = errors.New("cm: unit that SST does not use")
	// ErrMalformed means: a known unit whose fields contradict each other.
	ErrMalformed = errors.New("cm: malformed unit")
	// ErrTooLarge means: a unit that claims more bytes than the limit allows.
	ErrTooLarge = errors.New("cm: unit over the limit")
	// ErrChecksum means: a whole data message whose checksum is wrong. The
	// stream behind it is still in step.
	ErrChecksum = errors.New("cm: wrong checksum")
	// ErrNoBuffer means: the allocator of a Reader refused.
	ErrNoBuffer = errors.New("cm: no buffer for the record")
)

// TransportError says that a contact asks for a transport that is not TCP
// sockets, such as "enet" (cm.md §2.2, CM_TRANSPORT).
type TransportError struct {
	Transport string // as the contact spells it
}

// Error implements error.
func (e *TransportError) Error() string {
	return fmt.Sprintf("cm: contact asks for transport %q; only sockets (TCP) is supported", e.Transport)
}

// Unwrap makes the error match ErrNoAddress.
func (e *TransportError) Unwrap() error { return ErrNoAddress }

// HostOnlyError says that a contact names a host (IP_HOST) but no address.
type HostOnlyError struct {
	Host string // the name
	Port int    // IP_PORT, 0 if absent
}

// Error implements error.
func (e *HostOnlyError) Error() string {
	return fmt.Sprintf("cm: contact names host %q (port %d) but carries no IPv4 address", e.Host, e.Port)
}

// Unwrap makes the error match ErrNoAddress.
func (e *HostOnlyError) Unwrap() error { return ErrNoAddress }

// short is the error of a unit of which only have of need bytes are there.
func short(what string, have, need int) error {
	return fmt.Errorf("cm: %s: %d of %d bytes: %w", what, have, need, io.ErrUnexpectedEOF)
}
