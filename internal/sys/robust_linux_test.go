package sys

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"

	"github.com/weft-fabric/weft/internal/testutil"
)

// ownedAt are the words of the tests.
var ownedAt = []int{64, 8, 4088}

// roleOwn owns words in memory that it receives, until it is told how to end.
func roleOwn(args []string) error {
	fd, err := receiveFD(args[0])
	if err != nil {
		return err
	}
	m, err := Map(fd, 0, 4096, true)
	if err != nil {
		return err
	}
	o, err := NewRobustOwner(m, ownedAt, nil, Features{})
	if err != nil {
		return err
	}
	fmt.Println("owned")
	bufio.NewScanner(os.Stdin).Scan()
	if args[1] == "close" {
		return errors.Join(o.Close(), o.Close())
	}
	return nil
}

// TestRobust sees an owner be killed, end, and close, with several sleepers on each word, who cannot write it.
func TestRobust(t *testing.T) {
	nothingOpen(t)
	testutil.Require(t, has(RobustList))
	for _, end := range []string{"kill", "exit", "close"} {
		fd := memory(t, 4096)
		m := mapped(t, fd, 4096, false)
		child, conn := childWithFD(t, "own", fd, end)
		child.Expect("owned")
		var wg sync.WaitGroup
		for _, off := range ownedAt {
			w := word32(m.Bytes()[off:])
			alive := w.Load()
			if alive&OwnerWaits == 0 || alive&OwnerDied != 0 {
				t.Errorf("%s: the word is %#x", end, alive)
			}
			for range 3 {
				wg.Go(func() {
					for w.Load() == alive {
						if err := FutexWait(w, alive, 0); err != nil {
							t.Error(err)
							return
						}
					}
					if died := w.Load()&OwnerDied != 0; died != (end != "close") {
						t.Errorf("%s: the word is %#x", end, w.Load())
					}
					if _, err := FutexWake(w, 10); err != nil {
						t.Error(err)
					}
				})
			}
		}
		if end == "kill" {
			child.Kill()
		} else {
			child.Send("end")
		}
		wg.Wait()
		if err := child.Wait(); err != nil && end != "kill" {
			t.Error(err)
		}
		conn.Close()
	}
}

func TestRobustErrors(t *testing.T) {
	nothingOpen(t)
	testutil.Require(t, has(RobustList))
	fd := memory(t, 4096)
	rw, ro := mapped(t, fd, 4096, true), mapped(t, fd, 4096, false)
	for _, offsets := range [][]int{nil, {-8}, {4}, {4096}, {4092}, {8, 8}, make([]int, 3000)} {
		if _, err := NewRobustOwner(rw, offsets, nil, Features{}); err == nil {
			t.Errorf("words at %v", offsets[:min(3, len(offsets))])
		}
	}
	if _, err := NewRobustOwner(ro, ownedAt, nil, Features{}); err == nil {
		t.Error("in memory that cannot be written")
	}
	if _, err := NewRobustOwner(rw, ownedAt, nil, Features{}.Without(RobustList)); !errors.Is(err, ErrNotSupported) {
		t.Error(err)
	}
	for range 20 { // one after the other, maybe on the same thread
		o, err := NewRobustOwner(rw, ownedAt, nil, Features{})
		if err != nil {
			t.Fatal(err)
		}
		if err := o.Close(); err != nil {
			t.Error(err)
		}
		for _, off := range ownedAt {
			if v := word32(ro.Bytes()[off:]).Load(); v != 0 {
				t.Errorf("%#x after the close", v)
			}
		}
	}
}
