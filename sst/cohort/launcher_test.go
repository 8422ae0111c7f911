package cohort

import (
	"bufio"
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/weft-fabric/weft/internal/testutil"
	"github.com/weft-fabric/weft/sst/internal/tcp"
)

// lines is a Handler that hands on what comes as text.
type lines chan string

func (l lines) Message(from int, msg []byte) { l <- fmt.Sprintf("%d: %s", from, msg) }
func (l lines) Lost(rank int, err error)     { l <- fmt.Sprintf("lost %d: %v", rank, err) }

// launchedRank makes a rank of a launched process and joins a channel.
func launchedRank(config LauncherConfig) (Cohort, Channel, lines, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	c, err := FromLauncher(ctx, config)
	if err != nil {
		return nil, nil, nil, err
	}
	said := make(lines, 1024)
	ch, err := c.Join("s", said)
	if err != nil {
		_ = c.Close()
		return nil, nil, nil, err
	}
	return c, ch, said, nil
}

// roleLaunched is a program under a launcher: it makes a cohort, whose rank 0
// gathers a word of each other rank and answers it. Arguments: run folder, name.
func roleLaunched(args []string) error {
	logger := slog.New(slog.NewTextHandler(os.Stderr, nil))
	c, ch, said, err := launchedRank(LauncherConfig{Dir: args[0], Name: args[1], Logger: logger})
	if err != nil {
		return err
	}
	defer c.Close()
	if c.Rank() != 0 {
		if err := ch.Send(0, fmt.Appendf(nil, "I am %d", c.Rank())); err != nil {
			return err
		}
		if got := <-said; got != "0: welcome" {
			return fmt.Errorf("rank %d: got %q", c.Rank(), got)
		}
	} else if err := welcome(ch, c.Size(), said); err != nil {
		return err
	}
	fmt.Printf("rank %d of %d: good\n", c.Rank(), c.Size())
	return ch.Close()
}

func welcome(ch Channel, size int, said lines) error {
	for range size - 1 {
		var from, word int
		text := <-said
		if n, err := fmt.Sscanf(text, "%d: I am %d", &from, &word); n != 2 || err != nil || from != word {
			return fmt.Errorf("rank 0: got %q", text)
		}
		if err := ch.Send(from, []byte("welcome")); err != nil {
			return err
		}
	}
	return nil
}

// roleHang is a rank that lives until it is killed, and says what it is told.
func roleHang(args []string) error {
	_, _, said, err := launchedRank(LauncherConfig{Dir: args[0], Name: "hang"})
	if err != nil {
		return err
	}
	fmt.Println("there")
	go func() {
		for text := range said {
			fmt.Println(text)
		}
	}()
	bufio.NewScanner(os.Stdin).Scan()
	return nil
}

// roleTalk is a rank that sends and answers without end, until another is lost.
func roleTalk(args []string) error {
	c, ch, said, err := launchedRank(LauncherConfig{Dir: args[0], Name: "talk"})
	if err != nil {
		return err
	}
	defer c.Close()
	fmt.Println("there")
	if c.Rank() != 0 {
		_ = ch.Send(0, []byte("first")) // an error comes as a loss too
	}
	for text := range said {
		if strings.HasPrefix(text, "lost ") {
			return fmt.Errorf("%s", text)
		}
		var from int
		if _, err := fmt.Sscanf(text, "%d:", &from); err != nil {
			return err
		}
		_ = ch.Send(from, make([]byte, 1<<16))
	}
	return nil
}

// self returns this test binary.
func self(t *testing.T) string {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return exe
}

// ompi lets Open MPI run as root, and several ranks on a small machine.
var ompi = []string{"OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1", "WEFT_TEST_ROLE=launched"}

// Real launchers start ranks that find each other.
func TestLaunchers(t *testing.T) {
	for _, l := range []struct {
		name, program string
		env, args     []string
	}{
		{"Open MPI", "mpirun", ompi, []string{"--oversubscribe", "-n", "4"}},
		{"Hydra", "mpiexec.hydra", []string{"WEFT_TEST_ROLE=launched"}, []string{"-n", "4"}},
		{"Hydra with a port", "mpiexec.hydra", []string{"WEFT_TEST_ROLE=launched"}, []string{"-pmi-port", "-n", "4"}},
		{"Hydra, one rank", "mpiexec.hydra", []string{"WEFT_TEST_ROLE=launched"}, []string{"-pmi-port", "-n", "1"}},
		{"Open MPI, one rank", "mpirun", ompi, []string{"-n", "1"}},
	} {
		t.Run(l.name, func(t *testing.T) {
			testutil.Require(t, testutil.Program(l.program))
			dir := t.TempDir()
			p := testutil.Start(t, "", l.env, l.program, slices.Concat(l.args, []string{self(t), dir, "name"})...)
			if err := p.Wait(); err != nil {
				t.Fatal(err)
			}
			n := l.args[len(l.args)-1]
			if good := strings.Count(p.Stdout(), "of "+n+": good"); fmt.Sprint(good) != n {
				t.Errorf("%d ranks of %s are good:\n%s", good, n, p.Output())
			}
			empty(t, dir)
		})
	}
}

// Two jobs at a time in one run folder do not mix.
func TestTwoJobsOfOneLauncher(t *testing.T) {
	testutil.Require(t, testutil.Program("mpirun"))
	dir := t.TempDir()
	var jobs []*testutil.Process
	for range 2 { // which make a folder for their sessions at the same moment, and one of them fails if it is the same
		env := append(slices.Clip(ompi), "TMPDIR="+t.TempDir())
		jobs = append(jobs, testutil.Start(t, "", env, "mpirun", "--oversubscribe", "-n", "3", self(t), dir, "name"))
	}
	for _, p := range jobs {
		if err := p.Wait(); err != nil {
			t.Error(err)
		}
	}
	empty(t, dir)
}

// empty fails if a folder has anything in it.
func empty(t *testing.T, dir string) {
	t.Helper()
	list, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range list {
		t.Errorf("left behind: %s", e.Name())
	}
}

// startRanks starts processes as somebody who has only a shell would.
func startRanks(t *testing.T, role string, n int, env []string, args ...string) []*testutil.Process {
	t.Helper()
	var list []*testutil.Process
	for rank := range n {
		list = append(list, testutil.Start(t, "", slices.Concat([]string{
			"WEFT_TEST_ROLE=" + role,
			fmt.Sprint("WEFT_RANK=", rank), fmt.Sprint("WEFT_SIZE=", n),
		}, env), self(t), args...))
	}
	return list
}

// Processes without a launcher, with and without an address.
func TestProcesses(t *testing.T) {
	l := listen(t)
	addr := l.Addr().String()
	l.Close()
	for _, c := range []struct {
		name string
		env  []string
	}{
		{"file", nil},
		{"address to publish", []string{"WEFT_ADDRESS=127.0.0.1"}},
		{"root", []string{"WEFT_ROOT=" + addr, "WEFT_TOKEN=" + testToken}},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			for _, p := range startRanks(t, "launched", 4, c.env, dir, "name") {
				if err := p.Wait(); err != nil {
					t.Error(err)
				}
			}
			empty(t, dir)
		})
	}
}

// Slurm's variables set by hand: srun is not needed to read them.
func TestSlurmVariables(t *testing.T) {
	dir := t.TempDir()
	var list []*testutil.Process
	for rank := range 3 {
		list = append(list, testutil.Start(t, "", []string{
			"WEFT_TEST_ROLE=launched",
			"SLURM_JOB_ID=77", "SLURM_STEP_ID=0", "SLURM_NTASKS=3", "SLURM_STEP_NUM_TASKS=3",
			fmt.Sprint("SLURM_PROCID=", rank),
		}, self(t), dir, "name"))
	}
	for _, p := range list {
		if err := p.Wait(); err != nil {
			t.Error(err)
		}
	}
	empty(t, dir)
}

// A process that is killed is lost to all others, soon.
func TestKilledProcess(t *testing.T) {
	for victim := range 3 {
		t.Run(fmt.Sprint(victim), func(t *testing.T) {
			dir := t.TempDir()
			ranks := startRanks(t, "hang", 3, nil, dir)
			for _, p := range ranks {
				p.Expect("there")
			}
			if err := ranks[victim].Signal(syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			killed := time.Now()
			for i, p := range ranks {
				if i != victim {
					p.Expect(fmt.Sprintf("lost %d: cohort: rank is gone: ", victim))
				}
			}
			if took := time.Since(killed); took > time.Second {
				t.Errorf("it took %v", took)
			}
		})
	}
}

// What rank 0 leaves behind when it is killed does no harm to the next job of the
// same name.
func TestKilledWhileForming(t *testing.T) {
	dir := t.TempDir()
	root := testutil.Start(t, "", []string{"WEFT_TEST_ROLE=launched", "WEFT_RANK=0", "WEFT_SIZE=4"}, self(t), dir, "name")
	path := contactPath(dir, "weft", "name")
	waitFile(t, path)
	root.Kill()
	<-root.Done()
	for _, p := range startRanks(t, "launched", 4, nil, dir, "name") {
		if err := p.Wait(); err != nil {
			t.Error(err)
		}
	}
	empty(t, dir)
}

// waitFile waits until there is a file.
func waitFile(t *testing.T, path string) {
	t.Helper()
	ctx := bounded(t)
	for {
		if _, err := os.Lstat(path); err == nil {
			return
		}
		if err := tcp.Pause(ctx, time.Millisecond); err != nil {
			t.Fatalf("%s does not appear in %s", filepath.Base(path), filepath.Dir(path))
		}
	}
}
