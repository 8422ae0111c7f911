package sys

import (
	"errors"
	"strings"
	"syscall"
	"testing"

	"github.com/weft-fabric/weft/internal/invariants"
)

func TestFeatureNames(t *testing.T) {
	seen := make(map[string]bool)
	for f := range numFeatures {
		if f.String() == "" || seen[f.String()] {
			t.Errorf("feature %d is called %q", f, f)
		}
		seen[f.String()] = true
	}
	if len(FeatureNames()) != int(numOptional) || Feature(200).String() != "feature 200" {
		t.Error(FeatureNames(), Feature(200))
	}
}

func TestDisableFeatures(t *testing.T) {
	s, err := DisableFeatures(" eventfd, cma ,,")
	if err != nil || s != (Features{}).Without(EventFD, CrossMemory) {
		t.Errorf("%+v, %v", s, err)
	}
	if s, err := DisableFeatures(""); err != nil || s != (Features{}) {
		t.Errorf("%+v, %v", s, err)
	}
	if _, err := DisableFeatures(IOUring.String()); err == nil {
		t.Error("what no provider uses can be disabled")
	}
	if _, err := DisableFeatures("eventfd,evenfd"); err == nil || !strings.Contains(err.Error(), `"evenfd"`) || !strings.Contains(err.Error(), "eventfd, ") {
		t.Error(err)
	}
}

// TestFeatures asks this kernel for each feature, twice, and with each turned off.
func TestFeatures(t *testing.T) {
	for f := range numFeatures {
		err := Features{}.Check(f)
		if again := (Features{}).Check(f); again != err {
			t.Errorf("%v: %v, then %v", f, err, again)
		}
		t.Logf("%v: %v", f, err)
		if err != nil && !errors.Is(err, ErrNotSupported) {
			t.Errorf("%v: %v", f, err)
		}
		err = Features{}.Without(f).Check(f)
		u, ok := errors.AsType[*UnsupportedError](err)
		if !ok || u.Feature != f || !errors.Is(err, ErrNotSupported) || !errors.Is(err, errors.ErrUnsupported) || !strings.Contains(err.Error(), f.String()) {
			t.Errorf("%v turned off: %v", f, err)
		}
		for other := range numFeatures {
			if other != f && (Features{}).Without(f).Has(other) != (Features{}).Has(other) {
				t.Errorf("%v turned off: %v changed", f, other)
			}
		}
	}
	if (Features{}).Has(numFeatures) || (Features{}).Has(250) {
		t.Error("a feature that does not exist")
	}
}

func TestUnsupportedError(t *testing.T) {
	err := error(&UnsupportedError{Feature: EventFD, Err: syscall.ENOSYS})
	if !errors.Is(err, ErrNotSupported) || !errors.Is(err, syscall.ENOSYS) || errors.Is(err, ErrClosed) {
		t.Error(err)
	}
	if !transient(syscall.EMFILE) || transient(syscall.ENOSYS) || transient(syscall.EPERM) {
		t.Error("transient")
	}
}

func TestTrack(t *testing.T) {
	nothingOpen(t)
	f := NewFD(1000, "a test's")
	if invariants.Enabled {
		open := Open()
		if last := open[len(open)-1]; !strings.Contains(last, "a test's") || !strings.Contains(last, "TestTrack") {
			t.Error(last)
		}
	} else if Open() != nil && len(Open()) != 0 {
		t.Error(Open())
	}
	if f.Int() != 1000 || f.Disown() != 1000 || f.Int() != -1 || f.Disown() != -1 || f.Close() != nil {
		t.Error("disown")
	}
}
