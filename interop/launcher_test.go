package interop

import (
	"fmt"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/weft-fabric/weft/internal/testutil"
	"github.com/weft-fabric/weft/interop/zoo"
)

// The command weft under the launchers of clusters: n processes that are the
// ranks of one writer.

// launcher starts n processes of a command, as one job.
type launcher struct {
	name  string
	needs []testutil.Capability
	start func(t *testing.T, dir string, n int, command []string) []*testutil.Process
}

// launchers are those that can be had without a cluster.
func launchers() []launcher {
	return []launcher{
		{"Open MPI", []testutil.Capability{testutil.Program("mpirun.openmpi")}, startOpenMPI},
		{"Hydra", []testutil.Capability{testutil.Program("mpiexec.hydra")}, startHydra},
		{"Slurm by hand", nil, byHand(slurmRank)},
		{"WEFT variables", nil, byHand(weftRank)},
	}
}

func startOpenMPI(t *testing.T, dir string, n int, command []string) []*testutil.Process {
	args := append([]string{"-n", fmt.Sprint(n)}, command...)
	env := []string{
		"OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1",
		"OMPI_MCA_rmaps_base_oversubscribe=1", "OMPI_MCA_plm_rsh_agent=",
	}
	return []*testutil.Process{testutil.Start(t, dir, env, "mpirun.openmpi", args...)}
}

func startHydra(t *testing.T, dir string, n int, command []string) []*testutil.Process {
	args := append([]string{"-launcher", "fork", "-n", fmt.Sprint(n)}, command...)
	return []*testutil.Process{testutil.Start(t, dir, nil, "mpiexec.hydra", args...)}
}

// byHand starts the processes itself, with the variables of a launcher.
func byHand(variables func(dir string, rank, n int) []string) func(*testing.T, string, int, []string) []*testutil.Process {
	return func(t *testing.T, dir string, n int, command []string) (list []*testutil.Process) {
		for rank := range n {
			list = append(list, testutil.Start(t, dir, variables(dir, rank, n), command[0], command[1:]...))
		}
		return list
	}
}

// slurmRank is what srun sets, as far as it tells the ranks apart.
func slurmRank(_ string, rank, n int) []string {
	return []string{
		fmt.Sprintf("SLURM_PROCID=%d", rank), fmt.Sprintf("SLURM_LOCALID=%d", rank), fmt.Sprintf("SLURM_NTASKS=%d", n),
		fmt.Sprintf("SLURM_STEP_NUM_TASKS=%d", n), "SLURM_JOB_ID=4711", "SLURM_STEP_ID=0", "SLURM_NODEID=0", "SLURMD_NODENAME=localhost",
	}
}

func weftRank(_ string, rank, n int) []string {
	return []string{fmt.Sprintf("WEFT_RANK=%d", rank), fmt.Sprintf("WEFT_SIZE=%d", n), "WEFT_JOB=test"}
}

// launched makes a file of the zoo, and a job of three processes that pipes it.
func launched(t *testing.T, l launcher, weft string, sources int, more ...string) (dir string, job []*testutil.Process) {
	t.Helper()
	testutil.Require(t, l.needs...)
	file := Stream{Dir: t.TempDir(), Name: "zoo.bp", Engine: "BP5", Ranks: sources}
	ADIOS2Writer(t, WriterOptions{Stream: file, Steps: 10}).OK()
	command := append([]string{weft, "pipe", "zoo.bp", "s", "--param", "RendezvousReaderCount=2"}, more...)
	return file.Dir, l.start(t, file.Dir, 3, command)
}

// TestLaunchedPipe: three processes of weft pipe feed two ranks of ADIOS2 and
// weft dump at once. The file has as many writer ranks as there are processes,
// fewer, or more.
func TestLaunchedPipe(t *testing.T) {
	weft := buildWeft(t)
	for _, l := range launchers() {
		for _, sources := range testutil.Pick(t, []int{2}, []int{1, 2, 3, 4}) {
			t.Run(fmt.Sprintf("%s, %d ranks in the file", l.name, sources), func(t *testing.T) {
				dir, job := launched(t, l, weft, sources)
				r := ADIOS2Reader(t, ReaderOptions{Stream: Stream{Dir: dir, Name: "s", Ranks: 2}, WriterRanks: sources, Steps: 10, Piped: true})
				dump := testutil.Start(t, dir, nil, weft, "dump", "--json", "--timeout", "60s", "s")
				wantAll(t, r.Steps(zoo.Check{Ranks: sources, From: zoo.ADIOS2File}), 10)
				if err := dump.Wait(); err != nil {
					t.Error(err)
				}
				wantAll(t, wantJSON(t, dump.Stdout(), zoo.Check{Ranks: sources, From: zoo.ADIOS2File}), 10)
				for rank, p := range job {
					if err := p.Wait(); err != nil {
						t.Errorf("process %d: %v", rank, err)
					}
				}
				wantNoFiles(t, dir, "zoo.bp")
			})
		}
	}
}

// wantNoFiles checks that nothing but one name is left in a folder: no contact
// file, none of the launcher's.
func wantNoFiles(t *testing.T, dir, but string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	hidden, err := filepath.Glob(filepath.Join(dir, ".*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range append(files, hidden...) {
		if filepath.Base(f) != but {
			t.Errorf("left behind: %s", f)
		}
	}
}

// TestLauncherKillsJob: the launcher ends the job, by SIGTERM or because a rank
// was killed: all ranks are gone soon. A Weft reader sees that the writer failed,
// also after SIGTERM, which Open MPI sends to the ranks that are left: weft pipe
// aborts the stream then.
func TestLauncherKillsJob(t *testing.T) {
	weft := buildWeft(t)
	for _, l := range launchers()[:2] {
		for _, how := range []string{"SIGTERM to the launcher", "SIGKILL to a rank"} {
			t.Run(l.name+", "+how, func(t *testing.T) {
				dir, job := launched(t, l, weft, 3, "--param", "QueueLimit=1")
				o := ReaderOptions{Stream: Stream{Dir: dir, Name: "s", Ranks: 2, StepDelay: 300 * time.Millisecond}, WriterRanks: 3, Piped: true}
				r, other := WeftReader(t, o), WeftReader(t, o)
				r.Expect("STEP ")
				other.Expect("STEP ")
				if how == "SIGTERM to the launcher" {
					signal(t, job[0], syscall.SIGTERM)
				} else {
					killOneOf(t, job[0], weft)
				}
				for _, p := range []*WeftPeer{r, other} {
					for rank := range p.Ranks {
						e := p.End(rank, 2*killBound)
						if e.Late || e.Leak != "" || !e.Failed("ErrWriterFailed") {
							t.Errorf("reader rank %d: %+v, want ErrWriterFailed", rank, e)
						}
					}
				}
				ended := make(chan struct{})
				go func() { <-job[0].Done(); close(ended) }()
				within(t, "the end of the job", 2*killBound, ended)
			})
		}
	}
}

// killOneOf kills a rank of a job.
func killOneOf(t *testing.T, job *testutil.Process, program string) {
	t.Helper()
	var pids []int
	eventually(t, "ranks of the job", func() bool {
		pids = descendantsOf(t, job.Pid(), filepath.Base(program))
		return len(pids) == 3
	})
	if err := syscall.Kill(pids[1], syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
}

// TestLaunchedReadersKilled: the reader's job is killed whole, in the middle; the
// writer's job feeds the next reader and ends in order.
func TestLaunchedReadersKilled(t *testing.T) {
	weft := buildWeft(t)
	l := launchers()[0]
	dir, job := launched(t, l, weft, 3, "--param", "QueueLimit=1")
	victim := ADIOS2Reader(t, ReaderOptions{Stream: Stream{Dir: dir, Name: "s", Ranks: 2, StepWait: true}, WriterRanks: 3, Piped: true})
	dump := testutil.Start(t, dir, nil, weft, "dump", "--json", "--timeout", "60s", "s")
	victim.Expect("{")
	began := time.Now()
	victim.Kill()
	if err := dump.Wait(); err != nil {
		t.Error(err)
	}
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("going on took %v", took)
	}
	wantAll(t, wantJSON(t, dump.Stdout(), zoo.Check{Ranks: 3, From: zoo.ADIOS2File}), 10)
	if err := job[0].Wait(); err != nil {
		t.Error(err)
	}
	if strings.Contains(job[0].Output(), "panic") {
		t.Error("a rank has panicked")
	}
}
