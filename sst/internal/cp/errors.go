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
}

// Fault is an error that can travel between the ranks of a cohort: its text, and
// which of the known errors it is. The zero Fault is none.
type Fault struct {
	Text  string
	Kinds uint64
}

// NewFault makes a Fault of an error; of nil, the zero Fault.
func NewFault(err error) Fault {
	if err == nil {
		return Fault{}
	}
	f := Fault{Text: err.Error()}
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

func orEOF(err error) error {
	if err == nil {
		return errGone
	}
	return err
}
