package cli

import (
	"bufio"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/weft-fabric/weft/internal/testutil"
)

// startListener starts a command that is a weft ping --listen --json, and returns the address that it prints. It has ended, well, at
// the end of the test.
func startListener(t *testing.T, cmd *exec.Cmd) string {
	t.Helper()
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var errs strings.Builder
	cmd.Stderr = &errs
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			_ = cmd.Process.Kill()
		}
		if err := cmd.Wait(); err != nil {
			t.Errorf("the listener: %v: %s", err, &errs)
		}
	})
	var at struct{ Address string }
	line, err := bufio.NewReader(stdout).ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(line, &at)
	}
	if err != nil {
		t.Fatal(err)
	}
	return at.Address
}

// Two network namespaces, as two containers have them, meet by a folder that both see.
func TestPingTwoNetworkNamespaces(t *testing.T) {
	testutil.Require(t, testutil.Superuser(), testutil.Program("unshare"))
	env, errs := selfEnv(t, new(strings.Builder))
	// The shell's $0 is what the test binary is called by when it is to be the command.
	addr := startListener(t, exec.Command("unshare", "--net", "bash", "-c", `exec -a "$0" "$@"`, env.Self[1], env.Self[0],
		"ping", "--listen", "--json", "--option", "folder="+t.TempDir()))
	if code := Run(t.Context(), env, []string{"ping", "--connect", addr, "--size", "8", "--iters", "30"}); code != exitOK {
		t.Errorf("exit code %d: %s", code, errs)
	}
}

// Two users meet if each has let the other one in. A refusal does not end the listener.
func TestPingTwoUsers(t *testing.T) {
	testutil.Require(t, testutil.Superuser())
	const user = 12345
	dir := t.TempDir()
	for d := dir; d != filepath.Clean(os.TempDir()) && d != "/"; d = filepath.Dir(d) {
		if err := os.Chmod(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	env, errs := selfEnv(t, new(strings.Builder))
	self := filepath.Join(dir, "weft") // the test binary is in a folder that others do not see
	b, err := os.ReadFile(env.Self[0])
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(self, b, 0o755); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, "ping", "--listen", "--json", "-o", "allow-uid=0")
	cmd.Args[0] = env.Self[1]
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: user, Gid: user}}
	addr := startListener(t, cmd)
	args := []string{"ping", "--connect", addr, "--size", "8", "--iters", "30"}
	if code := Run(t.Context(), env, args); code != exitFailed || !strings.Contains(errs.String(), "allow-uid") {
		t.Errorf("without allow-uid: exit code %d: %s", code, errs)
	}
	errs.Reset()
	if code := Run(t.Context(), env, append(args, "-o", "allow-uid=12345")); code != exitOK {
		t.Errorf("exit code %d: %s", code, errs)
	}
}

// Both processes of one ping have the options: two endpoints listen in the folder.
func TestPingOptionsOfBoth(t *testing.T) {
	dir := t.TempDir()
	sockets := 0
	out := &onOutput{re: regexp.MustCompile(`peer (process) [0-9]+\n`), seen: func(string) {
		list, err := filepath.Glob(filepath.Join(dir, "*.sock"))
		if err != nil {
			t.Error(err)
		}
		sockets = len(list)
	}}
	env, errs := selfEnv(t, out)
	if code := Run(t.Context(), env, []string{"ping", "--size", "8", "--iters", "30", "-o", "folder=" + dir}); code != exitOK || sockets != 2 {
		t.Errorf("exit code %d, %d sockets: %s", code, sockets, errs)
	}
}
