package sst

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/weft-fabric/weft/internal/wire/cm"
	"github.com/weft-fabric/weft/sst/internal/carrier"
)

// finder waits for a contact file with a live writer behind it.
type finder struct {
	path    string
	session *Session
	user    linkUser // of the link; nil if it need not be told of its loss
	// impatient says not to wait for another writer if the file's own is gone.
	impatient bool

	file contactFile
	link carrier.Link
	dead deadFile

	mu   sync.Mutex
	last error // why the last look was not enough
}

// find returns once a connection to the writer is up. A file whose owner does
// not answer counts as not there yet: a new writer may be about to replace it.
func (f *finder) find(ctx context.Context) error {
	start := time.Now()
	defer explain(ctx, f.session.log, func() (string, []any) { return f.explanation(ctx) })()
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	for {
		err := f.look(ctx)
		if err == nil || f.final(err) {
			return err
		}
		if f.impatient && f.dead.tries > 1 && errors.Is(err, ErrStale) { // not just being replaced
			return fmt.Errorf("%w%s", err, f.age())
		}
		if ctx.Err() == nil { // else it says no more than that the time is up
			f.setReason(err)
		}
		select {
		case <-ctx.Done():
			return f.giveUp(ctx, start)
		case <-f.session.gone:
			return fmt.Errorf("session: %w", ErrClosed)
		case <-tick.C:
		}
	}
}

// explanation says what the wait is for.
func (f *finder) explanation(ctx context.Context) (string, []any) {
	reason := f.reason()
	args := append([]any{"path", f.path, "reason", reason}, until(ctx)...)
	if errors.Is(reason, ErrStale) {
		return "the contact file is of a writer that is gone; waiting for a new one to replace it", args
	}
	return "waiting for the writer's contact file", args
}

// look tries once. Whoever does not answer is asked again after a while only,
// unless the file changes.
func (f *finder) look(ctx context.Context) (err error) {
	f.file, err = readContact(f.path)
	if err != nil {
		return err
	}
	addr, err := f.file.contact.Addr()
	if err != nil {
		return fmt.Errorf("%s: %w", f.path, err)
	}
	if err := f.dead.known(f.file, time.Now()); err != nil {
		return err
	}
	if f.reason() == nil {
		f.setReason(fmt.Errorf("%s: no answer from %v; is the writer stopped?", f.path, addr))
	}
	f.link, err = f.session.dial(ctx, f.file.contact, f.user)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, ErrTimeout) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded):
		return fmt.Errorf("%s: no answer from %v; is the writer stopped? %w", f.path, addr, err)
	case noWay(err):
		return fmt.Errorf("%s: %v, where the writer is, cannot be reached from here; is it on another network, or in another network namespace? %w", f.path, addr, err)
	}
	err = fmt.Errorf("%s: %w: nobody of that name at %v; start it again, or remove the file: %w", f.path, ErrStale, addr, err)
	f.dead.note(f.file, time.Now(), err)
	return err
}

// noWay reports whether it is this side that does not get anywhere near the writer, which may live.
func noWay(err error) bool {
	return errors.Is(err, syscall.ENETUNREACH) || errors.Is(err, syscall.EHOSTUNREACH) || errors.Is(err, syscall.EADDRNOTAVAIL) || errors.Is(err, syscall.ENETDOWN)
}

// final reports whether waiting longer cannot help.
func (f *finder) final(err error) bool {
	return errors.Is(err, fs.ErrPermission) || errors.Is(err, ErrContact) || errors.Is(err, cm.ErrNoAddress) || errors.Is(err, ErrClosed)
}

func (f *finder) reason() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.last
}

func (f *finder) setReason(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.last = err
}

// giveUp makes the error of a search that has ended.
func (f *finder) giveUp(ctx context.Context, start time.Time) error {
	cause, last := context.Cause(ctx), f.reason()
	switch {
	case errors.Is(last, fs.ErrNotExist):
		hint := ""
		if _, err := os.Stat(filepath.Dir(f.path)); err != nil {
			hint = " (its folder does not exist)"
		} else if near := similarStreams(f.path); near != nil {
			hint = " (the folder has: " + strings.Join(near, ", ") + ")"
		}
		return fmt.Errorf("%s: %w%s: %w", f.path, ErrNoStream, hint, cause)
	case last != nil:
		return fmt.Errorf("%w%s: %w", last, f.age(), cause)
	}
	return fmt.Errorf("%s: after %v: %w", f.path, time.Since(start).Round(time.Millisecond), cause)
}

// age says how old the contact file is.
func (f *finder) age() string {
	st, err := os.Stat(f.path)
	if err != nil {
		return ""
	}
	return fmt.Sprintf(" (the file is %v old)", time.Since(st.ModTime()).Round(time.Second))
}

// ask takes the contact from a person's input (RegistrationMethod Screen).
func (f *finder) ask(ctx context.Context, in io.Reader) error {
	if in == nil {
		in = os.Stdin
	}
	defer explain(ctx, f.session.log, func() (string, []any) {
		return "waiting for the line that the writer has printed", append([]any{"stream", f.path}, until(ctx)...)
	})()
	var err error
	if f.file, err = readScreenWithin(ctx, in); err != nil {
		return err
	}
	addr, err := f.file.contact.Addr()
	if err == nil {
		f.link, err = f.session.dial(ctx, f.file.contact, f.user)
	}
	if err != nil {
		return fmt.Errorf("%w: nobody of that name at %v: %w", ErrStale, addr, err)
	}
	return nil
}

// readScreenWithin is readScreen that ends with ctx. If the input knows no
// deadline, what is blocked in it stays so until there is a line.
func readScreenWithin(ctx context.Context, in io.Reader) (contactFile, error) {
	type result struct {
		file contactFile
		err  error
	}
	done := make(chan result, 1)
	go func() {
		file, err := readScreen(in)
		done <- result{file, err}
	}()
	select {
	case r := <-done:
		return r.file, r.err
	case <-ctx.Done():
	}
	if d, ok := in.(interface{ SetReadDeadline(time.Time) error }); ok && d.SetReadDeadline(time.Now()) == nil {
		<-done
		_ = d.SetReadDeadline(time.Time{})
	}
	return contactFile{}, fmt.Errorf("no contact was entered: %w", context.Cause(ctx))
}
