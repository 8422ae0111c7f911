package sys

import (
	"errors"
	"runtime"
	"slices"
	"syscall"
	"testing"
)

func TestAffinity(t *testing.T) {
	runtime.LockOSThread() // and never unlocked: the thread ends with the test, whatever happens
	all, err := Affinity(0)
	if err != nil || len(all) == 0 || !slices.IsSorted(all) {
		t.Fatalf("%v, %v", all, err)
	}
	one := all[len(all)-1:]
	if err := SetAffinity(0, one); err != nil {
		t.Fatal(err)
	}
	if got, err := Affinity(0); err != nil || !slices.Equal(got, one) {
		t.Errorf("%v, %v after %v was set", got, err, one)
	}
	if err := SetAffinity(0, nil); !errors.Is(err, syscall.EINVAL) {
		t.Errorf("no processor at all: %v", err)
	}
	if _, err := Affinity(-1); err == nil {
		t.Error("thread -1 has processors")
	}
}
