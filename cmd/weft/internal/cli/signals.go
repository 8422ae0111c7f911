package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"
)

// errInterrupted is the cause of a context that a signal ended.
var errInterrupted = errors.New("interrupted")

// interruptedWait is a wait that a signal ended. Who has waited for long wants to
// know what for.
type interruptedWait struct{ err error }

// Error says so, and then what the wait was for.
func (w *interruptedWait) Error() string {
	text := errInterrupted.Error()
	return text + ": " + strings.Replace(w.err.Error(), ": "+text, "", 1)
}

// Unwrap returns what the wait has ended with.
func (w *interruptedWait) Unwrap() error { return w.err }

// doublePress is how long after the first signal further ones are taken for the
// same wish: leaving at once can take the writer's process down.
const doublePress = time.Second

// signals returns a context that the first SIGINT, SIGTERM or SIGHUP ends: a
// terminal that is closed must not kill this process in the middle of an
// opening. A later one ends the process: whatever is still being waited for is
// given up.
func signals(stderr io.Writer) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(context.Background())
	ch := make(chan os.Signal, 2)
	watched := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) { // nohup
		watched = append(watched, syscall.SIGHUP)
	}
	signal.Notify(ch, watched...)
	// Being asked for, it does not kill: writing to a pipe that nobody reads is an
	// error then, and the command cleans up.
	broken := make(chan os.Signal, 1)
	signal.Notify(broken, syscall.SIGPIPE)
	done := make(chan struct{})
	go func() {
		var p patience
		for {
			select {
			case <-done:
				return
			case sig := <-ch:
				switch p.take(sig, time.Now()) {
				case endCleanly:
					cancel(errInterrupted)
				case leaveAtOnce:
					fmt.Fprintln(stderr, "weft: left at once")
					os.Exit(exitAtOnce)
				case takeNoNotice:
				}
			}
		}
	}()
	return ctx, func() {
		signal.Stop(ch)
		signal.Stop(broken)
		close(done)
		cancel(nil)
	}
}

// reaction is what a signal leads to.
type reaction int

const (
	takeNoNotice reaction = iota
	endCleanly
	leaveAtOnce
)

// patience tells an impatient double press from the wish to leave at once.
type patience struct{ first time.Time }

// take returns what a signal that came now leads to.
func (p *patience) take(sig os.Signal, now time.Time) reaction {
	switch {
	case p.first.IsZero():
		p.first = now
		return endCleanly
	case sig == syscall.SIGHUP: // shell and kernel send one each
		return takeNoNotice
	case now.Sub(p.first) < doublePress:
		return takeNoNotice
	}
	return leaveAtOnce
}
