package interop

import (
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weft-fabric/weft/internal/bpfixture"
	"github.com/weft-fabric/weft/internal/testutil"
	"github.com/weft-fabric/weft/interop/zoo"
)

// The command weft as its users start it, at real streams.

// buildWeft builds the command into a folder of the test.
func buildWeft(t *testing.T) string {
	t.Helper()
	return buildProgram(t, "./cmd/weft")
}

// buildProgram builds a program of the module into a folder of the test.
func buildProgram(t *testing.T, folder string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), filepath.Base(folder))
	cmd := exec.Command("go", "build", "-o", path, folder)
	cmd.Dir = testutil.ModuleRoot(t)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go build %s: %v\n%s", folder, err, out)
	}
	return path
}

// wantJSON checks what weft dump --json has printed: one line a step.
func wantJSON(t *testing.T, text string, check zoo.Check) (steps []int) {
	t.Helper()
	for line := range strings.Lines(text) {
		dec := json.NewDecoder(strings.NewReader(line))
		dec.UseNumber()
		var got map[string]any
		if err := dec.Decode(&got); err != nil {
			t.Fatalf("%v in %.80q", err, line)
		}
		takeMissing(t, got)
		n, err := check.Step(got)
		if err != nil {
			t.Error(err)
		}
		steps = append(steps, n)
	}
	return steps
}

// takeMissing checks and removes the count of elements that nobody wrote. The
// table has two of them, in one variable (layout holes), and reads them as zero.
func takeMissing(t *testing.T, step map[string]any) {
	t.Helper()
	variables, _ := step["variables"].(map[string]any)
	v, ok := variables["shape/holes"].(map[string]any)
	if !ok {
		t.Fatal("no variable shape/holes")
	}
	if got := v["missing"]; got != json.Number("2") {
		t.Errorf("shape/holes says that %v elements are missing, want 2", got)
	}
	delete(v, "missing")
}

// TestDumpOfADIOS2Stream is the second half of acceptance line 4.
func TestDumpOfADIOS2Stream(t *testing.T) {
	weft := buildWeft(t)
	for _, ranks := range []int{1, 2, 4} {
		t.Run(fmt.Sprintf("%d ranks", ranks), func(t *testing.T) {
			dir := t.TempDir()
			w := ADIOS2Writer(t, WriterOptions{Stream: Stream{Dir: dir, Ranks: ranks}, Steps: 10})
			dump := testutil.Start(t, dir, nil, weft, "dump", "--json", "--timeout", "60s", "zoo")
			if err := dump.Wait(); err != nil {
				t.Error(err)
			}
			wantAll(t, wantJSON(t, dump.Stdout(), zoo.Check{Ranks: ranks, From: zoo.ADIOS2Stream}), 10)
			w.OK()
		})
	}
}

// TestDumpOfADIOS2File: the same table from a file.
func TestDumpOfADIOS2File(t *testing.T) {
	weft := buildWeft(t)
	file := Stream{Dir: t.TempDir(), Name: "zoo.bp", Engine: "BP5", Ranks: 2}
	ADIOS2Writer(t, WriterOptions{Stream: file, Steps: 10}).OK()
	dump := testutil.Start(t, file.Dir, nil, weft, "dump", "--json", "zoo.bp")
	if err := dump.Wait(); err != nil {
		t.Error(err)
	}
	wantAll(t, wantJSON(t, dump.Stdout(), zoo.Check{Ranks: 2, From: zoo.ADIOS2File}), 10)
}

// TestPipeOfFixtures is the second half of acceptance line 6: what comes out of
// a stream that was fed from a file is what a direct dump of the file gives,
// byte for byte.
func TestPipeOfFixtures(t *testing.T) {
	weft := buildWeft(t)
	for _, name := range bpfixture.Names() {
		t.Run(name, func(t *testing.T) {
			path := bpfixture.Extract(t, name)
			dir := filepath.Dir(path)
			direct := testutil.Start(t, dir, nil, weft, "dump", "--json", path)
			directErr := direct.Wait()

			pipe := testutil.Start(t, dir, nil, weft, "pipe", path, "stream")
			eventually(t, "a contact file", func() bool {
				select {
				case <-pipe.Done():
					t.Fatalf("weft pipe ended without a reader: %v", pipe.Wait())
				default:
				}
				return exists(filepath.Join(dir, "stream.sst"))
			})
			dump := testutil.Start(t, dir, nil, weft, "dump", "--json", "--timeout", "60s", "stream")
			dumpErr, pipeErr := dump.Wait(), pipe.Wait()
			if pipeErr != nil {
				t.Errorf("weft pipe: %v", pipeErr)
			}
			if exitCode(dumpErr) != exitCode(directErr) {
				t.Errorf("weft dump of the stream: %v, of the file: %v", dumpErr, directErr)
			}
			if direct.Stdout() != dump.Stdout() {
				t.Errorf("what comes through the stream differs (-file +stream):\n%s",
					cmp.Diff(strings.Split(direct.Stdout(), "\n"), strings.Split(dump.Stdout(), "\n")))
			}
		})
	}
}

// exitCode returns the exit status that err is about, -1 for a signal.
func exitCode(err error) int {
	if err == nil {
		return 0
	}
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return exit.ExitCode()
	}
	return -2
}

// TestSoakInterruptedDump is acceptance line 11 for the command: Ctrl-C at a
// random moment of weft dump against a real writer. The next reader reads to the
// end, and the writer ends in order.
func TestSoakInterruptedDump(t *testing.T) {
	weft := buildWeft(t)
	rng := testutil.Rand(t)
	for i := range testutil.Count(t, 4, 60) {
		after := time.Duration(rng.Int64N(int64(victimSpan)))
		rendezvous := i % 2
		t.Run(fmt.Sprintf("%d/rendezvous %d, after %v", i, rendezvous, after), func(t *testing.T) {
			dir := t.TempDir()
			w := ADIOS2Writer(t, WriterOptions{
				Stream: Stream{Dir: dir, StepDelay: 25 * time.Millisecond, Params: map[string]string{"RendezvousReaderCount": fmt.Sprint(rendezvous)}, Vars: few},
				Steps:  80,
			})
			w.Expect("OPENING")
			dump := testutil.Start(t, dir, nil, weft, "dump", "--json", "--timeout", "60s", "zoo")
			<-time.After(after)
			if err := dump.Signal(syscall.SIGINT); err != nil {
				t.Fatal(err)
			}
			waited := make(chan error, 1)
			go func() { waited <- dump.Wait() }()
			// A handshake is finished first, which a real writer answers in its next EndStep.
			if code := exitCode(within(t, "leaving after Ctrl-C", 20*time.Second, waited)); code != 1 && code != 130 && code != -1 {
				t.Errorf("weft dump ended with status %d\n%s", code, dump.Stderr())
			}
			survive(t, filepath.Join(dir, "zoo"), 80)
			w.OK()
		})
	}
}
