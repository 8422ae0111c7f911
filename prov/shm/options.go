package shm

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/weft-fabric/weft/fabric/provider"
	"github.com/weft-fabric/weft/internal/provutil"
	"github.com/weft-fabric/weft/internal/sys"
)

// options are the provider's own, parsed. docs/prov/shm.md says what each is for.
type options struct {
	features sys.Features
	folder   string
	users    map[uint32]bool // allowed besides our own
	anyUser  bool
	prefault uint64
	cma      string
	huge     string
	failures *sys.Failures
}

const defaultPrefault = 64 << 20

func parseOptions(given map[string]string) (options, error) {
	o := options{prefault: defaultPrefault, cma: cmaAuto, huge: hugeOff}
	err := provutil.Options{
		"disable":   o.setDisable,
		"folder":    o.setFolder,
		"allow-uid": o.setUsers,
		"fail":      o.setFail,
		"cma":       provutil.ChoiceOption(&o.cma, cmaAuto, cmaOff, cmaOn),
		"hugetlb":   provutil.ChoiceOption(&o.huge, hugeNames()...),
		"prefault":  provutil.SizeOption(&o.prefault, 0, 1<<46),
	}.Set(given)
	return o, err
}

func (o *options) setDisable(v string) (err error) {
	if o.features, err = sys.DisableFeatures(v); err != nil {
		err = fmt.Errorf("%w: %w", err, provider.ErrInvalid)
	}
	return err
}

func (o *options) setFail(v string) (err error) {
	if o.failures, err = sys.ParseFailures(v); err != nil {
		err = fmt.Errorf("%w: %w", err, provider.ErrInvalid)
	}
	return err
}

func (o *options) setFolder(v string) error {
	if !filepath.IsAbs(v) {
		return fmt.Errorf("it is no absolute path: %w", provider.ErrInvalid)
	}
	o.folder = filepath.Clean(v)
	if n := len(folderName(o.folder, "").Name); n > maxSocketPath {
		return fmt.Errorf("%d bytes too long for the path of a socket in it: %w", n-maxSocketPath, provider.ErrInvalid)
	}
	switch info, err := os.Stat(o.folder); {
	case err != nil:
		return fmt.Errorf("it is no folder that is there: %w: %w", err, provider.ErrInvalid)
	case !info.IsDir():
		return fmt.Errorf("it is no folder: %w", provider.ErrInvalid)
	}
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
			return fmt.Errorf("%q is no user id: %w", word, provider.ErrInvalid)
		}
		o.users[uint32(uid)] = true
	}
	return nil
}

// allows says whether a user may connect, or be connected to.
func (o *options) allows(uid, own uint32) bool { return uid == own || o.anyUser || o.users[uid] }
