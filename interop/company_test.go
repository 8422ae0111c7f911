package interop

import (
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/weft-fabric/weft/internal/sys"
	"github.com/weft-fabric/weft/internal/testutil"
	"github.com/weft-fabric/weft/interop/hosts"
)

// Weft in one process with middleware that hooks the C library: it leaves the hooks alone, says whose they are, takes their word as far as they show
// that it can be taken, and what is sent is what memory holds.

// headers is a development package that has a file.
func headers(name, file string) testutil.Capability {
	return testutil.Capability{Name: "the package " + name, Probe: func() error {
		_, err := os.Stat(file)
		return err
	}}
}

// buildHost builds a program of interop/hosts, which has C in it.
func buildHost(t *testing.T, name string, flags ...string) string {
	t.Helper()
	testutil.Require(t, testutil.Program("gcc"))
	path := filepath.Join(t.TempDir(), name)
	cmd := exec.Command("go", append(append([]string{"build", "-tags", "peers", "-o", path}, flags...), "./interop/hosts/"+name)...)
	cmd.Dir, cmd.Env = testutil.ModuleRoot(t), append(os.Environ(), "CGO_ENABLED=1")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go build %s: %v\n%s", name, err, out)
	}
	return path
}

// company is a program with other middleware in it.
type company struct {
	program string
	env     []string
	args    []string
	needs   []testutil.Capability
	owner   string // of the hooks of munmap, a part of its path
	broken  bool   // another one has destroyed the hooks of brk
}

var (
	mpiHeaders = headers("libopenmpi-dev", "/usr/lib/"+machine()+"-linux-gnu/openmpi/include/mpi.h")
	ucxHeaders = headers("libucx-dev", "/usr/include/ucm/api/ucm.h")
)

func machine() string {
	return map[string]string{"amd64": "x86_64", "arm64": "aarch64"}[runtime.GOARCH]
}

// companies are the programs; poster is a library that patches the C library.
func companies(t *testing.T, poster string) map[string]company {
	mpi := []string{"OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1", "OMPI_MCA_orte_tmpdir_base=" + t.TempDir()}
	return map[string]company{
		"a patcher": {program: "plain", env: []string{"LD_PRELOAD=" + poster}, owner: poster},
		"Open MPI over libfabric": {
			program: "openmpi", env: append(mpi, "OMPI_MCA_pml=cm", "OMPI_MCA_mtl=ofi"), needs: []testutil.Capability{mpiHeaders}, owner: "/libopen-pal.so",
		},
		"Open MPI over UCX": { // UCX hooks sbrk, and calls the kernel past Open MPI's hook of brk
			program: "openmpi", env: append(mpi, "OMPI_MCA_pml=ucx", "OMPI_MCA_pml_ucx_tls=any", "OMPI_MCA_pml_ucx_devices=any"), needs: []testutil.Capability{mpiHeaders},
			owner: "/libopen-pal.so", broken: true,
		},
		"UCX": {program: "ucx", needs: []testutil.Capability{ucxHeaders}, owner: "/libucm.so"},
		"UCX with a patcher": { // to whom UCX listens through Weft
			program: "ucx", env: []string{"LD_PRELOAD=" + poster}, args: []string{"external"}, needs: []testutil.Capability{ucxHeaders}, owner: poster, broken: true,
		},
	}
}

// TestSoakCompany plays what can happen to memory in each of these, with each who can tell (F68: all calls that drop pages, for each monitor).
func TestSoakCompany(t *testing.T) {
	dir := t.TempDir()
	programs := map[string]string{}
	all := companies(t, poster(t, dir))
	for _, name := range slices.Sorted(maps.Keys(all)) {
		t.Run(name, func(t *testing.T) {
			c := all[name]
			testutil.Require(t, c.needs...)
			if programs[c.program] == "" {
				programs[c.program] = filepath.Join(dir, c.program)
				if err := os.Rename(buildHost(t, c.program), programs[c.program]); err != nil {
					t.Fatal(err)
				}
			}
			for _, mode := range []string{hosts.Forced, hosts.None, hosts.Imported, hosts.Userfaultfd} {
				t.Run(mode, func(t *testing.T) {
					if mode == hosts.Userfaultfd {
						testutil.Require(t, testutil.Capability{Name: "userfaultfd with write protection", Probe: sys.CanUserfault, Fixed: true})
					}
					c.check(t, mode, c.run(t, programs[c.program], mode, testutil.Count(t, 10, 1000)))
				})
			}
		})
	}
}

func (c company) run(t *testing.T, program, mode string, rounds int) (r hosts.Report) {
	t.Helper()
	p := testutil.Start(t, "", c.env, program, append([]string{mode, strconv.Itoa(rounds)}, c.args...)...)
	if err := p.Wait(); err != nil {
		t.Fatalf("%v: %s", err, p.Output())
	}
	if err := json.Unmarshal([]byte(p.Stdout()), &r); err != nil {
		t.Fatalf("%v: %s", err, p.Output())
	}
	return r
}

func (c company) check(t *testing.T, mode string, r hosts.Report) {
	t.Helper()
	if !slices.ContainsFunc(r.Hooks, func(line string) bool { return strings.Contains(line, "munmap") && strings.Contains(line, c.owner) }) {
		t.Errorf("nobody says that %s hooks munmap: %q", c.owner, r.Hooks)
	}
	if r.Own != "" {
		t.Error(r.Own)
	}
	if served := mode == hosts.Imported || mode == hosts.Userfaultfd; served != (r.State == "running") || r.Why != "" {
		t.Errorf("%s is %s: %s", r.Monitor, r.State, r.Why)
	}
	if len(r.Rows) != 9 {
		t.Errorf("only %d kinds of events", len(r.Rows))
	}
	for name, row := range r.Rows {
		unseen := c.broken && name == "brk"
		foreign := name == "madvise(REMOVE)" || name == "shmat(SHM_REMAP)" // memory that others may change: never kept on a monitor's word
		carries, kept := "NEW", mode == hosts.Forced || mode != hosts.None && !foreign && !(unseen && mode == hosts.Imported)
		if mode == hosts.Forced {
			carries = "OLD"
		}
		lazy := mode == hosts.Forced && name == "madvise(FREE)" // the kernel takes such pages at once, or later
		if row.Rounds == 0 || !lazy && row.Carries[carries] != row.Rounds || kept != (row.Hits >= uint64(row.Rounds)) || !kept && row.Hits > 0 {
			t.Errorf("%s: not %s, or not kept when it could be: %+v", name, carries, row)
		}
		if !unseen && row.Seen < uint64(row.Rounds) {
			t.Errorf("%s: the other library's hooks have seen %d of %d", name, row.Seen, row.Rounds)
		}
	}
}

// poster compiles the library that patches the C library and posts what it sees.
func poster(t *testing.T, dir string) string {
	t.Helper()
	return compileC(t, dir, "patcher.c", "poster.so", "-shared", "-fPIC", "-DPOST", "-I"+filepath.Join(testutil.ModuleRoot(t), "memmon"))
}

// TestSoakF62ThreadsOfC has threads of C map and unmap all the time while monitors are started and stopped: nobody crashes, and no event is missed while one
// serves. (Nobody's code is patched by that: hooks were there before.) F63: a child of fork in such a process uses the allocator.
func TestSoakF62ThreadsOfC(t *testing.T) {
	library := poster(t, t.TempDir())
	program := buildHost(t, "threads")
	for _, monitor := range []string{hosts.Imported, hosts.Userfaultfd} {
		t.Run(monitor, func(t *testing.T) {
			if monitor == hosts.Userfaultfd {
				testutil.Require(t, testutil.Capability{Name: "userfaultfd with write protection", Probe: sys.CanUserfault, Fixed: true})
			}
			rounds := testutil.Count(t, 30, 500)
			p := testutil.Start(t, "", []string{"LD_PRELOAD=" + library}, program, monitor, strconv.Itoa(rounds))
			if err := p.Wait(); err != nil {
				t.Fatalf("%v: %s", err, p.Output())
			}
			var r hosts.Churn
			if err := json.Unmarshal([]byte(p.Stdout()), &r); err != nil {
				t.Fatalf("%v: %s", err, p.Output())
			}
			t.Logf("registration: %+v", r)
			if r.Rounds != rounds+1 || r.Hits == 0 || r.Dead < uint64(rounds) || r.Calls < uint64(rounds) || r.Child != 0 || r.Posts > 100 {
				t.Errorf("it shows little: %+v", r)
			}
		})
	}
}

// TestSoakStorm has a program post from inside of each of its allocations and from four threads, while it registers, looks up and evicts; with the race
// detector and without.
func TestSoakStorm(t *testing.T) {
	for name, flags := range map[string][]string{"alone": nil, "with the race detector": {"-race"}} {
		t.Run(name, func(t *testing.T) {
			n := testutil.Count(t, 2000, 100_000)
			p := testutil.Start(t, "", nil, buildHost(t, "storm", flags...), strconv.Itoa(n))
			if err := p.Wait(); err != nil {
				t.Fatalf("%v: %s", err, p.Output())
			}
			var r hosts.Storm
			if err := json.Unmarshal([]byte(p.Stdout()), &r); err != nil {
				t.Fatalf("%v: %s", err, p.Output())
			}
			t.Logf("%d operations beside %d events: the longest took %v; %+v", n, r.Events, r.Longest, r.Stats)
			if r.Longest > time.Duration(testutil.Count(t, 10, 1))*time.Second { // a short run is beside all other tests
				t.Errorf("an operation took %v", r.Longest)
			}
			if s := r.Stats; r.State != "running" || s.Hits == 0 || s.DeadMonitor == 0 || s.Evicted == 0 || r.Events < uint64(n) {
				t.Errorf("it shows little: %s, %d events, %+v", r.State, r.Events, s)
			}
		})
	}
}
