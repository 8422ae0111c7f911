package fabric

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/weft-fabric/weft/fabric/provider"
	"github.com/weft-fabric/weft/internal/fakeprov"
)

// offers makes providers that reach differently far, in the order of their names.
func offers() (near, far, odd *fakeprov.Provider) {
	near, far, odd = fakeprov.New("alpha"), fakeprov.New("beta"), fakeprov.New("gamma")
	far.Offer.Caps |= RemoteComm
	odd.Offer = Info{Provider: "gamma", Why: "no such device"}
	return near, far, odd
}

func names(infos []Info) string {
	var list []string
	for _, i := range infos {
		list = append(list, i.Provider)
	}
	return strings.Join(list, " ")
}

func TestDiscover(t *testing.T) {
	near, far, odd := offers()
	node := fakeprov.New("delta")
	node.Offer.Caps = Msg | LocalComm
	broken := fakeprov.New("epsilon")
	broken.Broken = errors.New("sandbox")
	all := []provider.Provider{near, node, broken, far, odd}
	for _, c := range []struct {
		h    Hints
		want string
	}{
		{Hints{}, "beta delta alpha"},
		{Hints{Caps: RMA}, "beta alpha"},
		{Hints{Unusable: true}, "beta delta alpha epsilon gamma"},
		{Hints{Unusable: true, Caps: LocalComm}, "delta epsilon gamma"},
	} {
		got, err := discover(t.Context(), all, c.h)
		if err != nil || names(got) != c.want {
			t.Errorf("%+v: %s, %v; want %s", c.h, names(got), err, c.want)
		}
	}
	_, err := discover(t.Context(), all, Hints{Caps: Atomics | Msg})
	if !errors.Is(err, ErrNotSupported) {
		t.Fatal(err)
	}
	for _, want := range []string{"nothing here offers msg|atomics", "alpha: does not offer atomics", "gamma: no such device", "epsilon: sandbox"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q does not say %q", err, want)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := discover(ctx, all, Hints{}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

func TestProviderNames(t *testing.T) {
	p := fakeprov.New("alpha")
	if _, err := DiscoverIn(t.Context(), p, Hints{Provider: "alphaa"}); !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), `did you mean "alpha"?`) {
		t.Errorf("misspelt: %v", err)
	}
	if _, err := DiscoverIn(t.Context(), p, Hints{Provider: "alpha"}); err != nil {
		t.Error(err)
	}
	_, err := Discover(t.Context(), Hints{Provider: "fakes"})
	if err == nil || !strings.Contains(err.Error(), `no provider "fakes" is linked`) {
		t.Errorf("unknown: %v", err)
	}
	_, err = OpenDomain(Info{Provider: "fakes", Usable: true}, DomainConfig{})
	if err == nil || !strings.Contains(err.Error(), `no provider "fakes"`) {
		t.Errorf("open unknown: %v", err)
	}
	if _, err := OpenDomain(Info{}, DomainConfig{}); !errors.Is(err, ErrInvalid) {
		t.Errorf("open nothing: %v", err)
	}
}

func TestOpenDomainRefuses(t *testing.T) {
	near, _, odd := offers()
	manual := near.Offer
	manual.Progress = []Progress{Manual}
	lost := near.Offer
	lost.Usable = false
	for name, c := range map[string]struct {
		p    provider.Provider
		info Info
		want error
		says string
	}{
		"other":    {near, odd.Offer, ErrInvalid, `of provider "gamma"`},
		"unusable": {odd, odd.Offer, ErrNotSupported, "no such device"},
		"by hand":  {near, lost, ErrInvalid, "Discover"},
		"progress": {near, manual, ErrNotSupported, "no auto progress"},
	} {
		_, err := OpenDomainIn(c.p, c.info, DomainConfig{})
		if !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
	d, err := OpenDomainIn(near, manual, DomainConfig{Progress: Manual})
	if err != nil {
		t.Fatal(err)
	}
	if d.Info().Provider != "alpha" {
		t.Errorf("%+v", d.Info())
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
}
