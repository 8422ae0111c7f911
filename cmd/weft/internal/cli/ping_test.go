package cli

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/weft-fabric/weft/internal/ping"
)

// selfEnv is an environment in which this test binary stands for the command.
func selfEnv(t *testing.T, out io.Writer) (Env, *bytes.Buffer) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	errs := new(bytes.Buffer)
	return Env{Stdin: strings.NewReader(""), Stdout: out, Stderr: errs, Self: [2]string{self, "weft"}}, errs // see TestMain
}

// onOutput calls seen, once, with what an expression finds in the output.
type onOutput struct {
	bytes.Buffer
	re   *regexp.Regexp
	seen func(string)
	once sync.Once
}

func (w *onOutput) Write(b []byte) (int, error) {
	n, err := w.Buffer.Write(b)
	if m := w.re.FindStringSubmatch(w.String()); m != nil {
		w.once.Do(func() { w.seen(m[1]) })
	}
	return n, err
}

func TestPingTwoTerminals(t *testing.T) {
	r, w := io.Pipe()
	listenEnv, listenErrs := selfEnv(t, w)
	code := make(chan int, 1)
	go func() {
		code <- Run(t.Context(), listenEnv, []string{"ping", "--listen", "--json"})
		w.Close()
	}()
	var at struct{ Address string }
	if err := json.NewDecoder(r).Decode(&at); err != nil {
		t.Fatal(err, listenErrs)
	}
	go func() { _, _ = io.Copy(io.Discard, r) }()
	var out bytes.Buffer
	env, errs := selfEnv(t, &out)
	if code := Run(t.Context(), env, []string{"ping", "--connect", at.Address, "--op", "read", "--size", "8,2k", "--iters", "30", "--json"}); code != exitOK {
		t.Errorf("exit code %d: %s", code, errs)
	}
	if code := <-code; code != exitOK {
		t.Errorf("the listener: exit code %d: %s", code, listenErrs)
	}
	var sizes []int
	for lines := json.NewDecoder(&out); ; {
		var res ping.Result
		if err := lines.Decode(&res); err != nil {
			if !errors.Is(err, io.EOF) {
				t.Error(err)
			}
			break
		}
		sizes = append(sizes, res.Size)
	}
	if len(sizes) != 2 || sizes[0] != 8 || sizes[1] != 2048 {
		t.Errorf("sizes %v", sizes)
	}
}

// kill kills a process of this test.
func kill(t *testing.T, pid string) {
	n, err := strconv.Atoi(pid)
	if err != nil || n < 2 {
		t.Errorf("pid %q", pid)
		return
	}
	if err := syscall.Kill(n, syscall.SIGKILL); err != nil {
		t.Error(err)
	}
}

// The peer process is killed before anything is measured, which the head of the table announces, and after the first size.
func TestPingPeerDies(t *testing.T) {
	for i, op := range ping.Ops {
		for j, wait := range ping.Waits {
			when := []string{`peer process ([0-9]+)\n`, `peer process ([0-9]+)\n(?s:.*)\n +8 `}[(i+j)%2]
			out := &onOutput{re: regexp.MustCompile(when), seen: func(pid string) { kill(t, pid) }}
			env, errs := selfEnv(t, out)
			code := Run(t.Context(), env, []string{"ping", "--op", string(op), "--wait", string(wait), "--size", "8,64K", "--iters", "20000"})
			if text := errs.String(); code != exitFailed || !strings.Contains(text, "peer") || strings.Count(text, "\n") != 1 {
				t.Errorf("%s, %s: exit code %d, %q", op, wait, code, text)
			}
		}
	}
}

// So is whoever listens.
func TestPingListenerDies(t *testing.T) {
	env, _ := selfEnv(t, nil)
	listener := exec.Command(env.Self[0], "ping", "--listen", "--json")
	listener.Args[0] = env.Self[1]
	stdout, err := listener.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := listener.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Wait() }()
	defer listener.Process.Kill()
	line, err := bufio.NewReader(stdout).ReadBytes('\n')
	if err != nil {
		t.Fatal(err)
	}
	var at struct{ Address string }
	if err := json.Unmarshal(line, &at); err != nil {
		t.Fatal(err)
	}
	out := &onOutput{re: regexp.MustCompile(`("size":8)`), seen: func(string) { _ = listener.Process.Kill() }}
	env, errs := selfEnv(t, out)
	code := Run(t.Context(), env, []string{"ping", "--connect", at.Address, "--size", "8,64K", "--json"})
	if code != exitFailed || !strings.Contains(errs.String(), "peer is gone") && !strings.Contains(errs.String(), "reached") {
		t.Errorf("exit code %d, %q", code, errs)
	}
}

// A peer process that is none.
func TestPingNoPeer(t *testing.T) {
	for path, want := range map[string]string{
		"/bin/false": "peer process: ping-peer: exit status 1", "/bin/true": "ended before it listened", "/nothere": "no such file", "/bin/echo": "",
	} {
		var out bytes.Buffer
		env, errs := selfEnv(t, &out)
		env.Self = [2]string{path, "weft"}
		code := Run(t.Context(), env, []string{"ping"})
		if code == exitOK || !strings.Contains(errs.String(), want) || strings.Contains(errs.String(), "demo") || out.Len() > 0 {
			t.Errorf("%s: exit code %d, stdout %q, stderr %q", path, code, &out, errs)
		}
	}
}

// Nobody reads the results.
func TestPingOutputFails(t *testing.T) {
	env, errs := selfEnv(t, openFull(t))
	for _, provider := range []string{"shm", "loop"} {
		if code := Run(t.Context(), env, []string{"ping", "--provider", provider, "--iters", "10"}); code != exitFailed || !strings.Contains(errs.String(), "no space left") {
			t.Errorf("%s: exit code %d, %q", provider, code, errs)
		}
	}
}
