package interop

import (
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/weft-fabric/weft/internal/testutil"
)

// requireNewer makes the root, or skips the test loudly.
func requireNewer(t testing.TB) {
	t.Helper()
	testutil.Require(t, testutil.Superuser(), testutil.Program("unshare"), testutil.Program("chroot"))
	cmd := exec.Command(filepath.Join(testutil.ModuleRoot(t), "interop", "root.sh"), "make", newer)
	if !testutil.PeersRequired() {
		cmd.Env = append(cmd.Environ(), "WEFT_ROOT_INSTALL=0")
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Skipf("THE LATER RELEASE OF ADIOS2 IS NOT TESTED: no root of Debian %s: %v\n%s", newer, err, out)
	}
}
