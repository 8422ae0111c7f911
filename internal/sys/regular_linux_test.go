package sys

import (
	"errors"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/weft-fabric/weft/internal/testutil"
)

// TestOpenRegular has a pipe come and go at the path, to which nobody writes: whoever opened it to read would wait.
func TestOpenRegular(t *testing.T) {
	dir := t.TempDir()
	at, file, pipe := filepath.Join(dir, "at"), filepath.Join(dir, "file"), filepath.Join(dir, "pipe")
	if err := errors.Join(os.WriteFile(file, []byte("x"), 0o644), unix.Mkfifo(pipe, 0o644)); err != nil {
		t.Fatal(err)
	}
	if f, err := OpenRegular(file); err != nil {
		t.Error(err)
	} else if err := f.Close(); err != nil {
		t.Error(err)
	}
	for path, want := range map[string]error{pipe: ErrNotRegular, dir: ErrNotRegular, at: os.ErrNotExist} {
		if _, err := OpenRegular(path); !errors.Is(err, want) {
			t.Errorf("%s: %v", path, err)
		}
	}
	var all sync.WaitGroup
	var stop atomic.Bool
	all.Go(func() {
		next := filepath.Join(dir, "next")
		for i := 0; !stop.Load(); i++ {
			if err := errors.Join(os.Link([]string{file, pipe}[i%2], next), os.Rename(next, at)); err != nil {
				t.Error(err)
				return
			}
		}
	})
	for range testutil.Count(t, 2000, 20000) {
		f, err := OpenRegular(at)
		switch {
		case err == nil:
			if err := f.Close(); err != nil {
				t.Error(err)
			}
		case !errors.Is(err, ErrNotRegular) && !errors.Is(err, os.ErrNotExist):
			t.Error(err)
		}
	}
	stop.Store(true)
	all.Wait()
}
