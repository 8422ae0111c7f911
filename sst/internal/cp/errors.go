package cp

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strconv"
)

// Errors of streams. Package sst documents and exports those that users test for.
var (
	ErrClosed      = errors.New("closed")
	ErrOutOfOrder  = errors.New("call out of order")
	ErrTimeout     = errors.New("timed out")
	ErrNoStream    = errors.New("no contact file")
	ErrStale       = errors.New("contact file of a writer that is gone")
	ErrContact     = errors.New("not a contact file")
	ErrPlane       = errors.New("data plane not available here")
	ErrMarshal     = errors.New("marshalling method not supported")
	ErrWriterLost  = errors.New("writer failed")
	ErrReaderLost  = errors.New("reader failed")
	ErrRankLost    = errors.New("a rank of the cohort failed")
	ErrEvicted     = errors.New("evicted: slow")
	ErrParam       = errors.New("bad parameter")
	ErrProtocol    = errors.New("protocol violated")
	ErrTooLate     = errors.New("the writer ended before it knew of us") // looking again does no harm
	ErrStepAborted = errors.New("step given up")
	ErrAborted     = errors.New("writer aborted")
	ErrStepGone    = errors.New("the writer has let go of the step: it waits for no observer")
	errUnexpected  = errors.New("unexpected message")
	errBadResponse = errors.New("response makes no sense")
	errGone        = errors.New("connection closed")
)

// differing says in which parameters a rank differs from rank 0. The text of
// parameters names only those that are not at their defaults.
func differing(its, rank0 string) string {
	text := func(params string) string {
		if params == "" {
			return "only defaults"
		}
		return strconv.Quote(params)
	}
	return fmt.Sprintf("it has %s, rank 0 has %s", text(its), text(rank0))
}

// kinds are the errors that keep their identity on the way to another rank; bit
// i of Fault.Kinds stands for kinds[i]. New ones go to the end.
var kinds = [...]error{
	ErrClosed, ErrOutOfOrder, ErrTimeout, ErrNoStream, ErrStale, ErrContact, ErrPlane, ErrMarshal,
	ErrWriterLost, ErrReaderLost, ErrRankLost, ErrEvicted, ErrParam, ErrProtocol, ErrTooLate, ErrStepAborted,
	fs.ErrNotExist, fs.ErrPermission, fs.ErrExist, context.Canceled, context.DeadlineExceeded,
	ErrAborted, ErrStepGone,
}

// Fault is an error that can travel between the ranks of a cohort: its text,
// which of the known errors it is, and which rank it began at. The zero Fault is
// none.
type Fault struct {
	Text  string
	Kinds uint64
	Rank  int64 // from 1: that of member 0; 0 if it began at none of them
}

// NewFault makes a Fault of an error; of nil, the zero Fault.
func NewFault(err error) Fault {
	if err == nil {
		return Fault{}
	}
	f := Fault{Text: err.Error()}
	if rank, ok := ErrorRank(err); ok {
		f.Rank = int64(rank) + 1
	}
	for i, k := range kinds {
		if errors.Is(err, k) {
			f.Kinds |= 1 << i
		}
	}
	return f
}

// None reports whether f is no fault.
func (f Fault) None() bool { return f == Fault{} }

// Err returns f as an error, nil for the zero Fault.
func (f Fault) Err() error {
	if f.None() {
		return nil
	}
	return f
}

// Error returns the text.
func (f Fault) Error() string { return f.Text }

// Is reports whether the error that became f was target.
func (f Fault) Is(target error) bool {
	for i, k := range kinds {
		if f.Kinds&(1<<i) != 0 && k == target {
			return true
		}
	}
	return false
}

// errorRank implements placed.
func (f Fault) errorRank() (int, bool) { return int(f.Rank - 1), f.Rank > 0 }

// placed is an error that knows at which rank of the cohort it began.
type placed interface {
	error
	errorRank() (int, bool)
}

// ErrorRank returns the rank of the cohort at which an error began, if it says so.
func ErrorRank(err error) (int, bool) {
	if p, ok := errors.AsType[placed](err); ok {
		return p.errorRank()
	}
	return 0, false
}

// rankError is an error that began at a rank.
type rankError struct {
	rank int
	error
}

func (e *rankError) Unwrap() error { return e.error }

// errorRank implements placed.
func (e *rankError) errorRank() (int, bool) { return e.rank, true }

// At says at which rank of the cohort an error began, unless the error knows.
func At(rank int, err error) error {
	if _, known := ErrorRank(err); known {
		return err
	}
	return &rankError{rank, err}
}

func orEOF(err error) error {
	if err == nil {
		return errGone
	}
	return err
}
