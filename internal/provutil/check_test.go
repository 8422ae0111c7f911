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
	o := Options{"eager": SizeOption(&size, 1, 1<<20), "cma": ChoiceOption(&choice, "auto", "off"), "disable": func(string) error { return nil }}
	if err := o.Set(map[string]string{"eager": "64K", "cma": "off"}); err != nil || size != 64<<10 || choice != "off" {
		t.Error(err, size, choice)
	}
	for name, value := range map[string]string{
		"eager": "0", "eager ": "1", "cma": "on", "Egaer": "1", "unlike": "x",
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
