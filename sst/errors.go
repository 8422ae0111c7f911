package sst

import (
	"errors"
	"fmt"

	"github.com/weft-fabric/weft/sst/internal/cp"
)

// Errors of streams; test with errors.Is. What a call returns is an [*Error]
// that wraps one of them, or an error of the operating system.
var (
	// ErrClosed says that the stream or session was closed by this program.
	ErrClosed = cp.ErrClosed
	// ErrOrder says that a call came out of order, such as BeginStep while a step is open.
	ErrOrder = cp.ErrOutOfOrder
	// ErrTimeout says that OpenTimeoutSecs passed.
	ErrTimeout = cp.ErrTimeout
	// ErrNoStream says that no contact file of the name was found.
	ErrNoStream = cp.ErrNoStream
	// ErrStale says that a contact file exists but nobody answers at its address.
	ErrStale = cp.ErrStale
	// ErrContact says that a contact file makes no sense.
	ErrContact = cp.ErrContact
	// ErrPlane says that the two sides have no data plane in common.
	ErrPlane = cp.ErrPlane
	// ErrMarshal says that the writer uses a marshalling method other than BP5.
	ErrMarshal = cp.ErrMarshal
	// ErrWriterFailed says that the writer is gone without having closed the stream.
	ErrWriterFailed = cp.ErrWriterLost
	// ErrReaderFailed says that a reader is gone without having closed.
	ErrReaderFailed = cp.ErrReaderLost
	// ErrRankFailed says that another rank of the same cohort is gone.
	ErrRankFailed = cp.ErrRankLost
	// ErrEvicted says that the writer detached a reader that lagged too far behind.
	ErrEvicted = cp.ErrEvicted
	// ErrAborted says that Writer.Abort ended the stream.
	ErrAborted = cp.ErrAborted
	// ErrStepAborted says that a rank of the writer gave a step up: nothing of it
	// was sent, and its number is used again.
	ErrStepAborted = cp.ErrStepAborted
	// ErrStepGone says that an observer was still looking at a step when the stream
	// ended: a writer does not wait for observers.
	ErrStepGone = cp.ErrStepGone
	// ErrParam says that an engine parameter is unknown, misplaced or out of range.
	ErrParam = cp.ErrParam
	// ErrProtocol says that the peer broke the protocol.
	ErrProtocol = cp.ErrProtocol
	// ErrNoStat says that a writer has no statistics to ask for: it is not Weft.
	ErrNoStat = errors.New("the writer is ADIOS2: it has no statistics; `weft ls` attaches as a reader")
)

// ErrorRank returns the rank of the own cohort at which an error began: one that
// told the others of it, or whose end they noticed. All ranks get the error of
// one, so a program can leave the report to that one, if it is still there. It is
// false for what this rank met and told nobody, and for what began at no rank of
// the cohort, such as the end of the other side.
func ErrorRank(err error) (rank int, ok bool) { return cp.ErrorRank(err) }

// Error is the error of an operation on a stream.
type Error struct {
	Op     string // "open", "begin step", ...
	Stream string // name of the stream
	Peer   string // address of the other side, if known
	Err    error
}

// Error renders "sst: open sim (127.0.0.1:4711): cause".
func (e *Error) Error() string {
	if e.Peer == "" {
		return fmt.Sprintf("sst: %s %s: %v", e.Op, e.Stream, e.Err)
	}
	return fmt.Sprintf("sst: %s %s (%s): %v", e.Op, e.Stream, e.Peer, e.Err)
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Timeout reports whether a time limit caused the error.
func (e *Error) Timeout() bool { return errors.Is(e.Err, ErrTimeout) }
