package shm_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/weft-fabric/weft/fabric/fabrictest"
	"github.com/weft-fabric/weft/internal/sys"
	"github.com/weft-fabric/weft/internal/testutil"
	_ "github.com/weft-fabric/weft/prov/shm"
)

// conform runs the suite over n processes.
func conform(t *testing.T, n int, change func(c *fabrictest.Config)) {
	t.Helper()
	c := fabrictest.Config{Provider: "shm", Procs: n, Denied: map[string]string{"cma": "off"}}
	if change != nil {
		change(&c)
	}
	fabrictest.Run(t, c)
}

// The law, over one process, two and four. What has no more than two sides is over four as it is over two; a soak runs it.
func TestSoakConformance(t *testing.T) {
	for _, n := range []int{1, 2, 4} {
		t.Run(fmt.Sprintf("procs=%d", n), func(t *testing.T) {
			conform(t, n, func(c *fabrictest.Config) {
				switch {
				case n > 2 && testing.Short():
					c.Groups = []string{"atomicity", "one-dies", "four", "all-to-all"}
				case n > 2:
					c.Groups = testutil.Pick(t, []string{"messages", "atomicity", "slow-receiver", "one-dies", "four", "peers", "all-to-all"}, nil)
				}
			})
		})
	}
}

// partOfLaw is what a run in other surroundings is about, something of everything; a soak runs all groups.
func partOfLaw(t *testing.T) []string {
	return testutil.Pick(t, []string{
		"messages", "self", "atomics", "arena", "memory-close", "views", "ways", "death", "kill", "compute-private", "idle",
	}, nil)
}

// withoutFeature are the groups that a feature of the kernel could matter to; a soak runs all.
func withoutFeature(t *testing.T, name string) []string {
	groups := map[string][]string{
		"future_write": {"messages", "arena", "views", "viewer-dies", "compute-arena"},
		"noexec_seal":  {"messages", "arena"},
		"populate":     {"arena", "memory-close", "lease"},
		"eventfd":      {"messages", "self", "ways", "descriptor", "wait-ends", "close-races", "idle", "peers"},
		"cma":          {"messages", "denied", "compute-private"},
		"hugetlb":      {"arena", "views", "lease"},
		"futex_waitv":  {"death", "kill", "ways"}, "robust_list": {"death", "kill", "viewer-dies"},
	}[name]
	if groups == nil { // a new one
		groups = partOfLaw(t)
	}
	return testutil.Pick(t, groups, nil)
}

// Each newer feature of the kernel is a probe with a fallback: the law holds without it.
func TestSoakWithoutFeatures(t *testing.T) {
	for _, name := range sys.FeatureNames() {
		t.Run(name, func(t *testing.T) {
			conform(t, 2, func(c *fabrictest.Config) {
				c.Options, c.Groups = map[string]string{"disable": name}, withoutFeature(t, name)
			})
		})
	}
}

// The law holds on the oldest kernel and in the poorest container: with every feature off at once, and no cross-process copy.
func TestSoakWithoutAllFeatures(t *testing.T) {
	for _, n := range []int{1, 2} {
		t.Run(fmt.Sprintf("procs=%d", n), func(t *testing.T) {
			conform(t, n, func(c *fabrictest.Config) {
				c.Options = map[string]string{"disable": strings.Join(sys.FeatureNames(), ","), "cma": "off", "prefault": "0"}
				c.Groups = partOfLaw(t)
				if n == 2 && c.Groups != nil && !testing.Short() {
					c.Groups = append(c.Groups, "tagged", "peek", "rma", "rma-vectored", "fence", "delivery-complete", "descriptor", "wait-ends", "unexpected",
						"exit", "first", "compute-arena", "stop", "close-races", "all-to-all", "peers")
				}
			})
		})
	}
}

// F38: the same results without process_vm_readv and process_vm_writev, by option and because the sandbox forbids them.
func TestSoakF38WithoutCrossMemory(t *testing.T) {
	t.Run("off", func(t *testing.T) {
		conform(t, 2, func(c *fabrictest.Config) {
			c.Options, c.Groups = map[string]string{"cma": "off"}, testutil.Pick(t, []string{"messages", "compute-private", "denied"}, nil)
		})
	})
	t.Run("seccomp", func(t *testing.T) {
		testutil.Require(t, testutil.Program("python3"))
		again(t, partly(t, "messages", "rma", "denied", "compute-private"), "python3", "-c", denyCrossMemory)
	})
}

// The same with process_vm_readv forced: there is no other way that could have made up for it.
func TestSoakForcedCrossMemory(t *testing.T) {
	testutil.Require(t, testutil.Capability{Name: "process_vm_readv", Fixed: true, Probe: func() error { return sys.Features{}.Check(sys.CrossMemory) }})
	conform(t, 2, func(c *fabrictest.Config) {
		c.Options, c.Groups = map[string]string{"cma": "on"}, testutil.Pick(t, []string{"messages", "rma", "keys", "memory-close", "kill", "compute-private"}, nil)
	})
}

// The other processes are in network and process namespaces of their own: only a socket in a folder reaches there.
func TestSoakAcrossNamespaces(t *testing.T) {
	testutil.Require(t, testutil.Superuser(), testutil.Program("unshare"))
	dir, err := os.MkdirTemp("", "weft") //nolint:usetesting // a short path that other users may enter
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
			t.Errorf("the folder has %v, %v", left, err)
		}
		_ = os.RemoveAll(dir)
	}()
	conform(t, 2, func(c *fabrictest.Config) {
		c.Options, c.Groups = map[string]string{"folder": dir}, partOfLaw(t)
		c.Launcher = []string{"unshare", "--net", "--pid", "--fork", "--kill-child", "--"}
	})
}

// An ordinary user needs no right that only the superuser has.
func TestSoakOrdinaryUser(t *testing.T) {
	testutil.Require(t, testutil.Superuser(), testutil.Program("setpriv"))
	again(t, partly(t, partOfLaw(t)...), "setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--no-new-privs")
}

// partly is a pattern of these groups of the law over two processes; in a soak of all.
func partly(t *testing.T, groups ...string) string {
	return testutil.Pick(t, "^TestSoakConformance$/^procs=2$/./^("+strings.Join(groups, "|")+")(-F|$)", "^TestSoakConformance$/^procs=2$")
}

// The other processes are of another user, who may connect: no bell is shared, and no arena is mapped to be written.
func TestSoakAcrossUsers(t *testing.T) {
	testutil.Require(t, testutil.Superuser(), testutil.Program("setpriv"))
	exe := reachable(t)
	conform(t, 2, func(c *fabrictest.Config) {
		c.Options = map[string]string{"allow-uid": "any"}
		// What is left out needs arenas that others of the same user may write.
		c.Groups = testutil.Pick(t,
			[]string{"messages", "rma", "atomics", "lease", "viewer-dies", "ways", "death", "kill", "compute-private", "idle", "close-ends"},
			slices.DeleteFunc(fabrictest.Groups(), func(g string) bool { return g == "views" || g == "compute-arena-F52" }))
		// The process that the suite starts is exe with the same arguments: another user may not run what the tests were built as.
		c.Launcher = []string{"setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--no-new-privs", "sh", "-c", `shift; exec ` + exe + ` "$@"`, "sh"}
	})
}

// again runs some of these tests once more, under a launcher, in a process of its own.
func again(t *testing.T, tests string, launcher ...string) {
	t.Helper()
	exe := reachable(t)
	args := append(launcher[1:], exe, "-test.run", tests, "-test.timeout", "0", "-test.count", "1")
	p := testutil.Start(t, filepath.Dir(exe), nil, launcher[0], args...)
	<-p.Done()
	if err := p.Wait(); err != nil {
		t.Fatalf("%v\n%s", err, p.Output())
	}
}

// reachable copies the test binary to where other users find it: the folders of tests are closed.
func reachable(t *testing.T) string {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(exe)
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "weft") //nolint:usetesting // a short path that other users may enter
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	copied := filepath.Join(dir, "again.test")
	if err := os.WriteFile(copied, text, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return copied
}

// denyCrossMemory is a launcher that has the kernel refuse process_vm_readv and process_vm_writev with EPERM, as sandboxes do.
const denyCrossMemory = `
import ctypes, os, platform, struct, sys
first = {"x86_64": 310, "aarch64": 270}[platform.machine()]
program = b"".join(struct.pack("HBBI", *i) for i in [
    (0x20, 0, 0, 0),                 # the number of the call
    (0x15, 1, 0, first),             # process_vm_readv
    (0x15, 0, 1, first + 1),         # process_vm_writev
    (0x06, 0, 0, 0x00050000 | 1),    # EPERM
    (0x06, 0, 0, 0x7fff0000),        # allow
])
class Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("filter", ctypes.c_char_p)]
libc = ctypes.CDLL(None, use_errno=True)
if libc.prctl(38, 1, 0, 0, 0) or libc.prctl(22, 2, ctypes.byref(Program(len(program) // 8, program)), 0, 0):
    sys.exit("seccomp: errno %d" % ctypes.get_errno())
os.execvp(sys.argv[1], sys.argv[1:])
`
