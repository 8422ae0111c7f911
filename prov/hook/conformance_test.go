package hook

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/weft-fabric/weft/fabric/fabrictest"
	"github.com/weft-fabric/weft/fabric/provider"
	"github.com/weft-fabric/weft/internal/testutil"
	_ "github.com/weft-fabric/weft/prov/all" // what is linked there is wrapped here
)

// hooks are what the law is held to hold under: nothing that a program may not see of a provider without them.
var hooks = map[string]Config{
	"counts": {},
	"delays": {Rules: []Rule{
		{At: Posts, Chance: 0.01, Delay: 300 * time.Microsecond},
		{At: Done, Chance: 0.01, Delay: 300 * time.Microsecond},
		{At: Insert | OpenEndpoint | OpenDomain | Alloc | Register | View, Chance: 0.2, Delay: time.Millisecond},
	}},
	"refusals": {Rules: []Rule{{At: Posts, Chance: 0.2, Err: provider.ErrAgain}}},
}

// underRefusals are the groups in which a program posts again what was refused, as every program must: not those about
// back-pressure, which tell a refusal from another.
var underRefusals = []string{
	"messages", "truncation", "vectored", "self", "tagged", "peek", "directed", "multi-receive", "inject-F43", "flags-F44", "order", "data-order", "many",
	"shared-room", "rma", "rma-edges", "rma-vectored", "keys", "atomics", "memory-close", "fence", "delivery-complete", "counters", "cancel", "exit", "four", "close-ends",
}

// wrapOf is a hook around a provider, for this process and for those that the suite starts.
func wrapOf(name string, c Config) fabrictest.Wrap {
	return fabrictest.Wrap{Name: name, Provider: func(p provider.Provider) provider.Provider { return Wrap(p, c) }}
}

func wraps() (all []fabrictest.Wrap) {
	for _, name := range slices.Sorted(maps.Keys(hooks)) {
		all = append(all, wrapOf(name, hooks[name]))
	}
	return all
}

// groupsUnder are the groups that a hook could break; a soak runs all.
func groupsUnder(t *testing.T, hook string) []string {
	if hook == "refusals" {
		return underRefusals
	}
	if hook == "counts" {
		return testutil.Pick(t, []string{"messages", "flags-F44", "rma", "counters", "statistics", "tracer", "allocations", "queue", "ways", "memory-close", "close-ends"}, nil)
	}
	return testutil.Pick(t, []string{
		"info", "insert", "messages", "truncation", "vectored", "self", "tagged", "peek", "directed", "multi-receive", "inject-F43", "flags-F44", "order",
		"rma-vectored", "keys", "atomics", "memory-close", "views", "fence", "delivery-complete", "counters", "cancel", "statistics", "tracer",
		"queue", "ways", "descriptor", "wait-ends-F48-F49", "small-queue-F51", "room", "shared-room", "unreachable", "names", "one-dies", "close-ends",
		"close-races",
	}, nil)
}

// The law holds for a provider with a hook around it, in both progress modes.
func TestSoakConformance(t *testing.T) {
	for _, w := range wraps() {
		t.Run(w.Name, func(t *testing.T) {
			fabrictest.Run(t, fabrictest.Config{Provider: "loop", Wrap: &w, Again: w.Name == "refusals", Groups: groupsUnder(t, w.Name)})
		})
	}
}

// underShm are, of these, the groups in which shared memory takes other ways than loop, and those of the hook itself.
var underShm = map[string][]string{
	"counts":   {"messages", "rma", "statistics", "tracer", "allocations", "ways", "close-ends"},
	"refusals": {"shared-room", "messages", "tagged", "multi-receive", "order", "data-order", "many", "rma-vectored", "atomics", "memory-close", "fence", "delivery-complete"},
	"delays": {
		"insert", "messages", "tagged", "peek", "inject-F43", "flags-F44", "order", "rma-vectored", "atomics", "views", "fence", "counters", "cancel",
		"ways", "descriptor", "wait-ends-F48-F49", "room", "unreachable", "names", "close-ends", "close-races",
	},
}

// The same for shared memory over two processes, both hooked.
func TestSoakConformanceShm(t *testing.T) {
	for _, w := range wraps() {
		t.Run(w.Name, func(t *testing.T) {
			groups := testutil.Pick(t, underShm[w.Name], groupsUnder(t, w.Name))
			switch {
			case testing.Short(): // what races here is what races under loop
				groups = []string{"messages", "rma-vectored", "order", "death"}
			case groups != nil: // all others are there
				groups = append(slices.Clone(groups), "stale", "viewer-dies", "death", "kill", "stop")
			}
			fabrictest.Run(t, fabrictest.Config{Provider: "shm", Procs: 2, Wrap: &w, Again: w.Name == "refusals", Groups: groups})
		})
	}
}

// The same with features of the kernel that the hook takes away from this process.
func TestSoakConformanceShmWithoutFeatures(t *testing.T) {
	w := wrapOf("", Config{Open: map[string]string{"disable": "noexec_seal,populate"}})
	fabrictest.Run(t, fabrictest.Config{
		Provider: "shm", Procs: 2, Wrap: &w,
		Groups: testutil.Pick(t, []string{"messages", "tagged", "rma", "memory-close", "views", "death", "close-races"}, nil),
	})
}
