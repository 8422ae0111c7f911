package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weft-fabric/weft/fabric"
	"github.com/weft-fabric/weft/fabric/provider"
	"github.com/weft-fabric/weft/internal/fakeprov"
	"github.com/weft-fabric/weft/internal/host"
)

// registerFakes links providers whose description is known: one that works, one that knows that it does not, and one
// that does not know.
func registerFakes() {
	good := fakeprov.New("fake")
	good.Offer.Caps |= fabric.LocalComm
	good.Offer.Features = []fabric.Feature{{Name: "memfd", On: true}, {Name: "process_vm_readv", Detail: "EPERM from the sandbox, slower copy used"}}
	provider.Register(good)
	absent := fakeprov.New("absent")
	absent.Offer = fabric.Info{Provider: "absent", Why: "no such device"}
	provider.Register(absent)
	provider.Register(cracked{fakeprov.New("cracked")})
}

type cracked struct{ *fakeprov.Provider }

func (cracked) OpenDomain(provider.Info, provider.DomainConfig) (provider.Domain, error) {
	return nil, errors.New("it broke\nin two")
}

// runInfoIn runs the command on a machine with these files.
func runInfoIn(t *testing.T, files map[string]string, args ...string) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		file := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	var out, errs bytes.Buffer
	if code := Run(t.Context(), Env{Stdout: &out, Stderr: &errs, Root: root}, append([]string{"info"}, args...)); code != 0 {
		t.Fatalf("exit %d: %s", code, &errs)
	}
	return out.String()
}

var machine = map[string]string{
	"proc/sys/kernel/osrelease":                               "6.8.0",
	"proc/sys/kernel/yama/ptrace_scope":                       "1",
	"proc/self/status":                                        "Seccomp:\t2\n",
	"proc/self/limits":                                        "Max file size   unlimited unlimited bytes\nMax open files   1024 4096 files\nMax locked memory   65536 65536 bytes\n",
	"proc/self/cgroup":                                        "0::/job\n",
	"proc/meminfo":                                            "MemAvailable: 1000000 kB\n",
	"sys/fs/cgroup/job/memory.max":                            "4000000000",
	"sys/fs/cgroup/job/memory.current":                        "1000000000",
	"sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages":   "8",
	"sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages": "6",
}

func TestInfoHost(t *testing.T) {
	_, got, _ := strings.Cut(runInfoIn(t, machine, "-p", "fake"), "host\n")
	want := `  kernel        6.8.0, under a filter of system calls (seccomp)
  ptrace_scope  1: only a parent may copy the memory of its children
  memlock       65.5 kB
  file size     no limit
  open files    1024
  memory        1.0 GB available
  cgroup        room for 3.0 GB: 1.0 GB of 4.0 GB used in /job
  hugetlb       6 of 8 pages of 2 MiB free
`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	_, got, _ = strings.Cut(runInfoIn(t, nil, "-v", "-p", "fake"), "host\n")
	want = `  kernel        unknown
  ptrace_scope  none: processes of one user may copy each other's memory
  memlock       unknown
  file size     unknown
  open files    unknown
  memory        unknown
  cgroup        no limit of memory
  hugetlb       no pages reserved
`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	for scope, want := range map[int]string{0: "one user", 1: "children", 2: "superuser", 3: "nobody"} {
		if got := ptraceText(&scope); !strings.Contains(got, want) {
			t.Errorf("ptrace_scope %d: %s", scope, got)
		}
	}
}

func TestInfoJSON(t *testing.T) {
	var o infoObject
	if err := json.Unmarshal([]byte(runInfoIn(t, machine, "--json")), &o); err != nil {
		t.Fatal(err)
	}
	if o.Host.Cgroup == nil || *o.Host.Cgroup != (host.Cgroup{Path: "/job", Limit: 4e9, Used: 1e9}) || !slices.Equal(o.Host.Huge, []host.Pool{{Size: 2 << 20, Pages: 8, Free: 6}}) {
		t.Errorf("%+v", o.Host)
	}
	usable := map[string]bool{}
	for _, p := range o.Providers {
		usable[p.Provider] = p.Usable
	}
	if !usable["fake"] || usable["absent"] || usable["cracked"] || len(usable) < 3 {
		t.Errorf("%v", usable)
	}
}

// Names of a provider's device may come from anywhere.
func TestInfoIsPrintable(t *testing.T) {
	evil := "x\x1b[2J"
	o := infoObject{Providers: []providerInfo{{
		Provider: evil, Version: evil, Domain: evil, Why: evil, Address: evil, Usable: true, Features: []featureInfo{{Name: evil, Detail: evil}},
		Caps: []string{evil}, Progress: []string{evil, evil}, Wait: []string{evil},
	}}, Host: host.Facts{Kernel: evil, Cgroup: &host.Cgroup{Path: evil}}}
	for _, write := range []func(*output){o.writeAll, func(out *output) { o.Providers[0].Progress = nil; o.Providers[0].Wait = nil; o.writeTable(out) }} {
		var b bytes.Buffer
		out := newOutput(&b)
		write(out)
		if err := out.flush(); err != nil || strings.Contains(b.String(), "\x1b") {
			t.Errorf("%v: %q", err, &b)
		}
	}
}
