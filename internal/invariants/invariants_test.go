package invariants

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// broken runs fn and checks that it panics with a message that holds want, if and only if
// assertions are compiled in.
func broken(t *testing.T, want string, fn func()) {
	t.Helper()
	defer func() {
		t.Helper()
		r := recover()
		if (r != nil) != Enabled {
			t.Errorf("panic %v, while Enabled is %v", r, Enabled)
		}
		if r != nil && !strings.Contains(fmt.Sprint(r), want) {
			t.Errorf("panic %v does not say %q", r, want)
		}
	}()
	fn()
}

func TestCheckf(t *testing.T) {
	Checkf(true, "true is true")
	broken(t, "invariant: head 5 is past 4", func() { Checkf(false, "head %d is past %d", 5, 4) })
}

func TestPoison(t *testing.T) {
	b := []byte("abc")
	Poison(b[:2])
	if (b[0] == 'a') == Enabled || (b[1] == 'b') == Enabled || b[2] != 'c' {
		t.Errorf("%q, while Enabled is %v", b, Enabled)
	}
}

func TestCloseChecker(t *testing.T) {
	var c CloseChecker
	c.CheckOpen()
	broken(t, "should have been closed", c.CheckClosed)
	c.Close()
	c.CheckClosed()
	broken(t, "used after it was closed", c.CheckOpen)
	broken(t, "TestCloseChecker", c.Close) // the stack of the first close
}

// Of many closes at once exactly one is the first.
func TestCloseCheckerConcurrently(t *testing.T) {
	var c CloseChecker
	var panics atomic.Int32
	var wg sync.WaitGroup
	const n = 8
	for range n {
		wg.Go(func() {
			defer func() {
				if recover() != nil {
					panics.Add(1)
				}
			}()
			c.Close()
		})
	}
	wg.Wait()
	want := int32(0)
	if Enabled {
		want = n - 1
	}
	if got := panics.Load(); got != want {
		t.Errorf("%d of %d closes were refused, want %d", got, n, want)
	}
}
