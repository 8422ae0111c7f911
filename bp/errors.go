package bp

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/weft-fabric/weft/internal/wire/bp5"
)

// What opening and reading a dataset can fail with. All are wrapped with the
// path and the reason; test with errors.Is. A path that does not exist wraps
// fs.ErrNotExist.
var (
	// ErrNotBP says that there is something else than a BP5 dataset.
	ErrNotBP = errors.New("not a BP5 file")
	// ErrStream says that the path names the contact file of a running stream,
	// which package sst opens.
	ErrStream = errors.New("this is a stream contact file, not a file with data")
	// ErrEmpty says that the writer has not finished its first step.
	ErrEmpty = errors.New("empty dataset: no finished step yet")
	// ErrVersion says that the dataset is BP, but not version 5.2.
	ErrVersion = bp5.ErrBPVersion
	// ErrByteOrder says that the dataset was written on a big-endian machine.
	ErrByteOrder = bp5.ErrByteOrder
	// ErrObjectStore says that the data are in object storage, not in files.
	ErrObjectStore = errors.New("data in object storage cannot be read")
	// ErrDamaged says that the files contradict themselves.
	ErrDamaged = bp5.ErrBadFile
	// ErrIncomplete says that a closed dataset ends too early; the error is an
	// [*IncompleteError].
	ErrIncomplete = errors.New("incomplete dataset")
	// ErrUnfinished says that the writer of a followed dataset ended without
	// close, as far as one can see; the error is an [*UnfinishedError].
	ErrUnfinished = errors.New("writer ended without close")
	// ErrReplaced says that somebody wrote the dataset anew while it was read.
	ErrReplaced = errors.New("dataset was replaced while it was read")
	// ErrNoStep says that there is no step of that number.
	ErrNoStep = errors.New("no such step")
	// ErrClosed says that the reader was closed.
	ErrClosed = errors.New("reader is closed")
)

// plainError is a sentence for people in front of an error for programs.
type plainError struct {
	text string
	err  error
}

func (e *plainError) Error() string { return e.text }
func (e *plainError) Unwrap() error { return e.err }

// cutOff says that a file is too short.
func cutOff(format string, args ...any) error {
	return &plainError{fmt.Sprintf(format, args...), io.ErrUnexpectedEOF}
}

// IncompleteError reports a dataset that is marked closed but ends in the
// middle of a step: a copy that was cut off, or a full disk.
type IncompleteError struct {
	Path  string
	Steps int   // whole steps; they can be read
	Cause error // what is missing
}

// Error says how many whole steps there are.
func (e *IncompleteError) Error() string {
	return fmt.Sprintf("bp: %s: incomplete: %d whole steps, then: %v", e.Path, e.Steps, e.Cause)
}

// Is reports whether target is [ErrIncomplete].
func (e *IncompleteError) Is(target error) bool { return target == ErrIncomplete }

// Unwrap returns the cause.
func (e *IncompleteError) Unwrap() error { return e.Cause }

// UnfinishedError reports that no step came within Config.Timeout while the
// dataset still carries its writer's mark. A writer that died leaves that mark
// for ever; one that is merely slow looks the same.
type UnfinishedError struct {
	Path   string
	Steps  int // whole steps; they can be read
	Waited time.Duration
}

// Error says how long was waited, and what it means.
func (e *UnfinishedError) Error() string {
	return fmt.Sprintf("bp: %s: writer ended without close, or is slower than the time-out: %d whole steps, none for %v",
		e.Path, e.Steps, e.Waited.Round(time.Millisecond))
}

// Is reports whether target is [ErrUnfinished].
func (e *UnfinishedError) Is(target error) bool { return target == ErrUnfinished }

// Timeout returns true: the error came from a time-out.
func (e *UnfinishedError) Timeout() bool { return true }
