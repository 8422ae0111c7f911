package sys

import (
	"errors"
	"fmt"
	"syscall"
	"testing"

	"github.com/weft-fabric/weft/internal/testutil"
)

// TestHeapQuestionLater asks first when nothing can be mapped, and again when it can.
func TestHeapQuestionLater(t *testing.T) {
	if err := testutil.Child(t, "crowded").Wait(); err != nil {
		t.Error(err)
	}
}

func roleCrowded([]string) error {
	var was syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_AS, &was); err != nil {
		return err
	}
	b := make([]byte, 100)
	if err := syscall.Setrlimit(syscall.RLIMIT_AS, &syscall.Rlimit{Cur: 1, Max: was.Max}); err != nil {
		return err
	}
	_, first := OfGoHeap(b)
	if err := syscall.Setrlimit(syscall.RLIMIT_AS, &was); err != nil {
		return err
	}
	is, err := OfGoHeap(b)
	if !errors.Is(first, syscall.ENOMEM) || err != nil || !is {
		return fmt.Errorf("%v without memory, and later %v, %v", first, is, err)
	}
	return nil
}
