package fabrictest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weft-fabric/weft/fabric/provider"
	"github.com/weft-fabric/weft/internal/testutil"
)

// Config says what is tested, and how. The zero value of every field but Provider works.
type Config struct {
	// Provider is the name under which the provider is linked into the test binary.
	Provider string
	// Procs is over how many processes the sides of a test are spread; 0 means 1. Above 1 the test
	// binary must have [Main] as its TestMain.
	Procs int
	// Options are given to every domain that is opened.
	Options map[string]string
	// Wrap stands between the suite and the provider, in every process; nil means none. A wrap that is
	// used with more than one process must also be given to [Main].
	Wrap *Wrap
	// Launcher is a command that starts the other processes: their command line is appended to it. "unshare
	// --net" puts them into a network namespace of their own. The processes must stay in its process group.
	Launcher []string
	// Denied are options under which a fast path of the provider is denied, as a sandbox does; nil means that there is none.
	Denied map[string]string
	// Groups are the names of the groups to run, with or without the numbers of reports behind them; empty means all. A name
	// that does not exist fails the test.
	Groups []string

	// Again has sides post again what was refused with ErrAgain, a hundred times: for a wrap that refuses some.
	Again bool

	patience time.Duration // bounds every wait; 0 means a minute
}

// Wrap puts something between the suite and a provider: a fault, a trace.
type Wrap struct {
	// Name tells a child process which of Main's wraps to use; "" means none: the wrap is around this process only.
	Name string
	// Provider returns p with the wrap around it; its name must stay the same.
	Provider func(p provider.Provider) provider.Provider
}

// roleName is the role of a child process of the suite.
const roleName = "fabrictest"

// Main is the body of the TestMain of a package that calls [Run] with more than one process: in a
// child it plays the other side, else it runs the tests, and fails the run if they leave goroutines,
// descriptors, mappings or processes behind. wraps are those that child processes may be told to
// use. It does not return.
//
//	func TestMain(m *testing.M) { fabrictest.Main(m) }
func Main(m *testing.M, wraps ...Wrap) { testutil.Main(m, Role(wraps...)) }

// Role is the child program of the suite, for a package whose TestMain has roles of its own.
func Role(wraps ...Wrap) testutil.Role {
	return testutil.Role{Name: roleName, Run: func(args []string) error { return serve(args, wraps) }}
}

// Run runs the suite: every group, in every progress mode of the provider. A test is skipped only if
// what it needs is not in the provider's Info. Run is called from one test at a time: some groups
// measure the process.
func Run(t *testing.T, c Config) {
	t.Helper()
	p, info := find(t, &c)
	chosen := choose(t, c.Groups)
	for _, mode := range info.Progress {
		t.Run(mode.String(), func(t *testing.T) {
			for _, g := range chosen {
				t.Run(g.name, func(t *testing.T) { g.check(t, c, p, info, mode) })
			}
		})
	}
}

// find looks the provider up and chooses the first of its offers that is usable here.
func find(t testing.TB, c *Config) (provider.Provider, provider.Info) {
	t.Helper()
	if c.Procs == 0 {
		c.Procs = 1
	}
	p, ok := provider.Lookup(c.Provider)
	if !ok {
		t.Fatalf("no provider %q is linked into this test: import its package", c.Provider)
	}
	if c.Wrap != nil {
		p = c.Wrap.Provider(p)
	}
	info, err := usable(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	if !info.Usable {
		t.Skipf("%s is not usable here: %s", c.Provider, info.Why)
	}
	return p, info
}

// usable returns the first usable offer of p, or the first if none is.
func usable(ctx context.Context, p provider.Provider) (provider.Info, error) {
	infos, err := p.Discover(ctx)
	if err != nil {
		return provider.Info{}, fmt.Errorf("discover: %w", err)
	}
	if len(infos) == 0 {
		return provider.Info{}, fmt.Errorf("%s describes nothing, not even why it is not usable", p.Name())
	}
	if i := slices.IndexFunc(infos, func(i provider.Info) bool { return i.Usable }); i >= 0 {
		return infos[i], nil
	}
	return infos[0], nil
}

// Groups lists the names of all groups, in the order in which they run. A group that answers reports of users has their
// numbers in its name.
func Groups() []string {
	var names []string
	for _, g := range groups() {
		names = append(names, g.name)
	}
	return names
}

// choose returns the groups of these names, or all.
func choose(t testing.TB, names []string) []group {
	t.Helper()
	all := groups()
	if len(names) == 0 {
		return all
	}
	var chosen []group
	for _, name := range names {
		i := slices.IndexFunc(all, func(g group) bool { return g.name == name || strings.HasPrefix(g.name, name+"-F") })
		if i < 0 {
			t.Fatalf("there is no group %q", name)
		}
		chosen = append(chosen, all[i])
	}
	return chosen
}
