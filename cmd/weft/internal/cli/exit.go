package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"syscall"

	"github.com/weft-fabric/weft/bp"
	"github.com/weft-fabric/weft/sst"
)

// Exit codes.
const (
	exitOK     = 0
	exitFailed = 1
	exitUsage  = 2
	exitAtOnce = 130 // 128 + SIGINT
	exitPipe   = 141 // 128 + SIGPIPE
)

// usageError is an error of whoever typed the command.
type usageError struct{ err error }

func (e usageError) Error() string { return e.err.Error() }
func (e usageError) Unwrap() error { return e.err }

func usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// errReported says that stderr has been told already.
var errReported = errors.New("some things could not be done")

// exitCode turns the error of a command into its exit code, and says it.
func exitCode(stderr io.Writer, err error) int {
	if err == nil {
		return exitOK
	}
	if errors.Is(err, syscall.EPIPE) && toStdout(err) {
		return exitPipe // whoever read the output has left, and knows
	}
	if !errors.Is(err, errReported) {
		fmt.Fprintf(stderr, "weft: %s\n", message(err))
	}
	return codeOf(err)
}

// codeOf is the exit code of an error.
func codeOf(err error) int {
	if err == nil {
		return exitOK
	}
	if known, ok := errors.AsType[interface {
		error
		exitCode() int
	}](err); ok {
		return known.exitCode()
	}
	if _, ok := errors.AsType[usageError](err); ok || noDataset(err) {
		return exitUsage
	}
	return exitFailed
}

// toStdout reports whether err comes from writing the output, with or without
// help of an [output].
func toStdout(err error) bool {
	path, ok := errors.AsType[*fs.PathError](err)
	return isOutput(err) || ok && path.Path == os.Stdout.Name()
}

// message is the text of an error as users see it.
func message(err error) string {
	if w, ok := errors.AsType[*interruptedWait](err); ok {
		return printable(w.Error())
	}
	if errors.Is(err, errInterrupted) || errors.Is(err, context.Canceled) {
		return errInterrupted.Error()
	}
	text := oneLine(err.Error())
	for _, pkg := range []string{"bp: ", "sst: ", "fabric: "} {
		text = strings.TrimPrefix(text, pkg)
	}
	return printable(text)
}

// oneLine puts the lines of joined errors behind each other.
func oneLine(text string) string { return strings.ReplaceAll(text, "\n", "; ") }

// noDataset reports whether err says that the name is no whole dataset, or that
// a parameter is for the other side of a stream.
func noDataset(err error) bool {
	for _, target := range []error{
		bp.ErrNotBP, bp.ErrEmpty, bp.ErrStream, bp.ErrVersion, bp.ErrByteOrder, bp.ErrObjectStore, bp.ErrIncomplete, bp.ErrDamaged,
		sst.ErrContact, sst.ErrParam, errNothing,
	} {
		if errors.Is(err, target) {
			return true
		}
	}
	return false
}
