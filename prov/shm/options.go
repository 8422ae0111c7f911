package shm

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/weft-fabric/weft/fabric/provider"
	"github.com/weft-fabric/weft/internal/suggest"
	"github.com/weft-fabric/weft/internal/sys"
)

// options are the provider's own, parsed. docs/prov/shm.md says what each is for.
type options struct {
	features sys.Features
	folder   string
	users    map[uint32]bool // allowed besides our own
	anyUser  bool
	cma      bool
	prefault uint64
}

const defaultPrefault = 64 << 20

// optionTable has each option's name and how it is set.
var optionTable = map[string]func(o *options, value string) error{
	"disable":   (*options).setDisable,
	"folder":    (*options).setFolder,
	"allow-uid": (*options).setUsers,
	"cma":       func(o *options, v string) error { return choose(&o.cma, v, "auto", "off") },
	"prefault":  (*options).setPrefault,
}

func parseOptions(m map[string]string) (options, error) {
	o := options{cma: true, prefault: defaultPrefault}
	names := slices.Sorted(maps.Keys(optionTable))
	for _, name := range slices.Sorted(maps.Keys(m)) {
		set, ok := optionTable[name]
		if !ok {
			hint := "there are " + strings.Join(names, ", ")
			if near := suggest.Nearest(name, names); near != "" {
				hint = fmt.Sprintf("did you mean %q?", near)
			}
			return options{}, fmt.Errorf("unknown option %q, %s: %w", name, hint, provider.ErrInvalid)
		}
		if err := set(&o, m[name]); err != nil {
			return options{}, fmt.Errorf("option %s=%s: %w: %w", name, m[name], err, provider.ErrInvalid)
		}
	}
	return o, nil
}

// choose sets a switch that has two words.
func choose(to *bool, value, yes, no string) error {
	if value != yes && value != no {
		return fmt.Errorf("it is %q or %q", yes, no)
	}
	*to = value == yes
	return nil
}

func (o *options) setDisable(v string) (err error) {
	o.features, err = sys.DisableFeatures(v)
	return err
}

func (o *options) setFolder(v string) error {
	if !filepath.IsAbs(v) {
		return fmt.Errorf("it is no absolute path")
	}
	o.folder = filepath.Clean(v)
	return nil
}

func (o *options) setUsers(v string) error {
	if v == "any" {
		o.anyUser = true
		return nil
	}
	o.users = make(map[uint32]bool)
	for word := range strings.SplitSeq(v, ",") {
		uid, err := strconv.ParseUint(strings.TrimSpace(word), 10, 32)
		if err != nil {
			return fmt.Errorf("%q is no user id", word)
		}
		o.users[uint32(uid)] = true
	}
	return nil
}

func (o *options) setPrefault(v string) (err error) {
	o.prefault, err = strconv.ParseUint(v, 10, 64)
	return err
}

// allows says whether a user may connect, or be connected to.
func (o *options) allows(uid, own uint32) bool { return uid == own || o.anyUser || o.users[uid] }
