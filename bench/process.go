package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// killDelay is how long a process may take to go when it was asked to.
const killDelay = 2 * time.Second

// command returns a command in a process group of its own, so that an interrupt
// from the terminal comes to us alone. It is killed with all that it started
// when ctx ends.
func command(ctx context.Context, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = killDelay
	return cmd
}

// process is one writer or reader that runs.
type process struct {
	what  string
	cmd   *exec.Cmd
	stdin io.Closer
	out   bytes.Buffer
	errs  bytes.Buffer
	done  chan struct{} // closed when it has ended, with err set
	err   error
}

// start starts a process. Its stdin stays open as long as we live: its end tells
// it that we are gone.
func start(what string, cmd *exec.Cmd) (*process, error) {
	p := &process{what: what, cmd: cmd, done: make(chan struct{})}
	cmd.Stdout, cmd.Stderr = &p.out, &p.errs
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	p.stdin = in
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	go func() {
		p.err = cmd.Wait()
		close(p.done)
	}()
	return p, nil
}

// cpu is the processor time that it took, in seconds. It has ended.
func (p *process) cpu() float64 {
	s := p.cmd.ProcessState
	return (s.UserTime() + s.SystemTime()).Seconds()
}

// said returns the last line of what it said. It has ended.
func (p *process) said() (said, error) {
	if p.err != nil {
		return said{}, fmt.Errorf("%s: %w\n%s", p.what, p.err, tail(p.errs.String(), 10))
	}
	var s said
	line := tail(strings.TrimSpace(p.out.String()), 1)
	if err := json.Unmarshal([]byte(line), &s); err != nil {
		return said{}, fmt.Errorf("%s said %q: %w", p.what, line, err)
	}
	return s, nil
}

// both waits until both ends of a stream have ended. If one fails, or ctx ends,
// the other is ended too.
func both(ctx context.Context, cancel context.CancelFunc, w, r *process) error {
	for _, p := range []*process{w, r} {
		go func() {
			select {
			case <-p.done:
				if p.err != nil {
					cancel()
				}
			case <-ctx.Done():
			}
		}()
	}
	<-w.done
	<-r.done
	return context.Cause(ctx)
}

// errWrong says that the data were not what was written.
var errWrong = errors.New("bench: the reader got wrong data")
