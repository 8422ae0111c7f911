package interop

import (
	"errors"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weft-fabric/weft/internal/bpfixture"
	"github.com/weft-fabric/weft/internal/testutil"
)

// onFullDisk mounts a file system of one page in a namespace of its own, fills it,
// and runs the command after "--" there.
const onFullDisk = `mount -t tmpfs -o size=4k full "$1" && head -c 4096 /dev/zero >"$1/filler" && shift && exec "$@"`

// TestF08FullDisk: a writer that cannot write its contact file says so at once,
// with the path, and does not wait for readers that could never find it.
func TestF08FullDisk(t *testing.T) {
	testutil.Require(t, testutil.Superuser(), testutil.Program("unshare"))
	weft, disk := buildWeft(t), t.TempDir()
	in := bpfixture.Extract(t, "main-nostats")
	out := filepath.Join(disk, "stream")
	cmd := exec.Command("unshare", "--mount", "--propagation", "private", "sh", "-c", onFullDisk, "sh", disk, weft, "pipe", in, out)
	text, err := cmd.CombinedOutput()
	exit, ok := errors.AsType[*exec.ExitError](err)
	if !ok || exit.ExitCode() != 1 {
		t.Errorf("weft pipe to a full disk ended with %v, want exit code 1; it said\n%s", err, text)
	}
	for _, want := range []string{out + ".sst", "no space left on device"} {
		if !strings.Contains(string(text), want) {
			t.Errorf("weft pipe to a full disk does not say %q, but\n%s", want, text)
		}
	}
}
