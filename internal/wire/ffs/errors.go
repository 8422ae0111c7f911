package ffs

import (
	"errors"
	"fmt"
	"io"
)

// Errors of this package. Each returned error wraps one of them and adds what
// was wrong, where, and in which struct and field.
var (
	// ErrTruncated: the input ends before what it announces. It wraps
	// io.ErrUnexpectedEOF.
	ErrTruncated = fmt.Errorf("ffs: truncated: %w", io.ErrUnexpectedEOF)

	// ErrFormat: a format body or a struct description breaks the rules.
	ErrFormat = errors.New("ffs: bad format")

	// ErrUnsupported: a format body that may be right, but comes from a
	// machine this package does not read: big-endian, 32-bit, old version.
	ErrUnsupported = errors.New("ffs: unsupported format")

	// ErrRecord: the bytes of a record contradict its format or themselves.
	ErrRecord = errors.New("ffs: bad record")

	// ErrOtherFormat: a record does not begin with the ID of this format.
	ErrOtherFormat = errors.New("ffs: record of another format")

	// ErrKind: a field was asked for as something that it is not, or does not
	// exist.
	ErrKind = errors.New("ffs: wrong kind of field")

	// ErrNil: a field of a NULL struct was asked for.
	ErrNil = errors.New("ffs: NULL struct")

	// ErrValue: a value given to a Builder does not fit its field.
	ErrValue = errors.New("ffs: bad value")
)
