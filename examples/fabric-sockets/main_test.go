package main

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// TestMain lets the test binary stand for the program.
func TestMain(m *testing.M) {
	if os.Getenv("EXAMPLE_MAIN") != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

func program(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self, args...)
	cmd.Env = append(os.Environ(), "EXAMPLE_MAIN=1")
	return cmd
}

func TestTwoProcesses(t *testing.T) {
	name := fmt.Sprintf("weft-example-%d", os.Getpid())
	server := program(t, "listen", name)
	out, err := server.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = server.Wait() }()
	defer server.Process.Kill()
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil || !strings.Contains(line, "shm://"+name) {
		t.Fatalf("%q, %v", line, err)
	}
	long := strings.Repeat("long ", 300)
	for text, want := range map[string]string{"hello there": "hello there\n", "again": "again\n", long: long[:1000] + "\n"} { // one after the other, whatever comes
		got, err := program(t, name, text).CombinedOutput()
		if err != nil || string(got) != want {
			t.Errorf("%q, %v", got, err)
		}
	}
	_, quoted, _ := strings.Cut(line, "'")
	printed, _, _ := strings.Cut(quoted, "'")
	if got, err := program(t, printed, "hello").CombinedOutput(); err != nil || string(got) != "hello\n" {
		t.Errorf("at %q: %q, %v", printed, got, err)
	}
	if got, err := program(t).CombinedOutput(); err == nil || !strings.Contains(string(got), "usage: ") {
		t.Errorf("%q, %v", got, err)
	}
}
