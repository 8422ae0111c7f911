package sys

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/weft-fabric/weft/internal/testutil"
)

func TestLockedMemory(t *testing.T) {
	name := filepath.Join(t.TempDir(), "status")
	for text, want := range map[string]uint64{
		"Name:\tx\nVmLck:\t       8 kB\nVmPin:\t      20 kB\nVmHWM:\t 100 kB\n": 28 << 10,
		"Name:\tx\n": 0,
	} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if n, err := lockedMemory(name); n != want || err != nil {
			t.Errorf("%q: %d bytes, %v", text, n, err)
		}
	}
	if err := os.WriteFile(name, []byte("VmLck:\tmuch\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := lockedMemory(name); err == nil {
		t.Error("much is a number")
	}
	if _, err := lockedMemory(filepath.Join(t.TempDir(), "none")); err == nil {
		t.Error("a file that is not there")
	}
}

// rlimitMemlock is RLIMIT_MEMLOCK, which package syscall does not name.
const rlimitMemlock = 8

func TestLockableMemory(t *testing.T) {
	var l syscall.Rlimit
	if err := syscall.Getrlimit(rlimitMemlock, &l); err != nil {
		t.Fatal(err)
	}
	n, err := LockableMemory()
	if err != nil {
		t.Fatal(err)
	}
	if n > l.Cur && !may(14) { // CAP_IPC_LOCK
		t.Errorf("%d bytes of a limit of %d", n, l.Cur)
	}
}

// TestLockableInContainer is the superuser of a user namespace, who has each capability there, and none of those that drivers ask for.
func TestLockableInContainer(t *testing.T) {
	program, env := testutil.RoleCommand(t, "container")
	inside := []string{"--user", "--map-root-user"}
	testutil.Require(t, testutil.Program("unshare"), testutil.Capability{Name: "user namespaces", Fixed: true, Probe: func() error {
		return exec.Command("unshare", append(inside, "true")...).Run()
	}})
	if err := testutil.Start(t, "", []string{env}, "unshare", append(inside, program)...).Wait(); err != nil {
		t.Error(err)
	}
}

func roleContainer([]string) error {
	var l syscall.Rlimit
	if err := syscall.Getrlimit(rlimitMemlock, &l); err != nil {
		return err
	}
	if l.Cur > 1<<30 {
		return nil // as good as no limit
	}
	n, err := LockableMemory()
	if err != nil || n > l.Cur {
		return fmt.Errorf("%d bytes of a limit of %d, %v", n, l.Cur, err)
	}
	m, err := MapAnonymous((int(l.Cur)/osPageSize + 1) * osPageSize)
	if err != nil {
		return err
	}
	defer m.Close()
	if err := syscall.Mlock(m.Bytes()); !errors.Is(err, syscall.ENOMEM) && !errors.Is(err, syscall.EPERM) {
		return fmt.Errorf("locked %d bytes of a limit of %d: %w", len(m.Bytes()), l.Cur, err)
	}
	return nil
}

func TestFirstUserSpace(t *testing.T) {
	link := filepath.Join(t.TempDir(), "user")
	if !inFirstUserSpace(link) {
		t.Error("a kernel without user namespaces")
	}
	for to, want := range map[string]bool{"user:[4026531837]": true, "user:[4026532000]": false} {
		if err := errors.Join(os.RemoveAll(link), os.Symlink(to, link)); err != nil {
			t.Fatal(err)
		}
		if inFirstUserSpace(link) != want {
			t.Errorf("%s: %v", to, !want)
		}
	}
}
