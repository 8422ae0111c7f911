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
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weft-fabric/weft/internal/sys"
	"github.com/weft-fabric/weft/internal/testutil"
)

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
		is(name, l.Cur >= little)
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
	if r.Hooks.Error == "" || r.check("c_library").State != Limited || !r.OK {
		t.Errorf("%+v, %+v", r.Hooks, r.check("c_library"))
	}
}

func TestMonitorOfEnvironment(t *testing.T) {
	t.Setenv("WEFT_MR_MONITOR", "userfautfd")
	if m := monitor(); m.Error == "" || m.check().State != Limited || !strings.Contains(m.check().Found, "userfautfd") {
		t.Errorf("%+v", m)
	}
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
