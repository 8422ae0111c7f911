package shm

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/weft-fabric/weft/fabric/provider"
	"github.com/weft-fabric/weft/internal/sys"
	"github.com/weft-fabric/weft/internal/testutil"
)

// Whatever can be disabled is shown, with what is done without it.
func TestEveryFeatureIsShown(t *testing.T) {
	for _, off := range sys.AllFeatures() {
		var names []string
		for _, f := range describe(sys.Features{}.Without(off)).Features {
			names = append(names, f.Name)
			if f.Name == off.String() && (f.On || fallbacks[off] == "" || !strings.Contains(f.Detail, fallbacks[off])) {
				t.Errorf("disabled: %+v", f)
			}
		}
		if !slices.Equal(names, sys.FeatureNames()) {
			t.Errorf("shown are %v, of %v", names, sys.FeatureNames())
		}
	}
}

// openFiles is how many descriptors this process has.
func openFiles(t *testing.T) int {
	t.Helper()
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(list)
}

// What bounds the peers is descriptors: so many as the limit says can be had.
func TestPeersAreBoundByDescriptors(t *testing.T) {
	limit, err := sys.DescriptorLimit()
	if err != nil {
		t.Fatal(err)
	}
	for name, each := range map[string]int{"": pairDescriptors, "eventfd": 1} {
		c := provider.DomainConfig{Progress: provider.Manual}
		if name != "" {
			c.Options = map[string]string{"disable": name}
		}
		a := newSide(t, c, provider.EndpointConfig{})
		if got, want := uint64(a.d.Info().Limits.Peers), (min(limit, 1<<31)-ownDescriptors)/uint64(each); got != want {
			t.Errorf("without %q: %d peers, of %d descriptors", name, got, limit)
		}
		const n = 10
		before := 0
		for range n {
			b, err := a.d.OpenEndpoint(provider.EndpointConfig{Send: a.cq, Recv: a.cq})
			a.must(err)
			_ = b
		}
		before = openFiles(t)
		for _, ep := range slices.Clone(a.d.eps[1:]) { // pairs within one process: both halves are here
			a.must(ep.Send(mk(nil, a.insert(a.ep.Address()), 1)))
			testutil.Eventually(t, "connected", func() bool {
				a.drainSome()
				return len(ep.pairs) == 1 && ep.pairs[0].state == pairUp
			})
		}
		if got := openFiles(t) - before; got > 2*n*each {
			t.Errorf("without %q: %d pairs have %d descriptors", name, n, got)
		}
	}
}

// An endpoint that cannot be opened has no peer to be blamed.
func TestOpenEndpointNamesNoPeer(t *testing.T) {
	a := newSide(t, provider.DomainConfig{}, provider.EndpointConfig{Name: "taken"})
	_, err := a.d.OpenEndpoint(provider.EndpointConfig{Name: "taken"})
	if !errors.Is(err, provider.ErrBusy) || strings.Contains(err.Error(), "peer") || !strings.Contains(err.Error(), `name "taken"`) {
		t.Error(err)
	}
}
