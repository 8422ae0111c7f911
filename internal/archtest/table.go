package archtest

import "slices"

// row says what the packages of one place may import. The first row that matches a package counts.
//
// Patterns are paths in the module: "a/b" is that package, "a/*" what lies right below a, "a/..."
// is a and all that lies below.
type row struct {
	pkg    string
	may    []string // packages of this module, for product code
	tests  []string // what its tests may import as well
	others []string // modules or packages of others, for product code
}

// Every package may import the standard library and these.
var (
	everywhere = []string{"internal/invariants"}

	// testsEverywhere is for the tests of every package.
	testsEverywhere = []string{"internal/testutil", "internal/bpfixture"}

	// testOthers are the libraries that tests are written with.
	testOthers = []string{
		"github.com/google/go-cmp", "go.uber.org/goleak", "pgregory.net/rapid",
		"github.com/rogpeppe/go-internal", "github.com/cockroachdb/datadriven",
		"golang.org/x/net", "golang.org/x/sync", "github.com/chromedp/chromedp",
	}
)

// core is what product code of the core may link besides the standard library. The fence around
// x/sys/unix is a rule of its own.
var core = []string{"golang.org/x/sys", "golang.org/x/sync"}

// codecs are linked by the operators that need them, and by no one else.
var codecs = []string{"github.com/klauspost/compress", "github.com/pierrec/lz4/v4", "github.com/dsnet/compress"}

// interfaces are linked by the command.
var interfaces = []string{
	"github.com/spf13/cobra", "github.com/spf13/pflag", "github.com/vbauerster/mpb/v8", "golang.org/x/term",
	"charm.land/bubbletea/v2", "charm.land/lipgloss/v2", "github.com/guptarohit/asciigraph",
	"github.com/pelletier/go-toml/v2", "github.com/goccy/go-yaml", "github.com/coder/websocket",
	"gonum.org/v1/plot", "golang.org/x/sync",
}

// provider is what a provider stands on.
var provider = []string{
	"fabric/provider", "memmon", "internal/sys", "internal/shmem", "internal/mrcache", "internal/provutil",
	"internal/suggest",
}

// public are the packages that users import.
var public = []string{
	"sst/...", "bp/...", "step/...", "fabric/...", "memmon/...", "metrics/...", "operator/...", "prov/...",
}

// table is the picture of docs/architecture.md, arrow by arrow: imports point down only.
var table = []row{
	// What users see of communication.
	{pkg: "fabric/provider", may: []string{"memmon"}, others: core},
	{pkg: "fabric/fabrictest", may: []string{"fabric", "fabric/provider", "memmon", "internal/testutil"}, tests: []string{"prov/*"}, others: core},
	{pkg: "fabric", may: []string{"fabric/provider", "memmon", "internal/suggest"}, tests: []string{"prov/*", "fabric/fabrictest", "internal/fakeprov", "internal/pinnic"}, others: core},
	{pkg: "memmon", may: []string{"internal/sys", "internal/shmem", "internal/hooks"}, tests: []string{"internal/pinnic", "internal/mrcache"}, others: core},

	// Providers: never each other, but for those whose work it is.
	{pkg: "prov/all", may: []string{"prov/*"}},
	{pkg: "prov/link", may: slices.Concat([]string{"prov/*"}, provider), tests: []string{"fabric", "fabric/fabrictest"}, others: core},
	{pkg: "prov/hook", may: slices.Concat([]string{"prov/*"}, provider), tests: []string{"fabric", "fabric/fabrictest", "internal/fakeprov"}, others: core},
	{pkg: "prov/*", may: provider, tests: []string{"fabric", "fabric/fabrictest"}, others: core},

	// What users see of data. step and sst use shmem for its casts of typed slices.
	{pkg: "step/...", may: []string{"step/...", "operator", "internal/wire/*", "internal/shmem", "internal/suggest"}, tests: []string{"operator/*"}, others: core},
	{pkg: "bp/...", may: []string{"bp/...", "step", "operator", "internal/wire/*", "internal/suggest"}, tests: []string{"operator/*"}, others: core},
	{pkg: "sst/internal/tcp", may: []string{"internal/sys"}}, // shared by carrier and cohort, which know nothing of each other
	{
		pkg:    "sst/...",
		may:    []string{"sst/...", "step", "fabric", "operator", "internal/wire/*", "internal/shmem", "internal/sys", "internal/suggest"},
		tests:  []string{"prov/*", "fabric/provider", "operator/*", "bp", "memmon"},
		others: core,
	},
	{pkg: "operator", others: core},
	{pkg: "operator/...", may: []string{"operator/..."}, others: slices.Concat(codecs, core)},

	// Foreign formats.
	{pkg: "internal/wire/*", may: []string{"internal/wire/*"}},

	// What providers share, and the two fences.
	{pkg: "internal/provutil", may: []string{"fabric/provider", "memmon", "internal/sys", "internal/shmem", "internal/mrcache", "internal/suggest"}, others: core},
	{pkg: "internal/mrcache", may: []string{"memmon", "internal/sys", "internal/shmem"}, tests: []string{"internal/pinnic"}, others: core},
	{pkg: "internal/hooks", may: []string{"internal/sys"}, others: core},
	{pkg: "internal/shmem", may: []string{"internal/sys"}, others: core},
	{pkg: "internal/sys", others: core},

	// What the command and the benchmarks measure with. It pins threads, which only sys can.
	{pkg: "internal/ping", may: []string{"fabric", "memmon", "internal/sys"}, tests: []string{"prov/*", "internal/fakeprov", "fabric/provider"}, others: core},

	// What the command knows of the machine and of this process.
	{pkg: "internal/host"},
	{pkg: "internal/doctor", may: []string{"internal/host", "internal/hooks", "internal/sys", "memmon"}, others: core},

	// Small help for everybody: no arrows out.
	{pkg: "internal/suggest"},
	{pkg: "internal/invariants"},

	// Support for tests. testutil imports nothing of the module, so that the lowest package can use it.
	{pkg: "internal/testutil", others: []string{"github.com/google/go-cmp", "go.uber.org/goleak"}},
	{pkg: "internal/bpfixture"},
	{pkg: "internal/fakeprov", may: []string{"fabric/provider", "memmon"}},
	{pkg: "internal/pinnic", may: []string{"internal/sys"}, tests: []string{"memmon", "internal/mrcache"}},
	{pkg: "internal/archtest"},

	// Above everything. Codecs and metrics are linked by the one who wants them.
	{pkg: "metrics", may: []string{"sst", "step", "fabric", "memmon"}, others: []string{"github.com/prometheus/client_golang"}},
	{
		pkg:    "cmd/...",
		may:    slices.Concat([]string{"cmd/...", "internal/suggest", "internal/ping", "internal/host", "internal/doctor"}, public),
		tests:  []string{"internal/wire/*", "internal/fakeprov", "internal/hooks"},
		others: interfaces,
	},
	{pkg: "examples/...", may: public, others: []string{"golang.org/x/sync"}},
	{pkg: "bench/...", may: slices.Concat([]string{"bench/...", "interop/peers", "internal/..."}, public), others: slices.Concat(interfaces, codecs)},
	{pkg: "interop/...", may: slices.Concat([]string{"interop/...", "internal/..."}, public), tests: []string{"cmd/..."}, others: slices.Concat(testOthers, core)},
	{pkg: ".", tests: public},
}
