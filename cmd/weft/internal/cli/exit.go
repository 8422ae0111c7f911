package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weft-fabric/weft/bp"
	"github.com/weft-fabric/weft/sst"
)

// Exit codes.
const (
	exitOK     = 0
	exitFailed = 1
	exitUsage  = 2
	exitAtOnce = 130
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
	if !errors.Is(err, errReported) {
		fmt.Fprintf(stderr, "weft: %s\n", message(err))
	}
	if _, ok := errors.AsType[usageError](err); ok || noDataset(err) {
		return exitUsage
	}
	return exitFailed
}

// message is the text of an error as users see it.
func message(err error) string {
	if errors.Is(err, errInterrupted) || errors.Is(err, context.Canceled) {
		return errInterrupted.Error()
	}
	text := strings.ReplaceAll(err.Error(), "\n", "; ") // joined errors
	for _, pkg := range []string{"bp: ", "sst: "} {
		text = strings.TrimPrefix(text, pkg)
	}
	return printable(text)
}

// noDataset reports whether err says that the name is no whole dataset.
func noDataset(err error) bool {
	for _, target := range []error{
		bp.ErrNotBP, bp.ErrEmpty, bp.ErrStream, bp.ErrVersion, bp.ErrByteOrder, bp.ErrObjectStore, bp.ErrIncomplete, bp.ErrDamaged,
		sst.ErrContact, errNothing,
	} {
		if errors.Is(err, target) {
			return true
		}
	}
	return false
}

// args makes cobra's complaints about arguments usage errors.
func args(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, list []string) error {
		if err := check(cmd, list); err != nil {
			return usagef("%w (see weft %s --help)", err, cmd.Name())
		}
		return nil
	}
}
