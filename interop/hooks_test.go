package interop

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weft-fabric/weft/internal/hooks"
	"github.com/weft-fabric/weft/internal/testutil"
	"github.com/weft-fabric/weft/interop/peers"
)

// Hooks of others in the C library, as registration caches put them there, and who finds them.

// compileC compiles a source of peers.Hooks into a folder, under a name.
func compileC(t *testing.T, dir, source, name string, args ...string) string {
	t.Helper()
	testutil.Require(t, testutil.Program("gcc"))
	text, err := peers.Hooks.ReadFile("hooks/" + source)
	if err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(dir, name)
	cmd := exec.Command("gcc", append([]string{"-O1", "-Wall", "-Werror", "-o", out, "-x", "c", "-"}, args...)...)
	cmd.Stdin = strings.NewReader(string(text))
	if said, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("gcc %s: %v\n%s", source, err, said)
	}
	return out
}

// compileHooks compiles the libraries into a folder.
func compileHooks(t *testing.T, dir string) map[string]string {
	t.Helper()
	libraries := map[string]string{}
	for _, name := range []string{"patcher", "interposer", "rerouter"} {
		libraries[name] = compileC(t, dir, name+".c", name+".so", "-shared", "-fPIC")
	}
	return libraries
}

// hooked are the hooks that each library makes in a program, without their addresses.
func hooked(libraries map[string]string, program, c string) map[string][]hooks.Hook {
	hook := func(function string, kind hooks.Kind, object, library, symbol string) hooks.Hook {
		return hooks.Hook{Function: function, Kind: kind, Object: object, Owner: libraries[library], Symbol: symbol}
	}
	return map[string][]hooks.Hook{
		"": {},
		"patcher": {
			hook("munmap", hooks.Patched, c, "patcher", "patcher_munmap"),
			hook("madvise", hooks.Patched, c, "patcher", "patcher_madvise"),
		},
		"interposer": {
			hook("munmap", hooks.Interposed, "", "interposer", "munmap"),
			hook("shmdt", hooks.Interposed, "", "interposer", "shmdt"),
		},
		"rerouter": {hook("munmap", hooks.Rerouted, program, "rerouter", "rerouter_munmap")},
	}
}

// wantHooks compares, without addresses, which have to be there.
func wantHooks(t *testing.T, r hooks.Report, want []hooks.Hook) {
	t.Helper()
	got := slices.Clone(r.Hooks)
	for i := range got {
		if got[i].Target == 0 {
			t.Errorf("%v: no address", got[i])
		}
		got[i].Target = 0
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if len(r.Unseen) > 0 {
		t.Errorf("unseen: %+v", r.Unseen)
	}
}

// TestHooksOfThisProcess: a Go program with the C library sees the hooks in its own process, and memmon says whose they are.
func TestHooksOfThisProcess(t *testing.T) {
	libraries := compileHooks(t, t.TempDir())
	t.Setenv("CGO_ENABLED", "1")
	program := buildProgram(t, "./interop/hooked")
	for library := range hooked(libraries, program, "") {
		t.Run("with "+library, func(t *testing.T) {
			p := testutil.Start(t, "", []string{"LD_PRELOAD=" + libraries[library]}, program)
			if err := p.Wait(); err != nil {
				t.Fatal(err)
			}
			var said struct {
				Report hooks.Report
				Lines  []string
				Log    string
			}
			if err := json.Unmarshal([]byte(p.Stdout()), &said); err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(said.Report.Library, "libc") && !strings.Contains(said.Report.Library, "musl") {
				t.Errorf("the C library is %q", said.Report.Library)
			}
			wantHooks(t, said.Report, hooked(libraries, program, said.Report.Library)[library])
			if !slices.Equal(said.Lines, said.Report.Lines()) {
				t.Errorf("memmon has %q of %q", said.Lines, said.Report.Lines())
			}
			if library == "" && said.Log != "" || library != "" && (strings.Count(said.Log, "\n") != 1 || !strings.Contains(said.Log, libraries[library])) {
				t.Errorf("memmon logs %q", said.Log)
			}
		})
	}
}

// TestHooksOfStaticProcess: without the C library there is nothing to hook.
func TestHooksOfStaticProcess(t *testing.T) {
	t.Setenv("CGO_ENABLED", "0")
	p := testutil.Start(t, "", nil, buildProgram(t, "./interop/hooked"))
	if err := p.Wait(); err != nil || p.Stdout() != `{"lines":null,"log":"","report":{"library":"","objects":0,"hooks":[],"unseen":[]}}`+"\n" {
		t.Errorf("%v: %s", err, p.Output())
	}
}

// program starts one that is linked in some way, in C, with a library loaded into it, and returns it when it runs.
func program(t *testing.T, path, library string, args ...string) *testutil.Process {
	t.Helper()
	p := testutil.Start(t, "", []string{"LD_PRELOAD=" + library}, path, args...)
	p.Expect("READY")
	return p
}

func end(t *testing.T, p *testutil.Process) {
	t.Helper()
	p.CloseInput()
	if err := p.Wait(); err != nil {
		t.Error(err)
	}
}

// TestHooksOfOtherProcess looks at C programs from outside, however they are linked: nobody is named who has done nothing.
func TestHooksOfOtherProcess(t *testing.T) {
	libraries := compileHooks(t, t.TempDir())
	dir := t.TempDir()
	for name, args := range map[string][]string{
		"bound at once":        {"-Wl,-z,now"},
		"bound lazily":         {"-Wl,-z,lazy"},
		"at a fixed place":     {"-no-pie", "-fno-pie"},
		"with an address":      {"-no-pie", "-fno-pie", "-DADDRESS"},
		"without a symbol":     {"-s"},
		"linked by old tables": {"-Wl,--hash-style=sysv"},
	} {
		path := compileC(t, dir, "program.c", strings.ReplaceAll(name, " ", "-"), args...)
		for library := range hooked(libraries, path, "") {
			t.Run(name+", with "+library, func(t *testing.T) {
				for _, called := range [][]string{nil, {"not called yet"}} {
					p := program(t, path, libraries[library], called...)
					r, err := hooks.FindIn(p.Pid())
					if err != nil {
						t.Fatal(err)
					}
					want := hooked(libraries, path, r.Library)[library]
					if name == "with an address" && library == "patcher" { // what it takes for munmap is the program's stub
						want[0], want[1] = want[1], want[0]
						want[1].Object = path
					}
					wantHooks(t, r, want)
					end(t, p)
				}
			})
		}
	}
}

// TestHooksOfProgramItself: a program that defines munmap comes first.
func TestHooksOfProgramItself(t *testing.T) {
	path := compileC(t, t.TempDir(), "program.c", "own", "-DOWN", "-rdynamic")
	p := program(t, path, "")
	r, err := hooks.FindIn(p.Pid())
	if err != nil {
		t.Fatal(err)
	}
	wantHooks(t, r, []hooks.Hook{{Function: "munmap", Kind: hooks.Interposed, Owner: path, Symbol: "munmap"}})
	end(t, p)
}

// TestHooksOfRealLibraries: UCX patches, by itself or because Open MPI loads it, in a root of its own, and not if it is told so.
func TestHooksOfRealLibraries(t *testing.T) {
	weft := buildWeft(t)
	for _, c := range []struct {
		who, env string
		kind     hooks.Kind // empty: nothing
	}{
		{"ucx", "UCX_MEM_MMAP_HOOK_MODE=bistro", hooks.Patched},
		{"openmpi", "UCX_MEM_MMAP_HOOK_MODE=bistro", hooks.Patched},
		{"openmpi", "UCX_MEM_EVENTS=n", ""}, // what the command advises
	} {
		t.Run(c.who+" "+c.env, func(t *testing.T) {
			p := run(t, t.TempDir(), []string{c.env}, []string{"python3", inside + "/hooks.py", c.who})
			p.Expect("READY")
			doctor := testutil.Start(t, "", nil, weft, "doctor", "--json", "--pid", strconv.Itoa(p.Pid()))
			if err := doctor.Wait(); err != nil {
				t.Error(err)
			}
			var said struct{ Hooks hooks.Report }
			if err := json.Unmarshal([]byte(doctor.Stdout()), &said); err != nil {
				t.Fatal(err)
			}
			seen := map[string]bool{}
			for _, h := range said.Hooks.Hooks {
				seen[h.Function] = true
				if h.Kind != c.kind || !strings.Contains(h.Owner, "/libucm.so") || !strings.HasPrefix(h.Symbol, "ucm_") {
					t.Errorf("%+v", h)
				}
			}
			if seen["munmap"] != (c.kind != "") || seen["madvise"] != (c.kind != "") || len(said.Hooks.Unseen) > 0 {
				t.Errorf("%+v", said.Hooks)
			}
			p.CloseInput()
			if err := p.Wait(); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestHooksByDoctor: the command names the owner, in a process of C, to the superuser and to the process's own user, and to no other.
func TestHooksByDoctor(t *testing.T) {
	testutil.Require(t, testutil.Superuser(), testutil.Program("setpriv"))
	dir := openFolder(t)
	libraries := compileHooks(t, dir)
	path := compileC(t, dir, "program.c", "program")
	weft := filepath.Join(dir, "weft")
	text, err := os.ReadFile(buildWeft(t))
	if err == nil {
		err = os.WriteFile(weft, text, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	as := func(uid string) []string {
		return []string{"setpriv", "--reuid=" + uid, "--regid=" + uid, "--clear-groups", "--no-new-privs"}
	}
	p := testutil.Start(t, "/", []string{"LD_PRELOAD=" + libraries["patcher"]}, "setpriv", append(as("65534"), path)[1:]...)
	p.Expect("READY")
	doctor := func(uid string) *testutil.Process {
		line := append(as(uid), weft, "doctor", "--pid", strconv.Itoa(p.Pid()))
		return testutil.Start(t, "/", nil, line[0], line[1:]...)
	}
	want := "munmap, madvise patched by " + libraries["patcher"] + "; they see no calls that pass the library by, as Go's do"
	for _, uid := range []string{"0", "65534"} {
		d := doctor(uid)
		if err := d.Wait(); err != nil || !strings.Contains(d.Stdout(), want) {
			t.Errorf("as user %s: %v, no %q in %s", uid, err, want, d.Output())
		}
	}
	d := doctor("65533")
	if err := d.Wait(); err == nil || strings.Contains(d.Stdout(), want) || !strings.Contains(d.Stderr(), "permission denied") {
		t.Errorf("as another user: %v, %s", err, d.Output())
	}
	end(t, p)
}

// TestHooksOddFiles: a file that was removed or spoilt since it was loaded is named, and the rest is looked at.
func TestHooksOddFiles(t *testing.T) {
	for what, spoil := range map[string]func(string) error{
		"removed": os.Remove,
		"spoilt": func(path string) error {
			if err := os.Remove(path); err != nil { // the process keeps what it has
				return err
			}
			return os.WriteFile(path, []byte("no library"), 0o600)
		},
	} {
		t.Run(what, func(t *testing.T) {
			libraries := compileHooks(t, t.TempDir())
			path := compileC(t, t.TempDir(), "program.c", "program")
			p := program(t, path, libraries["patcher"])
			if err := spoil(libraries["patcher"]); err != nil {
				t.Fatal(err)
			}
			r, err := hooks.FindIn(p.Pid())
			if err != nil {
				t.Fatal(err)
			}
			if os.Geteuid() == 0 { // the kernel has the file yet
				for i := range r.Hooks {
					r.Hooks[i].Owner = strings.TrimSuffix(r.Hooks[i].Owner, " (deleted)")
				}
				wantHooks(t, r, hooked(libraries, path, r.Library)["patcher"])
			} else if len(r.Unseen) != 1 || !strings.HasPrefix(r.Unseen[0].Object, libraries["patcher"]) || len(r.Hooks) != 2 || !strings.HasPrefix(r.Hooks[0].Owner, libraries["patcher"]) {
				t.Errorf("%+v", r)
			}
			end(t, p)
		})
	}
}
