package provutil

import (
	"errors"
	"strings"
	"testing"

	"github.com/weft-fabric/weft/fabric/provider"
)

func TestOptions(t *testing.T) {
	var size uint64
	var choice string
	var list []string
	o := Options{"eager": SizeOption(&size, 1, 1<<20), "cma": ChoiceOption(&choice, "auto", "off"), "disable": ListOption(&list, "a", "b")}
	if err := o.Set(map[string]string{"eager": "64K", "cma": "off", "disable": "b, a,"}); err != nil || size != 64<<10 || choice != "off" || len(list) != 2 {
		t.Error(err, size, choice, list)
	}
	for name, value := range map[string]string{
		"eager": "0", "eager ": "1", "cma": "on", "disable": "c", "Egaer": "1", "unlike": "x",
	} {
		if err := o.Set(map[string]string{name: value}); !errors.Is(err, provider.ErrInvalid) {
			t.Errorf("%s=%s: %v", name, value, err)
		}
	}
	for _, bad := range []string{"", "K", "2M", "-1", "1T", "99999999999G", "0x10"} {
		if err := o.Set(map[string]string{"eager": bad}); !errors.Is(err, provider.ErrInvalid) {
			t.Errorf("%q: %v", bad, err)
		}
	}
	if err := o.Set(map[string]string{"eagar": "1"}); !strings.Contains(err.Error(), `"eager"`) {
		t.Error(err)
	}
	if err := o.Set(map[string]string{"unlike": "1"}); !strings.Contains(err.Error(), "cma, disable, eager") {
		t.Error(err)
	}
}

// What a provider does not implement is refused by name.
func TestUnsupported(t *testing.T) {
	e, m := NoEndpoint{"x"}, NoMemory{"x"}
	_, alloc := m.Alloc(1, 0)
	_, register := m.Register(nil, 0)
	_, view := m.View(t.Context(), 1, 1, 0, 1)
	for _, err := range []error{
		e.Send(provider.Op{}), e.Recv(provider.Op{}), e.SendTagged(provider.Op{}), e.RecvTagged(provider.Op{}), e.Read(provider.Op{}),
		e.Write(provider.Op{}), e.Atomic(provider.Atomic{}), alloc, register, view,
	} {
		var oe *provider.OpError
		if !errors.Is(err, provider.ErrNotSupported) || !errors.As(err, &oe) || oe.Provider != "x" || oe.Op == "" {
			t.Error(err)
		}
	}
	if e.Cancel(1) {
		t.Error("cancelled")
	}
}
