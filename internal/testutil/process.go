package testutil

import (
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
)

const (
	// patience bounds each wait for a child, so that a peer that hangs fails its own test, with
	// what it said, and not the whole run by go test's timeout.
	patience = 2 * time.Minute

	// drain is how long the output of a process that has ended is waited for, when a process that
	// it left behind still holds the pipe.
	drain = 2 * time.Second

	// familyEnv marks a process and all that descend from it, as runEnv does for the whole run.
	familyEnv = "WEFT_TEST_FAMILY"
)

// Process is a child process of a test, in a process group of its own. It dies with the test, and
// with the test's process, however that ends; so does whatever it started. Its methods may be
// called from any goroutine, but those that fail the test only from the test's own.
type Process struct {
	t    testing.TB
	name string
	mark string // of its family
	cmd  *exec.Cmd
	in   io.WriteCloser
	out  transcript

	stdout, stderr lineWriter

	done chan struct{} // closed when the process is waited for and its output is read
	err  error         // of Wait; read it after done
}

// start starts cmd and sees to its end.
func start(t testing.TB, name string, cmd *exec.Cmd) *Process {
	t.Helper()
	p := &Process{t: t, name: name, cmd: cmd, done: make(chan struct{})}
	p.mark = fmt.Sprintf("%d-%016x", os.Getpid(), rand.Uint64())
	p.out.news = make(chan struct{})
	p.stdout = lineWriter{to: &p.out}
	p.stderr = lineWriter{to: &p.out, isErr: true}
	cmd.Env = append(cmd.Env, familyEnv+"="+p.mark)
	cmd.Stdout = &p.stdout
	cmd.Stderr = &p.stderr
	cmd.WaitDelay = drain
	// A group of its own, so that Kill reaches its children. A death signal for the case that the
	// test's process dies without cleaning up (a timeout of go test, kill -9).
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	p.in = in

	started := make(chan error, 1)
	go p.attend(started)
	if err := <-started; err != nil {
		t.Fatalf("starting %s: %v", name, err)
	}
	t.Cleanup(p.end)
	return p
}

// attend starts the process and waits for it on one thread, since the kernel sends the death
// signal when the *thread* that started the process ends.
func (p *Process) attend(started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	err := p.cmd.Start()
	started <- err
	if err != nil {
		return
	}
	p.err = p.cmd.Wait()
	p.stdout.flush()
	p.stderr.flush()
	p.out.finish()
	close(p.done)
}

// end is the cleanup: nothing of the process or its family is left when it returns. It shows what
// the process said if the test has failed.
func (p *Process) end() {
	p.in.Close()
	p.Kill()
	<-p.done
	p.killFamily()
	if p.t.Failed() {
		p.t.Logf("%s (pid %d, %s) said:\n%s", p.name, p.Pid(), p.cmd.ProcessState, p.Output())
	}
}

// killFamily kills who descends from the process but has left its group, as the ranks of an mpirun
// do, and returns when they are gone.
func (p *Process) killFamily() {
	deadline := time.Now().Add(settle)
	for {
		family, err := carriers(familyEnv + "=" + p.mark)
		if err != nil {
			p.t.Errorf("%s: looking for what it started: %v", p.name, err)
			return
		}
		if len(family) == 0 {
			return
		}
		if time.Now().After(deadline) {
			p.t.Errorf("%s: these outlive kill -9: %v", p.name, family)
			return
		}
		for pid := range family {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		<-time.After(time.Millisecond) // they are not our children: nothing tells us of their end
	}
}

// Pid returns the process id, which is also the id of its group.
func (p *Process) Pid() int { return p.cmd.Process.Pid }

// Kill kills the process and its group with SIGKILL, and does not wait. To kill the process alone
// use Signal.
func (p *Process) Kill() {
	select {
	case <-p.done: // the id may be another's by now
	default:
		_ = syscall.Kill(-p.Pid(), syscall.SIGKILL)
	}
}

// Signal sends a signal to the process alone. It returns os.ErrProcessDone if it has ended.
func (p *Process) Signal(sig syscall.Signal) error { return p.cmd.Process.Signal(sig) }

// Send writes a line to the process's stdin.
func (p *Process) Send(text string) {
	p.t.Helper()
	if _, err := io.WriteString(p.in, text+"\n"); err != nil {
		p.t.Fatalf("%s: sending %q: %v", p.name, text, err)
	}
}

// CloseInput ends the process's stdin.
func (p *Process) CloseInput() { p.in.Close() }

// Line returns the next line that the process wrote to stdout, waiting for it. It returns false
// when the process has ended and all its lines have been returned, or the test is over. It fails
// the test if nothing comes for two minutes.
func (p *Process) Line() (string, bool) {
	p.t.Helper()
	timeout := time.NewTimer(patience)
	defer timeout.Stop()
	for {
		text, ok, news := p.out.next()
		if ok {
			return text, true
		}
		if news == nil {
			return "", false
		}
		select {
		case <-news:
		case <-p.t.Context().Done():
			return "", false
		case <-timeout.C:
			p.t.Fatalf("%s (pid %d) has written no line for %v", p.name, p.Pid(), patience)
		}
	}
}

// Expect waits for a line of stdout that starts with prefix, passing over others, and returns what
// follows the prefix. It fails the test if the process ends first.
func (p *Process) Expect(prefix string) string {
	p.t.Helper()
	for {
		text, ok := p.Line()
		if !ok {
			p.t.Fatalf("%s ended without a line that starts with %q", p.name, prefix)
		}
		if rest, ok := strings.CutPrefix(text, prefix); ok {
			return rest
		}
	}
}

// Wait closes stdin, waits until the process ends and returns nil, or an error that holds the
// *exec.ExitError and what the process said on stderr. It waits for two minutes at most.
func (p *Process) Wait() error {
	p.in.Close()
	timeout := time.NewTimer(patience)
	defer timeout.Stop()
	select {
	case <-p.done:
	case <-p.t.Context().Done():
		return fmt.Errorf("%s (pid %d) still runs: %w", p.name, p.Pid(), p.t.Context().Err())
	case <-timeout.C:
		return fmt.Errorf("%s (pid %d) still runs after %v", p.name, p.Pid(), patience)
	}
	if p.err != nil {
		return fmt.Errorf("%s (pid %d): %w\n%s", p.name, p.Pid(), p.err, p.Stderr())
	}
	return nil
}

// Done returns a channel that is closed when the process has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Output returns all that the process has said up to now, stdout and stderr as they came.
func (p *Process) Output() string { return p.out.text(func(line) bool { return true }) }

// Stdout returns what the process has said on stdout up to now.
func (p *Process) Stdout() string { return p.out.text(func(l line) bool { return !l.isErr }) }

// Stderr returns what the process has said on stderr up to now.
func (p *Process) Stderr() string { return p.out.text(func(l line) bool { return l.isErr }) }
