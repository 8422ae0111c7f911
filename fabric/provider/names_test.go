package provider_test

import (
	"fmt"
	"testing"

	"github.com/weft-fabric/weft/fabric/provider"
)

// What programs print is for people, the zero value too.
func TestNames(t *testing.T) {
	for _, c := range []struct {
		v    any
		want string
	}{
		{provider.Peer(0), "0"}, {provider.Peer(7), "7"}, {provider.Peer(1<<32 - 1), "4294967295"}, {provider.Peer(1 << 32), "0.1"},
		{provider.Peer(2<<32 | 7), "7.2"}, {^provider.Peer(0), "4294967295.4294967295"},
		{provider.CompletionFlags(0), "none"}, {provider.HasData | provider.Claimed, "data|claimed"}, {provider.MultiDone | 1<<5, "multi-done|bit5"},
		{provider.Completion{Kind: provider.RecvDone, Flags: provider.HasData, Source: 3<<32 | 2}, "{0 receive data 0 0 0 0 2.3 <nil>}"},
	} {
		if got := fmt.Sprint(c.v); got != c.want {
			t.Errorf("%T %q, want %q", c.v, got, c.want)
		}
	}
	f := provider.HasData | provider.Claimed
	if !f.Has(provider.Claimed) || f.Has(provider.MultiDone|provider.Claimed) || !f.Has(0) {
		t.Error("Has")
	}
	err := provider.Check(&provider.Limits{}, provider.RecvDone, &provider.Op{Peer: 1<<32 | 5})
	if want := "it names peer 5.1, which needs directed: fabric: invalid argument"; err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}
