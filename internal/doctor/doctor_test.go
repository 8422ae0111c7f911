package doctor

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weft-fabric/weft/internal/hooks"
	"github.com/weft-fabric/weft/internal/host"
	"github.com/weft-fabric/weft/internal/sys"
	"github.com/weft-fabric/weft/internal/testutil"
)

// locksAll says whether no limit binds what this process locks: CAP_IPC_LOCK of capabilities(7), in the system's first user namespace.
func locksAll() bool {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return false
	}
	_, after, _ := strings.Cut(string(status), "CapEff:\t")
	all, err := strconv.ParseUint(after[:16], 16, 64)
	space, _ := os.Readlink("/proc/self/ns/user")
	return err == nil && all>>14&1 != 0 && space == "user:[4026531837]"
}

// check finds one by its name.
func (r *Report) check(name string) Check {
	i := slices.IndexFunc(r.Checks, func(c Check) bool { return c.Name == name })
	if i < 0 {
		return Check{}
	}
	return r.Checks[i]
}

// roleDoctor examines as whoever this process is, holds that against direct questions, and prints it.
func roleDoctor([]string) error {
	r := Examine(Config{})
	if err := r.agrees(); err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(r)
}

// libraryMapped is a C library in /proc/self/maps: glibc's, since 2.34 and before, or musl's.
var libraryMapped = regexp.MustCompile(`/(libc\.so|libc-2\.|ld-musl-)`)

// agrees asks the kernel for the same in other ways.
func (r *Report) agrees() error {
	var errs []error
	is := func(name string, want bool) {
		if c := r.check(name); (c.State == Works) != want {
			errs = append(errs, fmt.Errorf("%s: %+v; works must be %v", name, c, want))
		}
	}
	for _, f := range sys.AllFeatures() {
		is(f.String(), sys.Features{}.Has(f))
	}
	is("userfaultfd", sys.CanUserfault() == nil)
	for name, resource := range map[string]int{"memlock": 8, "file_size": syscall.RLIMIT_FSIZE, "open_files": syscall.RLIMIT_NOFILE} {
		var l syscall.Rlimit
		if err := syscall.Getrlimit(resource, &l); err != nil {
			return err
		}
		little := map[string]uint64{"memlock": littleMemlock, "file_size": 1 << 63, "open_files": littleFiles}[name]
		is(name, l.Cur >= little || name == "memlock" && locksAll())
		if found := r.check(name).Found; (found == "no limit") != (l.Cur == 1<<64-1) {
			errs = append(errs, fmt.Errorf("%s: %q, and the limit is %d", name, found, l.Cur))
		}
	}
	for _, n := range r.Namespaces {
		link, err := os.Readlink("/proc/self/ns/" + n.Name)
		if err != nil || link != fmt.Sprintf("%s:[%d]", n.Name, n.Inode) {
			errs = append(errs, fmt.Errorf("%+v is %s, %w", n, link, err))
		}
	}
	if maps, err := os.ReadFile("/proc/self/maps"); err != nil || libraryMapped.Match(maps) != (r.Hooks.Library != "") || len(r.Hooks.Hooks) > 0 || r.Hooks.Error != "" {
		errs = append(errs, fmt.Errorf("hooks: %+v, %w", r.Hooks, err))
	}
	if works := r.Monitor.Choices[slices.IndexFunc(r.Monitor.Choices, func(c Choice) bool { return c.Name == "userfaultfd" })].Works; works != (sys.CanUserfault() == nil) {
		errs = append(errs, fmt.Errorf("monitors: %+v", r.Monitor))
	}
	return errors.Join(errs...)
}

// examined runs the role by way of another program.
func examined(t *testing.T, by ...string) Report {
	t.Helper()
	program, env := testutil.RoleCommand(t, "doctor")
	if slices.Contains(by, "setpriv") { // other users may not enter the test's own folder
		text, err := os.ReadFile(program)
		if err != nil {
			t.Fatal(err)
		}
		dir, err := os.MkdirTemp("", "weft") //nolint:usetesting // as above
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = os.RemoveAll(dir) })
		program = filepath.Join(dir, "doctor.test")
		if err := errors.Join(os.Chmod(dir, 0o755), os.WriteFile(program, text, 0o755)); err != nil {
			t.Fatal(err)
		}
	}
	by = append(by, program)
	p := testutil.Start(t, "/", []string{env}, by[0], by[1:]...)
	if err := p.Wait(); err != nil {
		t.Fatal(err)
	}
	var r Report
	if err := json.Unmarshal([]byte(p.Stdout()), &r); err != nil {
		t.Fatal(err)
	}
	return r
}

func TestHere(t *testing.T) {
	r := Examine(Config{})
	if err := r.agrees(); err != nil {
		t.Error(err)
	}
	if !r.OK {
		t.Errorf("Weft does not work here: %+v", r.Checks)
	}
	var names []string
	for _, c := range r.Checks {
		if slices.Contains(names, c.Name) {
			t.Errorf("two checks are called %s", c.Name)
		}
		names = append(names, c.Name)
		if (c.State == Works) != (c.Remedy == "") || strings.Contains(c.Remedy, "\n") || c.Found == "" {
			t.Errorf("%+v", c)
		}
	}
	for _, l := range r.Libraries {
		if info, err := os.Stat(l.Path); err != nil || !info.Mode().IsRegular() {
			t.Errorf("%+v, %v", l, err)
		}
	}
}

func TestAsNobody(t *testing.T) {
	testutil.Require(t, testutil.Superuser(), testutil.Program("setpriv"))
	r := examined(t, "setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--no-new-privs")
	if here := Examine(Config{}); !r.OK || cmp.Diff(here.Namespaces, r.Namespaces) != "" {
		t.Errorf("%+v", r)
	}
}

// namespacesWork says whether this user may make namespaces.
func namespacesWork(args ...string) testutil.Capability {
	return testutil.Capability{Name: "user and pid namespaces", Fixed: true, Probe: func() error {
		if out, err := exec.Command("unshare", append(args, "true")...).CombinedOutput(); err != nil {
			return fmt.Errorf("unshare: %w: %s", err, out)
		}
		return nil
	}}
}

func TestInNamespaces(t *testing.T) {
	args := []string{"--user", "--map-root-user", "--pid", "--fork", "--mount-proc"}
	testutil.Require(t, testutil.Program("unshare"), namespacesWork(args...))
	r := examined(t, append([]string{"unshare"}, args...)...)
	if !r.OK {
		t.Errorf("%+v", r.Checks)
	}
	here := Examine(Config{})
	for i, n := range r.Namespaces {
		if own := n.Name != "net"; (n.Inode != here.Namespaces[i].Inode) != own || own && (n.Init == nil || *n.Init) {
			t.Errorf("%+v, and outside %+v", n, here.Namespaces[i])
		}
	}
	for _, name := range []string{"user_namespace", "pid_namespace"} {
		if c := r.check(name); c.State != Limited || !strings.Contains(c.Found, "of its own") {
			t.Errorf("%+v", c)
		}
	}
}

// TestInNamespaceWithoutProc has /proc of the namespace outside, where the number of this process is another's.
func TestInNamespaceWithoutProc(t *testing.T) {
	args := []string{"--user", "--map-root-user", "--pid", "--fork"}
	testutil.Require(t, testutil.Program("unshare"), namespacesWork(args...))
	if r := examined(t, append([]string{"unshare"}, args...)...); !r.OK {
		t.Errorf("%+v", r.Checks)
	}
}

// TestOtherProcess looks at one of this user, and at one that is not there.
func TestOtherProcess(t *testing.T) {
	p := testutil.Start(t, "", nil, "cat")
	p.Send("started") // the loader has done its work when it comes back
	p.Expect("started")
	r := Examine(Config{PID: p.Pid()})
	if r.Hooks.PID != p.Pid() || r.Hooks.Error != "" || !strings.Contains(r.check("c_library").Found, fmt.Sprintf("process %d", p.Pid())) {
		t.Errorf("%+v, %+v", r.Hooks, r.check("c_library"))
	}
	p.CloseInput()
	if err := p.Wait(); err != nil {
		t.Error(err)
	}
	r = Examine(Config{PID: 1 << 30})
	if r.Hooks.Error == "" || r.check("c_library").State != Limited || !strings.Contains(r.check("c_library").Remedy, "that runs") || !r.OK {
		t.Errorf("%+v, %+v", r.Hooks, r.check("c_library"))
	}
}

// TestRemedies: who has no descriptor left is not told to change filters of system calls, users or mounts.
func TestRemedies(t *testing.T) {
	none := fmt.Errorf("x: %w", os.NewSyscallError("socket", syscall.EMFILE))
	for what, c := range map[string]struct {
		got  Check
		want string
	}{
		"tried":          {tried("x", "", none, "a filter"), moreFiles},
		"tried, refused": {tried("x", "", syscall.EPERM, "a filter"), "a filter"},
		"hooks":          {(&HooksReport{PID: 1, Error: "x", why: none}).check(), moreFiles},
		"hooks, other":   {(&HooksReport{PID: 1, Error: "x", why: hooks.ErrNumbers}).check(), "mount /proc, of this pid namespace"},
		"hooks, refused": {(&HooksReport{PID: 1, Error: "x", why: syscall.EPERM}).check(), "look as the same user or as root; in a container with CAP_SYS_PTRACE; with ptrace_scope 0"},
		"monitor":        {(&MonitorState{Error: "x", State: "idle", why: none}).check(), moreFiles},
		"monitor, odd":   {(&MonitorState{Error: "x", State: "idle", why: syscall.EINVAL}).check(), "set that to what there is here, or unset it"},
		"hooks, here":    {(&HooksReport{PID: os.Getpid(), Error: "x", why: os.ErrNotExist}).check(), "mount /proc, of this pid namespace"},
	} {
		if c.got.Remedy != c.want {
			t.Errorf("%s: %+v", what, c.got)
		}
	}
}

// TestRemediesWorkHere: nobody is told to set what is refused here.
func TestRemediesWorkHere(t *testing.T) {
	for _, works := range []bool{true, false} {
		m := MonitorState{Serves: "none", Choices: []Choice{{Name: "none", Works: true}, {Name: "userfaultfd", Works: works}}}
		if r := m.check().Remedy; strings.Contains(r, "WEFT_MR_MONITOR=userfaultfd") != works || !strings.Contains(r, "weft_memory_events.h") {
			t.Errorf("where it works, %v: %s", works, r)
		}
	}
	if c := hugeRoom(nil); c.State != Limited || c.Remedy != "mount /sys" {
		t.Errorf("%+v", c)
	}
	if c := hugeRoom([]host.Pool{}); c.State != Missing {
		t.Errorf("%+v", c)
	}
}

func TestMonitorOfEnvironment(t *testing.T) {
	t.Setenv("WEFT_MR_MONITOR", "userfautfd")
	if m := monitor(); m.Error == "" || m.check().State != Limited || !strings.Contains(m.check().Found, "userfautfd") {
		t.Errorf("%+v", m)
	}
	t.Setenv("WEFT_MR_MONITOR", "none")
	for setting, want := range map[string]string{"offf": "the environment is refused: WEFT_MR_CACHE=offf", "off": "caches are off", "on": "none: memory of"} {
		t.Setenv("WEFT_MR_CACHE", setting)
		if m := monitor(); !strings.HasPrefix(m.check().Found, want) || m.Disabled != (setting == "off") {
			t.Errorf("WEFT_MR_CACHE=%s: %+v", setting, m.check())
		}
	}
	t.Setenv("WEFT_MR_CACHE", "")
	t.Setenv("WEFT_MR_MONITOR", "userfaultfd")
	m := monitor()
	if err := sys.CanUserfault(); err != nil {
		if m.Error == "" {
			t.Errorf("%+v, though %v", m, err)
		}
		return
	}
	if m.Serves != "userfaultfd" || m.State != "running" || !slices.Equal(m.Answers, []string{"private memory", "the data segment"}) || len(m.Gaps) != 3 || m.check().State != Works {
		t.Errorf("%+v", m)
	}
}
