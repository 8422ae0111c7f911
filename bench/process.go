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

// memory is the most that it had resident, in bytes; of mpirun's the most that
// one of its ranks had. It has ended.
func (p *process) memory() uint64 {
	u, ok := p.cmd.ProcessState.SysUsage().(*syscall.Rusage)
	if !ok {
		return 0
	}
	return uint64(u.Maxrss) << 10 // getrusage(2): in KiB
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

// end is one side of a stream: the ranks of Weft, or one process of ADIOS2, which
// may be an mpirun.
type end []*process

// cpu is the processor time of all of them.
func (e end) cpu() (s float64) {
	for _, p := range e {
		s += p.cpu()
	}
	return s
}

// memory is the most that one of them had.
func (e end) memory() (most uint64) {
	for _, p := range e {
		most = max(most, p.memory())
	}
	return most
}

// said is what rank 0 says, with the wrong steps of all.
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
	}
	return sum, nil
}

// all waits until every process has ended. If one fails, or ctx ends, the others
// are ended too.
func all(ctx context.Context, cancel context.CancelFunc, list ...*process) error {
	for _, p := range list {
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
	for _, p := range list {
		<-p.done
	}
	return context.Cause(ctx)
}

// errWrong says that the data were not what was written.
var errWrong = errors.New("bench: the reader got wrong data")
