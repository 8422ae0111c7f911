package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"regexp"
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

// said returns the last line of what it said. It has ended.
func (p *process) said() (said, error) {
	if p.err != nil {
		return said{}, fmt.Errorf("%s: %w\n%s", p.what, p.err, tail(p.errs.String(), 10))
	}
	var s said
	line := lastObject(p.out.String())
	if err := json.Unmarshal([]byte(line), &s); err != nil {
		return said{}, fmt.Errorf("%s said %q: %w", p.what, line, err)
	}
	return s, nil
}

// end is one side of a stream: the ranks of Weft, or one process of ADIOS2, which
// may be an mpirun.
type end []*process

// said is what rank 0 says, with the wrong steps and the processor time of all, and the memory of the largest.
func (e end) said() (said, error) {
	var sum said
	for i, p := range e {
		s, err := p.said()
		if err != nil {
			return said{}, err
		}
		if i == 0 {
			sum = s
			continue
		}
		sum.Bad += s.Bad
		sum.CPU += s.CPU
		sum.Memory = max(sum.Memory, s.Memory)
	}
	return sum, nil
}

// lastObject is the last line that looks like a JSON object, or what there is instead: libraries of ADIOS2 say
// something at their end, also on stdout.
func lastObject(text string) string {
	last := tail(text, 1)
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "{") {
			last = line
		}
	}
	return strings.TrimSpace(last)
}

// why is how it failed, in one line.
func (p *process) why() error {
	first, _, _ := strings.Cut(strings.TrimSpace(p.errs.String()), "\n")
	if first == "" {
		return fmt.Errorf("%s: %w", p.what, p.err)
	}
	return fmt.Errorf("%s: %w: %s", p.what, p.err, first)
}

// errPlane says that ADIOS2 has not got the data plane that it was told to use. It takes another one then.
var errPlane = errors.New("bench: no such data plane")

// ADIOS2's words are: Warning:  Perferred DataPlane "rdma" is not available.
var planeLine = regexp.MustCompile(`(?m)DataPlane .* is not available`)

// plane returns an error if a process took another data plane than it should.
func (e end) plane() error {
	for _, p := range e {
		if m := planeLine.FindString(p.out.String() + "\n" + p.errs.String()); m != "" {
			return fmt.Errorf("%w: %s says: %s", errPlane, p.what, m)
		}
	}
	return nil
}

// all waits until every process has ended. If one fails, or ctx ends, the others
// are ended too.
func all(ctx context.Context, cancel context.CancelCauseFunc, list ...*process) error {
	for _, p := range list {
		go func() {
			select {
			case <-p.done:
				if p.err != nil {
					cancel(p.why())
				}
			case <-ctx.Done():
			}
		}()
	}
	for _, p := range list {
		<-p.done
	}
	return context.Cause(ctx)
}

// errWrong says that the data were not what was written.
var errWrong = errors.New("bench: the reader got wrong data")
