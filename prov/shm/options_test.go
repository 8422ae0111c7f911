package shm

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/weft-fabric/weft/fabric/provider"
	"github.com/weft-fabric/weft/internal/sys"
)

func TestOptions(t *testing.T) {
	o, err := parseOptions(nil)
	if err != nil || o.prefault != defaultPrefault || o.folder != "" || o.allows(1, 2) || !o.allows(2, 2) {
		t.Errorf("no options: %+v, %v", o, err)
	}
	dir := t.TempDir()
	o, err = parseOptions(map[string]string{
		"disable": "cma, eventfd", "folder": dir + "/", "allow-uid": "5, 6", "prefault": "0",
	})
	if err != nil || o.prefault != 0 || o.folder != dir || !o.allows(5, 1) || o.allows(7, 1) {
		t.Errorf("options: %+v, %v", o, err)
	}
	if o.features.Has(sys.CrossMemory) {
		t.Error("cma is not disabled")
	}
	if o, err = parseOptions(map[string]string{"allow-uid": "any"}); err != nil || !o.allows(77, 1) {
		t.Errorf("any user: %+v, %v", o, err)
	}
}

func TestBadOptions(t *testing.T) {
	for name, values := range map[string][]string{
		"disable": {"nothing"}, "fail": {"memf", "memfd@0"}, "folder": {"", "a/b", "/no/such/folder", "/proc/self/stat", "/" + strings.Repeat("x", 65)}, "cma": {"", "yes"}, "allow-uid": {"", "x", "1,", "-1"}, "prefault": {"", "-1"},
		"foldr": {"/x"}, "something-else": {""},
	} {
		for _, v := range values {
			_, err := parseOptions(map[string]string{name: v})
			// What is refused says the particular first and the sentinel last, once (package provider).
			if !errors.Is(err, provider.ErrInvalid) || !strings.Contains(err.Error(), name) ||
				!strings.HasSuffix(err.Error(), ": "+provider.ErrInvalid.Error()) || strings.Count(err.Error(), provider.ErrInvalid.Error()) != 1 {
				t.Errorf("%s=%s: %v", name, v, err)
			}
		}
	}
	if _, err := parseOptions(map[string]string{"foldr": "/x"}); !strings.Contains(err.Error(), `do you mean "folder"?`) {
		t.Error(err)
	}
}

// A folder that goes while the domain is open is named when an endpoint is to listen in it.
func TestFolderIsGone(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "folder")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	a := newSide(t, provider.DomainConfig{Options: map[string]string{"folder": dir}}, provider.EndpointConfig{})
	a.must(a.ep.Close())
	a.must(os.Remove(dir))
	_, err := a.d.OpenEndpoint(provider.EndpointConfig{Name: t.Name()})
	if !errors.Is(err, provider.ErrInvalid) || errors.Is(err, provider.ErrUnreachable) || !strings.Contains(err.Error(), "option folder=") {
		t.Error(err)
	}
}

// Want of descriptors when a domain is opened is told as such, not as if there could never be one here.
func TestOpenWithoutDescriptors(t *testing.T) {
	var was syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &was); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: 3, Max: was.Max}); err != nil {
		t.Fatal(err)
	}
	_, err := open(provider.Info{}, provider.DomainConfig{})
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &was); err != nil {
		t.Fatal(err)
	}
	if !errors.Is(err, provider.ErrNoMemory) || errors.Is(err, provider.ErrNotSupported) {
		t.Error(err)
	}
}
